package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/retrypolicy"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/testkit"
)

// An execution that was repeated has no further consequences, however often its end is reported: it is not repeated
// again, and its workflow goes on from the end of the retry.
func TestARepeatedExecutionIsNotRepeatedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	action := testkit.Action(t, b.store, "pk.again")
	retry := scheduler.CompletionConfig{Retry: retrypolicy.Config{Enabled: true, Multiplier: 1}}
	failed := func(maxRetries int, task string) int64 {
		id := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) { e.Status = attune.StatusFailed }).ID
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
