package recovery_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// relay receives committed messages.
type relay chan []outbox.Message

func (r relay) Published(_ int64, messages []outbox.Message) { r <- messages }

func rescuer(t *testing.T, st *store.Store, options ...func(*recovery.RescuerConfig)) (relay, <-chan recovery.Found) {
	t.Helper()
	relay, found := make(relay, 10), make(chan recovery.Found, 100)
	cfg := recovery.RescuerConfig{Interval: 20 * time.Millisecond, StaleAfter: time.Minute, ActionTimeouts: "true"}
	for _, option := range options {
		option(&cfg)
	}
	o := recovery.NewRescuer(cfg, st, func(_ context.Context, f recovery.Found) error {
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

// upstream 18, 31, 35, 36 and L4: running executions of a dead worker end once, its unstarted ones go to the
// batches, and no other execution changes.
func TestTheWorkOfAWorkerThatIsGoneIsEnded(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	silent := func(w *testkit.WorkerRow) { w.HeartbeatAge = 2 * time.Minute }
	gone := testkit.Worker(t, st, "gone", silent)
	never := testkit.Worker(t, st, "never", func(w *testkit.WorkerRow) { w.NoHeartbeat = true })
	alive := testkit.Worker(t, st, "alive")
	draining := testkit.Worker(t, st, "draining",
		func(w *testkit.WorkerRow) { w.Status, w.Draining = "inactive", true })
	at := func(worker *int64, status lifecycle.Status) int64 {
		return testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = worker, status }).ID
	}
	late, stuck := at(&gone.ID, lifecycle.StatusScheduled), at(&never.ID, lifecycle.StatusScheduled)
	busy := at(&alive.ID, lifecycle.StatusScheduled)
	running, canceling := at(&gone.ID, lifecycle.StatusRunning), at(&gone.ID, lifecycle.StatusCanceling)
	lives, drains := at(&alive.ID, lifecycle.StatusRunning), at(&draining.ID, lifecycle.StatusRunning)
	parent := at(nil, lifecycle.StatusRunning)
	waits := at(nil, lifecycle.StatusRequested)

	relay, found := rescuer(t, st)
	require.Equal(t, []scheduler.Unstarted{{Execution: late}, {Execution: stuck}}, (<-found).Unstarted)
	messages := <-relay
	require.Len(t, messages, 2)
	for id, want := range map[int64]lifecycle.Status{
		late: lifecycle.StatusScheduled, stuck: lifecycle.StatusScheduled, running: lifecycle.StatusAbandoned,
		canceling: lifecycle.StatusCancelled,
		busy:      lifecycle.StatusScheduled, lives: lifecycle.StatusRunning, drains: lifecycle.StatusRunning,
		parent: lifecycle.StatusRunning, waits: lifecycle.StatusRequested,
	} {
		require.Equal(t, want, testkit.StatusOf(t, st, id), "execution %d", id)
	}
	for _, m := range messages {
		sent, err := message.Decode[message.ExecutionCompleted](m.Body)
		require.NoError(t, err)
		require.Equal(t, message.KeyExecutionCompleted, m.RoutingKey)
		require.Equal(t, action.ID, sent.Payload.ActionID)
		require.Equal(t, 1,
			testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = $1 AND status::text = $2 AND result = $3`,
				sent.Payload.ExecutionID, sent.Payload.Status, sent.Payload.Result),
			"S14: the message matches the row")
	}
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = $1
		AND result->>'abandoned_by' = 'execution_timeout_monitor' AND result->'worker'->>'name' = 'gone'`, running))
	require.Equal(t, 1,
		testkit.Count(t, st, `SELECT count(*) FROM outbox WHERE 'execution.completed' = ANY (routing_keys)`))
	select {
	case again := <-relay:
		t.Fatalf("ended again: %v", again)
	case <-time.After(200 * time.Millisecond):
	}
}

// An execution that cannot be ended keeps no other from its end.
func TestAnOrphanThatCannotBeEndedDelaysNoOther(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	gone := testkit.Worker(t, st, "gone", func(w *testkit.WorkerRow) { w.HeartbeatAge = 2 * time.Minute })
	ids := make([]int64, 5)
	for i := range ids {
		ids[i] = testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &gone.ID, lifecycle.StatusRunning }).ID
	}
	late := testkit.Execution(t, st, action,
		func(e *testkit.ExecutionRow) { e.Worker, e.Status = &gone.ID, lifecycle.StatusScheduled }).ID
	testkit.RefuseUpdates(t, st, ids[2])
	_, found := rescuer(t, st)
	require.Equal(t, []scheduler.Unstarted{{Execution: late}}, (<-found).Unstarted)
	for i, id := range ids {
		want := lifecycle.StatusAbandoned
		if i == 2 {
			want = lifecycle.StatusRunning
		}
		require.Equal(t, want, testkit.StatusOf(t, st, id), "execution %d", i)
	}
}

