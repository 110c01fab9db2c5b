package triage_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// S21: after the commit of a pause no execution is admitted, on any number of replicas, and the
// order is the same after the resume.
func TestS21APausedQueueAdmitsNothingAndKeepsItsOrder(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.storm", 3)
	ids := b.request(t, action, 600)
	b.dispatch(t, ids...)
	b.lastEnd.Store(ids[300]) // the others still wait at the pause, also if it is late

	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	wait := b.storm(ctx, t, action, 3)
	admitted := func() int {
		return testkit.Count(t, b.store, `select count(*) from execution where admitted_at is not null`)
	}
	testkit.Eventually(t, func() bool { return admitted() > 30 }, testkit.TestTimeout)
	receipt := b.pause(t, action)
	before, order := admitted(), b.waiting(t, action)
	b.lastEnd.Store(0)
	require.NotEmpty(t, order)
	require.Equal(t, 1, receipt.Changed)
	require.Equal(t, len(order), receipt.Waiting)

	// New requests, completions and fills continue during the pause.
	late := b.request(t, action, 20)
	b.dispatch(t, late...)
	testkit.Eventually(t, func() bool { return len(b.holders(t, action)) == 0 }, testkit.TestTimeout)
	for range 20 {
		b.dispatch(t, order[0])
	}
	require.Equal(t, before, admitted(), "not one admission after the pause")
	cancel()
	wait()
	require.Equal(t, append(order, late...), b.waiting(t, action))
	b.invariants(t)

	receipt = b.resume(t, action)
	require.Equal(t, 1, receipt.WithRoom)
	nudged := b.nudged(t)
	require.Equal(t, order[:1], nudged, "the head is requested again")
	b.dispatch(t, nudged...)
	for next := 0; next < 30; next += 3 {
		holders := b.holders(t, action)
		require.Equal(t, order[next:next+3], holders, "the order is the same after the resume")
		b.finish(t, holders...)
	}
	b.invariants(t)
}

