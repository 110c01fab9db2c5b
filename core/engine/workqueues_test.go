package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// workQueueSum is a checksum over every row of the tables of work queues, and over
// their triggers, columns, indexes and constraints.
const workQueueSum = `select md5(string_agg(line, E'\n' order by line)) from (
	select 'q ' || to_jsonb(q)::text from work_queue q
	union all select 'i ' || to_jsonb(i)::text from work_queue_item i
	union all select 'd ' || to_jsonb(d)::text from work_queue_dispatch d
	union all select 't ' || pg_get_triggerdef(oid) from pg_trigger where tgrelid in ('work_queue'::regclass, 'work_queue_item'::regclass, 'work_queue_dispatch'::regclass) and not tgisinternal
	union all select 'c ' || attrelid::regclass || attname || atttypid::regtype from pg_attribute
		where attrelid in ('work_queue'::regclass, 'work_queue_item'::regclass, 'work_queue_dispatch'::regclass) and attnum > 0 and not attisdropped
	union all select 'x ' || indexdef from pg_indexes where tablename like 'work_queue%'
	union all select 'k ' || conrelid::regclass || pg_get_constraintdef(oid) from pg_constraint
		where conrelid in ('work_queue'::regclass, 'work_queue_item'::regclass, 'work_queue_dispatch'::regclass)) all_of_it (line)`

// An existing installation keeps its work queues unchanged through adoption, traffic and hand-back. Executions
// dispatched by a work queue run like others.
func TestWorkQueuesOfAnInstallationStayAsTheyAre(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	database := testkit.Installation(t, installation.Newest)
	opts := migrations.Options{URL: database, Schema: testkit.Schema, WithoutWorkQueues: true}
	st := testkit.OpenStore(t, database)
	exec := func(sql string) { t.Helper(); testkit.Exec(t, st, sql) }
	exec(`insert into pack (ref, label, version) values ('jobs', 'Jobs', '1.0.0')`)
	exec(`insert into action (ref, pack, pack_ref, label, entrypoint) select 'jobs.run', id, ref, 'Run', 'core.noop' from pack`)
	exec(`insert into work_queue (ref, label, dispatch_action, dispatch_action_ref) select 'jobs.import', 'Import', id, ref from action`)
	exec(`insert into execution (action, action_ref, config, status) select id, ref, '{"item": 1}', 'requested' from action`)
	exec(`insert into work_queue_item (queue, queue_ref, payload, enqueue_source, status) select id, ref, '{"n": 1}', 'api', 'queued' from work_queue, generate_series(1, 3)`)
	exec(`insert into work_queue_item (queue, queue_ref, payload, enqueue_source, status, leased_execution, lease_token, lease_expires_at, attempt_count)
		select q.id, q.ref, '{"n": 2}', 'api', 'leased', e.id, gen_random_uuid(), now() + interval '1 day', 1 from work_queue q, execution e`)
	exec(`insert into work_queue_dispatch (queue, queue_ref, execution, status, leased_item_count) select q.id, q.ref, e.id, 'dispatched', 1 from work_queue q, execution e`)
	sum := func() (sum string) {
		t.Helper()
		require.NoError(t, st.Pool().QueryRow(ctx, workQueueSum).Scan(&sum))
		return sum
	}
	before := sum()

	_, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.Equal(t, before, sum(), "adoption")

	b := setupOn(t, database)
	e, err := engine.New(ctx, b.config(), engine.Deps{Logger: testkit.Logger(t), Version: "test"})
	require.NoError(t, err)
	require.NoError(t, e.Start(ctx))
	t.Cleanup(func() { require.NoError(t, e.Stop(context.WithoutCancel(ctx))) })
	testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: b.AMQP, DatabaseURL: database,
		Behave: func(context.Context, testkit.Job) testkit.Answer {
			items := []any{map[string]any{"id": 4, "status": "completed"}}
			return testkit.Answer{Result: map[string]any{"queue_ack": map[string]any{"items": items}}}
		},
	})
	leased := int64(testkit.Count(t, st, `select execution from work_queue_dispatch`))
	body, err := message.New(message.TypeExecutionRequested,
		message.ExecutionRequested{ExecutionID: leased, ActionRef: "jobs.run"},
		time.Now(), "executor-queue-dispatcher").Encode()
	require.NoError(t, err)
	sent := b.connect(t, "old").Publisher().Publish(ctx, []broker.Message{{
		ID: "dispatched", Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionRequested,
		Type: message.TypeExecutionRequested, Body: body,
	}})
	require.NoError(t, sent[0].Err)
	ids := b.request(t, "jobs.run", 20, `{}`)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, `select count(*) from execution where status = 'completed'`) == len(ids)+1
	}, 60*time.Second, "executions of a work queue end like all others")
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, st, leased))
	testkit.Invariants(t, st)
	require.Equal(t, before, sum(), "traffic")

	// The alert of the running engine names the queue.
	view := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil)
	var fired alerting.Alert
	testkit.Eventually(t, func() bool {
		alerts, err := view.Alerts(ctx)
		require.NoError(t, err)
		for _, a := range alerts.Open {
			if a.Rule == "work_queue_waits" && alerts.Evaluated {
				fired = a
				return true
			}
		}
		return false
	}, 60*time.Second, "the alert fires")
	require.Equal(t, "jobs.import", fired.Target)
	require.Equal(t, "4 items of work queue jobs.import wait", fired.Summary)
	require.Contains(t, fired.Hint, "for an engine that dispatches them: 3 items wait, 1 is leased, the oldest for ")
	why, err := view.Why(ctx, leased)
	require.NoError(t, err)
	require.Contains(t, why.Lines[len(why.Lines)-1], "Work queue jobs.import dispatched it with 1 item.")

	require.NoError(t, e.Stop(ctx))
	_, err = migrations.Down(ctx, opts, 0)
	require.NoError(t, err)
	require.Equal(t, before, sum(), "hand-back")
}
