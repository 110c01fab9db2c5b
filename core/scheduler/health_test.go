package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

func (b *bundle) probed(t *testing.T, worker int64, health, age string) {
	t.Helper()
	testkit.Exec(t, b.store, `INSERT INTO worker_probe (worker, verdict, health, health_reason, at, details)
		VALUES ($1, 'fresh', $2, '12 failures in a row', now() - $3::text::interval, '{"valid_seconds": 90}')
		ON CONFLICT (worker) DO UPDATE SET health = excluded.health, at = excluded.at`, worker, health, age)
}

// An unhealthy worker gets no executions, and a degraded one those for which healthy workers have no capacity. If
// all are unhealthy, executions wait. An old verdict does not count.
func TestHealthDecidesPlacement(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "pk.a")
	ill := testkit.Worker(t, b.store, "ill", announces(9, nil)).ID
	poor := testkit.Worker(t, b.store, "poor", announces(9, nil)).ID
	well := testkit.Worker(t, b.store, "well", announces(1, nil)).ID
	b.probed(t, ill, "unhealthy", "1 second")
	b.probed(t, poor, "degraded", "1 second")
	ids := b.request(t, action, 5)
	require.Equal(t, scheduler.Result{Granted: 5}, b.dispatch(t, ids...))
	got := map[int64]int{}
	for _, id := range ids {
		got[b.workerOf(t, id)]++
	}
	require.Equal(t, map[int64]int{well: 3, poor: 2}, got, "the healthy one to the brim, then the degraded one")

	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true WHERE id <> $1`, ill)
	other := testkit.Action(t, b.store, "pk.b")
	ids = b.request(t, other, 2)
	replica := b.replica(t)
	result, err := replica.Run(testkit.Context(t), scheduler.FillStep{}, scheduler.NewRequestStep(ids))
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Enqueued: 2}, result, "they are there, so nothing fails")
	require.Equal(t,
		"waiting for a worker: the fitting workers receive no work now: ill is unhealthy: 12 failures in a row",
		b.text(t, `SELECT reason FROM admission_blocked`))

	b.probed(t, ill, "unhealthy", "91 seconds")
	require.Equal(t, scheduler.Result{Granted: 2}, b.fill(t, b.replica(t)))
	require.Equal(t, ill, b.workerOf(t, ids[0]))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}
