package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/attune-go/attune/core/worker/output"
)

// Func is an action written in Go. Its return value, encoded as JSON, becomes the data of the
// result, in place of its output to Stdout. An error or a panic fails the execution with its text
// and without data. An ExitError also sets the exit code, which is 1 otherwise. The context ends at
// the timeout, on cancel and at shutdown (context.Cause says which). A function that continues
// anyway keeps its place among the concurrent executions, but its outcome is decided without it.
type Func func(ctx context.Context, task Task) (any, error)

// ExitError fails an execution like a process with this exit code.
type ExitError struct {
	Code int
	// Message is the error of the result; `Command exited with code N` if empty.
	Message string
}

// Error is the error of the result.
func (e *ExitError) Error() string {
	if e.Message != "" {
		return e.Message
	}
	return failure(e.Code, "", "")
}

// Actions maps the reference of an action, or its entrypoint, to the function that runs it if the
// action has no file.
type Actions map[string]Func

// find prefers the action's own reference to its entrypoint.
func (a Actions) find(ref, entrypoint string) Func {
	if fn, ok := a[ref]; ok {
		return fn
	}
	return a[entrypoint]
}

// Task is one execution, for its function.
type Task struct {
	ActionRef   string
	Attempt     int
	ExecutionID int64
	PackRef     string
	// Params are the parameters, a JSON object with the defaults of the action's schema.
	Params json.RawMessage
	// Stderr and Stdout are stored with the result, up to the worker's limits.
	Stderr, Stdout io.Writer
	// TraceParent is the position of the run in its trace (W3C Trace Context), empty while tracing is off.
	TraceParent string
}

// Decode reads the parameters into a value, as encoding/json does.
func (t Task) Decode(into any) error {
	if err := json.Unmarshal(t.Params, into); err != nil {
		return fmt.Errorf("read the parameters of %s: %w", t.ActionRef, err)
	}
	return nil
}

// returned is the outcome of a function call.
type returned struct {
	data json.RawMessage
	err  error
}

// call runs the function and turns a panic into an error.
func call(ctx context.Context, fn Func, task Task) (r returned) {
	defer func() {
		if value := recover(); value != nil {
			_, _ = fmt.Fprintf(task.Stderr, "%s", debug.Stack()) // writing to a capture never fails
			r = returned{err: fmt.Errorf("panic: %v", value)}
		}
	}()
	value, err := fn(ctx, task)
	data, encodeErr := output.Value(value)
	return returned{data: data, err: cmp.Or(err, encodeErr)}
}
