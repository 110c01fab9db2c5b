package submit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// relay records the messages that it should publish.
type relay struct{ rows map[int64][]outbox.Message }

func (r *relay) Published(id int64, messages []outbox.Message) { r.rows[id] = messages }

type bundle struct {
	store  *store.Store
	relay  *relay
	submit *submit.Submitter
	action testkit.ActionRow
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{store: testkit.Store(t), relay: &relay{rows: map[int64][]outbox.Message{}}}
	b.submit = submit.New(b.store, b.relay)
	b.action = testkit.Action(t, b.store, "probe.ping")
	return b
}

func TestRequestStoresRowAndMessageTogether(t *testing.T) {
	b := setup(t)
	done, err := b.submit.Request(t.Context(),
		submit.Request{ActionRef: "probe.ping", Params: json.RawMessage(` { "message": "hi" } `)})
	require.NoError(t, err)

	row, err := b.store.GetExecution(t.Context(), done.ID)
	require.NoError(t, err)
	require.Equal(t, lifecycle.StatusRequested, row.Status)
	require.Equal(t, b.action.ID, *row.Action)
	require.JSONEq(t, `{"message":"hi"}`, string(row.Config))

	messages := b.relay.rows[done.OutboxID]
	require.Len(t, messages, 1)
	require.Equal(t, message.ExchangeExecutions, messages[0].Exchange)
	require.Equal(t, message.KeyExecutionRequested, messages[0].RoutingKey)
	envelope, err := message.Decode[message.ExecutionRequested](messages[0].Body)
	require.NoError(t, err)
	require.Equal(t, messages[0].ID, envelope.MessageID)
	require.Equal(t, done.ID, envelope.Payload.ExecutionID)
	require.Equal(t, "probe.ping", envelope.Payload.ActionRef)
	require.JSONEq(t, `{"message":"hi"}`, string(envelope.Payload.Config))
	require.Equal(t, 1,
		testkit.Count(t, b.store, "SELECT count(*) FROM outbox WHERE id = $1 AND message_ids = ARRAY[$2]",
			done.OutboxID, messages[0].ID))
}

func TestRequestWithoutParametersStoresNull(t *testing.T) {
	b := setup(t)
	for _, params := range []string{"", "null", "{}", " { } "} {
		done, err := b.submit.Request(t.Context(),
			submit.Request{ActionRef: "probe.ping", Params: json.RawMessage(params)})
		require.NoError(t, err)
		require.Equal(t, 1, testkit.Count(t, b.store, "SELECT count(*) FROM execution WHERE id = $1 AND config IS NULL",
			done.ID), params)
	}
}

func TestRequestStoresThePriority(t *testing.T) {
	b := setup(t)
	for name, want := range map[string]string{"high": "1", "normal": "none", "low": "-1"} {
		priority, err := submit.ParsePriority(name)
		require.NoError(t, err)
		done, err := b.submit.Request(t.Context(), submit.Request{ActionRef: "probe.ping", Priority: priority})
		require.NoError(t, err)
		require.Equal(t, 1, testkit.Count(t, b.store,
			"SELECT count(*) FROM execution WHERE id = $1 AND coalesce(priority::text, 'none') = $2", done.ID, want),
			name)
	}
	_, err := submit.ParsePriority("urgent")
	require.EqualError(t, err, `priority "urgent" is unknown: use high, normal or low`)
	for _, priority := range []submit.Priority{2, -2} {
		_, err := b.submit.Request(t.Context(), submit.Request{ActionRef: "probe.ping", Priority: priority})
		require.ErrorIs(t, err, submit.ErrPriority)
	}
}

