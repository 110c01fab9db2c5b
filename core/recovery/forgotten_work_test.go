package recovery_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// ends waits until the rescuer has ended some executions, and checks that others still run.
func ends(t *testing.T, st *store.Store, relay relay, want map[int64]lifecycle.Status,
	untouched ...int64,
) (messages []outbox.Message) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		for id, status := range want {
			if testkit.StatusOf(t, st, id) != status {
				return false
			}
		}
		return true
	}, 10*time.Second, "lost executions are ended")
	quiet := time.After(150 * time.Millisecond)
	for {
		select {
		case more := <-relay:
			messages = append(messages, more...)
		case <-quiet:
			for _, id := range untouched {
				require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, st, id), "execution %d", id)
			}
			return messages
		}
	}
}

// receive adds committed messages until there are n: they reach the relay after the commit.
func receive(t *testing.T, relay relay, messages []outbox.Message, n int) []outbox.Message {
	t.Helper()
	for len(messages) < n {
		select {
		case more := <-relay:
			messages = append(messages, more...)
		case <-time.After(time.Minute):
			require.Fail(t, "messages are missing", "%d of %d", len(messages), n)
		}
	}
	return messages
}

// L2: an existing worker that crashes and soon restarts does not know its executions, sends heartbeats, and writes
// nothing about them. Executions end that run longer than their timeout, as the worker itself would have ended them.
func TestExecutionsThatAnExistingWorkerForgotEnd(t *testing.T) {
	st := testkit.Store(t)
	action, hour := testkit.Action(t, st, "pk.a"), testkit.Action(t, st, "pk.hour")
	testkit.Exec(t, st, `UPDATE action SET timeout_seconds = 3600 WHERE id = $1`, hour.ID)
	existing, ours := testkit.Worker(t, st, "existing"), testkit.Worker(t, st, "ours", fences)
	odd := testkit.Worker(t, st, "odd",
		func(w *testkit.WorkerRow) { w.Capabilities = map[string]any{"attempt_fence": "yes"} })
	at := func(action testkit.ActionRow, worker int64, age time.Duration, change ...func(*testkit.ExecutionRow)) int64 {
		id := testkit.Execution(t, st, action, append(change, func(e *testkit.ExecutionRow) {
			e.Worker, e.Status = &worker, lifecycle.StatusRunning
		})...).ID
		aged(t, st, age, id)
		return id
	}
	lost, lostToo := at(action, existing.ID, 391*time.Second), at(action, odd.ID, 391*time.Second)
	fresh, fenced := at(action, existing.ID, 290*time.Second), at(action, ours.ID, time.Hour)
	long := at(hour, existing.ID, 50*time.Minute)
	task := at(action, existing.ID, 0)
	testkit.Exec(t, st, `UPDATE execution SET workflow_task = '{"timeout_seconds": 900}' WHERE id = $1`, task)
	aged(t, st, 10*time.Minute, task)

	relay, _ := rescuer(t, st)
	messages := ends(t, st, relay, map[int64]lifecycle.Status{lost: lifecycle.StatusTimeout,
		lostToo: lifecycle.StatusTimeout},
		fresh, fenced, long, task)
	messages = receive(t, relay, messages, 4)
	keys := map[string]int{}
	for _, m := range messages {
		keys[m.RoutingKey]++
	}
	require.Equal(t, map[string]int{
		message.KeyExecutionCompleted: 2, message.CancelKey(existing.ID): 1, message.CancelKey(odd.ID): 1,
	}, keys, "its worker gets a cancel request, if it still runs it")
	require.Equal(t, 1, testkit.Count(t, st,
		`SELECT count(*) FROM execution WHERE id = $1 AND result->>'failed_by' = 'execution_timeout_monitor'
		AND result->>'timeout_seconds' = '300' AND result->>'error' ~ 'still running (39|4\d)\d seconds after its start, 300 are allowed'`, lost))
	require.Equal(t, 2,
		testkit.Count(t, st, `SELECT count(*) FROM lost_work WHERE cause = 'action_timeout' AND outcome = 'timeout'`))
}

