package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// An execution that was repeated has no further consequences, however often its end is reported: it is not repeated
// again, and its workflow goes on from the end of the retry.
func TestARepeatedExecutionIsNotRepeatedAgain(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "pk.again")
	retry := scheduler.CompletionConfig{Retry: lifecycle.RetryPolicy{Enabled: true, Multiplier: 1}}
	failed := func(maxRetries int, task string) int64 {
		id := testkit.Execution(t, b.store, action,
			func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusFailed }).ID
		testkit.Exec(t, b.store, `UPDATE execution SET max_retries = $2, started_at = now(), workflow_task = $3::jsonb,
			result = '{"error": "x"}' WHERE id = $1`, id, maxRetries, task)
		return id
	}
	report := func(id int64) scheduler.Result {
		return b.run(t, scheduler.NewCompletionStep(retry, []scheduler.Report{{Execution: id}}))
	}
	plain := failed(3, "null")
	require.Len(t, report(plain).Repeated, 1)
	require.Equal(t, scheduler.Result{}, report(plain))

	task := failed(0, `{"workflow_execution": 7}`)
	byHand := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) {
		e.RetryCount, e.OriginalExecution = 1, &task
	}).ID
	testkit.Exec(t, b.store, `INSERT INTO execution_retry (failed, execution, reason, due, requested_by)
		VALUES ($1, $2, 'manual_retry', now(), 'ann')`, task, byHand)
	require.Empty(t, report(task).Tasks)
	require.Equal(t, 4, testkit.Count(t, b.store, `SELECT count(*) FROM execution`))
}

// A task that has a retry goes on as the retry: another report of its end neither repeats it nor ends the
// task, although the retry policy now says no.
func TestAnEndThatIsReportedAgainChangesNothingOfItsRetry(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "pk.a")
	id := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) {
		e.WorkflowTask = map[string]any{"workflow_execution": 7, "task_name": "t"}
	}).ID
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'failed',
		result = '{"error": "Worker queue TTL expired", "failed_by": "dead_letter_handler"}' WHERE id = $1`, id)
	retry := scheduler.CompletionConfig{Retry: lifecycle.RetryPolicy{Enabled: true, Unstarted: 1}}
	report := []scheduler.Report{{Execution: id}}
	result := b.run(t, scheduler.NewCompletionStep(retry, report))
	require.Len(t, result.Repeated, 1)
	require.Empty(t, result.Tasks)
	for _, cfg := range []scheduler.CompletionConfig{retry, {}} {
		result = b.run(t, scheduler.NewCompletionStep(cfg, report))
		require.Empty(t, result.Repeated)
		require.Empty(t, result.Tasks, "the retry ends the task")
	}
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE original_execution = $1`, id))
}

// Two replicas that process one end at the same time repeat it once.
func TestAnEndIsRepeatedOnceByTwoReplicas(t *testing.T) {
	b := setup(t)
	id := testkit.Execution(t, b.store, testkit.Action(t, b.store, "pk.a")).ID
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'failed',
		result = '{"error": "Worker queue TTL expired", "failed_by": "dead_letter_handler"}' WHERE id = $1`, id)
	retry := scheduler.CompletionConfig{Retry: lifecycle.RetryPolicy{Enabled: true, Unstarted: 1}}
	report := []scheduler.Report{{Execution: id}}
	rival := b.replica(t)
	result := b.run(t, scheduler.NewCompletionStep(retry, report), &decided{func() {
		got, err := rival.Run(testkit.Context(t), scheduler.NewCompletionStep(retry, report))
		require.NoError(t, err)
		require.Len(t, got.Repeated, 1)
	}})
	require.Empty(t, result.Repeated)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE original_execution = $1`, id))
}

