package testkit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/installation/worker"
	"github.com/attune-go/attune/lab/query"
)

// Pooler is the part of a store that factories need: its pool, with the platform's schema on the search path.
type Pooler interface{ Pool() *pgxpool.Pool }

// PackRow is a pack of the factory.
type PackRow struct {
	ID  int64
	Ref string
}

// Pack inserts a pack, or returns the existing one with the ref.
func Pack(t testing.TB, st Pooler, ref string) PackRow {
	t.Helper()
	row := PackRow{Ref: ref}
	row.ID = insert(t, st, `
		insert into pack (ref, label, version) values ($1, $1, '1.0.0')
		on conflict (ref) do update set label = excluded.label returning id`, ref)
	return row
}

// ActionRow is an action of the factory, which sets ID and PackID.
type ActionRow struct {
	ID, PackID              int64
	Ref                     string
	Entrypoint              string
	Runtime                 *int64
	ParamSchema             any
	TimeoutSeconds          *int32
	ScheduledTimeoutSeconds *int32
	MaxRetries              int32
	WorkflowDef             *int64
	RequiredWorkerRuntimes  any
	WorkerSelector          any
	WorkerTolerations       any
	WorkerAffinity          any
}

// Action inserts an action, and its pack if it is missing: "demo.sleep" is in pack "demo". Options change the
// row before the insert.
func Action(t testing.TB, st Pooler, ref string, options ...func(*ActionRow)) ActionRow {
	t.Helper()
	packRef, _, ok := strings.Cut(ref, ".")
	require.True(t, ok, "action reference %q has no dot", ref)
	row := ActionRow{
		Ref: ref, Entrypoint: "run.sh", PackID: Pack(t, st, packRef).ID,
		RequiredWorkerRuntimes: struct{}{}, WorkerSelector: struct{}{}, WorkerTolerations: []any{},
		WorkerAffinity: struct{}{},
	}
	for _, option := range options {
		option(&row)
	}
	row.ID = insert(t, st, `
		insert into action (ref, pack, pack_ref, label, entrypoint, runtime, param_schema, timeout_seconds,
			scheduled_timeout_seconds, max_retries, workflow_def, required_worker_runtimes,
			worker_selector, worker_tolerations, worker_affinity)
		values ($1, $2, $3, $1, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) returning id`,
		row.Ref, row.PackID, packRef, row.Entrypoint, row.Runtime, jsonValue(t, row.ParamSchema), row.TimeoutSeconds,
		row.ScheduledTimeoutSeconds, row.MaxRetries, row.WorkflowDef, jsonValue(t, row.RequiredWorkerRuntimes),
		jsonValue(t, row.WorkerSelector), jsonValue(t, row.WorkerTolerations), jsonValue(t, row.WorkerAffinity))
	return row
}

// PolicyRow is a policy of the factory.
type PolicyRow struct {
	ID                  int64
	Ref                 string
	Kind                string // concurrency, rate or quota
	Pack                *int64
	Action              *int64
	ActionRef           *string
	Parameters          []string
	Method              string // enqueue or cancel
	Threshold           int32
	WindowSeconds       *int32
	Burst               *int32
	MaxQueueLength      *int32
	QueueTimeoutSeconds *int32
	RetryPlace          *string
	AdaptiveMin         *int32
	AdaptiveLatencyMS   *int32
}

// OfPack makes the policy one of the action's whole pack.
func OfPack(action ActionRow) func(*PolicyRow) {
	return func(p *PolicyRow) { p.Pack, p.Action, p.ActionRef = &action.PackID, nil, nil }
}

// Global makes the policy one of all actions.
func Global(p *PolicyRow) { p.Pack, p.Action, p.ActionRef = nil, nil, nil }

