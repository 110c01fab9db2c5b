package scheduler_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// meanwhile is a step that runs a concurrent change once, after the rows were read and before they
// are locked.
type meanwhile struct{ act func() }

func (*meanwhile) Executions() []int64 { return nil }

func (m *meanwhile) Plan(context.Context, *scheduler.Plan) error {
	if act := m.act; act != nil {
		m.act = nil
		act()
	}
	return nil
}

func (*meanwhile) Apply(*scheduler.Batch) {}

// An action is deleted while one execution of it runs and one waits: its queue is deleted with it, but the worker's
// capacity is released, and no message counts as poison.
func TestADeletedActionReleasesItsWorker(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action, other := testkit.Action(t, b.store, "pk.gone"), testkit.Action(t, b.store, "pk.other")
	testkit.Policy(t, b.store, action, 1)
	ids, others := b.request(t, action, 2), b.request(t, other, 1)
	b.dispatch(t, append(ids, others...)...)
	var queue int64
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
		`SELECT id FROM execution_admission_state WHERE action_id = $1`, action.ID).Scan(&queue))
	testkit.Exec(t, b.store, `DELETE FROM action WHERE id = $1`, action.ID)
	b.finish(t, lifecycle.StatusCompleted, ids[0], others[0])

	result, err := b.scheduler.Run(testkit.Context(t), scheduler.NewReleaseStep([]int64{ids[0], others[0]}),
		scheduler.FillStep{Queues: []int64{queue}}, scheduler.NewRequestStep(ids[1:]))
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Released: 2, Ended: 1}, result)
	require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, b.store, ids[1]),
		"the waiting execution fails without its action")
	require.Zero(t, testkit.Count(t, b.store, `SELECT assigned FROM worker_load`))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// A replica that pauses between reading and locking decides on rows that it has not planned for: it plans again
// instead of leaking capacity of a worker.
func TestAPausedReplicaPlansAgain(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.one")
	testkit.Policy(t, b.store, action, 1)
	ids := b.request(t, action, 2)
	b.dispatch(t, ids...)
	thawed := b.replica(t)
	frozen := &meanwhile{act: func() {
		b.finish(t, lifecycle.StatusCompleted, ids[0])
		require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, ids[0]))
		b.finish(t, lifecycle.StatusCancelled, ids[1])
		testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true`)
	}}
	// The worker is cordoned before the replica reads the fleet, so that it
	// locks its load only if it knows that the execution was handed to it.
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true`)
	_, err := thawed.Run(testkit.Context(t))
	require.NoError(t, err)
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = false`)

	result, err := thawed.Run(testkit.Context(t), frozen, scheduler.NewReleaseStep(ids[1:]), scheduler.FillStep{})
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Released: 1}, result)
	require.Zero(t, testkit.Count(t, b.store, `SELECT assigned FROM worker_load`))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// The gate ends an execution at the head of its queue once, although its message comes again in the same batch.
func TestAHeadThatEndsIsEndedOnceThoughItsMessageComesAgain(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.one")
	testkit.Policy(t, b.store, action, 1)
	ids := b.request(t, action, 2)
	b.dispatch(t, ids...)
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	testkit.Exec(t, b.store, `UPDATE worker SET status = 'inactive'`)

	result, err := b.scheduler.Run(testkit.Context(t), scheduler.NewReleaseStep(ids[:1]), scheduler.FillStep{},
		scheduler.NewRequestStep(ids[1:]))
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Released: 1, Ended: 1}, result)
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// A deleted waiting execution leaves no entry, but its queue still counts it: the next batch that reads the queue to
// its end corrects the count.
func TestADeletedQueuedExecutionLeavesNoEntry(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.one")
	testkit.Policy(t, b.store, action, 1)
	ids := b.request(t, action, 3)
	b.dispatch(t, ids...)
	testkit.Exec(t, b.store, `DELETE FROM execution WHERE id = ANY($1)`, ids[1:])
	b.finish(t, lifecycle.StatusCompleted, ids[0])

	require.Equal(t, scheduler.Result{Released: 1}, b.complete(t, ids[0]), "nothing is left to fill")
	require.Zero(t, testkit.Count(t, b.store, `SELECT sum(queued_count) FROM execution_admission_state`))
	require.Equal(t, scheduler.Result{Granted: 1}, b.dispatch(t, b.request(t, action, 1)...),
		"no execution waits before a new one")
	require.Zero(t, testkit.Count(t, b.store, `SELECT queue_length FROM queue_stats WHERE action_id = $1`, action.ID))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// An entry that vanishes while the message of its execution comes again is created again. The execution does not
// fail.
func TestAnEntryThatVanishesDuringABatchIsCreatedAgain(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.one")
	testkit.Policy(t, b.store, action, 1)
	ids := b.request(t, action, 2)
	b.dispatch(t, ids...)
	vanish := &meanwhile{act: func() {
		testkit.Exec(t, b.store, `DELETE FROM execution_admission_entry`)
		testkit.Exec(t, b.store, `UPDATE execution_admission_state SET queued_count = 0, head_order = next_queue_order`)
	}}
	result, err := b.scheduler.Run(testkit.Context(t), scheduler.FillStep{}, vanish, scheduler.NewRequestStep(ids[1:]))
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Enqueued: 1}, result)
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, b.store, ids[1]))
}

// A batch reads only a few heads of a queue. When workers have capacity for more, the next batches read on.
func TestATriedQueueIsReadOnWhenWorkersHaveCapacity(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(1) })
	ids := b.request(t, testkit.Action(t, b.store, "pk.a"), 23)
	require.Equal(t, scheduler.Result{Granted: 3, Enqueued: 20}, b.dispatch(t, ids...))
	testkit.Worker(t, b.store, "w2", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(50) })
	other := b.replica(t) // it knows the new worker
	result, err := other.Run(testkit.Context(t), scheduler.FillStep{})
	require.NoError(t, err)
	require.Equal(t, 8, result.Granted)
	require.Len(t, result.Unfilled, 1)
	result, err = other.Run(testkit.Context(t), scheduler.FillStep{Queues: result.Unfilled})
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Granted: 12}, result)
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}
