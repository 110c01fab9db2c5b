package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// during is a step that does something in the middle of the first batch: after
// everything was read under the locks, before anything is written.
type during struct{ act func() }

func (*during) Executions() []int64                             { return nil }
func (*during) Plan(_ context.Context, _ *scheduler.Plan) error { return nil }
func (d *during) Apply(*scheduler.Batch) {
	if d.act != nil {
		d.act()
	}
	d.act = nil
}

// fenced makes workers that refuse older attempts.
func fenced(w *testkit.WorkerRow) {
	w.Capabilities = map[string]any{"attempt_fence": true, "max_concurrent_executions": 5}
}

// unstartedAtDeadWorker dispatches n executions to a worker that then dies, and registers another one.
func unstartedAtDeadWorker(t *testing.T, b *bundle, n int) (ids []int64, old, other int64) {
	t.Helper()
	old = testkit.Worker(t, b.store, "old", fenced).ID
	action := testkit.Action(t, b.store, "pk.a", func(a *testkit.ActionRow) { a.MaxRetries = 1 })
	testkit.Policy(t, b.store, action, n)
	ids = b.request(t, action, n)
	require.Equal(t, n, b.dispatch(t, ids...).Granted)
	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now() - interval '10 minutes' WHERE id = $1`, old)
	other = testkit.Worker(t, b.store, "other", fenced).ID
	b.scheduler = b.replica(t) // it has not seen the old one alive
	b.relay.take()
	return ids, old, other
}

func (b *bundle) reassign(t *testing.T, ids []int64, before ...scheduler.Step) scheduler.Result {
	t.Helper()
	list := make([]scheduler.Unstarted, len(ids))
	for i, id := range ids {
		list[i].Execution = id
	}
	result, err := b.scheduler.Run(testkit.Context(t), append(before, scheduler.NewReassignStep(list, true))...)
	require.NoError(t, err)
	return result
}

// S2, S9: only unstarted executions of a dead worker move, with a new attempt and their slot. An execution that it
// starts meanwhile stays.
func TestOnlyUnstartedExecutionsMove(t *testing.T) {
	b := setup(t)
	ids, old, other := unstartedAtDeadWorker(t, b, 3)
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'running' WHERE id = $1`, ids[0])
	starts := &during{act: func() {
		testkit.Exec(t, b.store, `UPDATE execution SET status = 'running' WHERE id = $1`,
			ids[1])
	}}
	require.Equal(t, scheduler.Result{Moved: 1}, b.reassign(t, ids, starts))

	require.Equal(t, 2, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE worker = $1 AND attempt = 1 AND status = 'running'`, old))
	require.Equal(t, 1,
		testkit.Count(t, b.store,
			`SELECT count(*) FROM execution WHERE id = $1 AND worker = $2 AND attempt = 2 AND status = 'scheduled'`,
			ids[2], other))
	sent := b.relay.take()
	require.Len(t, sent, 1)
	require.Equal(t, message.DispatchKey(other), sent[0].RoutingKey)
	dispatched, err := message.Decode[message.Dispatch](sent[0].Body)
	require.NoError(t, err)
	require.EqualValues(t, 2, dispatched.Payload.Attempt)
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT assigned FROM worker_load WHERE worker = $1`, old))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT assigned FROM worker_load WHERE worker = $1`, other))
	require.Equal(t, 3, testkit.Count(t, b.store, `SELECT active_count FROM execution_admission_state`),
		"no slot was given back or taken")
	require.Equal(t, scheduler.Result{}, b.reassign(t, ids), "nothing is left to move")
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now()`) // else its running executions would be ended
	testkit.Invariants(t, b.store)
}

// A worker whose heartbeats resume keeps its executions, even if a sweep has just found it dead.
func TestAWorkerThatComesBackKeepsItsWork(t *testing.T) {
	b := setup(t)
	ids, old, _ := unstartedAtDeadWorker(t, b, 2)
	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now() WHERE id = $1`, old)
	require.Equal(t, scheduler.Result{}, b.reassign(t, ids))
	require.Equal(t, 2,
		testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE worker = $1 AND attempt = 1`, old))
}

