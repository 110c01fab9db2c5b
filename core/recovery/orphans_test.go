package recovery_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/testkit"
)

// handed records what was handed to a relay.
type handed chan []outbox.Message

func (h handed) Published(_ int64, messages []outbox.Message) { h <- messages }

func orphans(t *testing.T, st *store.Store) (handed, <-chan recovery.Found) {
	t.Helper()
	relay, found := make(handed, 10), make(chan recovery.Found, 100)
	o := recovery.NewOrphans(recovery.OrphansConfig{Interval: 20 * time.Millisecond, StaleAfter: time.Minute},
		st, func(_ context.Context, f recovery.Found) error {
			select {
			case found <- f:
			default: // the same again
			}
			return nil
		}, relay, testkit.Logger(t), nil)
	require.NoError(t, o.Start(testkit.Context(t)))
	t.Cleanup(o.Stop)
	return relay, found
}

// upstream 18, 31, 35, 36 and L4: what a worker that is gone ran is ended, once,
// what it had not started goes to the rounds, and nothing else is touched.
func TestTheWorkOfAWorkerThatIsGoneIsEnded(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	silent := func(w *testkit.WorkerRow) { w.HeartbeatAge = 2 * time.Minute }
	gone := testkit.Worker(t, st, "gone", silent)
	never := testkit.Worker(t, st, "never", func(w *testkit.WorkerRow) { w.NoHeartbeat = true })
	alive := testkit.Worker(t, st, "alive")
	draining := testkit.Worker(t, st, "draining", func(w *testkit.WorkerRow) { w.Status, w.Draining = "inactive", true })
	at := func(worker *int64, status attune.Status) int64 {
		return testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Worker, e.Status = worker, status }).ID
	}
	late, stuck := at(&gone.ID, attune.StatusScheduled), at(&never.ID, attune.StatusScheduled)
	busy := at(&alive.ID, attune.StatusScheduled)
	running, canceling := at(&gone.ID, attune.StatusRunning), at(&gone.ID, attune.StatusCanceling)
	lives, drains := at(&alive.ID, attune.StatusRunning), at(&draining.ID, attune.StatusRunning)
	parent := at(nil, attune.StatusRunning)
	waits := at(nil, attune.StatusRequested)

	relay, found := orphans(t, st)
	require.Equal(t, []recovery.Stranded{{Execution: late}, {Execution: stuck}}, (<-found).Stranded)
	messages := <-relay
	require.Len(t, messages, 2)
	for id, want := range map[int64]attune.Status{
		late: attune.StatusScheduled, stuck: attune.StatusScheduled, running: attune.StatusAbandoned, canceling: attune.StatusAbandoned,
		busy: attune.StatusScheduled, lives: attune.StatusRunning, drains: attune.StatusRunning,
		parent: attune.StatusRunning, waits: attune.StatusRequested,
	} {
		require.Equal(t, want, testkit.StatusOf(t, st, id), "execution %d", id)
	}
	for _, m := range messages {
		sent, err := message.Decode[message.ExecutionCompleted](m.Body)
		require.NoError(t, err)
		require.Equal(t, message.KeyExecutionCompleted, m.RoutingKey)
		require.Equal(t, action.ID, sent.Payload.ActionID)
		require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = $1 AND status::text = $2 AND result = $3`,
			sent.Payload.ExecutionID, sent.Payload.Status, sent.Payload.Result), "S14: the message says what the row says")
	}
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = $1
		AND result->>'abandoned_by' = 'execution_timeout_monitor' AND result->'worker'->>'name' = 'gone'`, running))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM outbox`))
	select {
	case again := <-relay:
		t.Fatalf("ended again: %v", again)
	case <-time.After(200 * time.Millisecond):
	}
}
