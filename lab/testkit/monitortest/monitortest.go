// Package monitortest writes rows for tests of the read side. Its functions fail the test instead of
// returning errors.
package monitortest

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

// Fixture writes rows for tests.
type Fixture struct {
	Store *store.Store
}

// Repeat ends an execution and retries it as the engine does.
func (b *Fixture) Repeat(t *testing.T, id int64, reason string, delay time.Duration, by *string) int64 {
	t.Helper()
	rows, err := b.Store.RepeatExecutions(t.Context(), store.RepeatExecutionsParams{
		Failed: []int64{id}, Reasons: []string{reason}, Delays: []float64{delay.Seconds()}, RequestedBy: by,
	})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	return rows[0].ID
}

// Fail ends an execution as failed with a result.
func (b *Fixture) Fail(t *testing.T, id int64, result string) {
	t.Helper()
	testkit.Exec(t, b.Store,
		`update execution set status = 'failed', started_at = now(), result = $2::jsonb where id = $1`, id, result)
}

// silent is a relay that publishes nothing.
type silent struct{}

// Published drops the messages.
func (silent) Published(int64, []outbox.Message) {}

// Batches returns a function that runs the engine's batch steps, so that tests read what admission
// wrote.
func (b *Fixture) Batches(t *testing.T) func(steps ...scheduler.Step) {
	t.Helper()
	replica := scheduler.New(scheduler.Config{},
		scheduler.Deps{Store: b.Store, Relay: silent{}, Logger: testkit.Logger(t)})
	return func(steps ...scheduler.Step) {
		t.Helper()
		_, err := replica.Run(testkit.Context(t), steps...)
		require.NoError(t, err)
	}
}

// DeadLetterRow is a row of the ledger; empty fields are NULL.
type DeadLetterRow struct {
	Kind, Key, Exchange, Queue, Reason, Action, Decision, By string
	Execution, Worker                                        int64
	attempt                                                  int
	Age                                                      time.Duration
	Body                                                     []byte
	Evidence, Headers                                        string
}

// AddDeadLetter stores a dead letter: an expired dispatch to worker 7, unless change says otherwise.
func (b *Fixture) AddDeadLetter(t *testing.T, change ...func(*DeadLetterRow)) int64 {
	t.Helper()
	r := DeadLetterRow{
		Kind: message.TypeExecutionRequested, Key: message.DispatchKey(7), Exchange: message.ExchangeExecutions,
		Queue: "worker.7.executions", Reason: "expired", Worker: 7, attempt: 1,
		Body: []byte(`{"message_type":"ExecutionRequested"}`),
	}
	for _, c := range change {
		c(&r)
	}
	var id int64
	err := b.Store.Pool().QueryRow(t.Context(), `
		INSERT INTO dead_letter (fingerprint, message_type, routing_key, exchange, queue, reason, action_ref, decision, decided_by, decided_at,
			execution, worker, attempt, created, died, body, evidence, headers)
		VALUES (gen_random_uuid()::text, nullif($1, ''), nullif($2, ''), nullif($3, ''), nullif($4, ''), nullif($5, ''), nullif($6, ''),
			nullif($7, ''), nullif($8, ''), CASE WHEN $7 <> '' THEN now() END, nullif($9::bigint, 0), nullif($10::bigint, 0), nullif($11::int, 0),
			now() - make_interval(secs => $12), now() - make_interval(secs => $12) - interval '2 seconds', $13, nullif($14, '')::jsonb, nullif($15, '')::jsonb)
		RETURNING id`,
		r.Kind, r.Key, r.Exchange, r.Queue, r.Reason, r.Action, r.Decision, r.By, r.Execution, r.Worker, r.attempt,
		r.Age.Seconds(), r.Body,
		r.Evidence, r.Headers).Scan(&id)
	require.NoError(t, err)
	return id
}

// inquiryRow is a row of inquiry; empty fields are NULL.
type inquiryRow struct {
	execution                              int64
	status, prompt, form, response, answer string
	assigned                               int64
	age, timeout                           time.Duration // timeout counts from the creation
}