// When no other worker fences attempts, the row is closed once, and retried once as a new row that
// avoids the worker.
func TestExecutionsThatCannotMoveAreRetried(t *testing.T) {
	b := setup(t)
	ids, old, other := unstartedAtDeadWorker(t, b, 2)
	testkit.Exec(t, b.store, `UPDATE worker SET capabilities = '{}' WHERE id = $1`, other)
	b.scheduler = b.replica(t)
	require.Equal(t, scheduler.Result{Ended: 2}, b.reassign(t, ids))
	require.Equal(t, scheduler.Result{}, b.reassign(t, ids))

	retry := lifecycle.RetryPolicy{
		Enabled: true, BaseDelay: time.Minute, Multiplier: 2, MaxDelay: time.Hour,
		ActionRetries: lifecycle.RetriesAlways,
	}
	reports := []scheduler.Report{
		{Execution: ids[0]},
		{Execution: ids[1]},
		{Execution: ids[0], Said: lifecycle.StatusTimeout},
	}
	for _, repeated := range []int{2, 0, 0} { // every report comes three times, to two replicas
		b.scheduler = b.replica(t)
		result, err := b.scheduler.Run(testkit.Context(t),
			scheduler.NewCompletionStep(scheduler.CompletionConfig{Retry: retry}, reports), scheduler.FillStep{})
		require.NoError(t, err)
		require.Len(t, result.Repeated, repeated)
		require.Equal(t, repeated, result.Released)
	}
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM execution_retry t JOIN execution n ON n.id = t.execution
		WHERE t.failed = ANY ($1) AND t.avoid = ARRAY[$2::bigint] AND t.waiting AND n.status = 'requested' AND n.retry_reason = 'worker_unavailable'
		  AND t.due - t.created BETWEEN interval '59 seconds' AND interval '61 seconds'`, ids, old))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM late_write`), "the lie is recorded once")
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// S15: an execution with a cancel request is not retried, whichever program asked and however it ended.
func TestCancelledExecutionsAreNotRetried(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a", func(a *testkit.ActionRow) { a.MaxRetries = 5 })
	ids := b.request(t, action, 2)
	b.dispatch(t, ids...)
	b.finish(t, lifecycle.StatusRunning, ids...)
	b.finish(t, lifecycle.StatusCanceling, ids[0]) // by the hand of another service
	b.finish(t, lifecycle.StatusFailed, ids...)
	retry := lifecycle.RetryPolicy{
		Enabled: true, BaseDelay: time.Second, Multiplier: 2, MaxDelay: time.Hour,
		ActionRetries: lifecycle.RetriesAlways,
	}
	result, err := b.scheduler.Run(testkit.Context(t),
		scheduler.NewCompletionStep(scheduler.CompletionConfig{Retry: retry},
			[]scheduler.Report{{Execution: ids[0]}, {Execution: ids[1]}}))
	require.NoError(t, err)
	require.Equal(t, 2, result.Released)
	require.Len(t, result.Repeated, 1)
	require.Equal(t, &ids[1], result.Repeated[0].OriginalExecution)
}

// A note about a returned dispatch is deleted with the move, and so is an outdated note.
func TestAReturnedDispatchMovesOnce(t *testing.T) {
	b := setup(t)
	ids, old, other := unstartedAtDeadWorker(t, b, 2)
	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now(), suspect_since = now() WHERE id = $1`, old)
	var notes []scheduler.Unstarted
	for _, attempt := range []int32{1, 0} { // the second is of an outdated dispatch
		for _, id := range ids {
			var note int64
			require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
				`INSERT INTO undelivered_dispatch (execution, attempt, worker, reason) VALUES ($1, $2, $3, 'x') RETURNING id`, id, attempt, old).Scan(&note))
			notes = append(notes, scheduler.Unstarted{Execution: id, Note: note, Worker: old, Attempt: attempt})
		}
	}
	for _, want := range []scheduler.Result{{Moved: 2}, {}} {
		result, err := b.scheduler.Run(testkit.Context(t), scheduler.NewReassignStep(notes, true))
		require.NoError(t, err)
		require.Equal(t, want, result)
	}
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM undelivered_dispatch`))
	require.Equal(t, 2,
		testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE worker = $1 AND attempt = 2`, other))
}

// Unstarted executions come before queued ones: the batch that frees capacity gives it to them first,
// and a single slot is not held without use.
func TestUnstartedExecutionsComeBeforeQueuedOnes(t *testing.T) {
	b := setup(t)
	ids, old, other := unstartedAtDeadWorker(t, b, 1)
	queued := b.request(t, testkit.Action(t, b.store, "pk.b"), 20)
	b.dispatch(t, queued...) // fills the other worker and its queue
	reassign := scheduler.NewReassignStep([]scheduler.Unstarted{{Execution: ids[0]}}, true)
	_, err := b.scheduler.Run(testkit.Context(t), reassign)
	require.NoError(t, err)
	require.Len(t, reassign.Left(), 1, "no capacity: it is left for the next batch")
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[0]))

	b.finish(t, lifecycle.StatusCompleted, queued[0])
	again := scheduler.NewReassignStep(reassign.Left(), true)
	release := scheduler.NewReleaseStep(queued[:1])
	result, err := b.scheduler.Run(testkit.Context(t), release, again, scheduler.FillStep{})
	require.NoError(t, err)
	require.Equal(t, 1, result.Moved)
	require.Zero(t, result.Granted)
	require.Empty(t, again.Left())
	require.Zero(t, testkit.Count(t, b.store, `SELECT assigned FROM worker_load WHERE worker = $1`, old))
	require.Equal(t, 1,
		testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = $1 AND worker = $2`, ids[0], other))
}

