package liveness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// While silence proves nothing, no worker is marked inactive; then all silent ones are, beyond one page too.
func TestSilentWorkersAreMarkedOnlyWhenSilenceProvesSomething(t *testing.T) {
	st := testkit.Store(t)
	testkit.Exec(t, st, `INSERT INTO worker (name, worker_type, worker_role, status, heartbeat_seen)
		SELECT 'w' || n, 'local', 'action', 'active', now() - interval '1 hour' FROM generate_series(1, $1) n`, page+1)
	unsure := true
	h := NewHeartbeats(HeartbeatsConfig{StaleAfter: time.Minute, Unsure: func() bool { return unsure }}, st,
		testkit.Logger(t), nil, nil)
	active := func() int { return testkit.Count(t, st, `SELECT count(*) FROM worker WHERE status = 'active'`) }
	require.NoError(t, h.tick(testkit.Context(t)))
	require.Equal(t, page+1, active())
	unsure = false
	require.NoError(t, h.tick(testkit.Context(t)))
	require.Zero(t, active())
}

// Only a worker that may receive work becomes suspect: the others stop, or are dead.
func TestOnlyWorkersThatMayReceiveWorkBecomeSuspect(t *testing.T) {
	st := testkit.Store(t)
	live := testkit.Worker(t, st, "live").ID
	ids := []int64{
		testkit.Worker(t, st, "draining", func(w *testkit.WorkerRow) { w.Draining = true }).ID,
		testkit.Worker(t, st, "left", func(w *testkit.WorkerRow) { w.Status = "inactive" }).ID,
		testkit.Worker(t, st, "silent", func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour }).ID, live,
	}
	require.NoError(t, st.SuspectWorkers(testkit.Context(t), 60, ids, []string{"x", "x", "x", "x"}))
	require.Equal(t, int(live), testkit.Count(t, st, `SELECT sum(id) FROM worker WHERE suspect_since IS NOT NULL`))
}

// A heartbeat from before the mark does not make a worker active again, and a cordoned one raises no alert.
func TestAnOldHeartbeatDoesNotReactivateAWorker(t *testing.T) {
	st := testkit.Store(t)
	id := testkit.Worker(t, st, "w", func(w *testkit.WorkerRow) { w.Status = "inactive" }).ID
	testkit.Exec(t, st, `UPDATE worker SET deactivated_at = heartbeat_seen + interval '1 second' WHERE id = $1`, id)
	rows, err := st.ReactivateWorkers(testkit.Context(t), time.Hour.Seconds(), page)
	require.NoError(t, err)
	require.Empty(t, rows)

	h := NewHeartbeats(HeartbeatsConfig{}, st, testkit.Logger(t), nil, nil)
	require.Empty(t, h.alerts([]store.DeactivateWorkersRow{{ID: id, Name: "w", Previous: "active", Cordoned: true}}))
	require.Len(t, h.alerts([]store.DeactivateWorkersRow{{ID: id, Name: "w", Previous: "active"}}), 1)
}
