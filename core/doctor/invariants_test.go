package doctor_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// database is a migrated database with the schema on its search path.
type database struct{ pool *pgxpool.Pool }

func (d database) Pool() *pgxpool.Pool { return d.pool }

func setup(t *testing.T) database {
	t.Helper()
	config, err := pgxpool.ParseConfig(testkit.Database(t))
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["search_path"] = testkit.Schema + ", public"
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return database{pool}
}

// plants holds one way to break each invariant.
var plants = map[string]func(t *testing.T, db database){
	"forgotten_event": func(t *testing.T, db database) {
		testkit.Exec(t, db, `update event_matching set since = now() - interval '1 day'`)
		testkit.Exec(t, db, `insert into event (trigger_ref, created) values ('a.b', now() - interval '1 hour'), ('a.b', now()), ('a.b', now() - interval '2 days')`)
	},
	"forgotten_enforcement": func(t *testing.T, db database) {
		testkit.Exec(t, db, `update event_matching set since = now() - interval '1 day'`)
		testkit.Exec(t, db, `insert into enforcement (rule_ref, trigger_ref, payload, created, status) values
			('a.b', 'a.c', '{}', now() - interval '1 hour', 'created'), ('a.b', 'a.c', '{}', now() - interval '1 hour', 'disabled'), ('a.b', 'a.c', '{}', now(), 'created')`)
	},
	"lost_once": func(t *testing.T, db database) {
		testkit.Exec(t, db, `insert into lost_work (cause, outcome, execution, attempt, action_ref)
			values ('worker_gone', 'moved', 1, 1, 'a.b'), ('dead_letter', 'failed', 1, 1, 'a.b'), ('dead_letter', 'failed', 1, 2, 'a.b')`)
	},
	"work_of_the_gone": func(t *testing.T, db database) {
		gone := testkit.Worker(t, db, "gone", func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour })
		lying(t, db, gone)
	},
	"undecided_letter": func(t *testing.T, db database) {
		worker := testkit.Worker(t, db, "w")
		testkit.Exec(t, db, `insert into dead_letter (execution, worker, attempt, created) values ($1, $2, 1, now() - interval '1 hour')`,
			lying(t, db, worker), worker.ID)
	},
	"active_count": func(t *testing.T, db database) {
		testkit.State(t, db, action(t, db), 5, func(s *testkit.StateRow) { s.Active = 1 })
	},
	"holder_place": func(t *testing.T, db database) {
		worker := testkit.Worker(t, db, "w")
		execution := lying(t, db, worker)
		testkit.Exec(t, db, `update execution_admission_state set active_count = 0`)
		testkit.Exec(t, db, `update execution_holder set state_id = state_id + 1 where execution = $1`, execution)
	},
	"queued_count": func(t *testing.T, db database) {
		testkit.State(t, db, action(t, db), 5, func(s *testkit.StateRow) { s.Queued, s.Paused = 1, true })
	},
	"queue_order": func(t *testing.T, db database) {
		state := testkit.State(t, db, action(t, db), 5, func(s *testkit.StateRow) { s.Queued, s.Paused = 1, true })
		enqueue(t, db, state, testkit.Execution(t, db, action(t, db)), 7)
	},
	"lane_count": func(t *testing.T, db database) {
		state := testkit.State(t, db, action(t, db), 5, func(s *testkit.StateRow) { s.Queued, s.Paused = 1, true })
		enqueue(t, db, state, testkit.Execution(t, db, action(t, db)), 1)
		testkit.Exec(t, db, `update execution_admission_state set next_queue_order = 2, queued_high = 1`)
	},
	"scope_holder": func(t *testing.T, db database) {
		testkit.Exec(t, db, `insert into admission_scope (kind, max_concurrent, active_count) values ('global', 5, 1)`)
		testkit.Exec(t, db, `insert into execution_slot (execution, scope_id) select $1, id from admission_scope`,
			testkit.Execution(t, db, action(t, db)).ID)
	},
	"lost_holder": func(t *testing.T, db database) {
		testkit.Exec(t, db,
			`insert into lost_holder (execution, state_id, at) values (1, 1, now() - interval '5 minutes')`)
	},
	"queue_stats": func(t *testing.T, db database) {
		state := testkit.State(t, db, action(t, db), 5)
		testkit.Exec(t, db, `insert into queue_stats (action_id, queue_length) values ($1, 1)`, state.Action)
	},
	"worker_load": func(t *testing.T, db database) {
		worker := testkit.Worker(t, db, "w")
		testkit.Exec(t, db, `update worker_load set assigned = 1 where worker = $1`, worker.ID)
	},
	"scope_count": func(t *testing.T, db database) {
		testkit.Exec(t, db, `insert into admission_scope (kind, max_concurrent, active_count) values ('global', 5, 1)`)
	},
	"terminal_holder": func(t *testing.T, db database) {
		state := testkit.State(t, db, action(t, db), 5, func(s *testkit.StateRow) { s.Active = 1 })
		testkit.Execution(t, db, action(t, db), holding(state), status(lifecycle.StatusFailed), old)
	},
	"holder_execution": func(t *testing.T, db database) {
		worker := testkit.Worker(t, db, "w")
		testkit.Exec(t, db, `update execution_holder set attempt = attempt + 1 where execution = $1`,
			lying(t, db, worker))
	},
	"holder_status": func(t *testing.T, db database) {
		state := testkit.State(t, db, action(t, db), 5, func(s *testkit.StateRow) { s.Active = 1 })
		testkit.Execution(t, db, action(t, db), holding(state))
	},
	"status_holder": func(t *testing.T, db database) {
		worker := testkit.Worker(t, db, "w")
		testkit.Execution(t, db, action(t, db), status(lifecycle.StatusRunning), on(worker))
	},
	"scheduled_worker": func(t *testing.T, db database) {
		testkit.Execution(t, db, action(t, db), status(lifecycle.StatusScheduled))
	},
	"entry_status": func(t *testing.T, db database) {
		state := testkit.State(t, db, action(t, db), 5, func(s *testkit.StateRow) { s.Queued, s.Paused = 1, true })
		enqueue(t, db, state, testkit.Execution(t, db, action(t, db), status(lifecycle.StatusCancelled), old), 0)
	},
	"entry_holder": func(t *testing.T, db database) {
		worker := testkit.Worker(t, db, "w")
		testkit.Exec(t, db, `update worker_load set assigned = 1 where worker = $1`, worker.ID)
		state := testkit.State(t, db, action(t, db), 5,
			func(s *testkit.StateRow) { s.Active, s.Queued, s.Paused = 1, 1, true })
		// A row that holds and waits is also of a status that must not wait, so
		// two checks see it.
		enqueue(t, db, state,
			testkit.Execution(t, db, action(t, db), holding(state), on(worker), status(lifecycle.StatusRunning)), 0)
	},
	"idle_slot": func(t *testing.T, db database) {
		state := testkit.State(t, db, action(t, db), 5, func(s *testkit.StateRow) { s.Queued = 1 })
		enqueue(t, db, state, testkit.Execution(t, db, action(t, db)), 0)
		testkit.Exec(t, db, `alter table execution_admission_state disable trigger user`)
		testkit.Exec(t, db, `update execution_admission_state set updated = now() - interval '1 hour'`)
		testkit.Exec(t, db, `update execution_admission_entry set enqueued_at = now() - interval '1 hour'`)
	},
	"outbox_age": func(t *testing.T, db database) {
		testkit.Exec(t, db, `insert into outbox (created, message_ids, exchanges, routing_keys, message_types, bodies, traces)
			values (now() - interval '2 minutes', '{m}', '{e}', '{k}', '{t}', '{b}', '{""}')`)
	},
	"live_per_enforcement": func(t *testing.T, db database) {
		var id int64
		require.NoError(t, db.pool.QueryRow(t.Context(),
			`insert into enforcement (rule_ref, trigger_ref, payload) values ('demo.r', 'demo.t', '{}') returning id`).Scan(&id))
		of := func(e *testkit.ExecutionRow) { e.Enforcement = &id }
		testkit.Execution(t, db, action(t, db), of)
		testkit.Execution(t, db, action(t, db), of,
			func(e *testkit.ExecutionRow) { e.Config = map[string]any{"retry_of": 1} })
	},
	"live_attempts": func(t *testing.T, db database) {
		first := testkit.Execution(t, db, action(t, db))
		testkit.Execution(t, db, action(t, db), func(e *testkit.ExecutionRow) { e.OriginalExecution = &first.ID })
	},
	"inquiry_holder": func(t *testing.T, db database) {
		worker := testkit.Worker(t, db, "w")
		testkit.Exec(t, db, `update worker_load set assigned = 1 where worker = $1`, worker.ID)
		state := testkit.State(t, db, action(t, db), 5, func(s *testkit.StateRow) { s.Active = 1 })
		asking := testkit.Execution(t, db, action(t, db), holding(state), on(worker), status(lifecycle.StatusRunning))
		testkit.Exec(t, db, `insert into inquiry (execution, prompt) values ($1, 'go on?')`, asking.ID)
	},
	"inquiry_overdue": func(t *testing.T, db database) {
		asking := testkit.Execution(t, db, action(t, db), status(lifecycle.StatusRunning))
		testkit.Exec(t, db,
			`insert into inquiry (execution, prompt, timeout_at) values ($1, 'go on?', now() - interval '5 minutes')`, asking.ID)
	},
	"inquiry_unsettled": func(t *testing.T, db database) {
		asking := testkit.Execution(t, db, action(t, db), status(lifecycle.StatusRunning))
		testkit.Exec(t, db, `insert into inquiry (execution, prompt, status, updated) values ($1, 'go on?', 'responded', now() - interval '5 minutes')`, asking.ID)
	},
	"stale_claim": func(t *testing.T, db database) {
		testkit.Execution(t, db, action(t, db), status(lifecycle.StatusScheduling), old)
	},
	"forgotten_request": func(t *testing.T, db database) {
		testkit.Execution(t, db, action(t, db), old)
	},
	"overdue_retry": func(t *testing.T, db database) {
		a := action(t, db)
		failed, next := testkit.Execution(t, db, a, status(lifecycle.StatusFailed)), testkit.Execution(t, db, a)
		testkit.Exec(t, db, `INSERT INTO execution_retry (failed, execution, reason, due) VALUES ($1, $2, 'x', now() - interval '1 hour')`,
			failed.ID, next.ID)
	},
	"repeated_once": func(t *testing.T, db database) {
		a := action(t, db)
		cancelled, next := testkit.Execution(t, db, a, status(lifecycle.StatusCancelled)), testkit.Execution(t, db, a)
		testkit.Exec(t, db,
			`INSERT INTO execution_retry (failed, execution, reason, due, waiting) VALUES ($1, $2, 'x', now(), false)`,
			cancelled.ID, next.ID)
	},
	"undecided_return": func(t *testing.T, db database) {
		worker := testkit.Worker(t, db, "without a queue")
		testkit.Exec(t, db, `INSERT INTO undelivered_dispatch (execution, attempt, worker, reason, at)
			VALUES ($1, 1, $2, 'x', now() - interval '1 hour')`, lying(t, db, worker), worker.ID)
	},
	"workflow_end": func(t *testing.T, db database) {
		orchestrated(t, db, testkit.Execution(t, db, action(t, db), status(lifecycle.StatusFailed), old))
	},
	"workflow_hang": func(t *testing.T, db database) {
		w := orchestrated(t, db, testkit.Execution(t, db, action(t, db), status(lifecycle.StatusRunning)))
		testkit.Exec(t, db, `ALTER TABLE workflow_execution DISABLE TRIGGER USER`)
		testkit.Exec(t, db, `UPDATE workflow_execution SET updated = now() - interval '1 hour' WHERE id = $1`, w)
	},
	"workflow_forgotten": func(t *testing.T, db database) {
		w := orchestrated(t, db, testkit.Execution(t, db, action(t, db), status(lifecycle.StatusRunning)))
		child := testkit.Execution(t, db, action(t, db), status(lifecycle.StatusCompleted), old)
		testkit.Exec(t, db,
			`INSERT INTO workflow_task_dispatch (workflow_execution, task_name, execution_id) VALUES ($1, 'a', $2)`, w,
			child.ID)
	},
	"workflow_versions": func(t *testing.T, db database) {
		w := orchestrated(t, db, testkit.Execution(t, db, action(t, db), status(lifecycle.StatusRunning)))
		testkit.Exec(t, db, `UPDATE workflow_execution SET version = 2, state = '{}' WHERE id = $1`, w)
		testkit.Exec(t, db, `INSERT INTO workflow_log (workflow_execution, version) VALUES ($1, 2)`, w)
	},
	"task_once": func(t *testing.T, db database) {
		w := orchestrated(t, db, testkit.Execution(t, db, action(t, db), status(lifecycle.StatusRunning)))
		for range 2 {
			testkit.Execution(t, db, action(t, db), func(e *testkit.ExecutionRow) {
				e.Status, e.WorkflowTask = lifecycle.StatusCompleted, map[string]any{
					"workflow_execution": w,
					"task_name":          "a", "task_index": 3,
				}
			})
		}
	},
}

