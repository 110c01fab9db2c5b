// Package apitest stores rows for tests of the HTTP API.
package apitest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// Filled names rows of a filled database.
type Filled struct {
	Action, Policy, Rule, Trigger, Pack                                                       string
	DeadLetter, Workflow, Event, Inquiry, Holder, QueuedExecution, Queue, Worker, Enforcement int64
}

// Fill stores something of everything.
func Fill(t *testing.T, st *store.Store) Filled {
	t.Helper()
	action := testkit.Action(t, st, "demo.sleep")
	worker := testkit.Worker(t, st, "w-1")
	testkit.Policy(t, st, action, 2)
	pack := testkit.Policy(t, st, action, 1, testkit.OfPack(action))
	testkit.Policy(t, st, action, 9, func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "rate", new(int32(60)) })
	quota := testkit.Policy(t, st, action, 9, testkit.Global,
		func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "quota", new(int32(60)) })
	state := testkit.State(t, st, action, 2, func(r *testkit.StateRow) { r.Active, r.Queued = 1, 1 })
	group := `{"tenant":"acme"}`
	testkit.State(t, st, action, 2, func(r *testkit.StateRow) { r.GroupKey = &group })
	testkit.Execution(t, st, action,
		func(r *testkit.ExecutionRow) { r.Status, r.Age = lifecycle.StatusCompleted, time.Minute })
	testkit.Exec(t, st, `update execution set admitted_at = created`)
	holder := testkit.Execution(t, st, action, func(r *testkit.ExecutionRow) {
		r.Status, r.Worker, r.AdmissionState = lifecycle.StatusRunning, &worker.ID, &state.ID
	})
	waiter := testkit.Execution(t, st, action)
	testkit.Exec(t, st, `insert into execution_admission_entry (state_id, execution_id, status, queue_order) values ($1, $2, 'queued', 1)`, state.ID, waiter.ID)
	testkit.Exec(t, st, `insert into admission_scope (kind, scope_key, max_concurrent, active_count, policy, policy_ref)
		values ('pack', $1::text, 1, 1, $2, $3)`, fmt.Sprint(action.PackID), pack.ID, pack.Ref)
	testkit.Exec(t, st, `insert into admission_scope (kind, scope_key, max_concurrent, used, policy, policy_ref, window_seconds, period_start)
		values ('quota', $1::text, 9, 9, $2, $3, 60, now())`, fmt.Sprint(quota.ID), quota.ID, quota.Ref)
	testkit.Exec(t, st,
		`insert into execution_slot (execution, scope_id) select $1, id from admission_scope where kind = 'pack'`,
		holder.ID)
	testkit.Exec(t, st, `insert into admission_blocked (state_id, ticket, reason, scope_id, until)
		select $1, 1, 'the pack is full', id, now() + interval '1 minute' from admission_scope where kind = 'pack'`, state.ID)
	testkit.Exec(t, st, `update execution_admission_state set paused = true, paused_by = 'alice', paused_at = now(), pause_reason = 'r', resumed_at = now(),
		queue_timeout_seconds = 60, max_queued = 7 where id = $1`, state.ID)
	testkit.Exec(t, st, `insert into queue_stats (action_id, queue_length) values ($1, 1)`, action.ID)
	testkit.Exec(t, st, `insert into engine_replica (id, host, version, pid, state, loops, details) values (gen_random_uuid(), 'h', 'v', 1, 'blocked',
		jsonb_build_object('recovery', now()), jsonb_build_object('clock', now(), 'http', '127.0.0.1:1', 'outbox', 2, 'round_since', now(),
			'connections', jsonb_build_array(jsonb_build_object('purpose', 'publish', 'up', true, 'blocked', true, 'reason', 'low on memory', 'since', now())),
			'consumers', jsonb_build_object('q', true), 'database_away', jsonb_build_object('from', now(), 'until', now()),
			'loops', jsonb_build_object('recovery', jsonb_build_object('patience_ns', 1, 'error', 'e'))))`)
	var deadLetter int64
	require.NoError(t, st.Pool().QueryRow(t.Context(), `insert into dead_letter (message_type, routing_key, exchange, queue, reason, action_ref, execution, worker,
			attempt, execution_status, decision, decided_by, decided_at, died, message_id, correlation_id, fingerprint, detail, body, x_death, headers, evidence)
		values ('ExecutionRequested', 'execution.dispatch.worker.1', 'attune.executions', 'worker.1.executions', 'expired', 'demo.sleep', $1, $2, 1, 'scheduled',
			'failed', 'dead_letter_handler', now(), now(), 'm', 'c', 'f', 'd', '{"a": [1, null]}', '[{"count": 1}]', '{"x": {"y": 1.5}}', '{"worker": {"id": 1}}')
		returning id`, holder.ID, worker.ID).Scan(&deadLetter))
	return Filled{
		Action: action.Ref, Policy: pack.Ref, Rule: "demo.rule", Trigger: "demo.door", Pack: "demo",
		DeadLetter: deadLetter, Workflow: Workflow(t, st), Event: Event(t, st),
		Inquiry: Inquiry(t, st, "responded", 0), Holder: holder.ID,
		QueuedExecution: waiter.ID, Queue: state.ID, Worker: worker.ID, Enforcement: 1,
	}
}

