package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
)

// TestASuspectedWorkerIsNotCalledActive: its heartbeat is fresh, and it is given nothing.
func TestASuspectedWorkerIsNotCalledActive(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	since := at.Add(-2 * time.Minute)
	v := viewWorker(monitor.Worker{
		ID: 7, Name: "mute", Status: "active", Heartbeat: &at, SuspectSince: &since, SuspectReason: "its queue is gone",
	}, &monitor.Workers{Reading: monitor.Reading{At: at}, StaleAfter: time.Minute})
	require.Equal(t, monitor.WorkerSuspect, v.Health)
	require.Equal(t, "for 2m0s: its queue is gone", v.note(at))
	var text strings.Builder
	require.NoError(t, workerTable(&text, v))
	require.Regexp(t, `health\s+suspect`, text.String())
	require.Regexp(t, `suspect\s+since 2026-03-01T09:58:00Z: its queue is gone`, text.String())
}
