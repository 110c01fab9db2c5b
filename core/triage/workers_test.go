package triage_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// fenced workers refuse outdated dispatches and have room for many. Their heartbeats stay fresh.
func fenced(w *testkit.WorkerRow) {
	w.HeartbeatAge = -time.Hour
	w.Capabilities = map[string]any{
		"attempt_fence": true, "max_concurrent_executions": 1_000_000,
		"runtimes": []string{"shell"},
	}
}

// act runs an action on a worker that must succeed.
func (b *bundle) act(t testing.TB, act triage.WorkerAct, worker, reason string) *triage.WorkerReceipt {
	t.Helper()
	receipt, err := b.operator.ActOnWorker(testkit.Context(t),
		triage.WorkerRequest{Act: act, Worker: worker, Reason: reason})
	require.NoError(t, err)
	return receipt
}

// settled repeats an action until its receipt is settled: an action waits only five seconds for running batches.
func (b *bundle) settled(t testing.TB, receipt *triage.WorkerReceipt) *triage.WorkerReceipt {
	t.Helper()
	testkit.Eventually(t, func() bool {
		if !receipt.Settled {
			receipt = b.act(t, receipt.Act, receipt.Worker, "")
		}
		return receipt.Settled
	}, testkit.TestTimeout, "%s of %s is settled", receipt.Act, receipt.Worker)
	return receipt
}

// Each action in each state of a worker has its effect, text and audit row. A repeated one changes nothing.
func TestActsOnWorkersInEachState(t *testing.T) {
	b := setup(t)
	set := map[string]func(*testkit.WorkerRow){
		"works":    func(*testkit.WorkerRow) {},
		"cordoned": func(w *testkit.WorkerRow) { w.Cordoned = true },
		"drains":   func(w *testkit.WorkerRow) { w.Cordoned, w.Draining = true, true },
		"left":     func(w *testkit.WorkerRow) { w.Status = "inactive" },
		"leaves":   func(w *testkit.WorkerRow) { w.Status, w.Draining = "inactive", true },
		"silent":   func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour },
	}
	for _, c := range []struct {
		act                         triage.WorkerAct
		state                       string
		changed, cordoned, draining bool
		says                        string
	}{
		{triage.CordonWorker, "works", true, true, false, "is given nothing new; what it has goes on"},
		{triage.CordonWorker, "cordoned", false, true, false, "is cordoned already"},
		{triage.CordonWorker, "drains", false, true, true, "is draining already"},
		{triage.CordonWorker, "left", true, true, false, "is given nothing new"},
		{triage.CordonWorker, "leaves", true, true, true, "its process is leaving by itself"},
		{triage.CordonWorker, "silent", true, true, false, "is given nothing new"},
		{triage.DrainWorker, "works", true, true, true, "drains: "},
		{triage.DrainWorker, "cordoned", true, true, true, "drains: "},
		{triage.DrainWorker, "drains", false, true, true, "is draining already"},
		{
			triage.DrainWorker, "left", true, true, false,
			"is inactive: it is cordoned, so that it is given nothing when it comes back",
		},
		{triage.DrainWorker, "leaves", true, true, true, "is inactive: it is cordoned"},
		{triage.DrainWorker, "silent", true, true, true, "drains: "},
		{triage.UncordonWorker, "works", false, false, false, "is not cordoned"},
		{triage.UncordonWorker, "cordoned", true, false, false, "is given work again: it was cordoned"},
		{triage.UncordonWorker, "drains", true, false, false, "takes work again: it was draining"},
		{triage.UncordonWorker, "left", false, false, false, "is not cordoned"},
		{triage.UncordonWorker, "leaves", false, false, true, "is not cordoned; its process is leaving by itself"},
		{triage.UncordonWorker, "silent", false, false, false, "is not cordoned"},
	} {
		name := string(c.act) + "-" + c.state
		testkit.Worker(t, b.store, name, fenced, set[c.state])
		plan, err := b.operator.PlanWorker(testkit.Context(t), triage.WorkerRequest{Act: c.act, Worker: name})
		require.NoError(t, err, name)
		receipt := b.act(t, c.act, name, "")
		require.Equal(t, c.changed, receipt.Changed, name)
		require.Equal(t, c.changed, plan.Changes, "the plan of %s", name)
		require.Contains(t, receipt.Says, c.says, name)
		require.Contains(t, plan.Says, c.says, name)
		require.Equal(t, []bool{c.cordoned, c.draining}, []bool{receipt.After.Cordoned, receipt.After.Draining}, name)
		b.settled(t, receipt)

		again := b.act(t, c.act, name, "")
		require.False(t, again.Changed, "%s twice", name)
		require.Equal(t, "unchanged", again.Outcome)
		now, err := b.operator.WorkerNow(testkit.Context(t), triage.WorkerRequest{Worker: name})
		require.NoError(t, err)
		require.Equal(t, []bool{c.cordoned, c.draining}, []bool{now.Cordoned, now.Draining}, name)

		row := b.audit(t, receipt.Audit)
		require.Equal(t, "ann@desk", row.Actor)
		require.Equal(t, "worker."+string(c.act), row.Action)
		require.Equal(t, []string{"worker", name}, []string{row.TargetType, row.Target})
		require.Equal(t, receipt.After.ID, *row.TargetID)
		require.Equal(t, receipt.Outcome, row.Outcome)
		require.NotEqual(t, receipt.Audit, again.Audit)
	}
	_, err := b.operator.ActOnWorker(testkit.Context(t), triage.WorkerRequest{
		Act:    triage.CordonWorker,
		Worker: "unknown",
	})
	require.ErrorIs(t, err, triage.ErrNoWorker)
}