// orchestrated makes the workflow row of an execution.
func orchestrated(t *testing.T, db database, parent testkit.ExecutionRow) int64 {
	t.Helper()
	testkit.Exec(t, db, `with d as (
			insert into workflow_definition (ref, pack, pack_ref, label, version, definition)
			select 'demo.w', id, ref, 'w', '1.0.0', '{}' from pack where ref = 'demo' returning id)
		insert into workflow_execution (execution, workflow_def, task_graph, status)
		select $1, d.id, '{}', 'running' from d`, parent.ID)
	return int64(testkit.Count(t, db, `SELECT id FROM workflow_execution WHERE execution = $1`, parent.ID))
}

// also lists the checks that see a plant besides its own.
var also = map[string][]string{"entry_holder": {"entry_status"}}

func TestInvariantsFindTheirViolations(t *testing.T) {
	t.Parallel()
	for _, check := range doctor.Checks() {
		plant, ok := plants[check.Name]
		require.True(t, ok, "check %s has no plant", check.Name)
		t.Run(check.Name, func(t *testing.T) {
			t.Parallel()
			db := setup(t)
			plant(t, db)
			found, err := doctor.Invariants(testkit.Context(t), db.pool)
			require.NoError(t, err)
			var names []string
			for _, violation := range found {
				names = append(names, violation.Check)
				require.NotEmpty(t, violation.Subject)
				require.NotEmpty(t, violation.Detail)
				require.NotEmpty(t, violation.Invariant)
			}
			require.ElementsMatch(t, append(also[check.Name], check.Name), names, "%v", found)
		})
	}
}

