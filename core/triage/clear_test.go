package triage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// ends counts the completions that the operator has sent, by execution.
func (b *bundle) ends(t *testing.T) map[int64]int {
	t.Helper()
	ends := map[int64]int{}
	for _, m := range b.sent.take() {
		if m.Type != message.TypeExecutionCompleted {
			continue
		}
		require.Equal(t, message.KeyExecutionCompleted, m.RoutingKey)
		sent, err := message.Decode[message.ExecutionCompleted](m.Body)
		require.NoError(t, err)
		require.Equal(t, "cancelled", sent.Payload.Status)
		ends[sent.Payload.ExecutionID]++
	}
	return ends
}

func (b *bundle) count(t *testing.T, status string) int {
	t.Helper()
	return testkit.Count(t, b.store, `select count(*) from execution where status = $1::text::execution_status_enum`,
		status)
}

func TestClearCancelsOnlyQueuedExecutions(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.clear", 2)
	ids := b.request(t, action, 6)
	b.dispatch(t, ids...)
	testkit.Exec(t, b.store,
		`update execution_admission_entry set enqueued_at = now() - interval '1 hour' where execution_id = any($1)`,
		ids[2:4])
	old, err := b.operator.PlanClear(testkit.Context(t),
		triage.ClearRequest{Target: triage.Target{Action: action.Ref}, OlderThan: 30 * time.Minute})
	require.NoError(t, err)
	require.Equal(t, 2, old.Waiting)
	plan := b.planClear(t, action)
	require.Equal(t, 4, plan.Waiting)
	late := b.request(t, action, 1)
	b.dispatch(t, late...)
	testkit.Exec(t, b.store, // as of a transaction that began before the plan
		`update execution_admission_entry set enqueued_at = now() - interval '1 hour' where execution_id = $1`, late[0])

	receipt, err := b.operator.Clear(testkit.Context(t), old)
	require.NoError(t, err)
	require.Equal(t, []int{2, 2, 0}, []int{receipt.Planned, receipt.Cancelled, receipt.AlreadyGone})
	require.Equal(t, ids[2], receipt.First)
	require.Equal(t, ids[3], receipt.Last)
	require.Equal(t, "done", b.audit(t, receipt.Audit).Outcome)

	receipt, err = b.operator.Clear(testkit.Context(t), plan)
	require.NoError(t, err)
	require.Equal(t, []int{4, 2, 2}, []int{receipt.Planned, receipt.Cancelled, receipt.AlreadyGone})
	require.Equal(t, ids[:2], b.holders(t, action), "running executions continue")
	require.Equal(t, late, b.waiting(t, action), "later requests are not in the plan")

	var raw []byte
	require.NoError(t, b.store.Pool().QueryRow(t.Context(),
		`select result from execution where id = $1 and status = 'cancelled'`, ids[5]).Scan(&raw))
	var fields map[string]string
	require.NoError(t, json.Unmarshal(raw, &fields))
	require.Equal(t, "Cancelled", fields["error"])
	require.Equal(t, "cleared from its queue by ann@desk", fields["message"])
	require.Equal(t, "ann@desk", fields["cancelled_by"])
	_, err = time.Parse(time.RFC3339, fields["cancelled_at"])
	require.NoError(t, err)
	require.Equal(t, 1, testkit.Count(t, b.store, `select queue_length from queue_stats`),
		"statistics are true with the commit")
	ends := b.ends(t)
	require.Len(t, ends, 4)
	for _, id := range ids[2:] {
		require.Equal(t, 1, ends[id])
	}
	receipt, err = b.operator.Clear(testkit.Context(t), b.planClear(t, action))
	require.NoError(t, err)
	require.Equal(t, 1, receipt.Cancelled)
	empty := b.planClear(t, action)
	require.Zero(t, empty.Waiting)
	receipt, err = b.operator.Clear(testkit.Context(t), empty)
	require.NoError(t, err)
	require.Equal(t, "nothing to do", receipt.Outcome)
	require.Equal(t, 1, b.finish(t, ids[0]).Released)
	b.invariants(t)
}

