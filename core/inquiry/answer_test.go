package inquiry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/cancellation"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// refusal is why an answer was refused.
func refusal(t *testing.T, err error) inquiry.Reason {
	t.Helper()
	refused, ok := errors.AsType[*inquiry.RefusedError](err)
	require.True(t, ok, "%v", err)
	return refused.Reason
}

// An answer to a core.ask ends its execution with the published result; the transaction of the answer has the messages
// of both.
func TestAnAnswerCompletesTheExecutionThatAsked(t *testing.T) {
	b := setup(t)
	a := b.task(t)
	b.relay.messages = nil
	done, err := b.yes(testkit.Context(t), a.inquiry)
	require.NoError(t, err)
	require.True(t, done.Completed)
	require.Equal(t, inquiry.Responded, b.status(t, a.inquiry))
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, a.execution))
	require.JSONEq(t,
		string(mustJSON(t, object{
			"response": object{"approved": true}, "__inquiry_id": a.inquiry,
			"__inquiry_created_published": true,
		})),
		b.resultOf(t, a.execution))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE id = $1 AND settled AND responder = 'a test' AND responded_by IS NULL
		AND responded_at > created`, a.inquiry))

	require.Len(t, b.relay.messages, 2)
	ended, err := message.Decode[message.ExecutionCompleted](b.relay.messages[0].Body)
	require.NoError(t, err)
	require.Equal(t, a.execution, ended.Payload.ExecutionID)
	require.Equal(t, "completed", ended.Payload.Status)
	require.Equal(t, b.ask.ID, ended.Payload.ActionID)
	told, err := message.Decode[message.InquiryResponded](b.relay.messages[1].Body)
	require.NoError(t, err)
	require.Equal(t, a.inquiry, told.Payload.InquiryID)
	require.JSONEq(t, `{"approved": true}`, string(told.Payload.Response))
	require.Equal(t, message.KeyInquiryResponded, b.relay.messages[1].RoutingKey)
}

// Upstream 56: an answer to a question in a result does not complete the execution a second time. Its row stays, and
// the waiting workflow gets a message.
func TestAnAnswerToAResultWakesWhoWaitsForIt(t *testing.T) {
	b := setup(t)
	a := b.result(t, object{"data": object{"__inquiry": object{"prompt": "go on?"}, "found": 3}})
	before := b.resultOf(t, a.execution)
	done, err := b.yes(testkit.Context(t), a.inquiry)
	require.NoError(t, err)
	require.False(t, done.Completed)
	require.Equal(t, before, b.resultOf(t, a.execution))
	require.Equal(t, map[int64]int{a.execution: 1}, b.relay.completions(t))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM late_write`), "ended rows stayed unchanged")
	require.Equal(t, inquiry.Responded, b.status(t, a.inquiry))
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM inquiry WHERE id = $1 AND response = '{"approved": true}'`, a.inquiry))
}

func TestAnswersAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := testkit.Context(t)
	ada := int64(testkit.Count(t, b.store, `INSERT INTO identity (login) VALUES ('ada') RETURNING id`))
	testkit.Exec(t, b.store, `INSERT INTO identity (login) VALUES ('bob')`)
	testkit.Exec(t, b.store, `INSERT INTO identity (login, frozen) VALUES ('ice', true)`)
	say := func(a asked, as, response string) error {
		_, err := b.respond(ctx, inquiry.Answer{Inquiry: a.inquiry, Response: json.RawMessage(response), As: as})
		return err
	}
	t.Run("there is none", func(t *testing.T) {
		t.Parallel()
		require.ErrorIs(t, say(asked{inquiry: 999}, "", `1`), inquiry.ErrNotFound)
	})
	t.Run("answered", func(t *testing.T) {
		t.Parallel()
		a := b.task(t)
		require.NoError(t, say(a, "bob", `1`))
		err := say(a, "ada", `2`)
		require.Equal(t, inquiry.AlreadyAnswered, refusal(t, err))
		require.ErrorContains(t, err, "by bob at 2")
		require.Equal(t, 1,
			testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE id = $1 AND response = '1'`, a.inquiry))
	})
	t.Run("late, before the sweep", func(t *testing.T) {
		t.Parallel()
		a := b.task(t)
		b.over(t, a.inquiry)
		require.Equal(t, inquiry.TimeOver, refusal(t, say(a, "", `1`)))
		require.Equal(t, inquiry.Pending, b.status(t, a.inquiry))
	})
	t.Run("cancelled with its execution", func(t *testing.T) {
		t.Parallel()
		a := b.task(t)
		b.cancel(t, a.execution)
		require.Equal(t, inquiry.Cancelled, b.status(t, a.inquiry))
		require.Equal(t, inquiry.WasCancelled, refusal(t, say(a, "", `1`)))
	})
	t.Run("its execution has ended otherwise", func(t *testing.T) {
		t.Parallel()
		a := b.task(t)
		testkit.Exec(t, b.store, `UPDATE execution SET status = 'abandoned' WHERE id = $1`, a.execution)
		require.Equal(t, inquiry.ExecutionEnded, refusal(t, say(a, "", `1`)))
	})
	t.Run("it shall stop", func(t *testing.T) {
		t.Parallel()
		a := b.task(t)
		testkit.Exec(t, b.store, `INSERT INTO execution_cancel (execution, actor) VALUES ($1, 'a test')`, a.execution)
		err := say(a, "", `1`)
		require.Equal(t, inquiry.ExecutionEnded, refusal(t, err))
		require.ErrorContains(t, err, "is being cancelled")
	})
	t.Run("assigned", func(t *testing.T) {
		t.Parallel()
		a := b.task(t, func(q *inquiry.Question) { q.AssignedTo = &ada })
		require.Equal(t, inquiry.NotAssigned, refusal(t, say(a, "", `1`)))
		err := say(a, "bob", `1`)
		require.Equal(t, inquiry.NotAssigned, refusal(t, err))
		require.ErrorContains(t, err, "ada")
		require.Equal(t, inquiry.NoIdentity, refusal(t, say(a, "eve", `1`)))
		require.Equal(t, inquiry.NoIdentity, refusal(t, say(a, "ice", `1`)))
		require.NoError(t, say(a, "ada", `1`))
		require.Equal(t, 1, testkit.Count(t, b.store,
			`SELECT count(*) FROM inquiry WHERE id = $1 AND responded_by = $2 AND responder = 'ada'`, a.inquiry, ada))
	})
	t.Run("all that does not fit", func(t *testing.T) {
		t.Parallel()
		for _, form := range []string{
			`{"approved": {"type": "boolean", "required": true}, "note": {"type": "string"}}`,
			`{"type": "object", "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}}, "required": ["approved"]}`,
		} {
			a := b.task(t, func(q *inquiry.Question) { q.Schema = json.RawMessage(form) })
			err := say(a, "", `{"note": 7}`)
			require.Equal(t, inquiry.DoesNotFit, refusal(t, err))
			require.ErrorContains(t, err, "approved")
			require.ErrorContains(t, err, "note")
			require.NoError(t, say(a, "", `{"approved": false}`))
		}
		plain := b.task(t,
			func(q *inquiry.Question) { q.Schema = json.RawMessage(`{"type": "string", "enum": ["yes", "no"]}`) })
		require.Equal(t, inquiry.DoesNotFit, refusal(t, say(plain, "", `"maybe"`)))
		require.NoError(t, say(plain, "", `"yes"`))
	})
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		a := b.task(t)
		for _, response := range []string{``, `{`, `yes`, `{"a": "\u0000"}`, `1e999999`} {
			require.Equal(t, inquiry.DoesNotFit, refusal(t, say(a, "", response)), response)
		}
		require.NoError(t, say(a, "", `null`), "null is an answer")
	})
}

