package inquiry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

type object = map[string]any

// S10: one inquiry per execution, ever, with its message in the same transaction.
func TestAQuestionInAResultIsOpenedOnce(t *testing.T) {
	b := setup(t)
	who := testkit.Count(t, b.store, `INSERT INTO identity (login) VALUES ('ada') RETURNING id`)
	execution := b.completed(t, object{"data": object{"__inquiry": object{
		"prompt": "deploy?", "response_schema": object{"type": "object"}, "assigned_to": who, "timeout_seconds": 90,
	}}})
	quiet := b.completed(t, object{"data": object{"a": 1}})
	ctx := testkit.Context(t)
	read := func() *inquiry.Opening {
		o, err := inquiry.Read(ctx, b.store.Queries, []int64{execution, quiet})
		require.NoError(t, err)
		return o
	}
	first, second := read(), read()
	require.NoError(t, b.open(ctx, first))
	err := b.open(ctx, second)
	require.Equal(t, store.ClassConflict, store.ClassOf(err), "a second replica takes its transaction back: %v", err)
	require.True(t, read().Empty())

	id := first.Questions[0].ID
	require.Equal(t, inquiry.Pending, b.status(t, id))
	require.Len(t, b.relay.messages, 1)
	told, err := message.Decode[message.InquiryCreated](b.relay.messages[0].Body)
	require.NoError(t, err)
	require.Equal(t, message.KeyInquiryCreated, b.relay.messages[0].RoutingKey)
	require.Equal(t, id, told.Payload.InquiryID)
	require.Equal(t, execution, told.Payload.ExecutionID)
	require.Equal(t, "deploy?", told.Payload.Prompt)
	require.EqualValues(t, who, *told.Payload.AssignedTo)
	require.JSONEq(t, `{"type": "object"}`, string(told.Payload.ResponseSchema))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE id = $1 AND execution = $2 AND status = 'pending' AND NOT settled
		AND prompt = 'deploy?' AND response_schema = '{"type": "object"}' AND assigned_to = $3 AND timeout_at = $4 AND timeout_at = created + interval '90 s'`,
		id, execution, who, *told.Payload.TimeoutAt), "the row agrees with the message")
}

// A question that cannot be asked is recorded once with the reason, and nothing waits for it.
func TestAQuestionThatCannotBeAskedIsRecorded(t *testing.T) {
	b := setup(t)
	ctx := testkit.Context(t)
	malformed := b.completed(t, object{"__inquiry": object{"prompt": 7}})
	nobody := b.completed(t, object{"__inquiry": object{"prompt": "go on?", "assigned_to": 999}})
	fine := b.completed(t, object{"__inquiry": object{"prompt": "go on?"}})
	all := []int64{malformed, nobody, fine}
	for n := range 2 {
		opening, err := inquiry.Read(ctx, b.store.Queries, all)
		require.NoError(t, err)
		require.Equal(t, n > 0, opening.Empty(), "a refused question is not asked again")
		require.NoError(t, b.open(ctx, opening))
	}
	fault := func(execution int64) (reason string) {
		require.NoError(t, b.store.Pool().QueryRow(ctx, `SELECT reason FROM inquiry_fault WHERE execution = $1`,
			execution).Scan(&reason))
		return reason
	}
	require.Equal(t, "the question is malformed: prompt must be a text", fault(malformed))
	require.Equal(t, "the question is malformed: there is no identity 999 to assign it to", fault(nobody))
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry_fault`))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry`))
	require.Equal(t, 1,
		testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE execution = $1 AND status = 'pending'`, fine))
}