func TestRequestRefusals(t *testing.T) {
	b := setup(t)
	for ref, want := range map[string]string{
		"probe.pong":          "there is no action probe.pong; the nearest is probe.ping",
		"ping":                "there is no action ping; the nearest is probe.ping",
		"unrelated.pack.ping": "there is no action unrelated.pack.ping",
		"elsewhere.ping":      "there is no action elsewhere.ping; the nearest is probe.ping",
		"zzzzzzz.qqqqqqqqq":   "there is no action zzzzzzz.qqqqqqqqq",
	} {
		_, err := b.submit.Request(t.Context(), submit.Request{ActionRef: ref})
		require.EqualError(t, err, want)
	}
	for _, params := range []string{"[1]", `"text"`, "{", "1"} {
		_, err := b.submit.Request(t.Context(),
			submit.Request{ActionRef: "probe.ping", Params: json.RawMessage(params)})
		require.ErrorIs(t, err, submit.ErrParams, params)
	}
	for params, want := range map[string]string{
		`{"a":{"b":[1,{"c":"\u0000"}]}}`: "request probe.ping: parameters.a.b[1].c: the text contains U+0000, which cannot be stored",
		`{"n":1e999999999}`:              "request probe.ping: parameters.n: the number has more than 8000 digits",
		`{"a":` + strings.Repeat(`{"b":`, 200) + `1` +
			strings.Repeat("}", 201): ": nested 201 levels deep; at most 200",
	} {
		_, err := b.submit.Request(t.Context(),
			submit.Request{ActionRef: "probe.ping", Params: json.RawMessage(params)})
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, 0, testkit.Count(t, b.store, "SELECT count(*) FROM execution"))
	require.Equal(t, 0, testkit.Count(t, b.store, "SELECT count(*) FROM outbox"))
	require.Empty(t, b.relay.rows)
}

func TestRequestManyKeepsTheOrder(t *testing.T) {
	b := setup(t)
	testkit.Action(t, b.store, "probe.other")
	const n = 1203
	requests := make([]submit.Request, n)
	for i := range requests {
		ref := "probe.ping"
		if i%3 == 0 {
			ref = "probe.other"
		}
		params, err := json.Marshal(map[string]int{"i": i})
		require.NoError(t, err)
		requests[i] = submit.Request{ActionRef: ref, Params: params}
	}
	done, err := b.submit.RequestMany(t.Context(), requests)
	require.NoError(t, err)
	require.Len(t, done, n)
	ids := make([]int64, n)
	for i, d := range done {
		ids[i] = d.ID
	}
	rows, err := b.store.GetExecutions(t.Context(), ids)
	require.NoError(t, err)
	for i, row := range rows {
		require.Equal(t, done[i].ID, row.ID)
		require.Equal(t, requests[i].ActionRef, row.ActionRef)
		require.JSONEq(t, string(requests[i].Params), string(row.Config))
	}
	require.Equal(t, 3, testkit.Count(t, b.store, "SELECT count(*) FROM outbox"),
		"large batches are published in pieces")
	require.Equal(t, n, testkit.Count(t, b.store, "SELECT sum(cardinality(message_ids)) FROM outbox"))

	requests[n-1].ActionRef = "probe.missing"
	_, err = b.submit.RequestMany(t.Context(), requests)
	require.Error(t, err)
	require.Equal(t, n, testkit.Count(t, b.store, "SELECT count(*) FROM execution"), "all or none")
}

func TestWait(t *testing.T) {
	t.Parallel()
	b := setup(t)

	t.Run("ReturnsTheEnd", func(t *testing.T) {
		t.Parallel()
		done, err := b.submit.Request(t.Context(), submit.Request{ActionRef: "probe.ping"})
		require.NoError(t, err)
		type answer struct {
			row store.Execution
			err error
		}
		answers := make(chan answer, 1)
		go func() {
			row, err := b.submit.Wait(t.Context(), done.ID)
			answers <- answer{row, err}
		}()
		for _, status := range []string{"scheduled", "running", "completed"} {
			require.Empty(t, answers, "it ended before the execution")
			testkit.Exec(t, b.store, "UPDATE execution SET status = $2::text::execution_status_enum WHERE id = $1",
				done.ID, status)
		}
		got := <-answers
		require.NoError(t, got.err)
		require.Equal(t, lifecycle.StatusCompleted, got.row.Status)
	})

	t.Run("EndsWithItsContext", func(t *testing.T) {
		t.Parallel()
		done, err := b.submit.Request(t.Context(), submit.Request{ActionRef: "probe.ping"})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = b.submit.Wait(ctx, done.ID)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})

	t.Run("UnknownExecution", func(t *testing.T) {
		t.Parallel()
		_, err := b.submit.Wait(t.Context(), 1<<40)
		require.EqualError(t, err, "there is no execution 1099511627776")
	})
}

func TestAwaitPublished(t *testing.T) {
	b := setup(t)
	done, err := b.submit.Request(t.Context(), submit.Request{ActionRef: "probe.ping"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.submit.AwaitPublished(ctx, done.OutboxID), context.DeadlineExceeded)

	testkit.Exec(t, b.store, "DELETE FROM outbox")
	require.NoError(t, b.submit.AwaitPublished(t.Context(), done.OutboxID))
}
