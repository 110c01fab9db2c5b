package scheduler_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// beforeWrite calls act once, after the batch has read its rows and before it writes.
type beforeWrite struct{ act func() }

func (*beforeWrite) Executions() []int64 { return nil }

func (*beforeWrite) Plan(context.Context, *scheduler.Plan) error { return nil }

func (*beforeWrite) Optimistic() bool { return true }

func (s *beforeWrite) Apply(*scheduler.Batch) {
	if act := s.act; act != nil {
		s.act = nil
		act()
	}
}

// A batch about an action without a limit does not lock its queue before it writes if no execution
// waits: meanwhile other batches about the action decide and commit.
func TestABatchAboutActionsWithoutLimitsLocksNoQueue(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", announces(50, nil))
	for _, limit := range []int{0, 5} {
		action := testkit.Action(t, b.store, "pk.a"+strconv.Itoa(limit))
		if limit > 0 {
			testkit.Policy(t, b.store, action, limit)
		}
		require.Equal(t, scheduler.Result{Granted: 1}, b.dispatch(t, b.request(t, action, 1)...), "makes the queue")
		ids := b.request(t, action, 2)
		var between scheduler.Result
		other := &beforeWrite{act: func() {
			var err error
			between, err = b.replica(t).RunSparing(testkit.Context(t), nil, scheduler.FillStep{},
				hinted(named(action), ids[1]))
			require.NoError(t, err)
		}}
		require.Equal(t, scheduler.Result{Granted: 1},
			b.run(t, scheduler.FillStep{}, hinted(named(action), ids[0]), other))
		if limit > 0 {
			require.Equal(t, scheduler.Result{Left: ids[1:]}, between, "under a limit the lock is needed")
		} else {
			require.Equal(t, scheduler.Result{Granted: 1}, between)
		}
	}
	testkit.Invariants(t, b.store)
}

// If another writer changes the queue after it was read, the batch notices when it writes, and decides again under
// the lock.
func TestAnOpenQueueThatChangesMeanwhileIsDecidedUnderItsLock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, b *bundle, action testkit.ActionRow, ids []int64)
		want   scheduler.Result
	}{
		"nothing": {func(*testing.T, *bundle, testkit.ActionRow, []int64) {}, scheduler.Result{Granted: 2}},
		"it is paused": {func(t *testing.T, b *bundle, action testkit.ActionRow, _ []int64) {
			testkit.Exec(t, b.store, `UPDATE execution_admission_state SET paused = true WHERE action_id = $1`,
				action.ID)
		}, scheduler.Result{Enqueued: 2}},
		"an operator limits it": {func(t *testing.T, b *bundle, action testkit.ActionRow, _ []int64) {
			testkit.Exec(t, b.store, `UPDATE execution_admission_state SET limit_override = 2 WHERE action_id = $1`,
				action.ID)
		}, scheduler.Result{Granted: 1, Enqueued: 1}},
		"a policy limits it": {func(t *testing.T, b *bundle, action testkit.ActionRow, _ []int64) {
			testkit.Policy(t, b.store, action, 2)
			_, err := b.replica(t).Run(testkit.Context(t), scheduler.FillStep{},
				scheduler.NewRequestStep(b.request(t, action, 1)))
			require.NoError(t, err)
		}, scheduler.Result{Enqueued: 2}},
		"a policy of its pack limits it": {func(t *testing.T, b *bundle, action testkit.ActionRow, _ []int64) {
			testkit.Policy(t, b.store, action, 2, testkit.OfPack(action))
			_, err := b.replica(t).Run(testkit.Context(t), scheduler.FillStep{},
				scheduler.NewRequestStep(b.request(t, action, 1)))
			require.NoError(t, err)
		}, scheduler.Result{Enqueued: 2}},
		"it is pruned": {func(t *testing.T, b *bundle, action testkit.ActionRow, ids []int64) {
			b.finish(t, lifecycle.StatusCompleted, ids[0]-1)
			b.complete(t, ids[0]-1)
			testkit.Exec(t, b.store, `DELETE FROM execution_admission_state WHERE action_id = $1`, action.ID)
		}, scheduler.Result{Granted: 2}},
		"another replica was first with one": {func(t *testing.T, b *bundle, action testkit.ActionRow, ids []int64) {
			_, err := b.replica(t).Run(testkit.Context(t), scheduler.FillStep{}, hinted(named(action), ids[0]))
			require.NoError(t, err)
		}, scheduler.Result{Granted: 1}},
		"one is cancelled": {func(t *testing.T, b *bundle, _ testkit.ActionRow, ids []int64) {
			b.finish(t, lifecycle.StatusCancelled, ids[1])
		}, scheduler.Result{Granted: 1}},
		"the workers fill up": {func(t *testing.T, b *bundle, action testkit.ActionRow, _ []int64) {
			_, err := b.replica(t).Run(testkit.Context(t), scheduler.FillStep{},
				hinted(named(action), b.request(t, action, 3+placement.HeadroomPerWorker)...))
			require.NoError(t, err)
		}, scheduler.Result{Granted: 1, Enqueued: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			testkit.Worker(t, b.store, "w1", announces(5, nil))
			action := testkit.Action(t, b.store, "pk.free")
			first := b.request(t, action, 1)
			require.Equal(t, scheduler.Result{Granted: 1}, b.dispatch(t, first...))
			ids := b.request(t, action, 2)
			other := &beforeWrite{act: func() { c.change(t, b, action, ids) }}
			result := b.run(t, scheduler.FillStep{}, hinted(named(action), ids...), other)
			result.Wake = 0
			require.Equal(t, c.want, result)
			testkit.Invariants(t, b.store)
		})
	}
}

// An end that two replicas take at once gives back its slot once, and is repeated once.
func TestAnEndWithoutALimitIsTakenOnce(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", announces(50, nil))
	action := testkit.Action(t, b.store, "pk.free")
	ids := b.request(t, action, 3)
	require.Equal(t, scheduler.Result{Granted: 3}, b.dispatch(t, ids...))
	b.finish(t, lifecycle.StatusCompleted, ids...)
	first := &beforeWrite{act: func() {
		result, err := b.replica(t).Run(testkit.Context(t), reported(named(action), ids[1:]...), scheduler.FillStep{})
		require.NoError(t, err)
		require.Equal(t, scheduler.Result{Released: 2}, result)
	}}
	require.Equal(t, scheduler.Result{Released: 1},
		b.run(t, reported(named(action), ids...), scheduler.FillStep{}, first))
	require.Zero(t,
		testkit.Count(t, b.store, `SELECT active_count FROM execution_admission_state WHERE action_id = $1`, action.ID))
	require.Equal(t, 3,
		testkit.Count(t, b.store, `SELECT total_completed FROM queue_stats WHERE action_id = $1`, action.ID))
	b.quiet(t)
}