// A failed execution asks nothing, and an ended workflow opens no question.
func TestOnlyWhatCompletedForALiveWorkflowAsks(t *testing.T) {
	b := setup(t)
	question := object{"__inquiry": object{"prompt": "go on?"}}
	failed := testkit.Execution(t, b.store, b.act,
		func(e *testkit.ExecutionRow) { e.Status, e.Result = lifecycle.StatusFailed, question }).ID
	alone := testkit.Execution(t, b.store, b.act,
		func(e *testkit.ExecutionRow) { e.Status, e.Result = lifecycle.StatusCompleted, question }).ID
	child := b.completed(t, question)
	read := func() (ids []int64) {
		o, err := inquiry.Read(testkit.Context(t), b.store.Queries, []int64{failed, alone, child})
		require.NoError(t, err)
		for _, q := range o.Questions {
			ids = append(ids, q.Execution)
		}
		return ids
	}
	require.Equal(t, []int64{alone, child}, read())
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'cancelled' WHERE id = $1`, b.workflow)
	require.Equal(t, []int64{alone}, read())
}

// A thousand answers to the question where the engine's next second goes: every
// search goes by its index, however many inquiries have ended.
func TestSearchesGoByTheirIndexes(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `WITH e AS (INSERT INTO execution (action_ref, status) SELECT 'pk.old', 'completed' FROM generate_series(1, 20000) RETURNING id)
		INSERT INTO inquiry (execution, prompt, status, timeout_at, settled) SELECT id, 'old', 'timeout', now() - interval '1 day', true FROM e`)
	for range 3 {
		b.task(t, func(q *inquiry.Question) { q.Timeout = time.Hour })
	}
	testkit.Exec(t, b.store, `ANALYZE inquiry, execution`)
	for sql, want := range map[string]struct {
		index string
		args  []any
	}{
		store.FindExpiredInquiries:   {"idx_inquiry_pending_timeout", []any{200}},
		store.FindUnsettledInquiries: {"attune_inquiry_unsettled", []any{200}},
		store.FindStrayInquiries:     {"attune_inquiry_pending", []any{"core.ask", 0, 200}},
		store.CountOpenInquiries:     {"attune_inquiry_pending", []any{1000}},
		store.FindAsking:             {"uq_inquiry_execution", []any{[]int64{b.workflow}}},
	} {
		plan := strings.Join(testkit.Column[string](t, b.store.Pool(), "EXPLAIN "+sql, want.args...), "\n")
		if testkit.Adopted() { // other indexes of the installation serve as well
			require.Contains(t, plan, "Index", sql)
		} else {
			require.Contains(t, plan, want.index, sql)
		}
		require.NotContains(t, plan, "Seq Scan on inquiry", sql)
		require.NotContains(t, plan, "Seq Scan on execution", sql)
	}
}

// A retry of a core.ask asks again, as its task did, and holds no slot. The second of two concurrent batches reads
// again.
func TestAnExecutionThatAsksToRunBeginsToAsk(t *testing.T) {
	b := setup(t)
	ctx := testkit.Context(t)
	ask := testkit.ActionRow{Ref: inquiry.Action}
	request := func(config, task any) int64 {
		return testkit.Execution(t, b.store, ask, func(e *testkit.ExecutionRow) {
			e.Action, e.Parent, e.Config, e.WorkflowTask = nil, &b.workflow, config, task
		}).ID
	}
	task := object{"task_name": "approve", "timeout_seconds": 60}
	id, wrong := request(object{"prompt": "deploy?"}, task), request(object{"prompt": 7}, task)
	nobody := request(object{"assigned_to": 999}, task)
	alone := request(object{"prompt": "deploy?"}, nil)
	begin := func() map[int64]*inquiry.Opening {
		all, err := inquiry.Begin(ctx, b.store.Queries, []int64{id, wrong, nobody, alone, b.workflow})
		require.NoError(t, err)
		return all
	}
	first, second := begin(), begin()
	require.Len(t, first, 4)
	require.NoError(t, b.open(ctx, first[alone]), "asked for by itself it asks as well")
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, alone))
	require.Equal(t, []inquiry.Fault{{Execution: wrong, Reason: "the question is malformed: prompt must be a text"}},
		first[wrong].Faults)
	require.Contains(t, first[nobody].Faults[0].Reason, "no identity 999")
	require.NoError(t, b.open(ctx, first[id]))
	require.Equal(t, store.ClassRefused, store.ClassOf(b.open(ctx, second[id])))
	require.NotContains(t, begin(), id)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, id))
	require.JSONEq(t, string(first[id].Questions[0].Waiting()), b.resultOf(t, id))
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM inquiry WHERE execution = $1 AND timeout_at = created + interval '60 s'`, id))
	_, err := b.yes(ctx, first[id].Questions[0].ID)
	require.NoError(t, err)
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, id))
}
