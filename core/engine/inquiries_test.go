package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

// define makes a workflow of pack pk.
func (b *bundle) define(t *testing.T, ref, text string) {
	t.Helper()
	parsed, mistakes, _ := workflow.Parse(ref, []byte(text))
	require.Empty(t, mistakes)
	definition, err := parsed.JSON()
	require.NoError(t, err)
	action := testkit.Action(t, b.store, ref)
	testkit.Exec(t, b.store, `WITH d AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition) VALUES ($2::text, $3, 'pk', $2::text, '1.0.0', $4) RETURNING id)
		UPDATE action SET workflow_def = d.id FROM d WHERE action.id = $1`, action.ID, ref, action.PackID, definition)
}

// flow makes a workflow whose first task opens an inquiry in its result, and whose second task is an inquiry.
func (b *bundle) flow(t *testing.T) {
	t.Helper()
	const ref, text = "pk.deploy", `
version: "1"
tasks:
  - {name: check, action: pk.check, next: [{when: "{{ succeeded() }}", do: [approve]}]}
  - name: approve
    action: core.ask
    timeout: 3600
    input: {prompt: "Deploy, since you said {{ task.check.response }}?", response_schema: {ok: {type: boolean, required: true}}}
    next:
      - {when: "{{ succeeded() }}", do: [go]}
      - {when: "{{ timed_out() }}", do: [late]}
  - {name: go, action: pk.go, input: {ok: "{{ task.approve.response.ok }}"}}
  - {name: late, action: pk.go, input: {ok: late}}
`
	testkit.Action(t, b.store, "pk.check")
	testkit.Action(t, b.store, "pk.go")
	b.define(t, ref, text)
	testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: b.AMQP, DatabaseURL: b.Database, Concurrency: 5,
		Behave: func(_ context.Context, job testkit.Job) testkit.Answer {
			if job.ActionRef != "pk.check" {
				return testkit.Answer{}
			}
			return testkit.Answer{Times: 3, Result: map[string]any{
				"succeeded": true,
				"data":      map[string]any{"__inquiry": map[string]any{"prompt": "Sure?"}},
			}}
		},
	})
}

// question waits for the open question with this prompt.
func (b *bundle) question(t *testing.T, prompt string) (id, execution int64) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return b.store.Pool().QueryRow(testkit.Context(t),
			`SELECT id, execution FROM inquiry WHERE status = 'pending' AND prompt = $1`,
			prompt).Scan(&id, &execution) == nil
	}, 15*time.Second, "%q is asked", prompt)
	return id, execution
}

func (b *bundle) noSlot(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution_holder`) == 0
	}, 5*time.Second, "S16: while a question is open no slot is held")
}

// S16, L1 and upstream 56, 57 on two replicas: a workflow waits for the inquiries of its tasks,
// holds no slot meanwhile, and continues after the answer, whichever program took the answer and
// however often it is reported.
func TestAWorkflowGoesOnFromAnswers(t *testing.T) {
	b := setup(t)
	b.engine(t)
	b.engine(t)
	b.flow(t)
	id := b.request(t, "pk.deploy", 1, `{}`)[0]

	first, _ := b.question(t, "Sure?")
	b.noSlot(t)
	operator := triage.New(triage.Config{Actor: "ann@desk"}, b.store, b.relay)
	_, err := operator.Answer(testkit.Context(t),
		triage.AnswerRequest{Inquiry: first, Response: json.RawMessage(`"yes"`)})
	require.NoError(t, err)

	second, asking := b.question(t, "Deploy, since you said yes?")
	b.noSlot(t)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, id))
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, asking))
	// An existing API takes the answer, and tells of it more than once.
	testkit.Exec(t, b.store,
		`UPDATE inquiry SET status = 'responded', response = '{"ok": true}', responded_at = now() WHERE id = $1`,
		second)
	body, err := message.New(message.TypeInquiryResponded, message.InquiryResponded{
		InquiryID: second, ExecutionID: asking, Response: json.RawMessage(`{"ok": true}`),
		RespondedAt: time.Now().UTC(),
	}, time.Now(), "api").Encode()
	require.NoError(t, err)
	told := broker.Message{
		ID: "m", Exchange: message.ExchangeExecutions, RoutingKey: message.KeyInquiryResponded,
		Type: message.TypeInquiryResponded, Body: body,
	}
	for _, outcome := range b.connect(t, "api").Publisher().Publish(testkit.Context(t),
		[]broker.Message{told, told, told}) {
		require.NoError(t, outcome.Err)
	}
	b.untilStatus(t, lifecycle.StatusCompleted, id)
	b.settled(t, 15*time.Second)
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE action_ref = 'pk.go' AND config = '{"ok": true}'`))
	require.Equal(t, 4, testkit.Count(t, b.store, `SELECT count(*) FROM execution`), "each task once")
	require.Zero(t,
		testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE NOT settled OR status <> 'responded'`))
}

// An unanswered inquiry continues its workflow as a timeout. A cancelled execution has no open
// inquiry.
func TestAWorkflowGoesOnWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "let questions of workflows expire")
	b := setup(t)
	b.engine(t)
	b.engine(t)
	b.flow(t)
	ids := b.request(t, "pk.deploy", 2, `{}`)
	operator := triage.New(triage.Config{Actor: "ann@desk"}, b.store, b.relay)
	answer := func(inquiry int64, response string) error {
		_, err := operator.Answer(testkit.Context(t),
			triage.AnswerRequest{Inquiry: inquiry, Response: json.RawMessage(response)})
		return err
	}
	asked := map[int64]int64{} // by workflow
	testkit.Eventually(t, func() bool {
		for _, id := range ids {
			var inquiry, task int64
			err := b.store.Pool().QueryRow(testkit.Context(t), `SELECT i.id, e.id FROM inquiry i JOIN execution e ON e.id = i.execution
				WHERE e.parent = $1 AND i.status = 'pending'`, id).Scan(&inquiry, &task)
			if err != nil {
				continue
			}
			if testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE id = $1 AND prompt = 'Sure?'`,
				inquiry) == 1 {
				require.NoError(t, answer(inquiry, `"yes"`))
				continue
			}
			asked[id] = inquiry
		}
		return len(asked) == 2
	}, 20*time.Second)
	testkit.Exec(t, b.store, `UPDATE inquiry SET timeout_at = now() WHERE id = $1`, asked[ids[0]])
	b.mustCancel(t, ids[1])
	b.untilStatus(t, lifecycle.StatusCompleted, ids[0])
	b.untilStatus(t, lifecycle.StatusCancelled, ids[1])
	b.settled(t, 20*time.Second)
	require.Equal(t, 1,
		testkit.Count(t, b.store,
			`SELECT count(*) FROM execution WHERE action_ref = 'pk.go' AND config = '{"ok": "late"}' AND parent = $1`, ids[0]))
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE action_ref = 'core.ask' AND status = 'timeout' AND parent = $1`, ids[0]))
	require.Equal(t, 1,
		testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE id = $1 AND status = 'cancelled'`, asked[ids[1]]))
	for _, id := range ids {
		require.Error(t, answer(asked[id], `{"ok": true}`))
	}
}
