package monitor

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

func TestAttemptsAreFoundFromEachOfThem(t *testing.T) {
	b := setup(t, nil)
	worker := testkit.Worker(t, b.Store, "w-1")
	first := testkit.Execution(t, b.Store, testkit.Action(t, b.Store, "demo.sleep"),
		func(e *testkit.ExecutionRow) { e.Worker = &worker.ID }).ID
	b.Fail(t, first, `{"error": "not this", "message": "exit 1"}`)
	second := b.Repeat(t, first, "action_failure", 0, nil)
	b.Fail(t, second, `{"message": "only a message"}`)
	ann := "ann"
	third := b.Repeat(t, second, "manual_retry", time.Hour, &ann)
	testkit.Execution(t, b.Store, testkit.Action(t, b.Store, "demo.other"))

	for _, id := range []int64{first, second, third} {
		list, err := b.Attempts(t.Context(), id)
		require.NoError(t, err)
		require.Len(t, list, 3)
		require.Equal(t, []int64{first, second, third}, []int64{list[0].ID, list[1].ID, list[2].ID})
		require.Equal(t, []int64{1, 2, 3}, []int64{list[0].Number, list[1].Number, list[2].Number})
		require.Nil(t, list[0].Repeats)
		require.Equal(t, second, *list[0].RepeatedBy)
		require.Equal(t, first, *list[1].Repeats)
		require.Equal(t, third, *list[1].RepeatedBy)
		require.Equal(t, second, *list[2].Repeats)
		require.Nil(t, list[2].RepeatedBy)
		require.Equal(t, "w-1", list[0].WorkerName)
		require.Equal(t, "exit 1", list[0].Error)
		require.Equal(t, "only a message", list[1].Error)
		require.Empty(t, list[0].Reason)
		require.Equal(t, "action_failure", list[1].Reason)
		require.Empty(t, list[1].RequestedBy)
		require.Equal(t, "manual_retry", list[2].Reason)
		require.Equal(t, "ann", list[2].RequestedBy)
		require.Nil(t, list[1].Due, "an ended attempt is not due")
		require.WithinDuration(t, time.Now().Add(time.Hour), *list[2].Due, time.Minute)
		require.NotNil(t, list[0].FinishedAt)
	}
	page, err := b.Executions(t.Context(), ExecutionFilter{IDs: []int64{first, second, third}}, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"", "repeated by " + strconv.FormatInt(third, 10) + ": only a message",
		"repeated by " + strconv.FormatInt(second, 10) + ": exit 1"},
		[]string{page.List[0].Why(), page.List[1].Why(), page.List[2].Why()}, "a list says what was repeated")

	testkit.Exec(t, b.Store, `update execution_retry set waiting = false where execution = $1`, third)
	list, err := b.Attempts(t.Context(), first)
	require.NoError(t, err)
	require.Nil(t, list[2].Due, "its time has come")

	// The first is deleted: the others still know each other.
	testkit.Exec(t, b.Store, `delete from execution where id = $1`, first)
	list, err = b.Attempts(t.Context(), third)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, int64(2), list[0].Number, "the number of an attempt does not change")
	require.Equal(t, third, *list[0].RepeatedBy)

	_, err = b.Attempts(t.Context(), 4711)
	require.ErrorIs(t, err, ErrNotFound)
}

// TestAttemptsOfOthers reads retries by other engines, with our tables and without.
func TestAttemptsOfOthers(t *testing.T) {
	t.Parallel()
	for name, ours := range map[string]bool{"OurSchema": true, "PublishedSchema": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			action := testkit.Action(t, b.Store, "demo.sleep")
			first := testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusFailed)).ID
			again := func(count int32) int64 {
				reason := "transient_error"
				return testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusTimeout),
					func(e *testkit.ExecutionRow) {
						e.OriginalExecution, e.RetryCount, e.RetryReason = &first, count, &reason
						e.Result = map[string]string{"error": "it broke"}
					}).ID
			}
			second, third, uncounted := again(1), again(2), again(0)
			if !ours {
				testkit.Exec(t, b.Store, `drop table execution_retry, execution_history cascade`)
				testkit.Exec(t, b.Store, `alter table execution drop column if exists finished_status cascade, drop column finished_at cascade`)
			}
			for _, id := range []int64{first, third} {
				list, err := b.Attempts(t.Context(), id)
				require.NoError(t, err)
				require.Len(t, list, 4)
				require.Equal(t, []int64{first, uncounted, second, third},
					[]int64{list[0].ID, list[1].ID, list[2].ID, list[3].ID})
				for i, a := range list {
					require.Equal(t, int64(i)+1, a.Number)
				}
				require.Equal(t, "transient_error", list[3].Reason)
				require.Equal(t, "it broke", list[3].Error)
				require.Equal(t, second, *list[3].Repeats)
			}
			one, err := b.NextRetry(t.Context(), first, lifecycle.RetryPolicy{})
			require.NoError(t, err)
			require.False(t, one.Expected)
			require.NotEmpty(t, one.Why)
		})
	}
}

func TestNextRetryDescribesTheNextAttempt(t *testing.T) {
	b := setup(t, nil)
	policy := lifecycle.RetryPolicy{
		Enabled: true, BaseDelay: time.Second, MaxDelay: time.Second, Unstarted: 1,
		ActionRetries: lifecycle.RetriesAlways,
	}
	ask := func(id int64) *NextRetry {
		t.Helper()
		r, err := b.NextRetry(t.Context(), id, policy)
		require.NoError(t, err)
		return r
	}
	once := testkit.Action(t, b.Store, "demo.once", func(a *testkit.ActionRow) { a.MaxRetries = 1 })
	id := testkit.Execution(t, b.Store, once).ID
	require.Equal(t, "it has not ended: it is requested", ask(id).Why)
	b.Fail(t, id, `{"error": "exit 1"}`)
	require.True(t, ask(id).Expected)
	again := b.Repeat(t, id, "action_failure", 0, nil)
	require.Equal(t, again, *ask(id).By)
	require.False(t, ask(id).Expected)
	b.Fail(t, again, `{"error": "exit 1"}`)
	require.Equal(t, "no retry is left: it is attempt 2, and 1 retry is allowed", ask(again).Why)

	own := int32(2)
	id = testkit.Execution(t, b.Store, once, func(e *testkit.ExecutionRow) { e.MaxRetries, e.RetryCount = &own, 1 }).ID
	b.Fail(t, id, `{}`)
	require.True(t, ask(id).Expected, "its own limit goes before that of its action")
	testkit.Exec(t, b.Store, `insert into execution_cancel (execution) values ($1)`, id)
	require.Equal(t, "its cancellation was requested", ask(id).Why)

	task := testkit.Execution(t, b.Store, once,
		func(e *testkit.ExecutionRow) { e.WorkflowTask = map[string]string{"task_name": "a"} }).ID
	b.Fail(t, task, `{}`)
	require.Contains(t, ask(task).Why, "its workflow repeats it")

	lost := testkit.Execution(t, b.Store, testkit.Action(t, b.Store, "demo.none")).ID
	testkit.Exec(t, b.Store, `update execution set status = 'failed',
		result = '{"error": "not picked up", "failed_by": "execution_timeout_monitor"}' where id = $1`, lost)
	require.True(t, ask(lost).Expected, "it was never started")

	_, err := b.NextRetry(t.Context(), 4711, policy)
	require.ErrorIs(t, err, ErrNotFound)
}