// AddInquiry writes an inquiry and returns its id.
func (b *Fixture) AddInquiry(t *testing.T, r inquiryRow) int64 {
	t.Helper()
	return int64(testkit.Count(t, b.Store, `
		INSERT INTO inquiry (execution, status, prompt, response_schema, response, responder, assigned_to, created, timeout_at, responded_at, settled)
		VALUES ($1, coalesce(nullif($2, ''), 'pending')::inquiry_status_enum, coalesce(nullif($3, ''), 'go on?'), nullif($4, '')::jsonb, nullif($5, '')::jsonb,
			nullif($6, ''), nullif($7::bigint, 0), now() - make_interval(secs => $8),
			CASE WHEN $9::float8 > 0 THEN now() - make_interval(secs => $8) + make_interval(secs => $9::float8) END,
			CASE WHEN $2 = 'responded' THEN now() END, $2 <> '')
		RETURNING id`,
		r.execution, r.status, r.prompt, r.form, r.response, r.answer, r.assigned, r.age.Seconds(),
		r.timeout.Seconds()))
}

// AddInquiries makes one inquiry of each kind in a workflow, and returns executions and inquiries by
// name.
func (b *Fixture) AddInquiries(t *testing.T) (executions, ids map[string]int64) {
	t.Helper()
	ask, act, flow := testkit.Action(t, b.Store, "pk.ask"), testkit.Action(t, b.Store, "pk.act"), testkit.Action(t,
		b.Store, "pk.deploy")
	ada := int64(testkit.Count(t, b.Store, `INSERT INTO identity (login) VALUES ('ada') RETURNING id`))
	workflow := testkit.Execution(t, b.Store, flow, Status(lifecycle.StatusRunning)).ID
	child := func(action testkit.ActionRow, s lifecycle.Status, result any) int64 {
		return testkit.Execution(t, b.Store, action, Status(s), func(e *testkit.ExecutionRow) {
			e.Parent, e.Result, e.WorkflowTask = &workflow, result, map[string]any{"task_name": "approve"}
		}).ID
	}
	executions = map[string]int64{
		"workflow": workflow, "task": child(ask, lifecycle.StatusRunning, nil),
		"result": child(act, lifecycle.StatusCompleted,
			map[string]any{"data": map[string]any{"__inquiry": map[string]any{"prompt": "go on?"}}}),
		"answered": child(ask, lifecycle.StatusCompleted, nil), "expired": child(ask, lifecycle.StatusTimeout, nil),
		"alone": testkit.Execution(t, b.Store, ask, Status(lifecycle.StatusRunning)).ID,
	}
	ids = map[string]int64{
		"task": b.AddInquiry(t, inquiryRow{
			execution: executions["task"], assigned: ada, age: time.Hour,
			timeout: 2 * time.Hour, prompt: "deploy?",
		}),
		"result": b.AddInquiry(t, inquiryRow{execution: executions["result"], age: time.Minute}),
		"alone":  b.AddInquiry(t, inquiryRow{execution: executions["alone"]}),
		"expired": b.AddInquiry(t,
			inquiryRow{execution: executions["expired"], status: "timeout", timeout: time.Minute}),
		"answered": b.AddInquiry(t, inquiryRow{
			execution: executions["answered"], status: "responded", answer: "ada",
			form:     `{"user": {"type": "string"}, "token": {"type": "string", "secret": true}}`,
			response: `{"user": "x", "token": "hidden", "n": [18446744073709551617, 1e400]}`,
		}),
	}
	return executions, ids
}

// Status sets the status of an execution.
func Status(s lifecycle.Status) func(*testkit.ExecutionRow) {
	return func(r *testkit.ExecutionRow) { r.Status = s }
}

// Aged sets the age of an execution.
func Aged(d time.Duration) func(*testkit.ExecutionRow) {
	return func(r *testkit.ExecutionRow) { r.Age = d }
}

