package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// upstream 19, 20 and 22: waiting executions of another engine are taken over in their order, without the slots that
// it leaked.
func TestTheQueuesOfAnotherEngineAreTakenOver(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, 2)
	state := testkit.State(t, b.store, action, 2)
	leave := func(order int, entry string, status lifecycle.Status, change ...func(*testkit.ExecutionRow)) int64 {
		row := testkit.Execution(t, b.store, action,
			append(change, func(e *testkit.ExecutionRow) { e.Status = status })...)
		testkit.Exec(t, b.store, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order) VALUES ($1, $2, $3, $4)`,
			state.ID, row.ID, entry, order)
		return row.ID
	}
	at := func(e *testkit.ExecutionRow) { e.Worker = &worker.ID }
	leave(1, "active", lifecycle.StatusCompleted)
	runs := leave(2, "active", lifecycle.StatusRunning, at)
	promoted := leave(3, "active", lifecycle.StatusRequested)
	waits := leave(4, "queued", lifecycle.StatusRequested)
	leave(5, "queued", lifecycle.StatusCancelled)
	last := leave(6, "queued", lifecycle.StatusRequested)
	left, err := b.store.LeftByAnotherEngine(testkit.Context(t))
	require.NoError(t, err)
	require.True(t, left)

	holders, err := b.store.TakeOver(testkit.Context(t))
	require.NoError(t, err)
	require.EqualValues(t, 1, holders)
	left, err = b.store.LeftByAnotherEngine(testkit.Context(t))
	require.NoError(t, err)
	require.False(t, left)
	b.quiet(t)
	require.Equal(t, 3, testkit.Count(t, b.store, `SELECT queue_length FROM queue_stats`))

	require.Equal(t, scheduler.Result{Granted: 1}, b.dispatch(t, promoted), "one of two slots was free")
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, promoted))
	b.finish(t, lifecycle.StatusCompleted, runs)
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, runs))
	require.Equal(t, []lifecycle.Status{lifecycle.StatusScheduled, lifecycle.StatusRequested},
		b.statuses(t, []int64{waits, last}))
	b.quiet(t)
}

// A take-over also covers executions that only wait in the queues of another engine. The slot of a
// deleted execution is released once, whichever of both counts first.
func TestATakeOverCoversAllExecutionsAndReleasesOnce(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, 2)
	testkit.Policy(t, b.store, action, 5, testkit.OfPack(action))
	ids := b.request(t, action, 4)
	require.Equal(t, scheduler.Result{Granted: 2, Enqueued: 2}, b.dispatch(t, ids...))
	left := func() bool {
		is, err := b.store.LeftByAnotherEngine(testkit.Context(t))
		require.NoError(t, err)
		return is
	}
	require.False(t, left())
	theirs := testkit.Execution(t, b.store, action).ID
	testkit.Exec(t, b.store, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
		SELECT id, $1, 'queued', 1000 FROM execution_admission_state`, theirs)
	require.True(t, left())
	testkit.Exec(t, b.store, `DELETE FROM execution WHERE id = $1`, ids[0])

	_, err := b.store.TakeOver(testkit.Context(t))
	require.NoError(t, err)
	require.False(t, left())
	found := make(chan recovery.Found, 10)
	sweep(t, b, found)
	lost := (<-found).Lost
	require.Equal(t, scheduler.Result{Granted: 1}, b.run(t, scheduler.NewReturnStep(lost), scheduler.FillStep{}))
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT active_count FROM execution_admission_state`))
	b.quiet(t)
	b.finish(t, lifecycle.StatusCompleted, ids[1], ids[2])
	require.Equal(t, scheduler.Result{Released: 2, Granted: 2}, b.complete(t, ids[1], ids[2]))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, theirs))
	b.quiet(t)
}