func TestARepeatedOverrideChangesNothing(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.same", 1)
	order := triage.Override{
		Target: triage.Target{Action: action.Ref}, Act: triage.Pause,
		Reason: "the service is down",
	}
	first := b.override(t, order)
	require.Equal(t, []int{1, 0}, []int{first.Changed, first.Already})
	require.Len(t, first.Queues, 1)
	require.True(t, first.Queues[0].After.Paused)
	require.False(t, first.Queues[0].Before.Paused)
	order.Reason = ""
	second := b.override(t, order)
	require.Equal(t, []int{0, 1}, []int{second.Changed, second.Already})
	require.Equal(t, "the service is down", second.Queues[0].After.PauseReason, "the first pause is remembered")
	require.Equal(t, "ann@desk", second.Queues[0].After.PausedBy)
	require.NotNil(t, second.Queues[0].After.PausedAt)

	require.Equal(t, 1, b.resume(t, action).Changed)
	require.Equal(t, 1, b.resume(t, action).Already)
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from execution_admission_state
		where not paused and resumed_at is not null and paused_by is null and paused_at is null and pause_reason is null`))
	require.Equal(t, 1, b.limit(t, action, 7).Changed)
	require.Equal(t, 1, b.limit(t, action, 7).Already)
	require.Empty(t, b.sent.take(), "no execution waits: no queue is requested again")

	a := b.audit(t, first.Audit)
	require.Equal(t, auditRow{
		Actor: "ann@desk", Action: "queue.pause", TargetType: "action", Target: action.Ref,
		Reason:  "the service is down",
		Outcome: "done", TargetID: &action.ID, Request: a.Request,
	}, a)
	require.Contains(t, string(a.Request), `"paused_by": "ann@desk"`)
	require.Equal(t, "unchanged", b.audit(t, second.Audit).Outcome)
	require.Equal(t, 6, testkit.Count(t, b.store, `select count(*) from operator_audit`), "one row an act")
}

// The author and the time of a pause stay; the reason is the last one.
func TestTheReasonOfAPauseCanBeChanged(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.why", 1, byTenant)
	order := triage.Override{
		Target: triage.Target{Action: action.Ref}, Act: triage.Pause,
		Reason: "the service is down",
	}
	first := b.override(t, order)
	require.Zero(t, first.ReasonChanged)
	b.dispatch(t, b.requestIn(t, action, "a")) // a new group, which inherits the pause of its action
	var since time.Time
	read := func(at *time.Time) (n int) {
		t.Helper()
		require.NoError(t, b.store.Pool().QueryRow(t.Context(), `select count(*), min(paused_at) from execution_admission_state
			where paused and paused_by = 'ann@desk' and pause_reason = $1`, order.Reason).Scan(&n, at))
		return n
	}
	require.Equal(t, 2, read(&since))

	order.Reason = "the service is being replaced"
	bob := triage.New(triage.Config{Actor: "bob@desk"}, b.store, b.sent)
	second, err := bob.Override(testkit.Context(t), order)
	require.NoError(t, err)
	require.Equal(t, []int{2, 0, 2}, []int{second.Changed, second.Already, second.ReasonChanged})
	require.Equal(t, "the service is down", second.Queues[0].Before.PauseReason)
	require.Equal(t, order.Reason, second.Queues[0].After.PauseReason)
	var still time.Time
	require.Equal(t, 2, read(&still), "the author of the pause stays")
	require.Equal(t, since, still, "the time of the pause stays")
	a := b.audit(t, second.Audit)
	require.Equal(t, []string{"bob@desk", "queue.pause", order.Reason, "done"},
		[]string{a.Actor, a.Action, a.Reason, a.Outcome})

	third, err := bob.Override(testkit.Context(t), order)
	require.NoError(t, err)
	require.Equal(t, []int{0, 2, 0}, []int{third.Changed, third.Already, third.ReasonChanged}, "it is so already")
	require.Empty(t, b.sent.take(), "no execution may start")
}

func TestARaisedLimitIsFilledAtOnceAndResetReturnsToThePolicy(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.raised", 2)
	ids := b.request(t, action, 12)
	b.dispatch(t, ids...)
	receipt := b.limit(t, action, 6)
	require.Equal(t, []int{1, 1, 10}, []int{receipt.Changed, receipt.WithRoom, receipt.Waiting})
	require.Equal(t, 1, testkit.Count(t, b.store,
		`select count(*) from execution_admission_state where max_concurrent = 6 and limit_override = 6 and not unlimited`))
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from queue_stats where max_concurrent = 6`))
	require.Equal(t, 4, b.dispatch(t, b.nudged(t)...).Granted, "the batch with the nudge fills the queue")
	require.Equal(t, ids[:6], b.holders(t, action))
	b.finish(t, ids[0])
	require.Equal(t, ids[1:7], b.holders(t, action), "the operator's limit stays in force")

	receipt = b.override(t, triage.Override{Target: triage.Target{Action: action.Ref}, Act: triage.Reset})
	require.Equal(t, []int{1, 0}, []int{receipt.Changed, receipt.WithRoom})
	require.Equal(t, 1, testkit.Count(t, b.store,
		`select count(*) from execution_admission_state where max_concurrent = 2 and limit_override is null and not unlimited`))
	require.Zero(t, b.finish(t, ids[1:5]...).Granted)
	require.Equal(t, 1, b.finish(t, ids[5]).Granted, "the policy's limit is in force again")
	receipt = b.override(t, triage.Override{Target: triage.Target{Action: action.Ref}, Act: triage.Reset})
	require.Equal(t, 1, receipt.Already)
	b.invariants(t)
}

// Upstream 22: a lower limit evicts no running execution.
func TestALoweredLimitDrainsWithoutEvicting(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.lowered", 4)
	ids := b.request(t, action, 8)
	b.dispatch(t, ids...)
	receipt := b.limit(t, action, 1)
	require.Equal(t, []int{1, 0}, []int{receipt.Changed, receipt.WithRoom})
	require.Equal(t, ids[:4], b.holders(t, action), "running executions continue")
	require.Zero(t, b.finish(t, ids[:3]...).Granted)
	require.Equal(t, ids[3:4], b.holders(t, action))
	require.Equal(t, 1, b.finish(t, ids[3]).Granted)
	require.Equal(t, ids[4:5], b.holders(t, action))
	b.invariants(t)
}