func TestInvariantsHoldWithHealthyRows(t *testing.T) {
	db := setup(t)

	act, worker := action(t, db), testkit.Worker(t, db, "w")
	state := testkit.State(t, db, act, 1, func(s *testkit.StateRow) { s.Active, s.Queued = 1, 1 })
	testkit.Exec(t, db, `update worker_load set assigned = 1 where worker = $1`, worker.ID)
	testkit.Execution(t, db, act, holding(state), on(worker), status(lifecycle.StatusRunning))
	enqueue(t, db, state, testkit.Execution(t, db, act), 0)
	testkit.Execution(t, db, act, on(worker), status(lifecycle.StatusCompleted), old)

	testkit.Invariants(t, db)
}

func action(t *testing.T, db database) testkit.ActionRow {
	t.Helper()
	row := testkit.ActionRow{Ref: "demo.act"}
	err := db.pool.QueryRow(t.Context(), `select id from action where ref = $1`, row.Ref).Scan(&row.ID)
	if err == nil {
		return row
	}
	return testkit.Action(t, db, row.Ref)
}

func enqueue(t *testing.T, db database, state testkit.StateRow, execution testkit.ExecutionRow, order int64) {
	t.Helper()
	testkit.Exec(t, db, `insert into execution_admission_entry (state_id, execution_id, status, queue_order)
		values ($1, $2, 'queued', $3)`, state.ID, execution.ID, order)
	testkit.Exec(t, db, `update execution_admission_state set head_order = least(head_order, $2) where id = $1`,
		state.ID, order)
}

func holding(state testkit.StateRow) func(*testkit.ExecutionRow) {
	return func(e *testkit.ExecutionRow) { e.AdmissionState = &state.ID }
}

func on(worker testkit.WorkerRow) func(*testkit.ExecutionRow) {
	return func(e *testkit.ExecutionRow) { e.Worker = &worker.ID }
}

// lying makes an execution that was handed to a worker and holds its slot.
func lying(t *testing.T, db database, worker testkit.WorkerRow) int64 {
	t.Helper()
	a := action(t, db)
	state := testkit.State(t, db, a, 5, func(s *testkit.StateRow) { s.Active = 1 })
	testkit.Exec(t, db, `UPDATE worker_load SET assigned = 1`)
	return testkit.Execution(t, db, a, status(lifecycle.StatusScheduled), holding(state), on(worker),
		func(e *testkit.ExecutionRow) { e.Attempt = 1 }).ID
}

func status(s lifecycle.Status) func(*testkit.ExecutionRow) {
	return func(e *testkit.ExecutionRow) { e.Status = s }
}

func old(e *testkit.ExecutionRow) { e.Age = 3600e9 }
