package recovery_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/lab/testkit"
)

// Running executions of an inactive worker are abandoned in time, however long the interval of the loop is, and
// whether stale heartbeats count yet or not. They never time out.
func TestExecutionsOfAnInactiveWorkerAreAbandonedInTime(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	testkit.Exec(t, st, `UPDATE action SET timeout_seconds = 60`)
	inactive := testkit.Worker(t, st, "inactive", func(w *testkit.WorkerRow) { w.Status = "inactive" })
	silent := testkit.Worker(t, st, "silent", func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour })
	row := func(worker int64) int64 {
		id := testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker, lifecycle.StatusRunning }).ID
		aged(t, st, 10*time.Minute, id)
		return id
	}
	id, other := row(inactive.ID), row(silent.ID)
	unsure := row(testkit.Worker(t, st, "alive").ID) // beyond its timeout, which proves nothing now
	testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) {
		e.Worker, e.Status = &silent.ID, lifecycle.StatusScheduled
	})
	relay, found := rescuer(t, st, func(c *recovery.RescuerConfig) {
		c.Interval, c.LeaveGrace = time.Hour, 2*time.Second
		c.Unsure, c.Recovering = func() bool { return true }, func() bool { return false }
	})
	ends(t, st, relay, map[int64]lifecycle.Status{id: lifecycle.StatusAbandoned}, other, unsure)
	require.Empty(t, found)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = $1
		AND result->>'abandoned_by' = 'execution_timeout_monitor' AND result->>'original_status' = 'running'
		AND (result->'worker'->>'id')::bigint = $2 AND result->'worker'->'cordoned' = 'false' AND result ? 'reconciled_at'
		AND result->>'error' = 'Execution abandoned because its worker became unavailable while running'`, id, inactive.ID))
}

// Running executions of a worker are abandoned as soon as its heartbeat is stale, however long the interval of the
// loop is.
func TestExecutionsOfADeadWorkerAreAbandonedInTime(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	silent := testkit.Worker(t, st, "silent", func(w *testkit.WorkerRow) { w.HeartbeatAge = 50 * time.Minute })
	beats := testkit.Worker(t, st, "beats")
	row := func(worker int64) int64 {
		return testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker, lifecycle.StatusRunning }).ID
	}
	id, other := row(silent.ID), row(beats.ID)
	testkit.Exec(t, st, `UPDATE worker SET heartbeat_seen = now() - interval '59 minutes 57 seconds' WHERE id = $1`,
		silent.ID)
	relay, _ := rescuer(t, st, func(c *recovery.RescuerConfig) { c.Interval, c.StaleAfter = time.Hour, time.Hour })
	ends(t, st, relay, map[int64]lifecycle.Status{id: lifecycle.StatusAbandoned}, other)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution e JOIN worker w ON w.id = e.worker
		WHERE e.id = $1 AND e.finished_at > w.heartbeat_seen + interval '1 hour'`, id), "not before its heartbeat is stale")
}

// A worker whose heartbeats ended before the timeout of its execution is dead: the execution is abandoned when that
// is known, and does not time out before.
func TestExecutionsOfADeadWorkerDoNotTimeOut(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	testkit.Exec(t, st, `UPDATE action SET timeout_seconds = 60`)
	silent := testkit.Worker(t, st, "silent", func(w *testkit.WorkerRow) { w.HeartbeatAge = 30 * time.Second })
	row := func(age time.Duration) int64 {
		id := testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &silent.ID, lifecycle.StatusRunning }).ID
		aged(t, st, age, id)
		return id
	}
	before, after := row(150*time.Second), row(110*time.Second)
	relay, _ := rescuer(t, st)
	ends(t, st, relay, map[int64]lifecycle.Status{before: lifecycle.StatusTimeout}, after)
	testkit.Exec(t, st, `UPDATE worker SET heartbeat_seen = now() - interval '61 seconds'`)
	ends(t, st, relay, map[int64]lifecycle.Status{after: lifecycle.StatusAbandoned})
}

// Lost executions raise one core.alert event in the published words. Those of cordoned workers raise none.
func TestLostExecutionsRaiseAlerts(t *testing.T) {
	st := testkit.Store(t)
	testkit.Exec(t, st, `INSERT INTO trigger (ref, label) VALUES ('core.alert', 'Alert')`)
	action := testkit.Action(t, st, "pk.a")
	gone := testkit.Worker(t, st, "gone", func(w *testkit.WorkerRow) { w.HeartbeatAge = 2 * time.Minute })
	cordoned := testkit.Worker(t, st, "cordoned",
		func(w *testkit.WorkerRow) { w.HeartbeatAge, w.Cordoned = 2*time.Minute, true })
	at := func(worker int64) int64 {
		return testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker, lifecycle.StatusRunning }).ID
	}
	id, known := at(gone.ID), at(cordoned.ID)
	relay, _ := rescuer(t, st)
	rescuer(t, st) // a second replica
	ends(t, st, relay, map[int64]lifecycle.Status{id: lifecycle.StatusAbandoned, known: lifecycle.StatusAbandoned})
	var trigger int64
	var config, rule, payload []byte
	var source string
	require.NoError(t, st.Pool().QueryRow(t.Context(), `SELECT trigger, config, to_jsonb(rule), payload, source_ref FROM event
		WHERE trigger_ref = 'core.alert'`).Scan(&trigger, &config, &rule, &payload, &source))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM event`), "once, and not of the cordoned worker")
	require.NotZero(t, trigger)
	require.Equal(t, "attune.system", source)
	require.Nil(t, config)
	require.Nil(t, rule)
	var got map[string]any
	require.NoError(t, json.Unmarshal(payload, &got))
	require.ElementsMatch(t, []string{
		"severity", "category", "failure_type", "component_type", "component_id", "component_ref", "worker_role",
		"observed_at", "summary",
		"details", "correlation_id",
	}, slices.Collect(maps.Keys(got)))
	require.Equal(t, []any{
		"error", "execution_reconciliation", "execution_abandoned_worker_unavailable", "execution", float64(id), "pk.a",
		"action",
		fmt.Sprintf("execution:%d:worker_unavailable", id),
	}, []any{
		got["severity"], got["category"], got["failure_type"], got["component_type"], got["component_id"],
		got["component_ref"], got["worker_role"],
		got["correlation_id"],
	})
	details, _ := got["details"].(map[string]any)
	require.ElementsMatch(t, []string{
		"execution_id", "action_ref", "worker_id", "worker_name", "worker_role", "worker_status", "last_heartbeat",
		"reconciliation_result",
	}, slices.Collect(maps.Keys(details)))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM event v JOIN execution e ON e.id = $1
		WHERE v.payload->'details'->'reconciliation_result' = e.result`, id))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM outbox WHERE 'event.created' = ANY (routing_keys)`))
}