// fences makes a worker that refuses outdated attempts.
func fences(w *testkit.WorkerRow) { w.Capabilities["attempt_fence"] = true }

// load sets how many open executions were dispatched to a worker.
func load(t *testing.T, st *store.Store, worker int64, n int) {
	t.Helper()
	testkit.Exec(t, st, `INSERT INTO worker_load (worker, assigned) VALUES ($1, $2)
		ON CONFLICT (worker) DO UPDATE SET assigned = excluded.assigned`, worker, n)
}

// aged moves the last change of executions into the past.
func aged(t *testing.T, st *store.Store, by time.Duration, ids ...int64) {
	t.Helper()
	testkit.Exec(t, st, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, st, `UPDATE execution SET updated = now() - make_interval(secs => $2) WHERE id = ANY ($1)`, ids,
		by.Seconds())
	testkit.Exec(t, st, `ALTER TABLE execution ENABLE TRIGGER USER`)
}

// Scenario 2 of the published document: an execution that is not started within the time of its
// action is found, with its attempt. Executions of a full worker are not, and none are while the
// broker is away.
func TestOverdueExecutionsAreFound(t *testing.T) {
	st := testkit.Store(t)
	usual := testkit.Action(t, st, "pk.usual")
	slow, quick := testkit.Action(t, st, "pk.slow"), testkit.Action(t, st, "pk.quick")
	testkit.Exec(t, st,
		`UPDATE action SET scheduled_timeout_seconds = CASE id WHEN $1 THEN 3600 ELSE 5 END WHERE id IN ($1, $2)`,
		slow.ID, quick.ID)
	idle := testkit.Worker(t, st, "idle")
	full := testkit.Worker(t, st, "full",
		func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(1) })
	at := func(action testkit.ActionRow, worker int64, status lifecycle.Status, age time.Duration) int64 {
		id := testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker, status }).ID
		aged(t, st, age, id)
		return id
	}
	late := at(usual, idle.ID, lifecycle.StatusScheduled, 301*time.Second)
	at(usual, idle.ID, lifecycle.StatusScheduled, 240*time.Second)
	at(slow, idle.ID, lifecycle.StatusScheduled, 301*time.Second)
	soon := at(quick, idle.ID, lifecycle.StatusScheduled, 6*time.Second)
	at(usual, full.ID, lifecycle.StatusRunning, time.Hour)
	behind := at(usual, full.ID, lifecycle.StatusScheduled, 301*time.Second)
	load(t, st, idle.ID, 4)
	load(t, st, full.ID, 2)
	testkit.Exec(t, st, `UPDATE execution SET attempt = 2 WHERE id = $1`, soon)
	aged(t, st, 6*time.Second, soon)

	var delayed atomic.Bool
	var asked atomic.Int64
	delayed.Store(true)
	_, found := rescuer(t, st, func(c *recovery.RescuerConfig) {
		c.DispatchesDelayed = func() bool { asked.Add(1); return delayed.Load() }
	})
	testkit.Eventually(t, func() bool { return asked.Load() > 1 }, 30*time.Second, "whole ticks")
	select {
	case f := <-found:
		t.Fatalf("found while the broker was away: %v", f)
	default:
	}
	delayed.Store(false)
	require.Equal(t, []scheduler.Unstarted{
		{Execution: late, Worker: idle.ID, Attempt: 0, Late: &scheduler.Late{Allowed: 300 * time.Second}},
		{Execution: soon, Worker: idle.ID, Attempt: 2, Late: &scheduler.Late{Allowed: 5 * time.Second}},
		{Execution: behind, Worker: full.ID, Attempt: 0, Late: &scheduler.Late{Allowed: 300 * time.Second, Full: true}},
	}, (<-found).Unstarted)
}

