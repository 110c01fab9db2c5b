package cancellation_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/cancellation"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// walk cancels a tree to its end and calls after after every page.
func (b *bundle) walk(t *testing.T, after func(page []int64), ids ...int64) (visited []int64, stuck []int64) {
	t.Helper()
	return b.walkOf(t, cancellation.NewWalk(ids, true), after)
}

func (b *bundle) walkOf(t *testing.T, w *cancellation.Walk, after func(page []int64)) (visited []int64, stuck []int64) {
	t.Helper()
	for {
		next, err := w.Next(testkit.Context(t), b.store.Queries)
		require.NoError(t, err)
		if len(next) == 0 {
			return visited, w.Stuck
		}
		visited = append(visited, next...)
		page, err := b.apply(testkit.Context(t), w.Of(cancellation.Request{Actor: "ann"}), next...)
		require.NoError(t, err)
		w.Again(page)
		if after != nil {
			after(next)
		}
	}
}

func child(parent int64) func(*testkit.ExecutionRow) {
	return func(e *testkit.ExecutionRow) { e.Parent = &parent }
}

// Parents come before their children, the walk passes through ended executions, and the children of a retry belong
// to the tree.
func TestATreeIsCancelledFromItsRootDown(t *testing.T) {
	b := setup(t)
	root := b.at(t, lifecycle.StatusRunning, nil)
	ended := b.at(t, lifecycle.StatusCompleted, nil, child(root))
	below := b.at(t, lifecycle.StatusRunning, nil, child(ended))
	leaf := b.at(t, lifecycle.StatusRequested, nil, child(below))
	failed := b.at(t, lifecycle.StatusFailed, &b.plain, child(root))
	repeats := b.retryOf(t, failed, lifecycle.StatusRunning, false)
	ofRepeat := b.at(t, lifecycle.StatusRequested, nil, child(repeats))
	other := b.at(t, lifecycle.StatusRequested, nil)

	visited, stuck := b.walk(t, nil, root)
	require.Empty(t, stuck)
	require.Equal(t, []int64{root, ended, failed, below, ofRepeat, leaf}, visited)
	for _, id := range []int64{root, below, leaf, repeats, ofRepeat} {
		require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, id), "execution %d", id)
	}
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, ended))
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, b.store, other))
	require.Equal(t, 5, b.count(t, `SELECT coalesce(sum(cardinality(message_ids)), 0) FROM outbox`), "one end each")
}

// Children that start while the tree is being cancelled are cancelled too, at any depth and by any service.
func TestChildrenCreatedMeanwhileAreCancelled(t *testing.T) {
	b := setup(t)
	root := b.at(t, lifecycle.StatusRunning, nil)
	parent := b.at(t, lifecycle.StatusRunning, nil, child(root))
	born := 0
	visited, _ := b.walk(t, func([]int64) {
		if born < 3 { // by a service that read the parent before its cancel
			born++
			b.at(t, lifecycle.StatusRequested, nil, child(parent))
			b.at(t, lifecycle.StatusRequested, nil, child(root))
		}
	}, root)
	require.Len(t, visited, 2+2*born)
	require.Zero(t, b.count(t, `SELECT count(*) FROM execution e WHERE e.finished_status IS NULL`))
}

