package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// leave runs a batch about unstarted executions of a leaving worker.
func (b *bundle) leave(t *testing.T, ids []int64, before ...scheduler.Step) scheduler.Result {
	t.Helper()
	list := make([]scheduler.Unstarted, len(ids))
	for i, id := range ids {
		list[i] = scheduler.Unstarted{Execution: id, Leaving: true}
	}
	b.scheduler = b.replica(t) // it knows the workers as they are now
	result, err := b.scheduler.Run(testkit.Context(t), append(before, scheduler.NewReassignStep(list, true))...)
	require.NoError(t, err)
	return result
}

// draining dispatches n executions to a worker that is then drained.
func draining(t *testing.T, b *bundle, n int) (ids []int64, old int64) {
	t.Helper()
	old = testkit.Worker(t, b.store, "old", fenced).ID
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, n)
	ids = b.request(t, action, n)
	require.Equal(t, n, b.dispatch(t, ids...).Granted)
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true, draining = true WHERE id = $1`, old)
	b.relay.take()
	return ids, old
}

// Upstream 31, S2, S9: unstarted executions of a draining worker move to others, with their slot and as another
// attempt. An execution that the worker starts meanwhile stays.
func TestUnstartedExecutionsOfADrainingWorkerMove(t *testing.T) {
	b := setup(t)
	ids, old := draining(t, b, 3)
	other := testkit.Worker(t, b.store, "other", fenced).ID
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'running' WHERE id = $1`, ids[0])
	begins := &during{act: func() {
		testkit.Exec(t, b.store, `UPDATE execution SET status = 'running' WHERE id = $1`,
			ids[1])
	}}
	require.Equal(t, scheduler.Result{Moved: 1}, b.leave(t, ids, begins))
	require.Equal(t, 2, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE worker = $1 AND attempt = 1 AND status = 'running'`, old))
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE id = $1 AND worker = $2 AND attempt = 2`, ids[2], other))
	sent := b.relay.take()
	require.Len(t, sent, 1)
	require.Equal(t, message.DispatchKey(other), sent[0].RoutingKey)
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// An unstarted execution that fits no other worker stays with the draining one and does not fail. It
// stays, too, when its worker takes work again.
func TestExecutionsThatFitNoOtherWorkerStayWithADrainingOne(t *testing.T) {
	b := setup(t)
	ids, old := draining(t, b, 5)
	const room = 1 + placement.HeadroomPerWorker
	at := func() int {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM execution WHERE worker = $1 AND attempt = 1 AND status = 'scheduled'`, old)
	}
	require.Equal(t, scheduler.Result{}, b.leave(t, ids), "there is no other")
	require.Equal(t, 5, at())

	// A worker without fencing gets no moved execution.
	foreign := testkit.Worker(t, b.store, "foreign").ID
	require.Equal(t, scheduler.Result{}, b.leave(t, ids))
	require.Equal(t, 5, at())

	testkit.Exec(t, b.store,
		`UPDATE worker SET capabilities = '{"attempt_fence": true, "max_concurrent_executions": 1}' WHERE id = $1`,
		foreign)
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = false, draining = false WHERE id = $1`, old)
	require.Equal(t, scheduler.Result{}, b.leave(t, ids), "it takes work again")
	require.Equal(t, 5, at())

	testkit.Exec(t, b.store, `UPDATE worker SET status = 'inactive' WHERE id = $1`, old)
	require.Equal(t, scheduler.Result{Moved: room}, b.leave(t, ids), "the others stay")
	require.Equal(t, 5-room, at())
	require.Equal(t, scheduler.Result{}, b.leave(t, ids))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}