// Workflow stores a started workflow with something of everything, and returns its execution.
func Workflow(t *testing.T, st *store.Store) int64 {
	t.Helper()
	parent := testkit.Execution(t, st, testkit.ActionRow{Ref: "shop.deliver"}, func(e *testkit.ExecutionRow) {
		e.Action, e.Status = nil, lifecycle.StatusRunning
	}).ID
	workflow := testkit.Count(t, st, `
		WITH p AS (INSERT INTO pack (ref, label, version) VALUES ('shop' || $1::bigint, 'Shop', '1.0.0') RETURNING id, ref),
		d AS (INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
			SELECT p.ref || '.deliver', p.id, p.ref, 'd', '1', '{}' FROM p RETURNING id)
		INSERT INTO workflow_execution (execution, workflow_def, status, deadline, variables, current_tasks, state, task_graph)
		SELECT $1::bigint, d.id, 'running', now() + interval '1 hour', '{"order": {"id": 7}}', '{each}',
			'{"status": "running", "tasks": {"each": {"status": "running", "total": 3, "next": 1, "open": 1}, "last": {"status": "waiting", "arrived": ["x"]}}}',
			'{"nodes": {"each": {"name": "each", "task_type": "action", "action": "a.b", "input": {}, "with_items": [1, 2, 3],
				"transitions": [{"when": null, "publish": [], "do_tasks": ["last"]}], "inbound_tasks": []},
				"last": {"name": "last", "task_type": "action", "action": "a.b", "input": {}, "join": 1, "transitions": [], "inbound_tasks": ["each"]}}}'
		FROM d RETURNING id`, parent)
	child := testkit.Execution(t, st, testkit.ActionRow{Ref: "a.b"}, func(e *testkit.ExecutionRow) {
		e.Action, e.Status, e.Parent, e.WorkflowTask = nil, lifecycle.StatusRunning, &parent,
			map[string]any{"workflow_execution": workflow, "task_name": "each"}
	}).ID
	testkit.Exec(t, st, `INSERT INTO workflow_task_dispatch (workflow_execution, task_name, task_index, execution_id) VALUES ($1, 'each', 0, $2)`, workflow, child)
	testkit.Exec(t, st, `INSERT INTO workflow_log (workflow_execution, version, lines) VALUES ($1, 1, '{begins}')`,
		workflow)
	return parent
}