// Stress: while two services cancel a tree, others start children of every parent that they still see as active.
// Nothing is left, and every end was written once (S14, S15).
func TestATreeIsCancelledByTwoWhileItGrows(t *testing.T) {
	b := setup(t)
	root := b.at(t, lifecycle.StatusRunning, nil)
	ctx := testkit.Context(t)
	var makers sync.WaitGroup
	var made atomic.Int64
	for range 3 {
		makers.Go(func() {
			for range 60 {
				// Like an engine, it reads the parent and then inserts.
				tag, err := b.store.Pool().Exec(ctx, `WITH parent AS (
						SELECT id FROM execution WHERE status = 'running' AND worker IS NULL ORDER BY random() LIMIT 1)
					INSERT INTO execution (action, action_ref, parent, status)
					SELECT $1, $2, id,
						CASE WHEN random() < 0.5 THEN 'running' ELSE 'requested' END::execution_status_enum FROM parent`, b.action.ID, b.action.Ref)
				if err != nil {
					panic(err)
				}
				made.Add(tag.RowsAffected())
			}
		})
	}
	testkit.Eventually(t, func() bool { return made.Load() >= 15 }, testkit.TestTimeout)
	var walks sync.WaitGroup
	for range 2 {
		walks.Go(func() {
			if err := b.walkQuietly(ctx, root); err != nil {
				panic(err)
			}
		})
	}
	walks.Wait()
	makers.Wait()
	// A service that read a parent before its end may have inserted after the last walk.
	require.NoError(t, b.walkQuietly(ctx, root))
	require.Zero(t, b.count(t, `SELECT count(*) FROM execution e WHERE e.finished_status IS NULL`))
	require.Equal(t, b.count(t, `SELECT count(*) FROM execution`),
		b.count(t, `SELECT coalesce(sum(cardinality(message_ids)), 0) FROM outbox`), "S14: one end each")
	require.Zero(t, b.count(t, `SELECT count(*) FROM late_write`))
}

func (b *bundle) walkQuietly(ctx context.Context, root int64) error {
	w := cancellation.NewWalk([]int64{root}, true)
	for {
		next, err := w.Next(ctx, b.store.Queries)
		if err != nil || len(next) == 0 {
			return err
		}
		page, err := b.apply(ctx, w.Of(cancellation.Request{Actor: "ann"}), next...)
		if err != nil {
			return err
		}
		w.Again(page)
	}
}

// Whatever a worker has is stopped when nothing is left to withdraw, also below it and of other parents: a slot that
// becomes free starts none of them.
func TestWaitingExecutionsOfATreeAreWithdrawnFirst(t *testing.T) {
	b := setup(t)
	root := b.at(t, lifecycle.StatusRunning, &b.plain)
	below := b.at(t, lifecycle.StatusScheduled, &b.fenced, child(root))
	waiting := []int64{
		b.at(t, lifecycle.StatusRequested, nil, child(root)), b.at(t, lifecycle.StatusRequested, nil, child(below)),
	}
	late := int64(0)
	live := func() int {
		return b.count(t, `SELECT count(*) FROM execution WHERE status = 'requested'`)
	}
	visited, stuck := b.walk(t, func(page []int64) {
		if page[0] == root && len(page) > 1 && late == 0 { // the stopped ones, one of which creates another child
			require.Zero(t, live())
			late = b.at(t, lifecycle.StatusRequested, nil, child(root))
		}
	}, root)
	require.Empty(t, stuck)
	require.Equal(t, []int64{root, below, waiting[0], waiting[1], root, below, late}, visited)
	require.Zero(t, live())
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, b.store, root))
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, below))
}