func TestAnActionWithoutPolicyCanBeLimitedAndUnlimited(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(100) })
	action := testkit.Action(t, b.store, "pk.free")
	receipt := b.limit(t, action, 1) // before its first request
	require.Nil(t, receipt.Queues[0].Before.Limit)
	ids := b.request(t, action, 5)
	require.Equal(t, 1, b.dispatch(t, ids...).Granted)
	receipt = b.override(t, triage.Override{Target: triage.Target{Action: action.Ref}, Act: triage.Reset})
	require.Nil(t, receipt.Queues[0].After.Limit)
	require.Equal(t, 4, b.dispatch(t, b.nudged(t)...).Granted)
	b.invariants(t)
}

// A queue that an operator has paused is not tried when a worker has room again.
func TestAPausedQueueIsNotBlocked(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(1) })
	action := testkit.Action(t, b.store, "pk.blocked")
	ids := b.request(t, action, 5)
	require.Equal(t, 3, b.dispatch(t, ids...).Granted, "one to run and two at hand")
	blocked := func() int { return testkit.Count(t, b.store, `select count(*) from admission_blocked`) }
	require.Equal(t, 1, blocked(), "the worker is full")
	b.pause(t, action)
	require.Zero(t, blocked())
	require.Zero(t, b.finish(t, ids[0]).Granted)
	require.Zero(t, blocked())
	b.resume(t, action)
	require.Equal(t, 1, b.dispatch(t, b.nudged(t)...).Granted)
	require.Equal(t, 1, blocked())
	b.invariants(t)
}

func TestAnOverrideOfOneGroupLeavesTheOthers(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.groups", 1, byTenant)
	one, two := b.requestIn(t, action, "a"), b.requestIn(t, action, "b")
	on := func(group string, act triage.Act) (*triage.OverrideReceipt, error) {
		return b.operator.Override(testkit.Context(t),
			triage.Override{Target: triage.Target{Action: action.Ref, Group: group}, Act: act})
	}
	receipt, err := on(` { "tenant" : "a" } `, triage.Pause)
	require.NoError(t, err, "the queue of an unused group is created")
	require.Equal(t, "{\"tenant\":\"a\"}", receipt.Group, //nolint:testifylint // the text is promised
		"as group keys are written")
	require.Equal(t, 1, b.dispatch(t, one, two).Granted)
	require.Equal(t, []int64{two}, b.holders(t, action))
	receipt, err = on(`{"tenant":"a"}`, triage.Resume)
	require.NoError(t, err)
	require.Equal(t, 1, receipt.WithRoom)
	require.Equal(t, 1, b.dispatch(t, b.nudged(t)...).Granted)

	for group, want := range map[string]error{
		`{"region":"zz"}`: triage.ErrGroup,
		`{"tenant"`:       triage.ErrGroup,
		`["tenant"]`:      triage.ErrGroup,
		`{} {}`:           triage.ErrGroup,
	} {
		_, err := on(group, triage.Resume)
		require.ErrorIs(t, err, want, group)
	}
	_, err = on(`{"region":"a"}`, triage.Pause)
	require.ErrorIs(t, err, triage.ErrGroup, "the policy groups by tenant")
	require.ErrorContains(t, err, "tenant")
	free := testkit.Action(t, b.store, "pk.plain")
	_, err = b.operator.Override(testkit.Context(t),
		triage.Override{Target: triage.Target{Action: free.Ref, Group: `{"tenant":"a"}`}, Act: triage.Pause})
	require.ErrorIs(t, err, triage.ErrNoQueue)
	_, err = b.operator.Override(testkit.Context(t),
		triage.Override{Target: triage.Target{Action: "pk.none"}, Act: triage.Pause})
	require.ErrorIs(t, err, triage.ErrNoAction)
	_, err = b.operator.Override(testkit.Context(t),
		triage.Override{Target: triage.Target{Action: free.Ref}, Act: triage.Limit})
	require.ErrorIs(t, err, triage.ErrLimit)
	queues := testkit.Count(t, b.store, `select count(*) from execution_admission_state`)
	for _, target := range []triage.Target{{Action: free.Ref}, {Action: action.Ref, Group: `{"tenant":"zz"}`}} {
		for _, act := range []triage.Act{triage.Resume, triage.Reset} {
			order := triage.Override{Target: target, Act: act}
			plan, err := b.operator.PlanOverride(testkit.Context(t), order)
			require.NoError(t, err)
			require.Empty(t, plan.Queues)
			said := b.override(t, order)
			require.Equal(t, []int{0, 0}, []int{said.Changed, said.Already},
				"there is no override to remove")
			require.NotNil(t, said.Queues, "a list in data")
			require.Equal(t, "unchanged", b.audit(t, said.Audit).Outcome)
		}
	}
	require.Equal(t, queues, testkit.Count(t, b.store, `select count(*) from execution_admission_state`),
		"removing an override creates no queue")
	b.invariants(t)
}

