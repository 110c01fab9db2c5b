package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// While a worker is cut off from the broker, its executions wait and do not fail.
func TestExecutionsWaitForADisconnectedWorker(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	b.dispatch(t) // the fleet is known before it is cut off
	testkit.Exec(t, b.store, `UPDATE worker SET status = 'error'`)
	ids := b.request(t, testkit.Action(t, b.store, "pk.a"), 2)
	require.Equal(t, scheduler.Result{Enqueued: 2}, b.dispatch(t, ids...))

	testkit.Exec(t, b.store, `UPDATE worker SET status = 'active'`)
	queue := int64(testkit.Count(t, b.store, `SELECT id FROM execution_admission_state`))
	result, err := b.scheduler.Run(testkit.Context(t), scheduler.FillStep{Queues: []int64{queue}})
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Granted: 2}, result)
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}