// A cancelled workflow takes its waiting tasks with it in the same walk, and those of nested workflows; a started one
// only if its definition says so. Children of other executions stay.
func TestTheTasksOfAWorkflowAreCancelledAsDefined(t *testing.T) {
	t.Parallel()
	for policy, stopped := range map[string]lifecycle.Status{
		"allow_finish": lifecycle.StatusRunning, "cancel_running": lifecycle.StatusCanceling,
	} {
		b := setup(t)
		flow := func(options ...func(*testkit.ExecutionRow)) int64 {
			id := b.at(t, lifecycle.StatusRunning, nil, options...)
			testkit.Exec(t, b.store, `WITH def AS (
					INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
					SELECT 'pk.flow' || $1::bigint, pack, pack_ref, 'flow', '1',
						'{}' FROM action WHERE id = $2 RETURNING id), source AS (
					INSERT INTO workflow_source (digest, definition) VALUES ($1::bigint::text,
						jsonb_build_object('cancellation_policy', $3::text)) RETURNING id)
				INSERT INTO workflow_execution (execution, workflow_def, task_graph, status, source)
				SELECT $1::bigint, def.id, '{}', 'running', source.id FROM def, source`, id, b.action.ID, policy)
			return id
		}
		root := flow()
		nested := flow(child(root))
		tasks := []int64{
			b.at(t, lifecycle.StatusRequested, nil, child(root)), b.at(t, lifecycle.StatusRequested, nil,
				child(nested)),
			b.at(t, lifecycle.StatusScheduled, &b.fenced, child(root)),
		}
		started, completed := b.at(t, lifecycle.StatusRunning, &b.plain, child(root)),
			b.at(t, lifecycle.StatusCompleted, nil, child(root))
		ofTask := b.at(t, lifecycle.StatusRequested, nil, child(started))
		_, stuck := b.walkOf(t, cancellation.NewWalk([]int64{root}, false), nil)
		require.Empty(t, stuck)
		for _, id := range tasks {
			require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, id), policy)
		}
		require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, b.store, root), policy)
		require.Equal(t, stopped, testkit.StatusOf(t, b.store, started), policy)
		require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, completed), policy)
		require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, b.store, ofTask), policy)
	}
}

// From the first transaction on no waiting execution of the walk starts, although later ones end them, and the walk
// reports also the ones that an engine has ended meanwhile. An earlier request keeps its author.
func TestTheFirstPageStoresTheRequestsOfAllWaitingExecutions(t *testing.T) {
	b := setup(t)
	var ids []int64
	for range 5 {
		ids = append(ids, b.at(t, lifecycle.StatusRequested, nil))
	}
	running, before := b.at(t, lifecycle.StatusRunning, &b.plain), b.at(t, lifecycle.StatusCancelled, nil)
	testkit.Exec(t, b.store, `INSERT INTO execution_cancel (execution, actor) VALUES ($1, 'eve')`, ids[4])
	w := cancellation.NewWalk(append(ids, running, before), false)
	w.Withdraw(2)
	next, err := w.Next(testkit.Context(t), b.store.Queries)
	require.NoError(t, err)
	page, err := b.apply(testkit.Context(t), w.Of(cancellation.Request{Actor: "ann", Reason: "wrong"}), next...)
	require.NoError(t, err)
	w.Again(page)
	require.Equal(t, 4, b.count(t, `SELECT count(*) FROM execution_cancel WHERE actor = 'ann' AND reason = 'wrong'`))
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM execution_cancel WHERE actor = 'eve' AND reason IS NULL`))
	require.Zero(t, b.count(t, `SELECT count(*) FROM execution_cancel WHERE execution = $1`, running),
		"Poll would stop it before all are withdrawn")

	_, err = b.apply(testkit.Context(t), cancellation.Request{Actor: "an engine"}, ids[3])
	require.NoError(t, err)
	outcomes := map[int64]cancellation.Outcome{}
	for {
		next, err := w.Next(testkit.Context(t), b.store.Queries)
		require.NoError(t, err)
		if len(next) == 0 {
			break
		}
		page, err := b.apply(testkit.Context(t), w.Of(cancellation.Request{Actor: "ann"}), next...)
		require.NoError(t, err)
		w.Again(page)
		for _, r := range page.Results {
			outcomes[r.ID] = r.Outcome
		}
	}
	require.Equal(t, map[int64]cancellation.Outcome{
		ids[2]: cancellation.Cancelled, ids[3]: cancellation.Cancelled, ids[4]: cancellation.Cancelled,
		running: cancellation.Asked, before: cancellation.Ended,
	}, outcomes)
}

// An execution that changes during every try is given up after ten.
func TestAnExecutionThatKeepsMovingIsStuck(t *testing.T) {
	t.Parallel()
	w := cancellation.NewWalk([]int64{7}, false)
	for range 10 {
		next, err := w.Next(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, []int64{7}, next)
		w.Again(&cancellation.Page{Again: next})
	}
	next, err := w.Next(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, next)
	require.Equal(t, []int64{7}, w.Stuck)
}
