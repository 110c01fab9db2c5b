package scheduler_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// decided is a step that runs a function once, between the decisions of a batch and its
// writes.
type decided struct{ act func() }

func (*decided) Executions() []int64 { return nil }

func (*decided) Plan(context.Context, *scheduler.Plan) error { return nil }

func (d *decided) Apply(*scheduler.Batch) {
	if act := d.act; act != nil {
		d.act = nil
		act()
	}
}

// A batch waits only for the workers to which it gives something.
func TestABatchDoesNotWaitForOtherWorkers(t *testing.T) {
	b := setup(t)
	busy, free := testkit.Worker(t, b.store, "busy", announces(1, nil)), testkit.Worker(t, b.store, "free",
		announces(9, nil))
	b.dispatch(t) // makes their rows
	testkit.Exec(t, b.store, `UPDATE worker_load SET assigned = 3 WHERE worker = $1`, busy.ID)
	tx := testkit.Begin(t, b.store)
	defer func() { require.NoError(t, tx.Rollback(testkit.Context(t))) }()
	_, err := tx.Exec(testkit.Context(t), `SELECT FROM worker_load WHERE worker = $1 FOR UPDATE`, busy.ID)
	require.NoError(t, err)

	ids := b.request(t, testkit.Action(t, b.store, "pk.a"), 2)
	require.Equal(t, scheduler.Result{Granted: 2}, b.dispatch(t, ids...))
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT assigned FROM worker_load WHERE worker = $1`, free.ID))
	b.finish(t, lifecycle.StatusCompleted, ids...)
	require.Equal(t, scheduler.Result{Released: 2}, b.complete(t, ids...))
}

// Two replicas choose the last slot of a worker at the same time: one of them gets it,
// and the other one decides again.
func TestTheLastSlotOfAWorkerIsTakenOnce(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "w1", announces(1, nil))
	a, other := testkit.Action(t, b.store, "pk.a"), testkit.Action(t, b.store, "pk.b")
	b.dispatch(t, b.request(t, a, 2)...)
	late, early := b.request(t, a, 1), b.request(t, other, 1)
	rival := b.replica(t)

	result, err := b.scheduler.Run(testkit.Context(t), scheduler.FillStep{}, scheduler.NewRequestStep(late),
		&decided{func() {
			got, err := rival.Run(testkit.Context(t), scheduler.FillStep{}, scheduler.NewRequestStep(early))
			require.NoError(t, err)
			require.Equal(t, scheduler.Result{Granted: 1}, got)
		}})
	require.NoError(t, err)
	require.Zero(t, result.Granted)
	require.Equal(t, 1, result.Enqueued)
	require.Equal(t, 3, testkit.Count(t, b.store, `SELECT assigned FROM worker_load WHERE worker = $1`, worker.ID))
	b.quiet(t)
}

// A worker that is cordoned after it was chosen gets nothing.
func TestAWorkerThatIsCordonedAfterItWasChosenGetsNothing(t *testing.T) {
	b := setup(t)
	left, stays := testkit.Worker(t, b.store, "left", announces(9, nil)), testkit.Worker(t, b.store, "stays",
		announces(1, nil))
	result, err := b.scheduler.Run(testkit.Context(t), scheduler.FillStep{},
		scheduler.NewRequestStep(b.request(t, testkit.Action(t, b.store, "pk.a"), 2)),
		&decided{func() { testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true WHERE id = $1`, left.ID) }})
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Granted: 2}, result)
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT assigned FROM worker_load WHERE worker = $1`, stays.ID))
	require.Zero(t, testkit.Count(t, b.store, `SELECT assigned FROM worker_load WHERE worker = $1`, left.ID))
	b.quiet(t)
}

// Capacity that another replica releases while a batch finds all workers full is given to
// the execution that the batch enqueued: the batch requests another one.
func TestCapacityReleasedDuringABatchIsOfferedAgain(t *testing.T) {
	rechecks := 0
	b := setup(t, func(c *scheduler.Config) { c.Recheck = func() { rechecks++ } })
	testkit.Worker(t, b.store, "w1", announces(1, nil))
	a, other := testkit.Action(t, b.store, "pk.a"), testkit.Action(t, b.store, "pk.b")
	holders := b.request(t, other, 3)
	b.dispatch(t, holders...)
	b.finish(t, lifecycle.StatusCompleted, holders...)
	waits := b.request(t, a, 1)
	rival := b.replica(t)

	result, err := b.scheduler.Run(testkit.Context(t), scheduler.FillStep{}, scheduler.NewRequestStep(waits),
		&decided{func() {
			got, err := rival.Run(testkit.Context(t), scheduler.NewReleaseStep(holders), scheduler.FillStep{})
			require.NoError(t, err)
			require.Equal(t, scheduler.Result{Released: 3}, got)
		}})
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Enqueued: 1}, result)
	require.Equal(t, 1, rechecks)
	require.Equal(t, scheduler.Result{Granted: 1}, b.dispatch(t), "the batch that was requested")
	require.Equal(t, 1, rechecks)
	b.quiet(t)
}

// lockQueue holds a queue of an action as another batch does.
func (b *bundle) lockQueue(t *testing.T, action testkit.ActionRow) (end func()) {
	t.Helper()
	tx := testkit.Begin(t, b.store)
	_, err := tx.Exec(testkit.Context(t), `SELECT FROM execution_admission_state WHERE action_id = $1 FOR UPDATE`,
		action.ID)
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback(context.WithoutCancel(testkit.Context(t)))) }
}

// A sparing batch decides about free queues. It leaves reports and requests of a queue that
// another batch holds.
func TestASparingBatchLeavesLockedQueues(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", announces(9, nil))
	held, free := testkit.Action(t, b.store, "pk.held"), testkit.Action(t, b.store, "pk.free")
	ended, others := b.request(t, held, 1), b.request(t, free, 1)
	b.dispatch(t, ended[0], others[0])
	b.finish(t, lifecycle.StatusCompleted, ended[0], others[0])
	asks := b.request(t, held, 2)
	others = append(others, b.request(t, free, 1)...)
	end := b.lockQueue(t, held)
	run := func(insists map[int64]bool) scheduler.Result {
		result, err := b.scheduler.RunSparing(testkit.Context(t), insists,
			scheduler.NewReleaseStep([]int64{ended[0], others[0]}), scheduler.FillStep{},
			scheduler.NewRequestStep([]int64{asks[0], others[1], asks[1]}))
		require.NoError(t, err)
		return result
	}
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1, Left: []int64{ended[0], asks[0], asks[1]}}, run(nil))
	require.Equal(t, scheduler.Result{Left: []int64{ended[0], asks[0], asks[1]}}, run(nil), "once each")

	waited := make(chan scheduler.Result)
	go func() { waited <- run(map[int64]bool{asks[1]: true}) }()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	}, testkit.TestTimeout, "it waits for the queue")
	end()
	require.Equal(t, scheduler.Result{Released: 1, Granted: 2}, <-waited)
	b.quiet(t)
}

// A sparing batch does not wait for a queue that it is to fill while another batch holds it,
// but names it; a batch that insists waits.
func TestASparingBatchNamesTheQueuesThatItCouldNotFill(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "w1",
		func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(1) })
	action := testkit.Action(t, b.store, "pk.a")
	b.dispatch(t, b.request(t, action, 23)...)
	testkit.Exec(t, b.store, `UPDATE worker SET capabilities = $2 WHERE id = $1`, worker.ID,
		testkit.DefaultCapabilities(50))
	other := b.replica(t)
	result, err := other.RunSparing(testkit.Context(t), nil, scheduler.FillStep{})
	require.NoError(t, err)
	require.Len(t, result.Unfilled, 1)
	require.Equal(t, []string{"pk.a"}, result.UnfilledOf)
	queue := result.Unfilled[0]

	end := b.lockQueue(t, action)
	result, err = other.RunSparing(testkit.Context(t), nil, scheduler.FillStep{Spare: []int64{queue}})
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Held: []int64{queue}}, result)
	waited := make(chan scheduler.Result)
	go func() {
		result, err := other.RunSparing(testkit.Context(t), nil, scheduler.FillStep{Queues: []int64{queue}})
		if err != nil {
			result.Missing = []int64{-1}
		}
		waited <- result
	}()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	}, testkit.TestTimeout, "it waits for the queue")
	end()
	require.Equal(t, scheduler.Result{Granted: 12}, <-waited)
	b.quiet(t)
}

// A batch that releases capacity of a worker cannot offer it to a queue that another batch
// holds: it requests another batch.
func TestCapacityForALockedQueueIsOfferedAgain(t *testing.T) {
	rechecks := 0
	b := setup(t, func(c *scheduler.Config) { c.Recheck = func() { rechecks++ } })
	testkit.Worker(t, b.store, "w1", announces(1, nil))
	held, free := testkit.Action(t, b.store, "pk.held"), testkit.Action(t, b.store, "pk.free")
	runs := b.request(t, free, 3)
	b.dispatch(t, runs...)
	b.dispatch(t, b.request(t, held, 1)...)
	require.Equal(t, 1, rechecks, "a queue has begun to wait")
	b.finish(t, lifecycle.StatusCompleted, runs...)
	end := b.lockQueue(t, held)
	require.Equal(t, scheduler.Result{Released: 3}, b.complete(t, runs...))
	require.Equal(t, 2, rechecks)
	end()
	require.Equal(t, scheduler.Result{Granted: 1}, b.dispatch(t))
	require.Equal(t, 2, rechecks)
	b.quiet(t)
}

// An execution of a draining worker that another batch has moved meanwhile stays where that
// batch put it.
func TestMovedExecutionsAreNotMovedAgain(t *testing.T) {
	b := setup(t)
	fences := map[string]any{"attempt_fence": true}
	old := testkit.Worker(t, b.store, "old", announces(9, fences))
	ids := b.request(t, testkit.Action(t, b.store, "pk.a"), 1)
	b.dispatch(t, ids...)
	moved, other := testkit.Worker(t, b.store, "moved", announces(1, fences)), testkit.Worker(t, b.store, "other",
		announces(9, fences))
	testkit.Exec(t, b.store, `UPDATE worker SET draining = true WHERE id = $1`, old.ID)
	leaving := func() *scheduler.ReassignStep {
		return scheduler.NewReassignStep([]scheduler.Unstarted{{Execution: ids[0], Leaving: true}}, true)
	}
	rival, outer := b.replica(t), b.replica(t)
	_, err := outer.Run(testkit.Context(t), scheduler.FillStep{}) // it knows the rules and the workers
	require.NoError(t, err)
	testkit.Exec(t, b.store, `UPDATE worker_load SET assigned = 5 WHERE worker = $1`, other.ID)
	_, err = outer.Run(testkit.Context(t), leaving(), &meanwhile{func() {
		_, err := rival.Run(testkit.Context(t), leaving())
		require.NoError(t, err)
	}})
	require.NoError(t, err)
	require.Equal(t, moved.ID, b.workerOf(t, ids[0]))
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT attempt FROM execution WHERE id = $1`, ids[0]))
	testkit.Exec(t, b.store, `UPDATE worker_load SET assigned = 0 WHERE worker = $1`, other.ID)
	b.quiet(t)
}