// Policy inserts a policy that limits the running executions of the action; further ones wait. Options change the
// row before the insert, for example to a policy of the pack or of a parameter value.
func Policy(t testing.TB, st Pooler, action ActionRow, limit int, options ...func(*PolicyRow)) PolicyRow {
	t.Helper()
	row := PolicyRow{
		Ref: strings.Replace(uniqueName("policy.p"), "_", "x", 1), Action: &action.ID, ActionRef: &action.Ref,
		Kind: "concurrency", Parameters: []string{}, Method: "enqueue", Threshold: int32(limit),
	}
	for _, option := range options {
		option(&row)
	}
	row.ID = insert(t, st, `
		insert into policy (ref, pack, action, action_ref, parameters, method, threshold, name, kind, window_seconds, burst,
			max_queue_length, queue_timeout_seconds, retry_place, adaptive_min, adaptive_latency_ms)
		values ($1, $2, $3, $4, $5, $6::text::policy_method_enum, $7, $1, $8, $9, $10, $11, $12, $13, $14, $15) returning id`,
		row.Ref, row.Pack, row.Action, row.ActionRef, row.Parameters, row.Method, row.Threshold, row.Kind,
		row.WindowSeconds, row.Burst, row.MaxQueueLength, row.QueueTimeoutSeconds, row.RetryPlace, row.AdaptiveMin,
		row.AdaptiveLatencyMS)
	return row
}

// WorkerRow is a worker of the factory.
type WorkerRow struct {
	ID           int64
	Name         string
	Role         string // action or sensor
	Status       string // active, inactive, busy or error
	Capabilities map[string]any
	HeartbeatAge time.Duration // by the database's clock; with a negative one the worker stays fresh for that long
	NoHeartbeat  bool
	Cordoned     bool
	Draining     bool
}

// Worker inserts an active worker with a fresh heartbeat and every runtime. It has no process; StartFakeWorker
// starts one.
func Worker(t testing.TB, st Pooler, name string, options ...func(*WorkerRow)) WorkerRow {
	t.Helper()
	row := WorkerRow{Name: name, Role: "action", Status: "active", Capabilities: DefaultCapabilities(10)}
	for _, option := range options {
		option(&row)
	}
	row.ID = insert(t, st, `
		insert into worker (name, worker_type, worker_role, status, capabilities, last_heartbeat, heartbeat_seen, cordoned, draining)
		values ($1, 'local', $2::text::worker_role_enum, $3::text::worker_status_enum, $4,
			case when $5::bool then null else now() - make_interval(secs => $6::float8) end,
			now() - make_interval(secs => $6::float8), $7, $8) returning id`,
		row.Name, row.Role, row.Status, jsonValue(t, row.Capabilities),
		row.NoHeartbeat, row.HeartbeatAge.Seconds(), row.Cordoned, row.Draining)
	return row
}

// DefaultCapabilities are the capabilities of a worker by default.
func DefaultCapabilities(concurrency int) map[string]any { return worker.Capabilities(concurrency) }

// ExecutionRow is an execution of the factory.
type ExecutionRow struct {
	ID                int64
	Action            *int64
	ActionRef         string
	Config            any
	Parent            *int64
	Enforcement       *int64
	Worker            *int64
	Status            lifecycle.Status
	Result            any
	WorkflowTask      any
	RetryCount        int32
	MaxRetries        *int32
	RetryReason       *string
	OriginalExecution *int64
	AdmissionState    *int64
	Attempt           int32
	Priority          *int16
	Age               time.Duration // since its creation and update
}

// Execution inserts an execution of the action, by default requested, and its slot if an option names a queue. It
// writes no queue entry, counter or message.
func Execution(t testing.TB, st Pooler, action ActionRow, options ...func(*ExecutionRow)) ExecutionRow {
	t.Helper()
	row := ExecutionRow{Action: &action.ID, ActionRef: action.Ref, Status: lifecycle.StatusRequested}
	for _, option := range options {
		option(&row)
	}
	row.ID = insert(t, st, `
		with made as (insert into execution (action, action_ref, config, parent, enforcement, worker, status, result, workflow_task,
			retry_count, max_retries, retry_reason, original_execution, attempt, priority, created,
			updated, started_at, finished_at)
		select $1, $2, $3, $4, $5, $6, s.status, $8, $9, $10, $11, $12, $13, $15, $17, a.at, a.at,
			case when s.status in ('requested', 'scheduling', 'scheduled') then null else a.at end,
			case when s.status in ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') then a.at end
		from (select $7::text::execution_status_enum) s (status),
			(select now() - make_interval(secs => $16::float8)) a (at)
		returning id, worker, attempt, created), held as (insert into execution_holder (execution, state_id, worker, attempt, granted_at)
		select m.id, $14::bigint, m.worker, m.attempt, m.created from made m where $14::bigint is not null)
		select id from made`,
		row.Action, row.ActionRef, jsonValue(t, row.Config), row.Parent, row.Enforcement, row.Worker,
		string(row.Status), jsonValue(t, row.Result), jsonValue(t, row.WorkflowTask), row.RetryCount, row.MaxRetries,
		row.RetryReason,
		row.OriginalExecution, row.AdmissionState, row.Attempt, row.Age.Seconds(), row.Priority)
	return row
}