// The author, time and reason of a cordon are kept, and shown to the next operator.
func TestAWorkerNamesTheAuthorOfItsCordon(t *testing.T) {
	b := setup(t)
	id := testkit.Worker(t, b.store, "w").ID
	first := b.act(t, triage.CordonWorker, "w", "new disk")
	require.Equal(t, "new disk (by ann@desk)", first.After.CordonReason)
	bob := b.operator.As("bob@desk")
	second, err := bob.ActOnWorker(testkit.Context(t), triage.WorkerRequest{Act: triage.CordonWorker, Worker: "w"})
	require.NoError(t, err)
	require.False(t, second.Changed)
	require.Equal(t, "is cordoned already since "+first.After.CordonedAt.UTC().Format(time.RFC3339)+
		": new disk (by ann@desk)", second.Says)
	third, err := bob.ActOnWorker(testkit.Context(t),
		triage.WorkerRequest{Act: triage.CordonWorker, Worker: "w", Reason: "newer disk"})
	require.NoError(t, err)
	require.True(t, third.Changed)
	require.Equal(t, "newer disk (by bob@desk)", third.After.CordonReason)
	require.True(t, first.After.CordonedAt.Equal(*third.After.CordonedAt), "only the reason changes")
	drained, err := bob.ActOnWorker(testkit.Context(t), triage.WorkerRequest{Act: triage.DrainWorker, Worker: "w"})
	require.NoError(t, err)
	require.Equal(t, "newer disk (by bob@desk)", drained.After.CordonReason, "the reason stays")
	b.act(t, triage.UncordonWorker, "w", "")
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM worker WHERE id = $1 AND NOT cordoned AND NOT draining
		AND cordon_reason IS NULL AND cordoned_at IS NULL AND cordoned_by IS NULL`, id))
}

// Of two concurrent operators one changes the worker, and the other learns that it is changed.
func TestOfTwoOperatorsOneActs(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w")
	for range 10 {
		for _, act := range []triage.WorkerAct{triage.CordonWorker, triage.DrainWorker, triage.UncordonWorker} {
			var changed atomic.Int32
			var group sync.WaitGroup
			for _, who := range []string{"ann", "bob", "eve"} {
				group.Go(func() {
					receipt, err := b.operator.As(who).ActOnWorker(t.Context(),
						triage.WorkerRequest{Act: act, Worker: "w"})
					if err != nil {
						panic(err)
					}
					if receipt.Changed {
						changed.Add(1)
					}
				})
			}
			group.Wait()
			require.EqualValues(t, 1, changed.Load(), act)
		}
	}
	require.Equal(t, 90, testkit.Count(t, b.store, `SELECT count(*) FROM operator_audit WHERE target_type = 'worker'`))
}

// S15, for workers: after a settled receipt no execution is dispatched to the worker, although batches of several
// replicas had read it before.
func TestNothingIsDispatchedToAWorkerAfterTheReceipt(t *testing.T) {
	b := setup(t)
	id := testkit.Worker(t, b.store, "w", fenced).ID
	testkit.Worker(t, b.store, "other", fenced)
	ctx, stop := context.WithCancel(testkit.Context(t))
	defer stop()
	var group sync.WaitGroup
	for range 3 {
		replica := b.replica(t)
		action := testkit.Action(t, b.store,
			"pk.a"+string(rune('a'+len(b.ids(t, `select coalesce(array_agg(id), '{}') from action`)))))
		group.Go(func() {
			for ctx.Err() == nil {
				var one int64
				err := b.store.Pool().QueryRow(ctx,
					`insert into execution (action, action_ref, status) values ($1, $2, 'requested') returning id`,
					action.ID, action.Ref).Scan(&one)
				if err == nil {
					_, err = replica.Run(ctx, scheduler.NewRequestStep([]int64{one}), scheduler.FillStep{})
				}
				if err != nil && ctx.Err() == nil {
					panic(err)
				}
			}
		})
	}
	dispatched := func() int {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE worker = $1`, id)
	}
	for range 12 {
		before := dispatched()
		testkit.Eventually(t, func() bool { return dispatched() > before }, testkit.TestTimeout, "it gets executions")
		receipt := b.settled(t, b.act(t, triage.CordonWorker, "w", ""))
		had := dispatched()
		require.EqualValues(t, had, receipt.After.Unstarted, "the receipt counts its executions")
		time.Sleep(30 * time.Millisecond)
		require.Equal(t, had, dispatched(), "it got no execution since")
		b.act(t, triage.UncordonWorker, "w", "")
	}
	stop()
	group.Wait()
}

