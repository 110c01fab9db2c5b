package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
)

// A suspected worker is not shown as active, although its heartbeat is fresh.
func TestASuspectedWorkerIsNotCalledActive(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	since := at.Add(-2 * time.Minute)
	v := viewWorker(monitor.Worker{
		ID: 7, Name: "mute", Status: "active", Heartbeat: &at, SuspectSince: &since, SuspectReason: "its queue is gone",
	}, &monitor.Workers{Reading: monitor.Reading{At: at}, StaleAfter: time.Minute})
	require.Equal(t, monitor.WorkerSuspect, v.Health)
	require.Equal(t, "its queue is gone", v.Note(v.seen))
	var text page
	workerPage(&text, v)
	require.Regexp(t, `health\s+suspect`, text.String())
	require.Regexp(t, `suspect\s+since 2026-03-01T09:58:00Z: its queue is gone`, text.String())
}

// Workers are shown with the results of their probes, and a line of the list fits in 80 columns.
func TestWorkersAreShownWithTheirProbes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	since, beat := at.Add(-3*time.Minute), at.Add(-5*time.Second)
	number := func(n int64) *int64 { return &n }
	rtt, skew, exists := 1300*time.Microsecond, -time.Hour, true
	seen := func(change func(*monitor.WorkerProbe)) workerView {
		p := &monitor.WorkerProbe{
			At: beat, Verdict: "fresh", Since: since, Health: "healthy", RTT: &rtt, QueueExists: &exists,
			Ready: number(7), Consumers: number(1), Skew: &skew, Oldest: &since, EndpointRTT: &rtt, Valid: true,
		}
		change(p)
		return viewWorker(monitor.Worker{
			ID: 7, Name: "worker-node-02", Status: "active", Heartbeat: &beat, Assigned: number(12),
			Capacity: number(10),
			Runtimes: []string{"python", "shell"}, Probe: p,
		}, &monitor.Workers{Reading: monitor.Reading{At: at}, StaleAfter: time.Minute})
	}
	v := seen(func(p *monitor.WorkerProbe) { p.Health, p.HealthReason = "unhealthy", "12 failures in a row" })
	require.Equal(t, monitor.WorkerUnhealthy, v.Health)
	require.Equal(t, "12 failures in a row", v.Note(v.seen))
	require.Equal(t, "7", v.queue())
	line := strings.Join([]string{
		"7", v.Name, string(v.Health), v.age(), v.load(), v.queue(),
		strings.Join(v.Runtimes, ","), v.Note(v.seen),
	}, "  ")
	require.LessOrEqual(t, len(line), 80)
	var text page
	workerPage(&text, v)
	for _, want := range []string{
		`verdict\s+fresh since 2026-03-01T09:57:00Z`, `state\s+unhealthy: 12 failures in a row`,
		`queue\s+7 waiting, 1 consumer, read in 1.3ms`,
		`unstarted\s+since 2026-03-01T09:57:00Z`, `endpoint\s+answers in 1.3ms`, `clock\s+1h0m0s behind the database's`,
	} {
		require.Regexp(t, want, text.String())
	}

	v = seen(func(p *monitor.WorkerProbe) { p.Consumers, p.EndpointError, p.Reason = number(0), "says 500", "odd" })
	require.Equal(t, "7 deaf", v.queue())
	v.Registered = v.Probe.At.Add(-8 * time.Second)
	require.Equal(t, "7", v.queue(), "the broker may not have counted the consumer of a worker that has just started")
	v.Assigned = nil
	v.seen.Health = monitor.WorkerActive
	require.Equal(t, "clock 1h0m0s behind", v.Note(v.seen))
	text.Reset()
	workerPage(&text, v)
	require.Regexp(t, `endpoint\s+says 500`, text.String())
	require.Regexp(t, `verdict\s+fresh since .*: odd`, text.String())

	gone, ahead := false, 300*time.Millisecond
	v = seen(func(p *monitor.WorkerProbe) {
		p.QueueExists, p.Valid, p.Skew, p.EndpointRTT = &gone, false, &ahead, nil
	})
	require.Equal(t, "none", v.queue())
	text.Reset()
	workerPage(&text, v)
	require.Regexp(t, `probed\s+.*, too long ago to count`, text.String())
	require.Regexp(t, `queue\s+does not exist`, text.String())
	require.Regexp(t, `clock\s+as the database's`, text.String())
	require.NotContains(t, text.String(), "endpoint")

	v.Probe = nil
	require.Equal(t, "?", v.queue())
	text.Reset()
	workerPage(&text, v)
	require.Regexp(t, `probed\s+never`, text.String())
}
