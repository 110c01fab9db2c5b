package worker

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
)

func TestTheNarrowestTimeoutWins(t *testing.T) {
	t.Parallel()
	const fallback = time.Minute
	of := func(task string, seconds int32) started {
		return started{execution{WorkflowTask: []byte(task)}, action{TimeoutSeconds: seconds}}
	}
	for name, c := range map[string]struct {
		row  started
		want time.Duration
	}{
		"the worker's without another":   {started{}, fallback},
		"the action's":                   {started{action: action{TimeoutSeconds: 7}}, 7 * time.Second},
		"the task's before the action's": {of(`{"timeout_seconds": 2.5}`, 7), 2500 * time.Millisecond},
		"a longer task's too":            {of(`{"timeout_seconds": 900}`, 7), 15 * time.Minute},
		"a task without one":             {of(`{"task_name": "a"}`, 7), 7 * time.Second},
		"a task with null":               {of(`{"timeout_seconds": null}`, 7), 7 * time.Second},
		"a task with zero":               {of(`{"timeout_seconds": 0}`, 7), 7 * time.Second},
		"a task with a text":             {of(`{"timeout_seconds": "soon"}`, 7), 7 * time.Second},
		"an action with a negative one":  {of(``, -1), fallback},
		"an overflow":                    {of(`{"timeout_seconds": 1e300}`, 7), 10 * 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, timeout(c.row, fallback))
		})
	}
}

// The error of a timeout names the limit, not the duration until the process had ended.
func TestATimeoutNamesItsLimit(t *testing.T) {
	t.Parallel()
	end := conclude(&job{}, report{DurationMS: 6001, ExitCode: 137, Error: "Command exited with code 137"}, ErrTimeout,
		1500*time.Millisecond)
	require.Equal(t, lifecycle.StatusFailed, end.status)
	var r report
	require.NoError(t, json.Unmarshal([]byte(end.result), &r))
	require.Equal(t, "Execution timed out after 1.5 seconds", r.Error)
	require.Equal(t, -1, r.ExitCode)
	require.True(t, r.TimedOut)
	require.False(t, r.Succeeded)
	require.Equal(t, int64(6001), r.DurationMS)
}