// A decision is not written over what another program did to the row meanwhile.
func TestARefusedRequestThatIsClaimedMeanwhileStaysClaimed(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, 1, func(p *testkit.PolicyRow) { p.Method = "cancel" })
	require.Equal(t, 1, b.dispatch(t, b.request(t, action, 1)...).Granted)
	id := b.request(t, action, 1)[0]
	result := b.run(t, scheduler.FillStep{}, scheduler.NewRequestStep([]int64{id}), &decided{func() {
		testkit.Exec(t, b.store, `UPDATE execution SET status = 'scheduling' WHERE id = $1`, id)
	}})
	require.Zero(t, result.Ended)
	require.Equal(t, lifecycle.StatusScheduling, testkit.StatusOf(t, b.store, id))
}

// A returned dispatch whose execution is dispatched again while the batch decides does not end it.
func TestAReturnedDispatchDoesNotEndTheNextOne(t *testing.T) {
	b := setup(t)
	ids, old, other := unstartedAtDeadWorker(t, b, 1)
	testkit.Exec(t, b.store, `DELETE FROM worker WHERE id = $1`, other)
	b.scheduler = b.replica(t)
	note := []scheduler.Unstarted{{Execution: ids[0], Note: 1, Worker: old, Attempt: 1}}
	again := &decided{func() {
		testkit.Exec(t, b.store, `UPDATE execution SET attempt = 2 WHERE id = $1`, ids[0])
	}}
	require.Zero(t, b.run(t, scheduler.NewReassignStep(note, true), again).Ended)
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[0]))
}

// A retry is left alone until its time, whichever message names it.
func TestARetryIsNotAdmittedBeforeItsTime(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	id := testkit.Execution(t, b.store, testkit.Action(t, b.store, "pk.a")).ID
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'failed',
		result = '{"error": "Worker queue TTL expired", "failed_by": "dead_letter_handler"}' WHERE id = $1`, id)
	later := scheduler.CompletionConfig{Retry: lifecycle.RetryPolicy{
		Enabled: true, Unstarted: 1, BaseDelay: time.Hour, MaxDelay: time.Hour,
	}}
	next := b.run(t, scheduler.NewCompletionStep(later, []scheduler.Report{{Execution: id}})).Repeated[0].ID
	require.Equal(t, scheduler.Result{}, b.dispatch(t, next))
	testkit.Exec(t, b.store, `UPDATE execution_retry SET due = now()`)
	require.Equal(t, scheduler.Result{Granted: 1}, b.dispatch(t, next))
}

// A returned dispatch of an earlier attempt, at the same worker, changes nothing.
func TestAReturnedDispatchOfAnEarlierAttemptChangesNothing(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "w1", fenced).ID
	id := b.request(t, testkit.Action(t, b.store, "pk.a"), 1)[0]
	require.Equal(t, 1, b.dispatch(t, id).Granted)
	note := []scheduler.Unstarted{{Execution: id, Note: 1, Worker: worker, Attempt: 0}}
	require.Equal(t, scheduler.Result{}, b.run(t, scheduler.NewReassignStep(note, true)))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT attempt FROM execution WHERE id = $1`, id))
}

// An execution that is dispatched again while the batch moves it gets an attempt of its own from the move.
func TestAMoveNeverUsesAnAttemptTwice(t *testing.T) {
	b := setup(t)
	ids, _, other := unstartedAtDeadWorker(t, b, 1)
	list := []scheduler.Unstarted{{Execution: ids[0]}}
	require.Equal(t, 1, b.run(t, scheduler.NewReassignStep(list, true), &decided{func() {
		testkit.Exec(t, b.store, `UPDATE execution SET attempt = 2 WHERE id = $1`, ids[0])
	}}).Moved)
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE id = $1 AND worker = $2 AND attempt = 3`, ids[0], other))
}

// A request that is named while its claim stays unfinished is put back by the caller.
func TestAClaimThatStaysUnfinishedIsNamed(t *testing.T) {
	b := setup(t)
	ids := b.request(t, testkit.Action(t, b.store, "pk.a"), 2)
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'scheduling'`)
	testkit.Exec(t, b.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, b.store, `UPDATE execution SET updated = now() - interval '31 seconds' WHERE id = $1`, ids[0])
	step := scheduler.NewRequestStep(ids)
	require.Equal(t, scheduler.Result{}, b.run(t, step))
	require.Equal(t, ids[:1], step.Stale())
}