// A plan names the executions of a worker, the workers that can take them over, and the runtimes of this worker only.
func TestAPlanOfADrainNamesTheOtherWorkers(t *testing.T) {
	b := setup(t)
	id := testkit.Worker(t, b.store, "w", func(w *testkit.WorkerRow) {
		fenced(w)
		w.Capabilities["runtimes"], w.Capabilities["labels"] = []string{
			"shell",
			"python",
		}, map[string]string{"zone": "a"}
	}).ID
	testkit.Worker(t, b.store, "peer", fenced)
	testkit.Worker(t, b.store, "foreign",
		func(w *testkit.WorkerRow) { w.Capabilities = map[string]any{"runtimes": []string{"shell"}} })
	testkit.Worker(t, b.store, "asleep", fenced, func(w *testkit.WorkerRow) {
		w.HeartbeatAge, w.Capabilities["runtimes"] = time.Hour, []string{"python"}
	})
	plain := testkit.Action(t, b.store, "pk.plain")
	zoned := testkit.Action(t, b.store, "pk.zoned",
		func(a *testkit.ActionRow) { a.WorkerSelector = map[string]any{"zone": "a"} })
	state := testkit.State(t, b.store, plain, 99)
	at := func(action testkit.ActionRow, status lifecycle.Status) {
		testkit.Execution(t, b.store, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status, e.AdmissionState = &id, status, &state.ID })
	}
	at(plain, lifecycle.StatusRunning)
	at(plain, lifecycle.StatusCanceling)
	at(plain, lifecycle.StatusCompleted)
	at(plain, lifecycle.StatusScheduled)
	at(plain, lifecycle.StatusScheduled)
	at(zoned, lifecycle.StatusScheduled)

	plan, err := b.operator.PlanWorker(testkit.Context(t), triage.WorkerRequest{Act: triage.DrainWorker, Worker: "w"})
	require.NoError(t, err)
	require.True(t, plan.Changes)
	require.EqualValues(t, 2, plan.Now.Running)
	require.EqualValues(t, 3, plan.Now.Unstarted)
	require.Len(t, plan.Takers, 1, "only workers that fence attempts take over in place")
	require.Equal(t, "peer", plan.Takers[0].Name)
	require.EqualValues(t, 2, plan.Takers[0].Executions)
	require.EqualValues(t, 1, plan.Alone)
	require.Equal(t, []string{"python"}, plan.Last)
	require.Equal(t, []string{
		"2 executions run there and go on to their ends.", "3 waiting executions move to other workers within seconds.",
	}, plan.Effects[:2])
	require.Contains(t, plan.Effects[2], "No other worker can take 1 of them now")
	require.Contains(t, plan.Effects[3], "the last worker that is given work for python")
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM operator_audit`), "a plan only reads")
}

// A worker with executions is not forgotten, with the reason. Otherwise its queues, routes and row are deleted, but
// never messages in its queue.
func TestForgetting(t *testing.T) {
	b := setup(t)
	link := broker.New(broker.Config{URL: testkit.VHost(t)}, testkit.Logger(t), nil)
	ctx := testkit.Context(t)
	require.NoError(t, link.Start(ctx))
	t.Cleanup(link.Stop)
	require.NoError(t, link.DeclareCommon(ctx))
	forgetter := b.operator.With(link)
	action := testkit.Action(t, b.store, "pk.a")
	worker := func(name string, change func(*testkit.WorkerRow)) int64 {
		id := testkit.Worker(t, b.store, name, fenced, change).ID
		require.NoError(t, link.DeclareWorker(ctx, id, 0))
		return id
	}
	slots := testkit.State(t, b.store, action, 99)
	has := func(worker int64, status lifecycle.Status) {
		id := testkit.Execution(t, b.store, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker, status }).ID
		if !status.Terminal() {
			testkit.Hold(t, b.store, id, slots.ID)
		}
	}
	silent := func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour }
	left := func(w *testkit.WorkerRow) { w.Status, w.HeartbeatAge = "inactive", 0 }

	worker("works", func(*testkit.WorkerRow) {})
	worker("leaves", func(w *testkit.WorkerRow) { w.Status, w.Draining = "inactive", true })
	has(worker("died", silent), lifecycle.StatusRunning)
	has(worker("killed", silent), lifecycle.StatusScheduled)
	has(worker("stopped", left), lifecycle.StatusScheduled)
	has(worker("halted", left), lifecycle.StatusRunning)
	full, read := worker("full", left), worker("read", left)
	for range 2 {
		outcome := link.Publisher().Publish(ctx,
			[]broker.Message{{ID: "m", RoutingKey: message.WorkerExecutionsQueue(full)}})[0]
		require.NoError(t, outcome.Err)
	}
	reader := link.Consume(broker.ConsumerConfig{Queue: message.WorkerExecutionsQueue(read)})
	require.NoError(t, reader.Start(ctx))
	testkit.Eventually(t, reader.Subscribed, 10*time.Second)
	for name, why := range map[string]string{
		"works":   "it sends heartbeats: stop its process first",
		"leaves":  "its process is leaving and has not ended",
		"died":    "1 execution runs there and 0 were handed to it and have not begun: the engine decides about that within executor.timeout_check_interval",
		"killed":  "0 executions run there and 1 was handed to it",
		"stopped": "the engine gives it to other workers that can take it",
		"halted":  "the engine decides about that when the last heartbeat is stale",
		"full":    "2 messages lie in its queue of dispatches: none of them is needed, they expire within message_queue.rabbitmq.worker_queue_ttl_ms",
		"read":    "its queue is still being consumed: stop the process",
	} {
		_, err := forgetter.ActOnWorker(ctx, triage.WorkerRequest{Act: triage.ForgetWorker, Worker: name})
		var refused *triage.WorkerRefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Contains(t, refused.Error(), why, name)
		require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM worker WHERE name = $1`, name))
	}
	state, err := link.QueueState(ctx, message.WorkerExecutionsQueue(full))
	require.NoError(t, err)
	require.Equal(t, 2, state.Ready, "nothing was deleted")
	reader.Stop()

	drained := worker("drained", func(w *testkit.WorkerRow) { silent(w); w.Cordoned, w.Draining = true, true })
	has(drained, lifecycle.StatusCompleted)
	_, err = b.operator.ActOnWorker(ctx, triage.WorkerRequest{Act: triage.ForgetWorker, Worker: "drained"})
	require.ErrorIs(t, err, triage.ErrNoBroker)
	receipt, err := forgetter.ActOnWorker(ctx,
		triage.WorkerRequest{Act: triage.ForgetWorker, Worker: "drained", Reason: "sold"})
	require.NoError(t, err)
	require.True(t, receipt.Changed)
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM worker WHERE id = $1`, drained))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM worker_load WHERE worker = $1`, drained))
	state, err = link.QueueState(ctx, message.WorkerExecutionsQueue(drained))
	require.NoError(t, err)
	require.False(t, state.Exists)
	row := b.audit(t, receipt.Audit)
	require.Equal(t, []string{"worker.forget", "drained", "sold", "done"},
		[]string{row.Action, row.Target, row.Reason, row.Outcome})
	require.True(t, json.Valid(row.Request))
	_, err = forgetter.ActOnWorker(ctx, triage.WorkerRequest{Act: triage.ForgetWorker, Worker: "drained"})
	require.ErrorIs(t, err, triage.ErrNoWorker)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM operator_audit WHERE outcome = 'failed' AND target = 'full' AND error LIKE '%2 messages lie%'`))
}

// The wait for a hanging batch is bounded: the action is done, and the unsettled receipt tells that a dispatch may
// still follow.
func TestAHangingBatchLeavesAReceiptUnsettled(t *testing.T) {
	b := setup(t)
	id := testkit.Worker(t, b.store, "w").ID
	hanging := testkit.Begin(t, b.store)
	_, err := hanging.Exec(t.Context(), `SELECT FROM worker_load WHERE worker = $1 FOR UPDATE`, id)
	require.NoError(t, err)
	receipt := b.act(t, triage.CordonWorker, "w", "")
	require.True(t, receipt.Changed)
	require.False(t, receipt.Settled)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM worker WHERE cordoned`))
	require.NoError(t, hanging.Rollback(t.Context()))
	require.True(t, b.settled(t, receipt).Settled, "the same action again settles")
}
