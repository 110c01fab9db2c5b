package worker

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/placement"
)

func newVitals() (*vitals, func(time.Duration)) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	v := &vitals{now: func() time.Time { return now }}
	return v, func(d time.Duration) { now = now.Add(d) }
}

func TestVitalsCountTheEndsOfTheWorker(t *testing.T) {
	t.Parallel()
	v, pass := newVitals()
	require.Equal(t, placement.Healthy, v.report().Status)
	for range 5 {
		v.end(lifecycle.StatusFailed, "a", 30*time.Millisecond)
	}
	require.Equal(t, "a", v.report().Action)
	v.end(lifecycle.StatusCompleted, "b", 10*time.Millisecond)
	v.end(lifecycle.StatusTimeout, "b", 20*time.Millisecond)
	v.end(lifecycle.StatusFailed, "a", 20*time.Millisecond)
	v.end(lifecycle.StatusCancelled, "a", time.Hour)
	v.end(lifecycle.StatusAbandoned, "a", time.Hour)
	r := v.report()
	require.Equal(t, []int{2, 8, 7, 2, 8}, []int{r.InARow, r.Total, r.Failed, r.Actions, r.Ended})
	require.Empty(t, r.Action, "two of them failed")
	require.InDelta(t, 25, r.AverageMS, 0.01)
	require.Equal(t, "2026-01-01T00:00:00Z", r.LastCheck)
	for range 8 {
		v.end(lifecycle.StatusFailed, "c", 0)
	}
	require.Equal(t, placement.Unhealthy, v.report().Status)
	pass(placement.TrialAfter)
	require.Equal(t, placement.Degraded, v.report().Status, "on trial")
	ended := v.report().Ends()
	pass(vitalsWindow)
	r = v.report()
	require.Equal(t, []int{0, 0, 0}, []int{r.InARow, r.Total, r.Failed}, "the burst is forgotten")
	require.Equal(t, placement.Healthy, r.Status)
	require.Equal(t, ended, r.Ends(), "nothing has ended since")
	for range 3 * vitalsMost {
		v.end(lifecycle.StatusCompleted, "b", 0)
	}
	require.Equal(t, vitalsMost, v.report().Total)
	require.LessOrEqual(t, cap(v.endings), 4*vitalsMost, "it stays small")
}

// Each report is a row of the worker's history, so there are few.
func TestReportsAreWrittenSeldom(t *testing.T) {
	t.Parallel()
	v, pass := newVitals()
	waits := 0
	v.depth = func(context.Context) (int, bool) { return waits, true }
	due := func() *placement.Report {
		t.Helper()
		raw, err := v.due(t.Context())
		require.NoError(t, err)
		if raw == nil {
			return nil
		}
		var r placement.Report
		require.NoError(t, json.Unmarshal(raw, &r))
		return &r
	}
	require.Nil(t, due(), "nothing has happened yet")
	v.end(lifecycle.StatusCompleted, "a", 0)
	require.NotNil(t, due())
	for range 59 {
		pass(time.Second)
		v.end(lifecycle.StatusCompleted, "a", 0)
		require.Nil(t, due(), "at most once a minute")
	}
	pass(time.Second)
	require.NotNil(t, due())
	pass(5 * time.Minute)
	require.Nil(t, due(), "nothing has changed but the time")
	for range 60 {
		v.end(lifecycle.StatusFailed, "a", 0)
		v.end(lifecycle.StatusFailed, "b", 0)
	}
	require.Equal(t, placement.Unhealthy, due().Status, "a change of the status is written at once")
	require.Nil(t, due())
	v.unreported()
	require.NotNil(t, due(), "an unwritten report is written again")
	waits = 7
	pass(time.Minute)
	require.Equal(t, 7, due().QueueDepth)
}
