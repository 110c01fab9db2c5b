package inquiry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// An inquiry without an answer in time expires once on two replicas, as published, with its task marked. Inquiries with
// time left or without a timeout stay open.
func TestUnansweredInquiriesEnd(t *testing.T) {
	b := setup(t)
	late := b.task(t, func(q *inquiry.Question) { q.Timeout = time.Hour })
	wakes := b.result(t, object{"__inquiry": object{"prompt": "go on?", "timeout_seconds": 3600}})
	for _, a := range []asked{late, wakes} {
		b.over(t, a.inquiry)
	}
	stays, forever := b.task(t, func(q *inquiry.Question) { q.Timeout = time.Hour }), b.task(t)
	b.watch(t)
	b.watch(t)
	b.becomes(t, late, inquiry.Expired, lifecycle.StatusTimeout)
	b.becomes(t, wakes, inquiry.Expired, lifecycle.StatusCompleted)
	require.JSONEq(t, string(mustJSON(t, object{"error": "inquiry timed out", "__inquiry_id": late.inquiry})),
		b.resultOf(t, late.execution))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = $1 AND workflow_task->'timed_out' = 'true'
		AND workflow_task->>'task_name' = 'approve' AND (workflow_task->>'completed_at')::timestamptz <= now()`, late.execution))
	require.Equal(t, inquiry.Pending, b.status(t, stays.inquiry))
	require.Equal(t, inquiry.Pending, b.status(t, forever.inquiry))
	require.Equal(t, map[int64]int{late.execution: 1, wakes.execution: 1}, b.relay.completions(t))
}

// upstream 57: an inquiry that another service has ended is settled although its message was lost; settled inquiries
// are not read again.
func TestInquiriesThatAnotherServiceEndedAreSettled(t *testing.T) {
	b := setup(t)
	answered, expired, cancelled := b.task(t), b.task(t), b.task(t)
	wakes := b.result(t, object{"__inquiry": object{"prompt": "go on?"}})
	foreign := func(a asked, status string) {
		testkit.Exec(t, b.store, `UPDATE inquiry SET status = $2::inquiry_status_enum, response = CASE $2 WHEN 'responded' THEN '{"ok": 1}'::jsonb END,
			responded_at = now() WHERE id = $1`, a.inquiry, status)
	}
	foreign(answered, "responded")
	foreign(expired, "timeout")
	foreign(cancelled, "cancelled")
	foreign(wakes, "responded")
	b.watch(t)
	b.watch(t)
	b.becomes(t, answered, inquiry.Responded, lifecycle.StatusCompleted)
	b.becomes(t, expired, inquiry.Expired, lifecycle.StatusTimeout)
	b.becomes(t, cancelled, inquiry.Cancelled, lifecycle.StatusCancelled)
	b.becomes(t, wakes, inquiry.Responded, lifecycle.StatusCompleted)
	require.JSONEq(t,
		string(mustJSON(t, object{
			"response": object{"ok": 1}, "__inquiry_id": answered.inquiry,
			"__inquiry_created_published": true,
		})),
		b.resultOf(t, answered.execution))
	require.Equal(t, map[int64]int{
		answered.execution: 1, expired.execution: 1, cancelled.execution: 1,
		wakes.execution: 1,
	}, b.relay.completions(t))
}

// Questions whose workflow has ended are cancelled, so that no person answers them. Questions of a live workflow, or of
// no task, stay open.
func TestQuestionsOfEndedWorkflowsAreCancelled(t *testing.T) {
	b := setup(t)
	abandoned, live := b.task(t), b.task(t)
	b.ended(t, abandoned.execution, "abandoned")
	alone := b.result(t, object{"__inquiry": object{"prompt": "alone"}})
	testkit.Exec(t, b.store, `UPDATE execution SET parent = NULL WHERE id = $1`, alone.execution)
	waited := b.result(t, object{"__inquiry": object{"prompt": "for the workflow"}})
	b.watch(t, func(c *inquiry.WatchConfig) { c.Page = 2 })
	b.becomes(t, abandoned, inquiry.Cancelled, lifecycle.StatusAbandoned)
	require.Equal(t, inquiry.Pending, b.status(t, waited.inquiry))

	b.ended(t, b.workflow, "failed")
	b.becomes(t, waited, inquiry.Cancelled, lifecycle.StatusCompleted)
	require.Equal(t, inquiry.Pending, b.status(t, alone.inquiry))
	require.Equal(t, inquiry.Pending, b.status(t, live.inquiry),
		"its execution is for the cancellation of the workflow to end")
}

func (b *bundle) ended(t *testing.T, execution int64, status string) {
	t.Helper()
	testkit.Exec(t, b.store, `UPDATE execution SET status = $2::execution_status_enum WHERE id = $1`, execution, status)
}

// An inquiry whose execution cannot be written delays no other.
func TestAnInquiryThatCannotBeSettledDelaysNoOther(t *testing.T) {
	b := setup(t)
	soon := func(q *inquiry.Question) { q.Timeout = time.Millisecond }
	first, stuck, last := b.task(t, soon), b.task(t, soon), b.task(t, soon)
	testkit.RefuseUpdates(t, b.store, stuck.execution)
	b.watch(t)
	b.becomes(t, first, inquiry.Expired, lifecycle.StatusTimeout)
	b.becomes(t, last, inquiry.Expired, lifecycle.StatusTimeout)
	require.Equal(t, inquiry.Pending, b.status(t, stuck.inquiry))
}

// A message announces the end of an inquiry without a result that is too large for it.
func TestALargeResultIsNotCopiedIntoAMessage(t *testing.T) {
	b := setup(t)
	large := b.result(t, object{"text": strings.Repeat("x", 2<<20), "__inquiry": object{"prompt": "go on?"}})
	testkit.Exec(t, b.store, `UPDATE inquiry SET timeout_at = now() - interval '1 second' WHERE id = $1`, large.inquiry)
	b.watch(t)
	b.becomes(t, large, inquiry.Expired, lifecycle.StatusCompleted)
	testkit.Eventually(t, func() bool { return b.relay.completions(t)[large.execution] == 1 }, testkit.TestTimeout)
	b.relay.mu.Lock()
	defer b.relay.mu.Unlock()
	for _, m := range b.relay.messages {
		require.Less(t, len(m.Body), 1<<20)
	}
}

// L1: a thousand questions that expire at once all end, each with one message.
func TestAThousandQuestionsEndAtOnce(t *testing.T) {
	b := setup(t)
	const many = 1000
	testkit.Exec(t, b.store, `WITH e AS (INSERT INTO execution (action, action_ref, status, parent, started_at)
			SELECT $1, 'pk.ask', 'running', $2, now() FROM generate_series(1, $3::int) RETURNING id)
		INSERT INTO inquiry (execution, prompt, timeout_at) SELECT id, 'go on?', now() - interval '1 second' FROM e`, b.ask.ID, b.workflow, many)
	begun := time.Now()
	b.watch(t)
	b.watch(t)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE status = 'timeout' AND settled`) == many
	}, 15*time.Second)
	t.Logf("%d ended within %s", many, time.Since(begun))
	require.Equal(t, many, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'timeout'`))
	// The relay gets the messages after the commit that the query has seen.
	var told map[int64]int
	testkit.Eventually(t, func() bool {
		told = b.relay.completions(t)
		return len(told) == many
	}, testkit.TestTimeout)
	for id, n := range told {
		require.Equal(t, 1, n, "execution %d", id)
	}
}

// Ended inquiries of earlier versions are settled; open ones are not.
func TestAnEndedInquiryKeepsItsEnd(t *testing.T) {
	b := setup(t)
	a := b.task(t)
	b.over(t, a.inquiry)
	b.watch(t)
	b.becomes(t, a, inquiry.Expired, lifecycle.StatusTimeout)
	require.Equal(t, 1, testkit.Exec(t, b.store,
		`UPDATE inquiry SET status = 'responded', response = '1', responded_at = now() WHERE id = $1`, a.inquiry),
		"a service that answers without looking does not fail")
	require.Equal(t, inquiry.Expired, b.status(t, a.inquiry))
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM inquiry WHERE response IS NULL AND responded_at IS NULL AND settled`))
}