// From the cancellation of a workflow on, no question below it at any depth is answered, even before the questions are
// cancelled.
func TestNothingBelowACancelledWorkflowIsAnswered(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancelled", "is being cancelled", "has ended (failed)"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			outermost := b.workflow
			nested := testkit.Execution(t, b.store, testkit.Action(t, b.store, "pk.inner"),
				func(e *testkit.ExecutionRow) {
					e.Status, e.Parent, e.WorkflowTask = lifecycle.StatusRunning, &outermost,
						map[string]any{"task_name": "inner"}
				}).ID
			b.workflow = nested
			open := []asked{b.task(t), b.result(t, object{"__inquiry": object{"prompt": "go on?"}})}
			switch how {
			case "cancelled":
				b.cancel(t, outermost)
			case "is being cancelled":
				testkit.Exec(t, b.store, `INSERT INTO execution_cancel (execution, actor) VALUES ($1, 'a test')`,
					outermost)
			default:
				testkit.Exec(t, b.store, `UPDATE execution SET status = 'failed' WHERE id = $1`, outermost)
			}
			for _, a := range open {
				_, err := b.yes(testkit.Context(t), a.inquiry)
				require.Equal(t, inquiry.ExecutionEnded, refusal(t, err))
				require.ErrorContains(t, err, fmt.Sprintf("workflow %d above it", outermost))
				require.ErrorContains(t, err, how)
				require.Equal(t, inquiry.Pending, b.status(t, a.inquiry))
			}
		})
	}
}

