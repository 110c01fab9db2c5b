package explain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
)

// A worker is shown and assessed with its probe; an old
// probe is ignored, and a schema without probes is read as before.
func TestWorkersAreShownAsTheyWereSeen(t *testing.T) {
	b := setup(t)
	b.Replica(t)
	action := testkit.Action(t, b.Store, "demo.new")
	ill := b.AddWorker(t, "ill", nil)
	poor := b.AddWorker(t, "poor", nil)
	testkit.Exec(t, b.Store, `
		insert into worker_probe (worker, verdict, reason, since, health, health_reason, rtt_ms, queue_exists, consumers, ready, oldest,
		                          failures, skew_seconds, details)
		values ($1, 'fresh', '', now() - interval '3 minutes', 'unhealthy', '12 failures in a row', 1.5, true, 1, 7, now() - interval '1 minute',
		        0, -3600, '{"valid_seconds": 60, "endpoint_ms": 2, "endpoint_error": "says 500"}'),
		       ($2, 'suspect', 'its queue does not exist', now(), 'degraded', '50 wait in its queue', null, null, null, null, null, 3, null, '{}')`,
		ill, poor)
	testkit.Exec(t, b.Store, `update worker set heartbeat_seen = now() - interval '5 seconds', last_heartbeat = now() - interval '1 hour' where id = $1`, ill)
	testkit.Exec(t, b.Store, `update worker set heartbeat_seen = now() - interval '5 seconds' where id = $1`, ill)

	all, err := b.Workers(t.Context())
	require.NoError(t, err)
	require.Equal(t, monitor.WorkerTotals{Total: 2, Degraded: 1, Unhealthy: 1, Capacity: 10}, all.Totals)
	seen := map[string]monitor.Worker{}
	for _, w := range all.List {
		seen[w.Name] = w
	}
	w, p := seen["ill"], seen["ill"].Probe
	require.InDelta(t, 20, all.At.Sub(*w.Heartbeat).Seconds(), 15, "by the database's clock")
	require.Equal(t, monitor.WorkerUnhealthy, w.Health(all.At, time.Minute))
	require.Equal(t, []any{"fresh", "unhealthy", "12 failures in a row", true, int64(1), int64(7), "says 500", true},
		[]any{p.Verdict, p.Health, p.HealthReason, *p.QueueExists, *p.Consumers, *p.Ready, p.EndpointError, p.Valid})
	require.Equal(t, []time.Duration{1500 * time.Microsecond, 2 * time.Millisecond, -time.Hour},
		[]time.Duration{*p.RTT, *p.EndpointRTT, *p.Skew})
	require.InDelta(t, 180, all.At.Sub(p.Since).Seconds(), 30)
	require.InDelta(t, 60, all.At.Sub(*p.Oldest).Seconds(), 30)
	w, p = seen["poor"], seen["poor"].Probe
	require.Equal(t, monitor.WorkerDegraded, w.Health(all.At, time.Minute))
	require.Equal(t, "its queue does not exist", p.Reason)
	require.Nil(t, p.RTT)
	require.Nil(t, p.Skew)
	require.Nil(t, p.EndpointRTT)

	state, _, waiters := b.AddQueue(t, action, 5, 0, 1, poor)
	b.BlockQueue(t, state, "waiting for a worker")
	explained := func() map[string]string {
		got := map[string]string{}
		for _, one := range b.ask(t, waiters[0]).Workers {
			got[one.Name] = string(one.Answer) + ": " + one.Reason
		}
		return got
	}
	require.Equal(t, map[string]string{
		"ill":  "waited: unhealthy: 12 failures in a row",
		"poor": "room: has room, 0 of 10; degraded: 50 wait in its queue",
	}, explained())

	testkit.Exec(t, b.Store, `update worker_probe set at = now() - interval '10 minutes'`)
	all, err = b.Workers(t.Context())
	require.NoError(t, err)
	require.Equal(t, monitor.WorkerTotals{Total: 2, Active: 2, Capacity: 20}, all.Totals,
		"the last probe is too old")
	require.False(t, all.List[0].Probe.Valid)
}
