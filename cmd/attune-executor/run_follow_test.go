package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/lab/testkit"
)

// follower is a command that waits for executions without an engine.
type follower struct {
	*app
	*client

	store  *store.Store
	stderr *bytes.Buffer
	action testkit.ActionRow
}

func newFollower(t *testing.T, maxRetries int32) *follower {
	t.Helper()
	f := &follower{store: testkit.Store(t), stderr: &bytes.Buffer{}}
	f.app = &app{stderr: f.stderr, repeatTimeout: time.Hour}
	f.client = &client{cfg: config.Default(), store: f.store}
	if testkit.Adopted() { // where by default max_retries of actions does not count
		f.cfg.Executor.Retry.HonourActionMaxRetries = "true"
	}
	f.action = testkit.Action(t, f.store, "demo.flip", func(a *testkit.ActionRow) { a.MaxRetries = maxRetries })
	return f
}

func (f *follower) execution(t *testing.T, status lifecycle.Status) int64 {
	t.Helper()
	return testkit.Execution(t, f.store, f.action, func(e *testkit.ExecutionRow) {
		e.Status, e.Result = status, map[string]string{"error": "it broke"}
	}).ID
}

func (f *follower) follow(ctx context.Context, id int64) (store.Execution, int, error) {
	return f.followEnd(ctx, f.client, submit.New(f.store, nil), id)
}

func (f *follower) repeat(ctx context.Context, id int64, delay time.Duration) (int64, error) {
	rows, err := f.store.RepeatExecutions(ctx, store.RepeatExecutionsParams{
		Failed: []int64{id}, Reasons: []string{"action_failure"}, Delays: []float64{delay.Seconds()},
	})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].ID, nil
}

// The wait ends at once with an end that the policy does not repeat.
func TestAnEndWithoutRetryIsTheLast(t *testing.T) {
	f := newFollower(t, 0)
	ctx := testkit.Context(t)
	for _, status := range lifecycle.TerminalStatuses {
		end, attempts, err := f.follow(ctx, f.execution(t, status))
		require.NoError(t, err)
		require.Equal(t, status, end.Status)
		require.Equal(t, 1, attempts)
		require.NoError(t, ctx.Err(), "it waited for a retry")
	}
	require.Empty(t, f.stderr.String())
}

// The wait continues with each retry that the engine requests, also with a delay.
func TestAWaitFollowsRetries(t *testing.T) {
	f := newFollower(t, 2)
	ctx := testkit.Context(t)
	first := f.execution(t, lifecycle.StatusFailed)
	made := make(chan error, 1)
	go func() {
		time.Sleep(100 * time.Millisecond) // the engine is late
		second, err := f.repeat(ctx, first, 90*time.Second)
		if err == nil {
			_, err = f.store.Pool().Exec(ctx, `update execution set status = 'abandoned' where id = $1`, second)
		}
		if err == nil {
			second, err = f.repeat(ctx, second, 0)
		}
		if err == nil {
			_, err = f.store.Pool().Exec(ctx, `update execution set status = 'completed' where id = $1`, second)
		}
		made <- err
	}()
	end, attempts, err := f.follow(ctx, first)
	require.NoError(t, err)
	require.NoError(t, <-made)
	require.Equal(t, lifecycle.StatusCompleted, end.Status)
	require.Equal(t, 3, attempts)
	require.Contains(t, f.stderr.String(), "attempt 1 failed (it broke), repeated as execution ")
	require.Contains(t, f.stderr.String(), "attempt 2 abandoned, repeated as execution ")
}

func TestAWaitForARetryEndsWithItsCaller(t *testing.T) {
	f := newFollower(t, 2)
	id := f.execution(t, lifecycle.StatusFailed)
	// On a slow machine the end itself is not read in time, so the timeout is doubled until it is.
	for timeout := 200 * time.Millisecond; ; timeout *= 2 {
		require.Less(t, timeout, 2*time.Minute)
		ctx, cancel := context.WithTimeout(testkit.Context(t), timeout)
		end, attempts, err := f.follow(ctx, id)
		cancel()
		require.Equal(t, id, end.ID)
		require.Equal(t, 1, attempts)
		if err == nil {
			require.Equal(t, lifecycle.StatusFailed, end.Status)
			return
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

func TestPauseText(t *testing.T) {
	t.Parallel()
	now := time.Now()
	due := now.Add(2 * time.Second)
	require.Equal(t, " in 2s", pauseText(monitor.Attempt{Created: now, Due: &due}))
	require.Empty(t, pauseText(monitor.Attempt{Created: now}))
}