// L2: executions of a deleted worker end. Parents and inquiries have no worker either, and never end so.
func TestExecutionsOfADeletedWorkerEnd(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	state := testkit.State(t, st, action, 5)
	worker := testkit.Worker(t, st, "w1", fences)
	row := func(status lifecycle.Status, change ...func(*testkit.ExecutionRow)) int64 {
		return testkit.Execution(t, st, action,
			append(change, func(e *testkit.ExecutionRow) { e.Status = status })...).ID
	}
	at := func(e *testkit.ExecutionRow) { e.Worker = &worker.ID }
	holds, counted, stopping := row(lifecycle.StatusRunning, at), row(lifecycle.StatusRunning,
		at), row(lifecycle.StatusCanceling, at)
	testkit.Hold(t, st, holds, state.ID)
	testkit.Exec(t, st, `UPDATE execution SET attempt = 1 WHERE id = ANY ($1)`, []int64{counted, stopping})
	parent, question := row(lifecycle.StatusRunning), row(lifecycle.StatusRunning)
	testkit.Exec(t, st, `DELETE FROM worker WHERE id = $1`, worker.ID)
	fresh := row(lifecycle.StatusRunning)
	testkit.Exec(t, st, `UPDATE execution SET attempt = 1 WHERE id = $1`, fresh)
	aged(t, st, 61*time.Second, holds, counted, stopping)
	aged(t, st, 20*time.Second, fresh)
	orchestrated(t, st, parent)
	testkit.Exec(t, st, `INSERT INTO inquiry (execution, prompt) VALUES ($1, '?')`, question)
	aged(t, st, 24*time.Hour, parent, question)

	relay, _ := rescuer(t, st)
	messages := ends(t, st, relay, map[int64]lifecycle.Status{
		holds: lifecycle.StatusAbandoned, counted: lifecycle.StatusAbandoned, stopping: lifecycle.StatusCancelled,
	}, parent, question, fresh)
	require.Len(t, receive(t, relay, messages, 3), 3)
	require.Equal(t, 3, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = ANY ($1)
		AND coalesce(result->>'abandoned_by', result->>'cancelled_by') = 'execution_timeout_monitor'
		AND result->>'message' = 'The worker was deleted while it ran the execution' AND result->'worker' = 'null'`, []int64{holds, counted, stopping}))
	require.Equal(t, 3, testkit.Count(t, st,
		`SELECT count(*) FROM lost_work WHERE cause = 'worker_gone' AND outcome IN ('abandoned', 'cancelled') AND worker IS NULL`))
}

// Scenario 4 of the published document: an existing worker that stops announces it, sends no more heartbeats and
// finishes its executions. It gets its shutdown timeout for that, from the announcement on, and never longer.
func TestAWorkerThatSaidGoodbyeMayFinish(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	worker := func(name, status string, silent time.Duration, change ...func(*testkit.WorkerRow)) int64 {
		return testkit.Worker(t, st, name,
			append(change, func(w *testkit.WorkerRow) { w.Status, w.HeartbeatAge = status, silent })...).ID
	}
	at := func(worker int64, status lifecycle.Status) int64 {
		return testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker, status }).ID
	}
	left := func(worker int64, since time.Duration) int64 {
		testkit.Exec(t, st, `DELETE FROM worker_history WHERE entity_id = $1`, worker)
		testkit.Exec(t, st, `INSERT INTO worker_history (time, operation, entity_id, changed_fields)
			VALUES (now() - make_interval(secs => $2), 'UPDATE', $1, '{status}')`, worker, since.Seconds())
		return worker
	}
	leaving, gone := left(worker("leaving", "inactive", 40*time.Second),
		time.Minute), left(worker("gone", "inactive", 0), time.Hour)
	failed := left(worker("failed", "error", 0), time.Hour)
	cutOff := left(worker("cut off", "error", 0, fences), time.Hour)
	draining := left(worker("draining", "inactive", 0, func(w *testkit.WorkerRow) { w.Draining = true }), time.Hour)
	silent, marked, back := worker("silent", "active", 80*time.Second), worker("marked", "inactive",
		80*time.Second), worker("back", "inactive", 0)
	testkit.Exec(t, st, `UPDATE worker SET deactivated_at = now() - interval '1 hour' WHERE id = ANY ($1)`,
		[]int64{marked, back})
	finishing, goesOn := at(leaving, lifecycle.StatusRunning), []int64{
		at(cutOff, lifecycle.StatusRunning), at(draining, lifecycle.StatusRunning), at(back, lifecycle.StatusRunning),
	}
	over, broken := at(gone, lifecycle.StatusRunning), at(failed, lifecycle.StatusRunning)
	lost, lostToo := at(silent, lifecycle.StatusRunning), at(marked, lifecycle.StatusRunning)
	unstarted := at(silent, lifecycle.StatusScheduled)

	relay, found := rescuer(t, st, func(c *recovery.RescuerConfig) { c.LeaveGrace = 30 * time.Minute })
	ends(t, st, relay, map[int64]lifecycle.Status{
		over: lifecycle.StatusAbandoned, broken: lifecycle.StatusAbandoned, lost: lifecycle.StatusAbandoned,
		lostToo: lifecycle.StatusAbandoned,
	}, append(goesOn, finishing)...)
	require.Equal(t, []scheduler.Unstarted{{Execution: unstarted}}, (<-found).Unstarted,
		"unstarted executions go to another worker")
}

// Overdue executions of live workers are read by their ids alone, however many run.
func TestDescribingOverdueExecutionsReadsNoOthers(t *testing.T) {
	st := testkit.Store(t)
	action, worker := testkit.Action(t, st, "pk.a"), testkit.Worker(t, st, "w1")
	testkit.Exec(t, st, `INSERT INTO execution (action, action_ref, status, worker)
		SELECT $1, 'pk.a', 'running', $2 FROM generate_series(1, 5000)`, action.ID, worker.ID)
	testkit.Exec(t, st, `ANALYZE`)
	_, sql, _ := strings.Cut(store.DescribeOverdue, "\n")
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		var lines []string
		err := pgx.BeginFunc(t.Context(), st.Pool(), func(tx pgx.Tx) error {
			for _, setup := range []string{
				"DEALLOCATE ALL", "SET LOCAL plan_cache_mode = " + mode,
				"PREPARE it AS " + sql,
			} {
				if _, err := tx.Exec(t.Context(), setup, pgx.QueryExecModeSimpleProtocol); err != nil {
					return err
				}
			}
			rows, err := tx.Query(t.Context(), "EXPLAIN EXECUTE it(10, 300, ARRAY[1, 2, 3]::bigint[])",
				pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				return err
			}
			lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
		require.NoError(t, err)
		plan := strings.Join(lines, "\n")
		require.Equal(t, 1, strings.Count(plan, " on execution "), plan)
		require.Contains(t, plan, "using execution_pkey on execution ", plan)
	}
}