// Executions of a deleted worker are found and ended like those of a dead worker.
func TestWorkOfADeletedWorkerIsClosed(t *testing.T) {
	b := setup(t)
	ids, old, _ := unstartedAtDeadWorker(t, b, 1)
	testkit.Exec(t, b.store, `DELETE FROM worker WHERE id = $1`, old)
	testkit.Exec(t, b.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, b.store, `UPDATE execution SET updated = now() - interval '1 minute'`)
	testkit.Exec(t, b.store, `ALTER TABLE execution ENABLE TRIGGER USER`)
	found, err := b.store.FindOrphans(testkit.Context(t), store.FindOrphansParams{
		StaleAfter: 90, ScheduledTimeout: 300,
		Grace: 30, CancelTimeout: 300, Holders: true, WindowSize: 1000,
	})
	require.NoError(t, err)
	require.Equal(t, ids, found.Unstarted)
	require.Equal(t, scheduler.Result{Ended: 1}, b.reassign(t, found.Unstarted))
	require.Equal(t, scheduler.Result{Released: 1}, b.complete(t, ids...))
}

// A holder whose queue was deleted with its action moves too.
func TestAHolderWithoutAQueueMoves(t *testing.T) {
	b := setup(t)
	ids, _, _ := unstartedAtDeadWorker(t, b, 1)
	testkit.Exec(t, b.store, `DELETE FROM execution_admission_state`)
	require.Equal(t, scheduler.Result{Moved: 1}, b.reassign(t, ids))
}

// A returned dispatch goes back to its own worker when that has its queue again and no other worker
// has room. An execution that is moved again and again is closed in the end.
func TestAReturnedDispatchMayGoBackButNotForever(t *testing.T) {
	b := setup(t)
	ids, old, other := unstartedAtDeadWorker(t, b, 1)
	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now() WHERE id = $1`, old)
	testkit.Exec(t, b.store, `DELETE FROM worker WHERE id = $1`, other)
	for attempt := int32(1); attempt <= 10; attempt++ {
		b.scheduler = b.replica(t)
		note := []scheduler.Unstarted{{Execution: ids[0], Note: 1, Worker: old, Attempt: attempt}}
		result, err := b.scheduler.Run(testkit.Context(t), scheduler.NewReassignStep(note, true))
		require.NoError(t, err)
		if attempt < 10 {
			require.Equal(t, scheduler.Result{Moved: 1}, result, "attempt %d", attempt)
		} else {
			require.Equal(t, scheduler.Result{Ended: 1}, result)
		}
	}
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT assigned FROM worker_load WHERE worker = $1`, old),
		"until its end is read")
	require.Equal(t, scheduler.Result{Released: 1}, b.complete(t, ids...))
	require.Zero(t, testkit.Count(t, b.store, `SELECT assigned FROM worker_load WHERE worker = $1`, old))
}

// Executions lost with the last worker are retried. The retry waits for a worker or fails, as executor.no_workers
// says.
func TestARetryWithoutWorkersDoesAsTheSettingSays(t *testing.T) {
	b := setup(t)
	ids, _, other := unstartedAtDeadWorker(t, b, 1)
	testkit.Exec(t, b.store, `DELETE FROM worker WHERE id = $1`, other)
	testkit.Exec(t, b.store, `UPDATE action SET max_retries = 0`)
	b.scheduler = b.replica(t)
	require.Equal(t, scheduler.Result{Ended: 1}, b.reassign(t, ids))
	retry := scheduler.CompletionConfig{Retry: lifecycle.RetryPolicy{
		Enabled: true, BaseDelay: 1, Multiplier: 1,
		MaxDelay: 1, Unstarted: 1,
	}}
	result, err := b.scheduler.Run(testkit.Context(t),
		scheduler.NewCompletionStep(retry, []scheduler.Report{{Execution: ids[0]}}))
	require.NoError(t, err)
	require.Len(t, result.Repeated, 1)
	next := result.Repeated[0].ID
	b.scheduler = b.replica(t, func(c *scheduler.Config) { c.WaitForWorkers = true })
	require.Equal(t, 1, b.dispatch(t, next).Enqueued)
	testkit.Worker(t, b.store, "new", fenced)
	b.scheduler = b.replica(t)
	require.Equal(t, 1, b.dispatch(t).Granted)
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, next))

	failing := setup(t)
	ids, _, other = unstartedAtDeadWorker(t, failing, 1)
	testkit.Exec(t, failing.store, `DELETE FROM worker WHERE id = $1`, other)
	testkit.Exec(t, failing.store, `UPDATE action SET max_retries = 0`)
	failing.scheduler = failing.replica(t)
	require.Equal(t, scheduler.Result{Ended: 1}, failing.reassign(t, ids))
	require.Equal(t, 1, testkit.Count(t, failing.store, `SELECT count(*) FROM execution WHERE id = $1
		AND result->>'error' = 'Worker queue TTL expired: heartbeat timeout before the worker started the execution'`, ids[0]))
	result, err = failing.scheduler.Run(testkit.Context(t),
		scheduler.NewCompletionStep(retry, []scheduler.Report{{Execution: ids[0]}}))
	require.NoError(t, err)
	next = result.Repeated[0].ID
	failing.dispatch(t, next)
	require.Equal(t, 1, testkit.Count(t, failing.store, `SELECT count(*) FROM execution WHERE id = $1 AND status = 'failed'
		AND result->>'error' = 'no workers available'`, next))
}
