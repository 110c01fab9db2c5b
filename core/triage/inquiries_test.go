package triage_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// asking inserts a running execution and its inquiry.
func (b *bundle) asking(t *testing.T) (execution, id int64) {
	t.Helper()
	action := testkit.Action(t, b.store, "pk.ask")
	execution = testkit.Execution(t, b.store, action,
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	id = int64(testkit.Count(t, b.store, `INSERT INTO inquiry (execution, prompt, response_schema) VALUES ($1, 'deploy?', '{"ok": {"type": "boolean", "required": true}}')
		RETURNING id`, execution))
	return execution, id
}

func TestAPlannedAnswerChangesNothing(t *testing.T) {
	b := setup(t)
	execution, id := b.asking(t)
	request := triage.AnswerRequest{Inquiry: id, Response: json.RawMessage(`{"ok": true}`), Note: "it is Friday"}
	plan, err := b.operator.PlanAnswer(testkit.Context(t), request)
	require.NoError(t, err)
	require.Equal(t, execution, plan.Execution)
	require.Equal(t, "deploy?", plan.Prompt)
	require.True(t, plan.Completes)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, execution))
	require.Zero(t, testkit.Count(t, b.store, `SELECT (SELECT count(*) FROM operator_audit) + (SELECT count(*) FROM outbox) + (SELECT count(*) FROM inquiry WHERE status <> 'pending')`))

	receipt, err := b.operator.Answer(testkit.Context(t), plan.AnswerRequest)
	require.NoError(t, err)
	require.Equal(t, *plan, receipt.AnswerPlan)
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, execution))
	require.Equal(t, 2, receipt.Messages)
	sent := b.sent.take()
	require.Equal(t, message.TypeExecutionCompleted, sent[0].Type)
	require.Equal(t, message.TypeInquiryResponded, sent[1].Type)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM operator_audit WHERE id = $1 AND actor = 'ann@desk' AND action = 'inquiry.respond'
		AND target_type = 'inquiry' AND target_id = $2 AND reason = 'it is Friday' AND request->'response' = '{"ok": true}'`, receipt.Audit, id))
}

// S16: of twenty concurrent answers one is accepted, and the others fail with its author.
func TestOneOfManyAnswersIsAccepted(t *testing.T) {
	b := setup(t)
	_, id := b.asking(t)
	var crowd sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		crowd.Go(func() {
			_, errs[i] = b.operator.Answer(testkit.Context(t),
				triage.AnswerRequest{Inquiry: id, Response: json.RawMessage(`{"ok": true}`)})
		})
	}
	crowd.Wait()
	heard := 0
	for _, err := range errs {
		if err == nil {
			heard++
			continue
		}
		refused, ok := errors.AsType[*triage.AnswerRefusedError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, triage.AnswerGiven, refused.Reason)
		require.ErrorContains(t, err, "by ann@desk")
	}
	require.Equal(t, 1, heard)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM operator_audit`))
	require.Len(t, b.sent.take(), 2)
}

func TestAnAnswerIsRefusedWithAllItsMistakes(t *testing.T) {
	b := setup(t)
	_, id := b.asking(t)
	for _, try := range []func(triage.AnswerRequest) error{
		func(o triage.AnswerRequest) error { _, err := b.operator.PlanAnswer(testkit.Context(t), o); return err },
		func(o triage.AnswerRequest) error { _, err := b.operator.Answer(testkit.Context(t), o); return err },
	} {
		require.ErrorIs(t, try(triage.AnswerRequest{Inquiry: 999, Response: json.RawMessage(`1`)}), triage.ErrNoInquiry)
		err := try(triage.AnswerRequest{Inquiry: id, Response: json.RawMessage(`{"ok": "yes"}`)})
		refused, ok := errors.AsType[*triage.AnswerRefusedError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, triage.AnswerUnfit, refused.Reason)
		require.Len(t, refused.Mistakes, 1)
	}
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM operator_audit`))
}
