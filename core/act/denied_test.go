package act_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// wired connects a broker user.
func wired(t *testing.T, amqp, management string) *broker.Broker {
	t.Helper()
	wire := broker.New(broker.Config{URL: amqp, ManagementURL: management, ConnectionName: "test"},
		testkit.Logger(t), nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	return wire
}

// crowded is a broker whose queues seem to have enough messages for a purge.
type crowded struct{ *broker.Broker }

func (c crowded) QueueState(ctx context.Context, name string) (broker.QueueState, error) {
	state, err := c.Broker.QueueState(ctx, name)
	state.Ready += triage.PurgeOffered + 1
	return state, err
}

// by makes operators with logins of roles in the database and on the broker: one for purges, one for the others.
func (b *bundle) by(database, onBroker roles.Role, amqp string) func(act.Kind) *act.Operator {
	b.t.Helper()
	at := b.store.Pool().Config().ConnString()
	l, wire := testkit.NewLogin(b.t, database, at, amqp), testkit.NewLogin(b.t, onBroker, at, amqp)
	connected := wired(b.t, wire.AMQPURL, wire.ManagementURL)
	most, purges := b.with(l.DatabaseURL, connected), b.with(l.DatabaseURL, crowded{connected})
	return func(kind act.Kind) *act.Operator {
		if kind == act.PurgeBroker {
			return purges
		}
		return most
	}
}

// with makes an operator on a database and a broker.
func (b *bundle) with(database string, wire triage.WorkerQueues) *act.Operator {
	b.t.Helper()
	st := testkit.OpenStore(b.t, database)
	acts := triage.New(triage.Config{Actor: "ann@desk", Source: "attune-tui", Pace: time.Microsecond}, st, nil)
	return act.New(act.Config{
		WithBroker: func(context.Context) (*triage.Triage, func(), error) { return acts.With(wire), func() {}, nil },
	}, acts, alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil))
}