// Inquiry stores an execution with an inquiry of this status. An inquiry that is assigned to 0 is assigned to none.
func Inquiry(t *testing.T, st *store.Store, status string, assigned int) int64 {
	t.Helper()
	execution := testkit.Execution(t, st, testkit.ActionRow{Ref: "pk.ask"}, func(e *testkit.ExecutionRow) {
		e.Action, e.Status = nil, lifecycle.StatusRunning
	}).ID
	return int64(testkit.Count(t, st, `INSERT INTO inquiry (execution, prompt, status, assigned_to, response_schema, response, responded_at, timeout_at)
		VALUES ($1, 'deploy?', $2::inquiry_status_enum, nullif($3::bigint, 0), '{"ok": {"type": "boolean", "required": true}}',
			CASE WHEN $2 = 'responded' THEN '{"ok": true}'::jsonb END, CASE WHEN $2 = 'responded' THEN now() END, now() + interval '1 hour')
		RETURNING id`, execution, status, assigned))
}

// Event stores an event that fired a rule, with another rule that it did not fire.
func Event(t *testing.T, st *store.Store) int64 {
	t.Helper()
	pack := testkit.Pack(t, st, "demo")
	testkit.Exec(t, st, `insert into identity (login) values ('owner')`)
	testkit.Exec(t, st, `insert into trigger (ref, label, out_schema) values ('demo.door', 'x', '{"state":{"type":"string","required":true}}')`)
	testkit.Exec(t, st, `insert into rule (ref, pack, pack_ref, label, description, action_ref, trigger, trigger_ref, conditions, owner_identity, enabled)
		select r, $1, 'demo', 'x', 'd', 'demo.sleep', t.id, t.ref, '[{"field":"state","operator":"equals","value":"open"}]', i.id, true
		from trigger t, identity i, unnest(array['demo.rule', 'demo.other']) r where t.ref = 'demo.door' and i.login = 'owner'`, pack.ID)
	event := int64(testkit.Count(t, st, `insert into event (trigger_ref, payload, rule_ref, source_ref) values ('demo.door', '{"state":"shut"}', 'demo.rule', 's') returning id`))
	testkit.Exec(t, st, `insert into event_matched (event, rules, matched, failures) values ($1, 1, 1, '{f}')`, event)
	testkit.Exec(t, st, `insert into enforcement (rule, rule_ref, trigger_ref, event, payload, config, status, error, resolved_at)
		select id, ref, trigger_ref, $1, '{}', '{"a":[1,null]}', 'disabled', 'e', now() from rule where ref = 'demo.rule'`, event)
	enforcement := int64(testkit.Count(t, st, `select id from enforcement`))
	testkit.Exec(t, st,
		`insert into execution (action_ref, enforcement, status) values ('demo.sleep', $1, 'completed')`, enforcement)
	return event
}

// DeadLetter stores a dead letter with a decision, if there is one; without an execution it is about an event.
func DeadLetter(t *testing.T, st *store.Store, execution int64, decision string) int64 {
	t.Helper()
	var id int64
	err := st.Pool().QueryRow(t.Context(), `insert into dead_letter (message_type, routing_key, exchange, reason, execution, decision, decided_by, decided_at, body)
		values (CASE WHEN $1 = 0 THEN 'EventCreated' ELSE 'ExecutionRequested' END, CASE WHEN $1 = 0 THEN 'event.created' ELSE 'execution.dispatch.worker.7' END,
			'attune.executions', 'expired', nullif($1::bigint, 0), nullif($2, ''), CASE WHEN $2 <> '' THEN 'dead_letter_handler' END,
			CASE WHEN $2 <> '' THEN now() END, CASE WHEN $1 <> 0 THEN '{}'::bytea ELSE
				'{"message_type": "EventCreated", "message_id": "4f3f4f8e-1f0f-4a53-a5a8-5f1d7a3dc001",
				  "timestamp": "2026-11-21T10:00:00Z", "payload": {"event_id": 1}}' END) returning id`, execution, decision).Scan(&id)
	require.NoError(t, err)
	return id
}
