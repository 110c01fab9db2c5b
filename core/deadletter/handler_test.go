package deadletter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
)

// Upstream 1, ruling 5: a hand-over that expired at workers that fence attempts
// goes on elsewhere, in place, with everything that was known written down in the
// same transaction.
func TestAnExpiredHandOverGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	action := testkit.Action(t, d.store, "pk.do")
	old := testkit.Worker(t, d.store, "old", fenced, func(w *testkit.WorkerRow) { w.Status = "inactive" })
	other := testkit.Worker(t, d.store, "other", fenced)
	testkit.Exec(t, d.store, `INSERT INTO worker_probe (worker, verdict, reason, consumers, ready) VALUES ($1, 'dead', 'no consumer', 0, 3)`, old.ID)
	e := d.scheduled(t, action, old.ID)
	d.open(t)
	m := expired(t, old.ID, message.Dispatch{ExecutionID: e.ID, ActionRef: action.Ref, Attempt: 1})
	d.send(t, m)

	got := d.settled(t, 1)[0]
	require.Equal(t, deadletter.Retried, got.Decision, got.Detail)
	require.Equal(t, deadletter.HandledBy, got.By)
	require.NotNil(t, got.At)
	require.Equal(t, m.ID, got.MessageID)
	require.Equal(t, []any{message.TypeExecutionRequested, message.ExchangeExecutions, m.RoutingKey, message.WorkerExecutionsQueue(old.ID), "expired"},
		[]any{got.Type, got.Exchange, got.Key, got.Queue, got.Reason})
	require.Equal(t, []any{e.ID, "scheduled", old.ID, int32(1), "pk.do"}, []any{got.Execution, got.Status, got.Worker, got.Attempt, got.ActionRef})
	require.Equal(t, "expired", got.XDeath[0].(map[string]any)["reason"])
	require.Equal(t, "expired", got.Headers["x-first-death-reason"])
	execution := got.Evidence["execution"].(map[string]any)
	require.Equal(t, "scheduled", execution["status"])
	require.Equal(t, true, execution["holds_slot"])
	worker := got.Evidence["worker"].(map[string]any)
	require.Equal(t, "old", worker["name"])
	require.Contains(t, worker, "heartbeat_age_seconds")
	require.Equal(t, "dead", got.Evidence["probe"].(map[string]any)["verdict"])
	require.Equal(t, 1, testkit.Count(t, d.store, `SELECT count(*) FROM execution WHERE id = $1 AND status = 'scheduled' AND worker = $2 AND attempt = 2 AND retry_count = 0`, e.ID, other.ID))
	require.Equal(t, 1, testkit.Count(t, d.store, `SELECT count(*) FROM lost_work WHERE execution = $1 AND cause = 'dead_letter' AND outcome = 'moved'`, e.ID))
	require.Equal(t, 1, testkit.Count(t, d.store, `SELECT count(*) FROM outbox WHERE $1 = ANY (routing_keys)`, message.DispatchKey(other.ID)))
	testkit.Invariants(t, d.store)
}

// Upstream 34: where the worker could start it yet, the row is closed with the
// published result, and its end is announced, from which release and repetition
// follow.
func TestAnExpiredHandOverEndsWithThePublishedResult(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	action := testkit.Action(t, d.store, "pk.do")
	w := testkit.Worker(t, d.store, "stranger")
	e := d.scheduled(t, action, w.ID)
	d.open(t)
	m := expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1})
	d.send(t, m)

	got := d.settled(t, 1)[0]
	require.Equal(t, deadletter.Failed, got.Decision, got.Detail)
	require.Equal(t, attune.StatusFailed, testkit.StatusOf(t, d.store, e.ID))
	require.Equal(t, 1, testkit.Count(t, d.store, `SELECT count(*) FROM execution WHERE id = $1
		AND result->>'error' = 'Worker queue TTL expired' AND result->>'failed_by' = 'dead_letter_handler'
		AND result->>'message' LIKE 'Worker did not process execution within configured TTL%'
		AND (result->>'expired_at')::timestamptz > now() - interval '1 minute'
		AND (result->>'worker_id')::bigint = $2 AND result->>'original_status' = 'scheduled'`, e.ID, w.ID))
	require.Equal(t, 1, testkit.Count(t, d.store, `SELECT count(*) FROM outbox WHERE 'execution.completed' = ANY (routing_keys)`))
}
