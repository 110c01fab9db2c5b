package triage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// relay records committed messages, instead of a broker.
type relay struct {
	mu       sync.Mutex
	messages []outbox.Message
	seen     func() // called after every row; may be nil
}

func (r *relay) Published(_ int64, messages []outbox.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, messages...)
	if r.seen != nil {
		r.seen()
	}
}

func (r *relay) take() []outbox.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.messages
	r.messages = nil
	return out
}

// bundle is a database with the batches of engines and an operator.
type bundle struct {
	store     *store.Store // of the operator and the test
	engines   *store.Store // of the replicas, whose lock timeouts are short
	scheduler *scheduler.Scheduler
	operator  *triage.Triage
	sent      *relay // messages of the operator
	batches   *relay // messages of the replicas

	lastEnd atomic.Int64 // storm ends no later executions, unless it is zero
}

func setup(t *testing.T) *bundle {
	t.Helper()
	databaseURL := testkit.Database(t)
	b := &bundle{
		store:   testkit.OpenStore(t, databaseURL),
		engines: testkit.OpenStore(t, databaseURL, func(c *store.Config) { c.HotPath = true }),
		sent:    &relay{}, batches: &relay{},
	}
	b.scheduler = b.replica(t)
	b.operator = triage.New(triage.Config{Actor: "ann@desk", ReportGrace: 1}, b.store, b.sent)
	return b
}

// replica returns the scheduler of another engine on the same database.
func (b *bundle) replica(t *testing.T) *scheduler.Scheduler {
	t.Helper()
	deps := scheduler.Deps{Store: b.engines, Relay: b.batches, Logger: testkit.Logger(t)}
	return scheduler.New(scheduler.Config{}, deps)
}

// limited inserts an action with a concurrency limit, and a worker with room for more, whose heartbeat stays fresh.
func (b *bundle) limited(t *testing.T, ref string, limit int, options ...func(*testkit.PolicyRow)) testkit.ActionRow {
	t.Helper()
	testkit.Worker(t, b.store, ref, func(w *testkit.WorkerRow) {
		w.Capabilities, w.HeartbeatAge = testkit.DefaultCapabilities(1000), -time.Hour
	})
	action := testkit.Action(t, b.store, ref)
	testkit.Policy(t, b.store, action, limit, options...)
	return action
}

// request inserts requested executions, in order.
func (b *bundle) request(t testing.TB, action testkit.ActionRow, n int) []int64 {
	t.Helper()
	var ids []int64
	err := b.store.Pool().QueryRow(t.Context(), `
		with made as (
			insert into execution (action, action_ref, status)
			select $1, $2, 'requested' from generate_series(1, $3) returning id)
		select array_agg(id order by id) from made`, action.ID, action.Ref, n).Scan(&ids)
	require.NoError(t, err)
	return ids
}