// In a queue longer than a page only the chosen executions are cancelled; the others keep their order.
func TestClearOfChosenExecutionsLeavesTheOthers(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.some", 1)
	ids := b.request(t, action, 1_101)
	b.dispatch(t, ids...)
	var some, rest []int64
	for i, id := range ids[1:] {
		if i%10 == 3 {
			some = append(some, id)
		} else {
			rest = append(rest, id)
		}
	}
	plan, err := b.operator.PlanClear(testkit.Context(t), triage.ClearRequest{
		Target: triage.Target{Action: action.Ref}, Only: append([]int64{ids[0], 1 << 40}, some...),
	})
	require.NoError(t, err)
	require.Equal(t, 110, plan.Waiting, "the running one is not in the queue")
	require.Equal(t, 110, plan.Queues[0].Waiting)
	receipt, err := b.operator.Clear(testkit.Context(t), plan)
	require.NoError(t, err)
	require.Equal(t, []int{110, 110, 0, 0},
		[]int{receipt.Planned, receipt.Cancelled, receipt.AlreadyGone, receipt.Left})
	require.Equal(t, rest, b.waiting(t, action))
	none, err := b.operator.PlanClear(testkit.Context(t),
		triage.ClearRequest{Target: triage.Target{Action: action.Ref}, Only: []int64{}})
	require.NoError(t, err)
	require.Zero(t, none.Waiting)
	b.invariants(t)
}

// Replicas promote while the queue is cleared: the first holder of the lock wins, no slot is lost,
// and every execution ends exactly once.
func TestClearAgainstConcurrentPromotionAndCompletion(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.race", 4)
	ids := b.request(t, action, 800)
	b.dispatch(t, ids...)
	b.lastEnd.Store(ids[400]) // the others still wait at the clear, also if it is late
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	wait := b.storm(ctx, t, action, 3)
	plan := b.planClear(t, action)
	testkit.Eventually(t, func() bool { return b.count(t, "completed") > 20 }, testkit.TestTimeout)
	foreign := plan.Queues[0].ID // another program cancels a few by the row alone
	stray := b.ids(t, `with few as (select execution_id from execution_admission_entry where state_id = $1 order by queue_order desc limit 7),
		gone as (update execution set status = 'cancelled' where id in (select execution_id from few) and status = 'requested' returning id)
		select coalesce(array_agg(id), '{}') from gone`, foreign)
	receipt, err := b.operator.Clear(testkit.Context(t), plan)
	require.NoError(t, err)
	b.lastEnd.Store(0)
	testkit.Eventually(t, func() bool { return len(b.holders(t, action)) == 0 }, testkit.TestTimeout)
	cancel()
	wait()
	require.Empty(t, b.waiting(t, action))
	require.Equal(t, receipt.Planned, receipt.Cancelled+receipt.AlreadyGone)
	require.NotZero(t, receipt.Cancelled)
	require.Equal(t, receipt.Cancelled+len(stray), b.count(t, "cancelled"))
	require.Equal(t, 800, b.count(t, "cancelled")+b.count(t, "completed"), "every execution ended")
	ends := b.ends(t)
	require.Len(t, ends, receipt.Cancelled)
	for id, n := range ends {
		require.Equal(t, 1, n, id)
		require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, id))
	}
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from late_write`))
	require.Zero(t, testkit.Count(t, b.store, `select queue_length + active_count from queue_stats`))
	require.Equal(t, 4, b.dispatch(t, b.request(t, action, 9)...).Granted, "all slots are free again")
	b.invariants(t)
}

func TestClearOfFiveThousandInterruptedAndRunAgain(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.many", 1)
	ids := b.request(t, action, 5001)
	for begin := 0; begin < len(ids); begin += 1000 {
		b.dispatch(t, ids[begin:min(begin+1000, len(ids))]...)
	}
	plan := b.planClear(t, action)
	require.Equal(t, 5000, plan.Waiting)

	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	rows := 0
	b.sent.seen = func() {
		if rows++; rows == 3 {
			cancel()
		}
	}
	receipt, err := b.operator.Clear(ctx, plan)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []any{"interrupted", 2000, 3000}, []any{receipt.Outcome, receipt.Cancelled, receipt.Left})
	require.Len(t, b.waiting(t, action), 3000, "no page is done in part")
	require.Equal(t, 2000, b.count(t, "cancelled"))
	require.Equal(t, 3000, testkit.Count(t, b.store, `select queued_count from execution_admission_state`))
	require.Equal(t, "interrupted", b.audit(t, receipt.Audit).Outcome)
	b.invariants(t)

	receipt, err = b.operator.Clear(testkit.Context(t), b.planClear(t, action))
	require.NoError(t, err)
	require.Equal(t, []int{3000, 3000, 0}, []int{receipt.Planned, receipt.Cancelled, receipt.AlreadyGone})
	require.Equal(t, ids[len(ids)-1], receipt.Last)
	ends := b.ends(t)
	require.Len(t, ends, 5000)
	require.Equal(t, 5000, b.count(t, "cancelled"))
	require.Zero(t, testkit.Count(t, b.store, `select queued_count from execution_admission_state`))
	b.invariants(t)
}

// A process that is killed during a clear leaves whole pages, and an audit row with its progress.
func TestAKilledClearLeavesWholePages(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.dies", 1)
	b.dispatch(t, b.request(t, action, 2101)...)
	rows := 0
	b.sent.seen = func() {
		if rows++; rows == 4 {
			panic("killed") // after the first page's commit
		}
	}
	plan := b.planClear(t, action)
	require.PanicsWithValue(t, "killed", func() { _, _ = b.operator.Clear(testkit.Context(t), plan) })
	require.Len(t, b.waiting(t, action), 100)
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from operator_audit
		where outcome = 'running' and (request #>> '{receipt,cancelled}')::int = 2000`))
	b.invariants(t)
	operator := triage.New(triage.Config{Actor: "bob"}, b.store, nil)
	plan, err := operator.PlanClear(testkit.Context(t), triage.ClearRequest{Target: triage.Target{Action: action.Ref}})
	require.NoError(t, err)
	receipt, err := operator.Clear(testkit.Context(t), plan)
	require.NoError(t, err)
	require.Equal(t, 100, receipt.Cancelled)
	b.invariants(t)
}

