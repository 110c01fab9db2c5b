// Package builtin has actions of the core pack that every worker can run without any file: core.echo, core.noop,
// core.sleep and core.fail. On a worker with the files of the core pack the files run instead; the first three are
// equivalent to them.
package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/worker"
)

// Actions returns the functions in a new map, so that a program can add its own.
func Actions() worker.Actions {
	return worker.Actions{"core.echo": echo, "core.noop": noop, "core.sleep": sleep, "core.fail": fail}
}

// echo writes its message, without a line break.
func echo(_ context.Context, task worker.Task) (any, error) {
	var params struct {
		Message text `json:"message"`
	}
	if err := task.Decode(&params); err != nil {
		return nil, err
	}
	_, err := io.WriteString(task.Stdout, string(params.Message))
	return nil, err
}

// noop writes its message and ends with its exit code.
func noop(_ context.Context, task worker.Task) (any, error) {
	params := struct {
		Message  text `json:"message"`
		ExitCode text `json:"exit_code"`
	}{ExitCode: "0"}
	if err := task.Decode(&params); err != nil {
		return nil, err
	}
	code, err := strconv.Atoi(string(params.ExitCode))
	if err != nil || code < 0 || code > 255 {
		return nil, wrong(task, "exit_code must be between 0 and 255")
	}
	if params.Message != "" {
		_, _ = fmt.Fprintf(task.Stdout, "[NOOP] %s\n", params.Message) // a capture never fails
	}
	_, _ = fmt.Fprintln(task.Stdout, "No operation completed successfully")
	if code != 0 {
		return nil, &worker.ExitError{Code: code}
	}
	return nil, nil
}

// maxSleep is the longest sleep in seconds.
const maxSleep = 3600

// sleep waits for the given seconds, or until it is interrupted.
func sleep(ctx context.Context, task worker.Task) (any, error) {
	params := struct {
		Seconds text `json:"seconds"`
		Message text `json:"message"`
	}{Seconds: "1"}
	if err := task.Decode(&params); err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseFloat(string(params.Seconds), 64)
	if err != nil || !(seconds >= 0 && seconds <= maxSleep) {
		return nil, wrong(task, "seconds must be between 0 and 3600")
	}
	if params.Message != "" {
		_, _ = fmt.Fprintln(task.Stdout, params.Message)
	}
	if !supervise.Sleep(ctx, time.Duration(seconds*float64(time.Second))) {
		return nil, context.Cause(ctx)
	}
	_, _ = fmt.Fprintf(task.Stdout, "Slept for %s seconds\n", params.Seconds)
	return nil, nil
}

// wrong refuses a parameter as the files of the core pack do.
func wrong(task worker.Task, what string) error {
	_, _ = fmt.Fprintln(task.Stderr, "ERROR: "+what)
	return &worker.ExitError{Code: 1, Message: "ERROR: " + what}
}

// text is a parameter as a text: the command line gives a number as a text, a workflow as a number. Null keeps the
// default.
type text string

// UnmarshalJSON takes a value of any type.
func (t *text) UnmarshalJSON(raw []byte) error {
	var plain string
	switch {
	case string(raw) == "null":
	case json.Unmarshal(raw, &plain) == nil:
		*t = text(plain)
	default:
		*t = text(raw)
	}
	return nil
}

func fail(_ context.Context, task worker.Task) (any, error) {
	params := struct {
		Message string `json:"message"`
	}{Message: "failed on request"}
	if err := task.Decode(&params); err != nil {
		return nil, err
	}
	return nil, errors.New(params.Message)
}