// New groups inherit the override of their action, also groups of concurrent batches.
func TestGroupsInheritTheOverrideOfTheirAction(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.inherit", 5, byTenant)
	var ids []int64
	for n := range 60 {
		ids = append(ids, b.requestIn(t, action, fmt.Sprint(n)))
	}
	begin, paused := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for _, part := range [][]int64{ids[:20], ids[20:40], ids[40:]} {
		replica := b.replica(t)
		group.Go(func() {
			<-begin
			for i, id := range part {
				if i == len(part)-1 {
					<-paused // at least these come after the pause
				}
				if _, err := replica.Run(t.Context(), scheduler.FillStep{},
					scheduler.NewRequestStep([]int64{id})); err != nil {
					panic(err)
				}
			}
		})
	}
	close(begin)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `select count(*) from execution_admission_state`) > 10
	}, testkit.TestTimeout)
	b.pause(t, action)
	held := len(b.holders(t, action))
	close(paused)
	group.Wait()
	require.Less(t, held, 60)
	require.Equal(t, 61, testkit.Count(t, b.store, `select count(*) from execution_admission_state where paused`))
	require.Len(t, b.holders(t, action), held)
	receipt := b.resume(t, action)
	require.Equal(t, []int{61, 60 - held}, []int{receipt.Changed, receipt.WithRoom},
		"every queue with a waiting execution is nudged")
	b.dispatch(t, b.nudged(t)...)
	require.Len(t, b.holders(t, action), 60)

	b.limit(t, action, 2)
	b.dispatch(t, b.requestIn(t, action, "late"))
	require.Equal(t, 62, testkit.Count(t, b.store,
		`select count(*) from execution_admission_state where limit_override = 2 and max_concurrent = 2`))
	b.invariants(t)
}

func TestAPlanOfAnOverrideWritesNothing(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.plan", 2)
	order := triage.Override{Target: triage.Target{Action: action.Ref}, Act: triage.Limit, Limit: 9}
	plan, err := b.operator.PlanOverride(testkit.Context(t), order)
	require.NoError(t, err)
	require.Empty(t, plan.Queues, "the override would create it")
	b.dispatch(t, b.request(t, action, 3)...)
	plan, err = b.operator.PlanOverride(testkit.Context(t), order)
	require.NoError(t, err)
	require.Len(t, plan.Queues, 1)
	require.True(t, plan.Queues[0].Changed)
	require.Equal(t, []int{2, 9, 2, 1}, []int{
		*plan.Queues[0].Before.Limit, *plan.Queues[0].After.Limit, plan.Queues[0].Active, plan.Queues[0].Waiting,
	})
	require.Zero(t,
		testkit.Count(t, b.store, `select count(*) from execution_admission_state where limit_override is not null`))
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from operator_audit`))
}