// requests returns a request of each kind, on rows that it can change.
func (b *bundle) requests() map[act.Kind]act.Request {
	queue := func(ref, change string) act.Target {
		action := testkit.Action(b.t, b.store, ref)
		testkit.State(b.t, b.store, action, 1)
		testkit.Exec(b.t, b.store, `update execution_admission_state set `+change+` where action_id = $1`, action.ID)
		return act.Target{ID: action.ID, Action: ref, Name: ref}
	}
	ended := func(ref string) act.Target {
		e := testkit.Execution(b.t, b.store, testkit.Action(b.t, b.store, ref),
			func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusFailed })
		return act.Target{ID: e.ID, Ref: ref}
	}
	waiting := func(ref string) act.Target {
		_, ids := b.waiting(ref, 2)
		return act.Target{ID: ids[1], Ref: ref, Action: ref}
	}
	worker := func(name, change string) act.Target {
		w := testkit.Worker(b.t, b.store, name)
		testkit.Exec(b.t, b.store, `update worker set `+change+` where id = $1`, w.ID)
		return act.Target{ID: w.ID, Ref: name, Name: name}
	}
	deadLetter := func(decision string) act.Target {
		w := testkit.Worker(b.t, b.store, fmt.Sprint("dead-letters-", len(decision), time.Now().UnixNano()))
		var id int64
		failed := ended(fmt.Sprint("pk.dead_letter", time.Now().UnixNano()))
		require.NoError(b.t, b.store.Pool().QueryRow(b.t.Context(), `insert into dead_letter (message_type, exchange,
				routing_key,
				queue, reason, action_ref, execution, worker, attempt, body, decision, decided_by, decided_at, evidence)
			values ('EventCreated', 'attune.events', 'event.created', 'attune.executor.events.queue', 'rejected', 'x', $1, $2, 1,
				'{"message_type": "EventCreated", "message_id": "4f3f4f8e-1f0f-4a53-a5a8-5f1d7a3dc001",
				  "timestamp": "2026-11-21T10:00:00Z", "payload": {"event_id": 1}}', nullif($3, ''),
				case when $3 <> '' then 'ann' end, case when $3 <> '' then now() end,
				'{"taken": {"queue": "attune.dlx.queue"}}') returning id`,
			failed.ID, w.ID, decision).Scan(&id))
		return act.Target{ID: id}
	}
	paused := b.workflow("shop.paused")
	testkit.Exec(b.t, b.store, `update workflow_execution set paused = true where execution = $1`, paused)
	over := b.workflow("shop.over")
	task := b.child(over, lifecycle.StatusFailed, true)
	testkit.Exec(b.t, b.store, `update workflow_execution set status = 'failed', open = false where execution = $1`, over)
	testkit.Exec(b.t, b.store, `update execution set status = 'failed' where id = $1`, over)
	asking := testkit.Execution(b.t, b.store, testkit.Action(b.t, b.store, "pk.ask"),
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning })
	var inquiry int64
	require.NoError(b.t, b.store.Pool().QueryRow(b.t.Context(),
		`insert into inquiry (execution, prompt, response_schema)
			values ($1, 'Go on?', '{"ok": {"type": "boolean"}}') returning id`, asking.ID).Scan(&inquiry))
	deadLetters := func(kind act.Kind, one act.Target) act.Request {
		return act.Request{Kind: kind, Target: one, Targets: []act.Target{one, deadLetter("")}}
	}
	testkit.Exec(b.t, b.store, `insert into rule (ref, pack, pack_ref, label, action_ref, trigger_ref, enabled)
		select r, p.id, p.ref, 'Rule', 'pk.ask', 'pk.door', r = 'pk.on' from pack p, unnest(array['pk.on', 'pk.off']) r
		where p.ref = 'pk'`)
	_, ids := b.waiting("pk.moved", 3)
	moved, err := triage.New(triage.Config{}, b.store, nil).Move(b.t.Context(),
		triage.MoveRequest{Act: triage.MoveFront, IDs: ids[2:]})
	require.NoError(b.t, err)
	list := []act.Request{
		{Kind: act.CancelExecution, Target: waiting("pk.cancel")},
		{Kind: act.CancelTree, Target: waiting("pk.tree")},
		{Kind: act.RetryExecution, Target: ended("pk.retry")},
		{Kind: act.FrontExecution, Target: waiting("pk.front")},
		{Kind: act.LaneExecution, Target: waiting("pk.lane"), Values: map[string]string{act.FieldLane: "low"}},
		{Kind: act.PutBackExecutions, Target: act.Target{ID: moved.Audit}},
		{Kind: act.PauseQueue, Target: queue("pk.pause", "paused = false")},
		{Kind: act.ResumeQueue, Target: queue("pk.resume", "paused = true")},
		{
			Kind: act.LimitQueue, Target: queue("pk.limit", "paused = false"),
			Values: map[string]string{act.FieldLimit: "3"},
		},
		{Kind: act.ResetQueue, Target: queue("pk.reset", "limit_override = 4")},
		{Kind: act.ClearQueue, Target: waiting("pk.clear")},
		{Kind: act.RepairQueue, Target: queue("pk.repair", "active_count = 3")},
		{Kind: act.CordonWorker, Target: worker("w-cordon", "cordoned = false")},
		{Kind: act.UncordonWorker, Target: worker("w-uncordon", "cordoned = true, cordoned_at = now()")},
		{Kind: act.DrainWorker, Target: worker("w-drain", "cordoned = false")},
		{Kind: act.ForgetWorker, Target: worker("w-forget", "status = 'inactive', last_heartbeat = NULL")},
		{Kind: act.PauseWorkflow, Target: act.Target{ID: b.workflow("shop.pause")}},
		{Kind: act.ResumeWorkflow, Target: act.Target{ID: paused}},
		{Kind: act.CancelWorkflow, Target: act.Target{ID: b.workflow("shop.cancel")}},
		{Kind: act.RetryWorkflow, Target: act.Target{ID: over}},
		{Kind: act.RetryTask, Target: act.Target{ID: task}},
		{
			Kind: act.AnswerInquiry, Target: act.Target{ID: inquiry},
			Values: map[string]string{act.FieldAnswer + "ok": "yes"},
		},
		{Kind: act.RequeueDeadLetter, Target: deadLetter("")},
		{Kind: act.DiscardDeadLetter, Target: deadLetter("")},
		{Kind: act.DiscardAllDeadLetters},
		deadLetters(act.UndoDeadLetters, deadLetter("discarded")),
		deadLetters(act.ReturnDeadLetters, deadLetter("")),
		{Kind: act.TakeDeadLetters},
		{Kind: act.EnableRule, Target: act.Target{Ref: "pk.off"}},
		{Kind: act.DisableRule, Target: act.Target{Ref: "pk.on"}},
		{Kind: act.PurgeBroker, Target: act.Target{Name: message.QueueDeadLetter}},
	}
	send := deadLetters(act.SendDeadLetters, deadLetter(""))
	send.Values = map[string]string{act.FieldExchange: message.ExchangeEvents, act.FieldKey: message.KeyEventCreated}
	requests := map[act.Kind]act.Request{act.SendDeadLetters: send}
	for _, request := range list {
		requests[request.Kind] = request
	}
	return requests
}

