// Package builtin holds the actions of the core pack, which every worker can
// run without any file: core.echo, core.noop, core.sleep and core.fail.
package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/worker"
)

// Actions returns the functions, a new map each time so that a program can add
// its own.
func Actions() worker.Actions {
	return worker.Actions{"core.echo": echo, "core.noop": noop, "core.sleep": sleep, "core.fail": fail}
}

// echo returns its message, or all of its parameters if it has none.
func echo(_ context.Context, task worker.Task) (any, error) {
	var params map[string]json.RawMessage
	if err := task.Decode(&params); err != nil {
		return nil, err
	}
	if message, ok := params["message"]; ok && len(params) == 1 {
		return map[string]json.RawMessage{"message": message}, nil
	}
	return params, nil
}

func noop(context.Context, worker.Task) (any, error) { return nil, nil }

// maxSleep is the longest sleep; anything longer is cut to it.
const maxSleep = 365 * 24 * time.Hour

// sleep waits for the given seconds, or until it is interrupted.
func sleep(ctx context.Context, task worker.Task) (any, error) {
	params := struct {
		Seconds float64 `json:"seconds"`
	}{Seconds: 1}
	if err := task.Decode(&params); err != nil {
		return nil, err
	}
	if params.Seconds < 0 {
		return nil, fmt.Errorf("cannot sleep for %v seconds", params.Seconds)
	}
	length := time.Duration(math.Min(params.Seconds, maxSleep.Seconds()) * float64(time.Second))
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timer.C:
		return map[string]float64{"slept": length.Seconds()}, nil
	}
}

// fail fails with its message.
func fail(_ context.Context, task worker.Task) (any, error) {
	params := struct {
		Message string `json:"message"`
	}{Message: "failed on request"}
	if err := task.Decode(&params); err != nil {
		return nil, err
	}
	return nil, errors.New(params.Message)
}