// upstream 37: the engine ends an execution that runs beyond its timeout and asks the worker to stop it.
func TestExecutionsBeyondTheirTimeoutEnd(t *testing.T) {
	st := testkit.Store(t)
	bounded := testkit.Action(t, st, "pk.bounded")
	unbounded := testkit.Action(t, st, "pk.unbounded")
	testkit.Exec(t, st, `UPDATE action SET timeout_seconds = 60 WHERE id = $1`, bounded.ID)
	worker := testkit.Worker(t, st, "w1", fences)
	at := func(action testkit.ActionRow, age time.Duration) int64 {
		id := testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker.ID, lifecycle.StatusRunning }).ID
		aged(t, st, age, id)
		return id
	}
	// Seconds may pass since the worker's heartbeat, up to which it is assessed.
	over, grace, free := at(bounded, 150*time.Second), at(bounded, 65*time.Second), at(unbounded, time.Hour)
	task := at(unbounded, time.Minute)
	testkit.Exec(t, st, `UPDATE execution SET workflow_task = '{"timeout_seconds": 20}' WHERE id = $1`, task)
	aged(t, st, 110*time.Second, task)

	relay, _ := rescuer(t, st)
	messages := <-relay
	keys := map[string]int{}
	for _, m := range messages {
		keys[m.RoutingKey]++
	}
	require.Equal(t, map[string]int{message.KeyExecutionCompleted: 2, message.CancelKey(worker.ID): 2}, keys)
	for id, want := range map[int64]lifecycle.Status{
		over: lifecycle.StatusTimeout, task: lifecycle.StatusTimeout, grace: lifecycle.StatusRunning,
		free: lifecycle.StatusRunning,
	} {
		require.Equal(t, want, testkit.StatusOf(t, st, id))
	}
	require.Equal(t, 1, testkit.Count(t, st,
		`SELECT count(*) FROM execution WHERE id = $1 AND result->>'failed_by' = 'execution_timeout_monitor'
		AND result->>'timeout_seconds' = '60' AND result->>'error' ~ 'Execution timeout: still running 1\d\d seconds after its start, 60 are allowed'`, over))
	require.Equal(t, 2,
		testkit.Count(t, st, `SELECT count(*) FROM lost_work WHERE cause = 'action_timeout' AND outcome = 'timeout'`))
	testkit.Exec(t, st, `UPDATE execution SET status = 'completed', result = '{}' WHERE id = $1`, over)
	require.Equal(t, lifecycle.StatusTimeout, testkit.StatusOf(t, st, over),
		"S8: a later write of the worker is recorded, and not applied")
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM late_write WHERE execution = $1`, over))
}

// executor.lost_running: fail.
func TestLostExecutionsMayCountAsFailures(t *testing.T) {
	st := testkit.Store(t)
	gone := testkit.Worker(t, st, "gone", func(w *testkit.WorkerRow) { w.HeartbeatAge = 2 * time.Minute })
	action := testkit.Action(t, st, "pk.a")
	id := testkit.Execution(t, st, action,
		func(e *testkit.ExecutionRow) { e.Worker, e.Status = &gone.ID, lifecycle.StatusRunning }).ID
	relay, _ := rescuer(t, st, func(c *recovery.RescuerConfig) { c.FailLost = true })
	require.Len(t, <-relay, 1)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = $1 AND status = 'failed'
		AND result->>'failed_by' = 'execution_timeout_monitor' AND NOT result ? 'abandoned_by'`, id))
	require.Equal(t, 1,
		testkit.Count(t, st, `SELECT count(*) FROM lost_work WHERE cause = 'worker_gone' AND outcome = 'failed'`))
}

// L2: a live worker that ignores a cancel request does not keep the execution for ever.
func TestIgnoredCancelRequestsEnd(t *testing.T) {
	st := testkit.Store(t)
	action, worker := testkit.Action(t, st, "pk.a"), testkit.Worker(t, st, "no consumer")
	at := func(age time.Duration) int64 {
		id := testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker.ID, lifecycle.StatusCanceling }).ID
		aged(t, st, age, id)
		return id
	}
	old, fresh := at(301*time.Second), at(240*time.Second)
	relay, _ := rescuer(t, st)
	require.Len(t, <-relay, 1)
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, st, old))
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, st, fresh))
	require.Equal(t, 1,
		testkit.Count(t, st,
			`SELECT count(*) FROM lost_work WHERE cause = 'cancel_unheard' AND outcome = 'cancelled' AND execution = $1`, old))
}

// A timeout of a task may be any JSON value: values of zero or below do not count, and too large ones never pass.
// Neither affects other executions.
func TestOddTimeoutsOfTasksHideNothing(t *testing.T) {
	st := testkit.Store(t)
	action, worker := testkit.Action(t, st, "pk.a"), testkit.Worker(t, st, "w1", fences)
	gone := testkit.Worker(t, st, "gone", func(w *testkit.WorkerRow) { w.HeartbeatAge = 2 * time.Minute })
	var odd []int64
	for _, timeout := range []string{
		"0", "-5", "999999999999", "9223372036854775807", "1e400", "-1e400", `"60"`,
		"null", "[]",
	} {
		id := testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker.ID, lifecycle.StatusRunning }).ID
		testkit.Exec(t, st,
			`UPDATE execution SET workflow_task = jsonb_build_object('timeout_seconds', $2::jsonb) WHERE id = $1`, id,
			timeout)
		odd = append(odd, id)
	}
	aged(t, st, 24*time.Hour, odd...)
	last := testkit.Execution(t, st, action,
		func(e *testkit.ExecutionRow) { e.Worker, e.Status = &gone.ID, lifecycle.StatusRunning }).ID
	relay, _ := rescuer(t, st)
	require.Len(t, <-relay, 1)
	require.Equal(t, lifecycle.StatusAbandoned, testkit.StatusOf(t, st, last))
	for _, id := range odd {
		require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, st, id))
	}
}