// content is a checksum of each table.
func (b *bundle) content() map[string]string {
	b.t.Helper()
	tables := testkit.Column[string](b.t, b.store.Pool(), `
		SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace
		AND c.relkind IN ('r', 'p') AND NOT c.relispartition`)
	sums := map[string]string{}
	for _, table := range tables {
		var sum string
		require.NoError(b.t, b.store.Pool().QueryRow(b.t.Context(),
			`SELECT coalesce(md5(string_agg(md5(x::text), '' ORDER BY x::text)), '') FROM `+table+` x`).Scan(&sum))
		sums[table] = sum
	}
	return sums
}

// withDeadLetters makes a virtual host with one message in the queue of dead letters.
func withDeadLetters(t *testing.T) string {
	t.Helper()
	amqp := testkit.VHost(t)
	owner := wired(t, amqp, testkit.ManagementURL(t))
	require.NoError(t, owner.DeclareExecutor(testkit.Context(t)))
	for _, outcome := range owner.Publisher().Publish(testkit.Context(t), []broker.Message{{
		ID: "4f3f4f8e-1f0f-4a53-a5a8-5f1d7a3dc009", RoutingKey: message.QueueDeadLetter, Type: "Odd",
		Body: []byte(`{}`),
	}}) {
		require.Equal(t, broker.Confirmed, outcome.Status, "%v", outcome.Err)
	}
	return amqp
}

// A read-only login is refused each action in one line that names the role, and nothing changes.
func TestEveryActionIsRefusedToAViewer(t *testing.T) {
	b := setup(t)
	amqp := withDeadLetters(t)
	viewer, requests := b.by(roles.Viewer, roles.Viewer, amqp), b.requests()
	before := b.content()
	for _, kind := range act.Kinds() {
		request, known := requests[kind]
		require.True(t, known, "%s needs a request here", kind)
		refused := b.refusal(viewer(kind), request)
		require.Contains(t, refused, "acting needs the role operator", "%s", kind)
		require.NotContains(t, refused, "SQLSTATE", "%s", kind)
		require.NotContains(t, refused, "\n", "%s", kind)
	}
	require.Equal(t, before, b.content(), "nothing has changed")
	state, err := wired(t, amqp, testkit.ManagementURL(t)).QueueState(t.Context(), message.QueueDeadLetter)
	require.NoError(t, err)
	require.Equal(t, 1, state.Ready, "the queue has not changed")
}

// refusal plans and runs an act, which must be refused, and returns the reason.
func (b *bundle) refusal(o *act.Operator, request act.Request) string {
	b.t.Helper()
	plan, err := o.Plan(b.t.Context(), request)
	if err != nil {
		return err.Error()
	}
	require.Empty(b.t, plan.Nothing, "%s", request.Kind)
	receipt, err := o.Run(b.t.Context(), plan, "a test", &act.Progress{})
	if err != nil {
		return err.Error()
	}
	require.NotEmpty(b.t, receipt.Lines, "%s was done: %s", request.Kind, receipt.Text)
	lines := make([]string, len(receipt.Lines))
	for i, line := range receipt.Lines {
		lines[i] = line.Text
	}
	return strings.Join(lines, "; ")
}

// The role operator is enough for every action.
func TestEveryActionIsPermittedToAnOperator(t *testing.T) {
	b := setup(t)
	amqp := withDeadLetters(t)
	by, requests := b.by(roles.Operator, roles.Operator, amqp), b.requests()
	// These leave nothing for the others.
	last := []act.Kind{act.TakeDeadLetters, act.PurgeBroker, act.DiscardAllDeadLetters}
	others := slices.DeleteFunc(act.Kinds(), func(kind act.Kind) bool { return slices.Contains(last, kind) })
	for _, kind := range append(others, last...) {
		o := by(kind)
		plan, err := o.Plan(t.Context(), requests[kind])
		require.NoError(t, err, "%s", kind)
		require.Empty(t, plan.Nothing, "%s", kind)
		receipt, err := o.Run(t.Context(), plan, "a test", &act.Progress{})
		require.NoError(t, err, "%s", kind)
		require.False(t, receipt.Partly, "%s: %s %v", kind, receipt.Text, receipt.Lines)
	}
}

// Where only the broker refuses, the reason is as short.
func TestActionsOnQueuesAreRefusedByTheBroker(t *testing.T) {
	b := setup(t)
	by, requests := b.by(roles.Operator, roles.Viewer, withDeadLetters(t)), b.requests()
	for _, kind := range []act.Kind{act.TakeDeadLetters, act.PurgeBroker, act.ForgetWorker} {
		require.Contains(t, strings.ToLower(b.refusal(by(kind), requests[kind])), "the broker user of this program "+
			"may not do that: acting needs the role operator, see `attune-executor doctor --as operator`", "%s", kind)
	}
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from worker where name = 'w-forget'`))
}