// All groups of an action, or one of them, are cleared.
func TestClearOfGroupsAndLanes(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.tenants", 1, byTenant)
	var ids []int64
	for n := range 40 {
		tenant := fmt.Sprint(n % 4)
		priority := int16(n%3 - 1)
		ids = append(ids, testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) {
			e.Config, e.Priority = map[string]any{"tenant": tenant}, &priority
		}).ID)
	}
	b.dispatch(t, ids...)
	require.Len(t, b.holders(t, action), 4)
	_, err := b.operator.PlanClear(testkit.Context(t),
		triage.ClearRequest{Target: triage.Target{Action: action.Ref, Group: `{"region":"x"}`}})
	require.ErrorIs(t, err, triage.ErrGroup)
	plan, err := b.operator.PlanClear(testkit.Context(t),
		triage.ClearRequest{Target: triage.Target{Action: action.Ref, Group: `{"tenant":"2"}`}})
	require.NoError(t, err)
	receipt, err := b.operator.Clear(testkit.Context(t), plan)
	require.NoError(t, err)
	require.Equal(t, 9, receipt.Cancelled)
	require.Len(t, b.waiting(t, action), 27)
	b.invariants(t)
	plan = b.planClear(t, action)
	require.Len(t, plan.Queues, 3)
	receipt, err = b.operator.Clear(testkit.Context(t), plan)
	require.NoError(t, err)
	require.Equal(t, 27, receipt.Cancelled)
	require.Empty(t, b.waiting(t, action))
	require.Zero(t,
		testkit.Count(t, b.store, `select sum(queued_count + queued_high + queued_low) from execution_admission_state`))
	require.Len(t, b.holders(t, action), 4)
	b.invariants(t)
}

// The answer has one format, also for an empty or missing queue.
func TestClearOfAnEmptyQueue(t *testing.T) {
	b := setup(t)
	grouped, free := b.limited(t, "pk.grouped", 1, byTenant), testkit.Action(t, b.store, "pk.free")
	for _, target := range []triage.Target{
		{Action: free.Ref},
		{Action: grouped.Ref},
		{Action: grouped.Ref, Group: `{"tenant":"x"}`},
	} {
		plan, err := b.operator.PlanClear(testkit.Context(t), triage.ClearRequest{Target: target})
		require.NoError(t, err)
		require.Zero(t, plan.Waiting)
		require.Equal(t, []triage.ClearingQueue{}, plan.Queues)
		receipt, err := b.operator.Clear(testkit.Context(t), plan)
		require.NoError(t, err)
		require.Equal(t, []int{0, 0, 0, 0},
			[]int{receipt.Planned, receipt.Cancelled, receipt.AlreadyGone, receipt.Messages})
		require.Equal(t, "nothing to do", receipt.Outcome)
		require.Equal(t, "nothing to do", b.audit(t, receipt.Audit).Outcome)
	}
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from execution_admission_state`),
		"no queue is created for it")
	_, err := b.operator.PlanClear(testkit.Context(t),
		triage.ClearRequest{Target: triage.Target{Action: free.Ref, Group: `{"tenant":"x"}`}})
	require.ErrorIs(t, err, triage.ErrNoQueue, "no policy has parameters")
}