// StateRow is the admission state of an action's queue of the factory.
type StateRow struct {
	ID            int64
	Action        int64
	GroupKey      *string
	MaxConcurrent int32
	Unlimited     bool
	Paused        bool
	Active        int32
	Queued        int32
}

// State inserts the admission state of an action with the given limit. Options set its counters, right or wrong.
func State(t testing.TB, st Pooler, action ActionRow, limit int, options ...func(*StateRow)) StateRow {
	t.Helper()
	row := StateRow{Action: action.ID, MaxConcurrent: int32(limit)}
	for _, option := range options {
		option(&row)
	}
	row.ID = insert(t, st, `
		insert into execution_admission_state (action_id, group_key, max_concurrent, unlimited, paused, active_count, queued_count)
		values ($1, $2, $3, $4, $5, $6, $7) returning id`,
		row.Action, row.GroupKey, row.MaxConcurrent, row.Unlimited, row.Paused, row.Active, row.Queued)
	return row
}

// Hold gives an execution a slot of a queue, for the worker and the attempt of its row. It writes no counter.
func Hold(t testing.TB, st Pooler, execution, state int64) {
	t.Helper()
	Exec(t, st, `insert into execution_holder (execution, state_id, worker, attempt, granted_at)
		select id, $2, worker, attempt, now() from execution where id = $1
		on conflict (execution) do update set state_id = excluded.state_id, worker = excluded.worker, attempt = excluded.attempt`,
		execution, state)
}

// StatusOf reads an execution's status.
func StatusOf(t testing.TB, st Pooler, execution int64) lifecycle.Status {
	t.Helper()
	var status string
	err := st.Pool().QueryRow(t.Context(), `select status::text from execution where id = $1`, execution).Scan(&status)
	require.NoError(t, err, "status of execution %d", execution)
	return lifecycle.Status(status)
}

// Count returns the number that a query selects.
func Count(t testing.TB, st Pooler, sql string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, st.Pool().QueryRow(t.Context(), sql, args...).Scan(&n), sql)
	return n
}

// Column returns the values that a query selects.
func Column[T any](t testing.TB, conn query.Conn, sql string, args ...any) []T {
	t.Helper()
	values, err := query.Column[T](Context(t), conn, sql, sql, args...)
	require.NoError(t, err)
	return values
}

// Exec runs a statement that must succeed, and returns the number of changed rows.
func Exec(t testing.TB, st Pooler, sql string, args ...any) int {
	t.Helper()
	tag, err := st.Pool().Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
	return int(tag.RowsAffected())
}

// RefuseUpdates makes every update of an execution fail, as a trigger of an installation may. A test uses it once.
func RefuseUpdates(t testing.TB, st Pooler, execution int64) {
	t.Helper()
	Exec(t, st, fmt.Sprintf(`
		CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE 'payload string too long' USING ERRCODE = '22023'; END $$;
		CREATE TRIGGER refuse_update BEFORE UPDATE ON execution FOR EACH ROW WHEN (OLD.id = %d)
			EXECUTE FUNCTION refuse_update()`, execution))
}

func insert(t testing.TB, st Pooler, sql string, args ...any) int64 {
	t.Helper()
	rows, err := st.Pool().Query(t.Context(), sql, args...)
	require.NoError(t, err, sql)
	id, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	require.NoError(t, err, sql)
	return id
}

// jsonValue encodes a value. For nil it returns nil, so that the column is NULL and not JSON null.
func jsonValue(t testing.TB, value any) any {
	t.Helper()
	if value == nil {
		return nil
	}
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	return string(raw)
}