// RequireIndexed runs a read and checks that it did not scan the table.
func RequireIndexed(t *testing.T, st *store.Store, name string, read func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	const asked = `select sum(seq_scan)::bigint, sum(seq_tup_read + idx_tup_fetch)::bigint from pg_stat_xact_user_tables
		where relname in ('execution', 'execution_admission_entry')`
	var scansBefore, rowsBefore, scans, rows int64
	started := time.Now()
	err := st.ReadTx(t.Context(), name, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.QueryRow(ctx, asked).Scan(&scansBefore, &rowsBefore); err != nil {
			return err
		}
		if err := read(ctx, tx); err != nil {
			return err
		}
		return tx.QueryRow(ctx, asked).Scan(&scans, &rows)
	})
	scans, rows = scans-scansBefore, rows-rowsBefore
	require.NoError(t, err, name)
	require.Zero(t, scans, "%s walks the whole table", name)
	require.Less(t, rows, int64(30_000), "%s looks at too many rows", name)
	t.Logf("%s looked at %d rows and took %s", name, rows, time.Since(started))
}

// AddQueue makes a queue with holders on the worker and waiting executions of the normal lane, as
// admission leaves them.
func (b *Fixture) AddQueue(t *testing.T, action testkit.ActionRow, limit, active, queued int,
	worker int64,
) (state int64, holders, waiters []int64) {
	t.Helper()
	s := testkit.State(t, b.Store, action, limit,
		func(r *testkit.StateRow) { r.Active, r.Queued = int32(active), int32(queued) })
	for i := range active {
		holders = append(holders, testkit.Execution(t, b.Store, action, Status(lifecycle.StatusRunning),
			Aged(time.Hour-time.Duration(i)*time.Minute),
			func(r *testkit.ExecutionRow) { r.Worker, r.AdmissionState = &worker, &s.ID }).ID)
	}
	testkit.Exec(t, b.Store, `update execution set admitted_at = created + interval '1 second' where id in (select execution from execution_holder where state_id = $1)`, s.ID)
	for range queued {
		waiters = append(waiters, b.Enqueue(t, action, s.ID, 0))
	}
	return s.ID, holders, waiters
}

// Enqueue appends an execution to its lane.
func (b *Fixture) Enqueue(t *testing.T, action testkit.ActionRow, state int64, lane int) int64 {
	t.Helper()
	e := testkit.Execution(t, b.Store, action, func(r *testkit.ExecutionRow) { p := int16(lane); r.Priority = &p })
	testkit.Exec(t, b.Store, `
		with place as (
			update execution_admission_state set next_queue_order = next_queue_order + 1 where id = $1 returning next_queue_order - 1 as given)
		insert into execution_admission_entry (state_id, execution_id, status, queue_order, lane, enqueued_at)
		select $1, $2, 'queued', given, $3, now() - interval '2 minutes' from place`, state, e.ID, lane)
	return e.ID
}

// Replica writes a live replica.
func (b *Fixture) Replica(t *testing.T) {
	t.Helper()
	testkit.Exec(t, b.Store,
		`insert into engine_replica (id, host, version, pid) values (gen_random_uuid(), 'h', 'v', 1)`)
}

// BlockQueue makes the queue's head wait for a worker.
func (b *Fixture) BlockQueue(t *testing.T, state int64, reason string) {
	t.Helper()
	testkit.Exec(t, b.Store, `insert into admission_blocked (state_id, ticket, reason, since) values ($1, 1, $2, now() - interval '90 seconds')`, state, reason)
}

// AddWorker writes a worker with capabilities.
func (b *Fixture) AddWorker(t *testing.T, name string, capabilities map[string]any,
	change ...func(*testkit.WorkerRow),
) int64 {
	t.Helper()
	w := testkit.Worker(t, b.Store, name, append([]func(*testkit.WorkerRow){func(r *testkit.WorkerRow) {
		r.Capabilities = map[string]any{"runtimes": []string{"python"}, "max_concurrent_executions": 10}
		maps.Copy(r.Capabilities, capabilities)
	}}, change...)...)
	testkit.Exec(t, b.Store, `insert into worker_load (worker) values ($1) on conflict do nothing`, w.ID)
	return w.ID
}

// Load sets the number of a worker's executions.
func (b *Fixture) Load(t *testing.T, worker int64, assigned int) {
	t.Helper()
	testkit.Exec(t, b.Store, `update worker_load set assigned = $2 where worker = $1`, worker, assigned)
}