// A parent whose workflow was deleted ends. Parents with a workflow, inquiries and young executions stay.
func TestAParentWithoutItsWorkflowEnds(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	running := func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }
	headless, parent, question, fresh := testkit.Execution(t, st, action, running).ID, testkit.Execution(t, st, action,
		running).ID,
		testkit.Execution(t, st, action, running).ID, testkit.Execution(t, st, action, running).ID
	orchestrated(t, st, headless)
	orchestrated(t, st, parent)
	testkit.Exec(t, st, `DELETE FROM workflow_definition WHERE ref = 'pk.w' || $1::bigint`, headless)
	// the action of a definition goes with it
	testkit.Exec(t, st, `UPDATE execution SET action = NULL WHERE id = $1`, headless)
	testkit.Exec(t, st, `INSERT INTO inquiry (execution, prompt) VALUES ($1, '?')`, question)
	aged(t, st, 5*time.Minute, headless, parent, question)
	relay, _ := rescuer(t, st)
	require.Len(t, <-relay, 1, "its end is announced")
	require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, st, headless))
	for _, id := range []int64{parent, question, fresh} {
		require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, st, id))
	}
}

// orchestrated makes the workflow row of an execution.
func orchestrated(t *testing.T, st *store.Store, parent int64) {
	t.Helper()
	testkit.Exec(t, st, `WITH d AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
			SELECT 'pk.w' || $1::bigint, a.pack, 'pk', 'w', '1', '{}' FROM action a WHERE a.ref = 'pk.a' RETURNING id)
		INSERT INTO workflow_execution (execution, workflow_def, task_graph, status) SELECT $1::bigint, d.id, '{}',
			'running' FROM d`, parent)
}

// S9: during an outage nothing is ended, and right after a start only runs of workers that left by
// themselves.
func TestNothingIsEndedDuringAnOutage(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	left := testkit.Worker(t, st, "left", func(w *testkit.WorkerRow) { w.Status = "inactive" })
	silent := testkit.Worker(t, st, "silent", func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour })
	at := func(worker int64) int64 {
		return testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker, lifecycle.StatusRunning }).ID
	}
	over, stays := at(left.ID), at(silent.ID)
	testkit.Exec(t, st, `UPDATE worker_history SET time = now() - interval '1 hour'`)
	testkit.Exec(t, st, `ALTER TABLE worker DISABLE TRIGGER USER`)
	testkit.Exec(t, st, `UPDATE worker SET updated = now() - interval '1 hour'`)
	var recovering atomic.Bool
	var ticks atomic.Int64
	recovering.Store(true)
	relay, _ := rescuer(t, st, func(c *recovery.RescuerConfig) {
		c.Unsure = func() bool { return true }
		c.Recovering = func() bool { ticks.Add(1); return recovering.Load() }
	})
	testkit.Eventually(t, func() bool { return ticks.Load() > 2 }, 30*time.Second, "whole ticks")
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, st, over))
	recovering.Store(false)
	<-relay
	require.Equal(t, lifecycle.StatusAbandoned, testkit.StatusOf(t, st, over))
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, st, stays), "its silence proves nothing")
}

// S9: the statements that end executions check the worker again.
func TestARunOfAWorkerThatIsBackIsNotEnded(t *testing.T) {
	st := testkit.Store(t)
	back := testkit.Worker(t, st, "back")
	id := testkit.Execution(t, st, testkit.Action(t, st, "pk.a"),
		func(e *testkit.ExecutionRow) { e.Worker, e.Status = &back.ID, lifecycle.StatusRunning }).ID
	rows, err := st.EndOrphanedRuns(testkit.Context(t), store.EndOrphanedRunsParams{
		Status: string(lifecycle.StatusAbandoned), Ids: []int64{id}, StaleAfter: time.Minute.Seconds(),
	})
	require.NoError(t, err)
	require.Empty(t, rows)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, st, id))
}

// The statements check the age again: a row that another program has changed since the sweep read it stays.
func TestARowThatChangedMeanwhileStays(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	worker := testkit.Worker(t, st, "w1").ID
	claim := testkit.Execution(t, st, action,
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusScheduling }).ID
	canceling := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) {
		e.Status, e.Worker = lifecycle.StatusCanceling, &worker
	}).ID
	reclaimed, err := st.ReclaimClaims(testkit.Context(t), []int64{claim}, 60)
	require.NoError(t, err)
	require.Empty(t, reclaimed)
	ended, err := st.EndIgnoredCancels(testkit.Context(t), []int64{canceling}, 60)
	require.NoError(t, err)
	require.Empty(t, ended)
}
