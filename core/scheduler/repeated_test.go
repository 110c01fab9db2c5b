package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/retrypolicy"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/testkit"
)

// A task that has a retry goes on as the retry: another report of its end neither repeats it nor ends the
// task, although the retry policy now says no.
func TestAnEndThatIsReportedAgainChangesNothingOfItsRetry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	action := testkit.Action(t, b.store, "pk.a")
	id := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) {
		e.WorkflowTask = map[string]any{"workflow_execution": 7, "task_name": "t"}
	}).ID
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'failed',
		result = '{"error": "Worker queue TTL expired", "failed_by": "dead_letter_handler"}' WHERE id = $1`, id)
	retry := scheduler.CompletionConfig{Retry: retrypolicy.Config{Enabled: true, Unstarted: 1}}
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
	t.Parallel()
	b := setup(t)
	id := testkit.Execution(t, b.store, testkit.Action(t, b.store, "pk.a")).ID
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'failed',
		result = '{"error": "Worker queue TTL expired", "failed_by": "dead_letter_handler"}' WHERE id = $1`, id)
	retry := scheduler.CompletionConfig{Retry: retrypolicy.Config{Enabled: true, Unstarted: 1}}
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