// requestIn inserts a requested execution with this value of the parameter tenant.
func (b *bundle) requestIn(t testing.TB, action testkit.ActionRow, tenant string) int64 {
	t.Helper()
	return testkit.Execution(t, b.store, action,
		func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": tenant} }).ID
}

func byTenant(p *testkit.PolicyRow) { p.Parameters = []string{"tenant"} }

// dispatch runs a batch with these requests, and further batches until no queue can be filled.
func (b *bundle) dispatch(t testing.TB, ids ...int64) scheduler.Result {
	t.Helper()
	result, err := b.scheduler.Run(t.Context(), scheduler.FillStep{}, scheduler.NewRequestStep(ids))
	require.NoError(t, err)
	for unfilled := result.Unfilled; len(unfilled) > 0; {
		more, err := b.scheduler.Run(t.Context(), scheduler.FillStep{Queues: unfilled})
		require.NoError(t, err)
		result.Granted += more.Granted
		unfilled = more.Unfilled
	}
	result.Unfilled = nil
	return result
}

// finish ends executions as a worker does, and runs the batch with their completions.
func (b *bundle) finish(t testing.TB, ids ...int64) scheduler.Result {
	t.Helper()
	testkit.Exec(t, b.store, `update execution set status = 'completed' where id = any($1)`, ids)
	result, err := b.scheduler.Run(t.Context(), scheduler.NewReleaseStep(ids), scheduler.FillStep{})
	require.NoError(t, err)
	return result
}

// holders lists the executions of an action that hold a slot.
func (b *bundle) holders(t testing.TB, action testkit.ActionRow) []int64 {
	t.Helper()
	return b.ids(t, `select coalesce(array_agg(e.id order by e.id), '{}') from execution_holder h join execution e on e.id = h.execution
		where e.action = $1`, action.ID)
}

// waiting lists the queued executions of an action, in their order.
func (b *bundle) waiting(t testing.TB, action testkit.ActionRow) []int64 {
	t.Helper()
	return b.ids(t, `select coalesce(array_agg(q.execution_id order by q.state_id, q.queue_order), '{}')
		from execution_admission_entry q join execution_admission_state s on s.id = q.state_id where s.action_id = $1`, action.ID)
}

func (b *bundle) ids(t testing.TB, sql string, args ...any) (ids []int64) {
	t.Helper()
	require.NoError(t, b.store.Pool().QueryRow(t.Context(), sql, args...).Scan(&ids), sql)
	return ids
}

func (b *bundle) override(t *testing.T, request triage.Override) *triage.OverrideReceipt {
	t.Helper()
	receipt, err := b.operator.Override(testkit.Context(t), request)
	require.NoError(t, err)
	return receipt
}

func (b *bundle) pause(t *testing.T, action testkit.ActionRow) *triage.OverrideReceipt {
	t.Helper()
	return b.override(t, triage.Override{Target: triage.Target{Action: action.Ref}, Act: triage.Pause})
}

func (b *bundle) resume(t *testing.T, action testkit.ActionRow) *triage.OverrideReceipt {
	t.Helper()
	return b.override(t, triage.Override{Target: triage.Target{Action: action.Ref}, Act: triage.Resume})
}

func (b *bundle) limit(t *testing.T, action testkit.ActionRow, n int) *triage.OverrideReceipt {
	t.Helper()
	return b.override(t, triage.Override{Target: triage.Target{Action: action.Ref}, Act: triage.Limit, Limit: n})
}

func (b *bundle) planClear(t *testing.T, action testkit.ActionRow) *triage.ClearPlan {
	t.Helper()
	plan, err := b.operator.PlanClear(testkit.Context(t),
		triage.ClearRequest{Target: triage.Target{Action: action.Ref}})
	require.NoError(t, err)
	return plan
}

// nudged lists the executions whose requests the operator has sent again.
func (b *bundle) nudged(t *testing.T) []int64 {
	t.Helper()
	var ids []int64
	for _, m := range b.sent.take() {
		if m.Type != message.TypeExecutionRequested {
			continue
		}
		require.Equal(t, message.KeyExecutionRequested, m.RoutingKey)
		sent, err := message.Decode[message.ExecutionRequested](m.Body)
		require.NoError(t, err)
		ids = append(ids, sent.Payload.ExecutionID)
	}
	return ids
}

// auditRow is a row of operator_audit.
type auditRow struct {
	Actor, Action, TargetType, Target, Reason, Outcome string
	TargetID                                           *int64
	Request                                            json.RawMessage
}

func (b *bundle) audit(t testing.TB, id int64) auditRow {
	t.Helper()
	var a auditRow
	err := b.store.Pool().QueryRow(t.Context(), `
		select actor, action, target_type, target, coalesce(reason, ''), outcome, target_id, request
		from operator_audit where id = $1`, id,
	).Scan(&a.Actor, &a.Action, &a.TargetType, &a.Target, &a.Reason, &a.Outcome, &a.TargetID, &a.Request)
	require.NoError(t, err)
	return a
}

// invariants checks the invariants, except the age of messages, because no relay publishes them here.
func (b *bundle) invariants(t testing.TB) {
	t.Helper()
	testkit.Exec(t, b.store, `update outbox set created = now()`)
	testkit.Invariants(t, b.store)
}

// storm runs the batches of several replicas until the context ends. Each replica ends its share of the scheduled
// executions up to lastEnd, releases their slots and fills the queues.
func (b *bundle) storm(ctx context.Context, t *testing.T, action testkit.ActionRow, replicas int) (wait func()) {
	t.Helper()
	var group sync.WaitGroup
	for n := range replicas {
		replica := b.replica(t)
		group.Go(func() {
			for ctx.Err() == nil {
				var ids []int64
				err := b.store.Pool().QueryRow(ctx, `
					with ended as (
						update execution set status = 'completed'
						where status = 'scheduled' and action = $1 and id % $2 = $3 and (id <= $4 or $4 = 0) returning id)
					select coalesce(array_agg(id), '{}') from ended`,
					action.ID, replicas, n, b.lastEnd.Load()).Scan(&ids)
				if err == nil {
					_, err = replica.Run(ctx, scheduler.NewReleaseStep(ids), scheduler.FillStep{})
				}
				if err != nil && ctx.Err() == nil {
					panic(fmt.Sprintf("replica %d: %v", n, err))
				}
			}
		})
	}
	return group.Wait
}