// cancel stops an execution as an operator does.
func (b *bundle) cancel(t *testing.T, execution int64) {
	t.Helper()
	require.NoError(t, b.stop(testkit.Context(t), execution))
}

func (b *bundle) stop(ctx context.Context, execution int64) error {
	return b.store.Tx(ctx, "cancel", func(ctx context.Context, tx *store.Tx) error {
		done, err := cancellation.Apply(ctx, tx, cancellation.Request{Actor: "a test"}, []int64{execution})
		if err != nil {
			return err
		}
		if len(done.Messages) == 0 {
			return nil
		}
		row, err := outbox.Append(ctx, tx, done.Messages)
		tx.AfterCommit(func() { b.relay.Published(row, done.Messages) })
		return err
	})
}

// S16: while a question is open no slot is held, in both ways to ask.
func TestNoSlotIsHeldWhileAQuestionIsOpen(t *testing.T) {
	b := setup(t)
	b.task(t, func(q *inquiry.Question) { q.Timeout = time.Hour })
	b.result(t, object{"__inquiry": object{"prompt": "go on?"}})
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE status = 'pending'`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry i JOIN execution e ON e.id = i.execution
		WHERE i.status = 'pending' AND (EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id) OR e.worker IS NOT NULL)`))
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	return raw
}

// Secrets of an answer are encrypted: no row and no message has them in the clear. The workflow reads them like other
// secrets.
func TestSecretsInAnswersAreSealed(t *testing.T) {
	b := setup(t)
	ctx := testkit.Context(t)
	form := json.RawMessage(`{"user": {"type": "string"}, "token": {"type": "string", "secret": true}}`)
	a := b.task(t, func(q *inquiry.Question) { q.Schema = form })
	given := inquiry.Answer{
		Inquiry:  a.inquiry,
		Response: json.RawMessage(`{"user": "x", "token": "hunter2", "n": 12345678901234567890}`),
	}
	_, err := b.respond(ctx, given)
	require.Equal(t, inquiry.NotSealed, refusal(t, err), "without a key nothing secret is taken")
	require.Equal(t, inquiry.Pending, b.status(t, a.inquiry))

	given.Keys, err = secret.NewKeyring(strings.Repeat("k", secret.LeastKey))
	require.NoError(t, err)
	marked := given
	marked.Response = json.RawMessage(`{"token": {"$attune_secret": true, "redacted": true}}`)
	_, err = b.respond(ctx, marked)
	require.Equal(t, inquiry.DoesNotFit, refusal(t, err), "a marker is no secret")

	done, err := b.respond(ctx, given)
	require.NoError(t, err)
	require.NotContains(t, string(done.Response), "hunter2")
	require.Contains(t, string(done.Response), "12345678901234567890")
	for _, m := range b.relay.messages {
		require.NotContains(t, string(m.Body), "hunter2")
	}
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry i, execution e, execution_secret_value v
		WHERE concat(i, e, v) LIKE '%hunter2%'`))
	values, err := store.SecretsOf(ctx, b.store.Queries, secret.OfResult, a.execution)
	require.NoError(t, err)
	require.Len(t, values, 1)
	require.Equal(t, "/response/token", values[0].Path)
	plain, err := given.Keys.Open(values[0])
	require.NoError(t, err)
	require.Equal(t, "hunter2", plain)
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE id = $1 AND result #> '{response,token,redacted}' = 'true'`, a.execution))
}
