package cancellation_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/cancellation"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// relay records committed messages in place of a broker.
type relay struct {
	mu       sync.Mutex
	messages []outbox.Message
}

func (r *relay) Published(_ int64, messages []outbox.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, messages...)
}

// take returns the recorded messages of a type, and deletes all.
func (r *relay) take(kind string) []outbox.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []outbox.Message
	for _, m := range r.messages {
		if m.Type == kind {
			out = append(out, m)
		}
	}
	r.messages = nil
	return out
}

// bundle is a database with an action and workers of both kinds.
type bundle struct {
	store  *store.Store
	action testkit.ActionRow
	fenced testkit.WorkerRow // runs only the attempt that the row has
	plain  testkit.WorkerRow // does not know of attempts
}

func setup(t *testing.T) *bundle {
	t.Helper()
	st := testkit.Store(t)
	return &bundle{
		store: st, action: testkit.Action(t, st, "pk.a"), plain: testkit.Worker(t, st, "plain"),
		fenced: testkit.Worker(t, st, "fenced", func(w *testkit.WorkerRow) { w.Capabilities["attempt_fence"] = true }),
	}
}

// at makes an execution in a status at a worker.
func (b *bundle) at(t *testing.T, status lifecycle.Status, worker *testkit.WorkerRow,
	options ...func(*testkit.ExecutionRow),
) int64 {
	t.Helper()
	options = append([]func(*testkit.ExecutionRow){func(e *testkit.ExecutionRow) {
		e.Status = status
		if worker != nil {
			e.Worker, e.Attempt = &worker.ID, 1
		}
	}}, options...)
	return testkit.Execution(t, b.store, b.action, options...).ID
}

// retryOf makes the retry of an ended execution.
func (b *bundle) retryOf(t *testing.T, failed int64, status lifecycle.Status, waiting bool) int64 {
	t.Helper()
	id := b.at(t, status, nil, func(e *testkit.ExecutionRow) { e.RetryCount, e.OriginalExecution = 1, &failed })
	testkit.Exec(t, b.store, `INSERT INTO execution_retry (failed, execution, reason, due, waiting)
		VALUES ($1, $2, 'failed', now() + interval '1 hour', $3)`, failed, id, waiting)
	return id
}

// apply runs one transaction and puts its messages into the outbox.
func (b *bundle) apply(ctx context.Context, request cancellation.Request,
	ids ...int64,
) (page *cancellation.Page, err error) {
	err = b.store.Tx(ctx, "cancel", func(ctx context.Context, tx *store.Tx) (err error) {
		if page, err = cancellation.Apply(ctx, tx, request, ids); err != nil || len(page.Messages) == 0 {
			return err
		}
		_, err = outbox.Append(ctx, tx, page.Messages)
		return err
	})
	return page, err
}

// one cancels one execution and returns the outcome.
func (b *bundle) one(t *testing.T, id int64) (cancellation.Result, []outbox.Message) {
	t.Helper()
	page, err := b.apply(testkit.Context(t), cancellation.Request{Actor: "ann", Reason: "enough"}, id)
	require.NoError(t, err)
	require.Empty(t, page.Again)
	require.Len(t, page.Results, 1)
	return page.Results[0], page.Messages
}

// requireEnd checks S14: the message agrees with the row.
func (b *bundle) requireEnd(t *testing.T, id int64, m outbox.Message) {
	t.Helper()
	require.Equal(t, message.TypeExecutionCompleted, m.Type)
	require.Equal(t, message.KeyExecutionCompleted, m.RoutingKey)
	sent, err := message.Decode[message.ExecutionCompleted](m.Body)
	require.NoError(t, err)
	require.Equal(t, id, sent.Payload.ExecutionID)
	require.Equal(t, b.action.ID, sent.Payload.ActionID)
	require.Equal(t, "cancelled", sent.Payload.Status)
	var result string
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
		`SELECT result::text FROM execution WHERE id = $1 AND status = 'cancelled' AND finished_at = $2`, id,
		sent.Payload.CompletedAt).Scan(&result))
	require.JSONEq(t, result, string(sent.Payload.Result))
	var fields map[string]any
	require.NoError(t, json.Unmarshal(sent.Payload.Result, &fields))
	require.Equal(t, "Cancelled", fields["error"])
	require.Equal(t, "enough", fields["message"])
	require.Equal(t, "ann", fields["cancelled_by"])
	require.NotEmpty(t, fields["cancelled_at"])
}

// requireStop checks that a message asks the worker to stop the execution.
func requireStop(t *testing.T, id int64, worker testkit.WorkerRow, m outbox.Message) {
	t.Helper()
	require.Equal(t, message.TypeExecutionCancelRequested, m.Type)
	require.Equal(t, message.CancelKey(worker.ID), m.RoutingKey)
	sent, err := message.Decode[message.ExecutionCancelRequested](m.Body)
	require.NoError(t, err)
	require.Equal(t, message.ExecutionCancelRequested{ExecutionID: id, WorkerID: worker.ID}, sent.Payload)
}

func (b *bundle) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	return testkit.Count(t, b.store, sql, args...)
}