// NeedsPython makes an action require a version of Python.
func (b *Fixture) NeedsPython(t *testing.T, action int64, constraint string) {
	t.Helper()
	testkit.Exec(t, b.Store, `insert into runtime (ref, name, aliases, distributions) values ('core.python', 'Python', '{python3}', '{}') on conflict do nothing`)
	testkit.Exec(t, b.Store, `update action set runtime = (select id from runtime where ref = 'core.python'), runtime_version_constraint = $2 where id = $1`,
		action, constraint)
}

// begun is a workflow of a test.
type begun struct {
	Execution, ID int64
	definition    *workflow.Definition
}

// AddWorkflow makes a running workflow with the engine's state.
func (b *Fixture) AddWorkflow(t *testing.T, ref, content string, state *workflow.State,
	options ...func(*testkit.ExecutionRow),
) begun {
	t.Helper()
	d, mistakes, _ := workflow.Parse("w", []byte(content))
	require.Empty(t, mistakes)
	graph, err := d.TaskGraph()
	require.NoError(t, err)
	kept, err := workflow.MarshalState(state)
	require.NoError(t, err)
	action := testkit.Action(t, b.Store, ref)
	e := testkit.Execution(t, b.Store, action,
		append([]func(*testkit.ExecutionRow){Status(lifecycle.StatusRunning)}, options...)...)
	rows, err := b.Store.Pool().Query(t.Context(), `
		with d as (
			insert into workflow_definition (ref, pack, pack_ref, label, version, definition)
			select $2, a.pack, a.pack_ref, 'w', '1', '{}' from action a where a.id = $1
			on conflict (ref) do update set label = 'w' returning id),
		a as (update action set workflow_def = (select d.id from d) where id = $1)
		insert into workflow_execution (execution, workflow_def, task_graph, state, variables, status, paused, version,
			current_tasks, completed_tasks, failed_tasks, skipped_tasks)
		select $3, d.id, $4, $5, $6, 'running', $7, 4, $8, $9, $10, $11 from d returning id`,
		action.ID, ref, e.ID, graph, kept,
		map[string]any{"order": 7, "token": map[string]any{"$attune_secret": true, "redacted": true}},
		state.Paused, orNone(state.Lists(d).Current), orNone(state.Lists(d).Completed), orNone(state.Lists(d).Failed),
		orNone(state.Lists(d).Skipped))
	require.NoError(t, err)
	defer rows.Close()
	require.True(t, rows.Next())
	made := begun{Execution: e.ID, definition: d}
	require.NoError(t, rows.Scan(&made.ID))
	return made
}

func orNone(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

// AddChild makes the execution of a task, or of an item of its list.
func (b *Fixture) AddChild(t *testing.T, of begun, task string, index int, s lifecycle.Status,
	options ...func(*testkit.ExecutionRow),
) int64 {
	t.Helper()
	action := testkit.Action(t, b.Store, fmt.Sprintf("shop.%s%d_%d", task, of.ID, index))
	options = append([]func(*testkit.ExecutionRow){Status(s), func(r *testkit.ExecutionRow) {
		r.Parent, r.WorkflowTask = &of.Execution, map[string]any{"workflow_execution": of.ID, "task_name": task}
	}}, options...)
	e := testkit.Execution(t, b.Store, action, options...)
	testkit.Exec(t, b.Store, `insert into workflow_task_dispatch (workflow_execution, task_name, task_index, execution_id)
		values ($1, $2, nullif($3, -1), $4)`, of.ID, task, index, e.ID)
	return e.ID
}

// Deliver is a workflow with parallel tasks and a join.
const Deliver = `
version: 1
vars: {order: null}
tasks:
  - {name: reserve, action: shop.reserve, next: [{when: succeeded(), do: [pay, label]}, {when: failed(), do: tell}]}
  - {name: pay, action: core.ask, next: [{do: ship}]}
  - {name: label, action: shop.label, retry: {count: 3}, next: [{do: ship}]}
  - {name: ship, action: shop.ship, join: all, with_items: "{{ [1, 2] }}"}
  - {name: tell, action: core.echo}
output_map: {order: "{{ workflow.order }}"}
`
