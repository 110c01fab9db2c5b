package triage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// cancel plans and runs a cancellation.
func (b *bundle) cancel(t testing.TB, ids ...int64) *triage.CancelReceipt {
	t.Helper()
	return b.cancelRequest(t, triage.CancelRequest{IDs: ids, Reason: "enough"})
}

func (b *bundle) cancelRequest(t testing.TB, request triage.CancelRequest) *triage.CancelReceipt {
	t.Helper()
	plan, err := b.operator.PlanCancel(testkit.Context(t), request)
	require.NoError(t, err)
	receipt, err := b.operator.Cancel(testkit.Context(t), plan)
	require.NoError(t, err)
	return receipt
}

// deliver runs the batches with the messages that the operator has sent.
func (b *bundle) deliver(t testing.TB) {
	t.Helper()
	for _, m := range b.sent.take() {
		switch m.Type {
		case message.TypeExecutionCompleted:
			end, err := message.Decode[message.ExecutionCompleted](m.Body)
			require.NoError(t, err)
			_, err = b.scheduler.Run(t.Context(), scheduler.NewReleaseStep([]int64{end.Payload.ExecutionID}),
				scheduler.FillStep{})
			require.NoError(t, err)
		case message.TypeExecutionRequested:
			request, err := message.Decode[message.ExecutionRequested](m.Body)
			require.NoError(t, err)
			b.dispatch(t, request.Payload.ExecutionID)
		}
	}
}

// Upstream 19: a cancelled execution leaves its queue in order and without a trace. The next ones
// move up, and the receipt and the audit report it.
func TestACancelledExecutionLeavesItsQueue(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.line", 1)
	ids := b.request(t, action, 5)
	b.dispatch(t, ids...)
	require.Equal(t, ids[1:], b.waiting(t, action))

	plan, err := b.operator.PlanCancel(t.Context(), triage.CancelRequest{
		IDs:    []int64{ids[1], ids[3]},
		Reason: "enough",
	})
	require.NoError(t, err)
	require.Equal(t, 2, plan.Cancelled)
	require.Equal(t, ids[1:], b.waiting(t, action), "a plan does nothing")
	receipt, err := b.operator.Cancel(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, 2, receipt.Cancelled)
	require.Equal(t, "done", receipt.Outcome)
	require.Equal(t, []int64{ids[2], ids[4]}, b.waiting(t, action))
	require.Equal(t, lifecycle.StatusRequested, receipt.Executions[0].Was)
	b.invariants(t)

	a := b.audit(t, receipt.Audit)
	require.Equal(t, "ann@desk", a.Actor)
	require.Equal(t, "execution.cancel", a.Action)
	require.Equal(t, fmt.Sprintf("execution %d, %d", ids[1], ids[3]), a.Target)
	require.Equal(t, "enough", a.Reason)
	require.Equal(t, "done", a.Outcome)
	var request struct {
		Cancelled  int                   `json:"cancelled"`
		Executions []triage.CancelResult `json:"executions"`
	}
	require.NoError(t, json.Unmarshal(a.Request, &request))
	require.Equal(t, 2, request.Cancelled)
	require.Equal(t, receipt.Executions, request.Executions)

	b.deliver(t)
	b.finish(t, ids[0])
	require.Equal(t, []int64{ids[2]}, b.holders(t, action), "S4: the head of the queue")
	b.invariants(t)
}

// After a cancel of the blocked head the next execution is tried at once, without a sweep.
func TestTheNextAfterACancelledHeadIsTriedAtOnce(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.head", 5)
	picky := testkit.Execution(t, b.store, action).ID
	b.pause(t, action)
	next := b.request(t, action, 1)[0]
	b.dispatch(t, picky, next)
	require.Equal(t, []int64{picky, next}, b.waiting(t, action))
	b.sent.take()
	testkit.Exec(t, b.store, `update execution_admission_state set paused = false`) // without a message
	b.cancel(t, picky)
	b.deliver(t)
	require.Equal(t, []int64{next}, b.holders(t, action))
	b.invariants(t)
}

// Upstream 20: the completion of a dispatched and unstarted execution releases its slot, and its place at the worker.
func TestTheSlotOfADispatchedExecutionIsReleased(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.slot", 1)
	testkit.Exec(t, b.store, `update worker set capabilities = capabilities || '{"attempt_fence": true}'`)
	ids := b.request(t, action, 2)
	b.dispatch(t, ids...)
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[0]))
	receipt := b.cancel(t, ids[0])
	require.Equal(t, 1, receipt.Cancelled)
	require.Equal(t, lifecycle.StatusScheduled, receipt.Executions[0].Was)
	b.deliver(t)
	require.Equal(t, []int64{ids[1]}, b.holders(t, action))
	require.Equal(t, 1, testkit.Count(t, b.store, `select assigned from worker_load`))
	b.invariants(t)
}

func TestReceiptsNameUncancelledExecutions(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.ended", 1)
	ids := b.request(t, action, 1)
	b.dispatch(t, ids...)
	b.finish(t, ids[0])
	receipt := b.cancel(t, ids[0], 999_999)
	require.Equal(t, "unchanged", receipt.Outcome)
	require.Equal(t, triage.CancelCounts{Ended: 1, Missing: 1}, receipt.CancelCounts)
	require.Equal(t, lifecycle.StatusCompleted, receipt.Executions[0].Status)
	require.Equal(t, triage.CancelMissing, receipt.Executions[1].Outcome)
	require.Equal(t, "nothing to do", b.cancel(t, 999_998).Outcome)
	require.Empty(t, b.sent.take())
}

// The cancel of a tree is one action: parents first, more than a page of children, one audit row.
func TestTheCancelOfATreeIsOneAction(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.tree", 3)
	root := testkit.Execution(t, b.store, action,
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	var children []int64
	require.NoError(t, b.store.Pool().QueryRow(t.Context(), `with made as (
		insert into execution (action, action_ref, status, parent) select $1, $2, 'requested',
			$3 from generate_series(1, 230) returning id)
		select array_agg(id order by id) from made`, action.ID, action.Ref, root).Scan(&children))
	b.dispatch(t, children...)
	require.Len(t, b.waiting(t, action), 227)
	request := triage.CancelRequest{IDs: []int64{root}, Tree: true}
	plan, err := b.operator.PlanCancel(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, triage.CancelCounts{Cancelled: 228, Asked: 3}, plan.CancelCounts)
	receipt, err := b.operator.Cancel(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, plan.CancelCounts, receipt.CancelCounts)
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from operator_audit where outcome = 'done'`))
	require.Empty(t, b.waiting(t, action))
	require.Equal(t, fmt.Sprintf("execution %d with all below", root), b.audit(t, receipt.Audit).Target)
	b.invariants(t)
}

// S15: the pending retry of a failed execution is stopped. The first holder of the lock of its
// queue decides, and in neither order is a retry left.
func TestACancelAgainstTheRetryOfAFailedExecution(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.retry", 50)
	retry := scheduler.CompletionConfig{Retry: lifecycle.RetryPolicy{
		Enabled: true, Multiplier: 1, BaseDelay: time.Hour,
		MaxDelay: time.Hour,
	}}
	ids := b.request(t, action, 40)
	testkit.Exec(t, b.store, `update execution set max_retries = 3 where id = any($1)`, ids)
	b.dispatch(t, ids...)
	fail := func(id int64) {
		time.Sleep(time.Duration(rand.N(3_000_000)))
		if _, err := b.store.Pool().Exec(t.Context(),
			`update execution set status = 'failed', result = '{"error": "x"}' where id = $1`, id); err != nil {
			panic(err)
		}
		if _, err := b.scheduler.Run(t.Context(), scheduler.NewCompletionStep(retry,
			[]scheduler.Report{{Execution: id}}), scheduler.FillStep{}); err != nil {
			panic(err)
		}
	}
	cancel := func(id int64) {
		time.Sleep(time.Duration(rand.N(6_000_000)))
		if receipt, err := b.operator.Cancel(t.Context(),
			&triage.CancelPlan{CancelRequest: triage.CancelRequest{IDs: []int64{id}}}); err != nil {
			panic(fmt.Sprint(err, receipt))
		}
	}
	var group sync.WaitGroup
	for share := range slices.Chunk(ids, 10) { // as many at once as there are connections: a receipt waits only seconds
		group.Go(func() {
			for _, id := range share {
				var pair sync.WaitGroup
				pair.Go(func() { fail(id) })
				pair.Go(func() { cancel(id) })
				pair.Wait()
			}
		})
	}
	group.Wait()
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from execution e where e.finished_status is null`),
		"no retry is alive")
	require.Equal(t, testkit.Count(t, b.store, `select count(*) from execution where retry_count > 0`),
		testkit.Count(t, b.store, `select count(*) from execution where retry_count > 0 and status = 'cancelled'`))
	b.invariants(t)
}

// An execution fails after a cancel has read it and before the cancel has its row. The cancel then waits for the batch
// that completes it, which holds the lock of its queue, and stops the retry.
func TestACancelOfAnExecutionThatFailsMeanwhileWaitsForItsQueue(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.meanwhile", 5)
	id := b.request(t, action, 1)[0]
	b.dispatch(t, id)
	failure, batch := testkit.Begin(t, b.store), testkit.Begin(t, b.store)
	_, err := failure.Exec(t.Context(), `update execution set status = 'failed' where id = $1`, id)
	require.NoError(t, err)
	_, err = batch.Exec(t.Context(), `select from execution_admission_state for update`)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := b.operator.Cancel(testkit.Context(t),
			&triage.CancelPlan{CancelRequest: triage.CancelRequest{IDs: []int64{id}}})
		done <- err
	}()
	waits := func(statement string) func() bool {
		return func() bool {
			return len(done) > 0 || testkit.Count(t, b.store, `select count(*) from pg_stat_activity
				where datname = current_database() and wait_event_type = 'Lock' and query like '%name: ' || $1 || ' %'`,
				statement) == 1
		}
	}
	testkit.Eventually(t, waits("LockForChange"), testkit.TestTimeout)
	require.Empty(t, done)
	require.NoError(t, failure.Commit(t.Context()))
	testkit.Eventually(t, waits("LockAdmissionStates"), testkit.TestTimeout)
	require.Empty(t, done, "it did not wait for the queue")
	require.NoError(t, batch.Commit(t.Context()))
	require.NoError(t, <-done)
	retry := scheduler.CompletionConfig{Retry: lifecycle.RetryPolicy{Enabled: true, Multiplier: 1}}
	testkit.Exec(t, b.store, `update execution set max_retries = 3`)
	_, err = b.scheduler.Run(t.Context(), scheduler.NewCompletionStep(retry, []scheduler.Report{{Execution: id}}))
	require.NoError(t, err)
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from execution`), "it is not retried")
}

// The receipt of a cancelled workflow does not count its ended tasks.
func TestEndedTasksOfACancelledWorkflowAreNotCounted(t *testing.T) {
	b := setup(t)
	id := b.workflow(t, "pk.flow")
	testkit.Execution(t, b.store, testkit.Action(t, b.store, "pk.task"),
		func(e *testkit.ExecutionRow) { e.Parent, e.Status = &id, lifecycle.StatusCompleted })
	require.Equal(t, triage.CancelCounts{Cancelled: 1},
		b.cancelRequest(t, triage.CancelRequest{IDs: []int64{id}}).CancelCounts)
	require.Equal(t, triage.CancelCounts{Ended: 2},
		b.cancelRequest(t, triage.CancelRequest{IDs: []int64{id}, Tree: true}).CancelCounts)
}

// Cancels run beside each other and beside batches that admit, dispatch and complete. Each cancelled execution ends
// once, no queue keeps one, no slot is lost, and no cancel fails.
func TestCancelsBesideReplicas(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.storm", 3, byTenant)
	testkit.Policy(t, b.store, action, 7, testkit.OfPack(action))
	testkit.Exec(t, b.store, `update worker set capabilities = capabilities || '{"attempt_fence": true}'`)
	ctx, stop := context.WithCancel(testkit.Context(t))
	defer stop()
	wait := b.storm(ctx, t, action, 2)
	var acts sync.WaitGroup
	todo := make(chan int64, 1000)
	for range 3 {
		acts.Go(func() {
			for id := range todo {
				if _, err := b.operator.Cancel(ctx,
					&triage.CancelPlan{CancelRequest: triage.CancelRequest{IDs: []int64{id, id + 1}}}); err != nil {
					panic(fmt.Sprintf("cancel %d: %v", id, err))
				}
			}
		})
	}
	var ids []int64
	for range 30 {
		var batch []int64
		for range 10 {
			batch = append(batch, b.requestIn(t, action, fmt.Sprint(rand.N(6))))
		}
		todo <- batch[0]
		todo <- batch[5]
		b.dispatch(t, batch...)
		todo <- batch[8]
		ids = append(ids, batch...)
	}
	close(todo)
	acts.Wait()
	testkit.Eventually(t, func() bool {
		// The sweep of an engine replaces the messages of the cancels, which reach no engine here.
		ended := b.ids(t, `select coalesce(array_agg(id), '{}') from execution where status = 'cancelled' and
			(exists (select from execution_holder h where h.execution = execution.id) or exists (select from execution_admission_entry q where q.execution_id = execution.id))`)
		queues := b.ids(t, `select coalesce(array_agg(id), '{}') from execution_admission_state where queued_count > 0`)
		_, err := b.scheduler.Run(ctx, scheduler.NewReleaseStep(ended), scheduler.FillStep{Queues: queues})
		require.NoError(t, err)
		return b.count(t, "completed")+b.count(t, "cancelled") == len(ids) && len(b.holders(t, action)) == 0
	}, testkit.TestTimeout)
	stop()
	wait()
	require.Positive(t, b.count(t, "cancelled"))
	require.Empty(t, b.waiting(t, action))
	ends := map[int64]int{}
	for _, m := range append(b.sent.take(), b.batches.take()...) { // an engine may come first
		if m.Type == message.TypeExecutionCompleted {
			end, err := message.Decode[message.ExecutionCompleted](m.Body)
			require.NoError(t, err)
			ends[end.Payload.ExecutionID]++
		}
	}
	// A batch ends an execution whose request it reads when its turn comes; that message is the engine's.
	byCancels := testkit.Count(t, b.store, `select count(*) from execution where status = 'cancelled'
		and result ->> 'cancelled_by' <> 'execution_scheduler'`)
	require.Len(t, ends, byCancels, "S14: every end by a cancel is announced")
	for id, n := range ends {
		require.Equal(t, 1, n, "S14: execution %d ended once", id)
	}
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from late_write`))
	b.invariants(t)
}

// A batch that has decided about a request before a concurrent cancel commits finds its guard false and decides again.
func TestACancelBetweenARequestAndItsAdmission(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.born", 2)
	for range 30 {
		ids := b.request(t, action, 4)
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := b.scheduler.Run(t.Context(), scheduler.FillStep{}, scheduler.NewRequestStep(ids)); err != nil {
				panic(err)
			}
		})
		group.Go(func() {
			if _, err := b.operator.Cancel(t.Context(),
				&triage.CancelPlan{CancelRequest: triage.CancelRequest{IDs: ids}}); err != nil {
				panic(err)
			}
		})
		group.Wait()
		b.deliver(t)
		require.Empty(t, b.waiting(t, action))
		live := b.ids(t, `select coalesce(array_agg(id), '{}') from execution where status = 'canceling'`)
		b.end(t, live) // as their worker does after the cancel request
	}
	b.invariants(t)
}

// end ends executions as a worker does after a cancel request.
func (b *bundle) end(t *testing.T, ids []int64) {
	t.Helper()
	testkit.Exec(t, b.store, `update execution set status = 'cancelled' where id = any($1)`, ids)
	_, err := b.scheduler.Run(t.Context(), scheduler.NewReleaseStep(ids), scheduler.FillStep{})
	require.NoError(t, err)
}

// obey makes workers and engines react to every message of the operator before the operator goes on: workers end what
// they are asked to stop, and its slots go to waiting executions, which begin. began counts the beginnings.
func (b *bundle) obey(t *testing.T) (began func() int) {
	t.Helper()
	testkit.Exec(t, b.store, `update execution set status = 'running' where status = 'scheduled'`)
	b.sent.seen = func() {
		b.end(t, b.ids(t,
			`select coalesce(array_agg(id), '{}') from execution where status = 'canceling' and worker is not null`))
		testkit.Exec(t, b.store, `update execution set status = 'running' where status = 'scheduled'`)
	}
	return func() int {
		return testkit.Count(t, b.store, `select count(*) from execution where worker is not null`)
	}
}

// No slot of a stopped execution starts another one of the same cancellation, whatever the limits, the order of the ids
// and their number. Requests that come meanwhile take the slots.
func TestACancellationStartsNoneOfItsExecutions(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]triage.CancelRequest{"in pages": {}, "paced": {Paced: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.operator = triage.New(triage.Config{Pace: time.Microsecond}, b.store, b.sent)
			action := b.limited(t, "pk.one", 15)
			testkit.Policy(t, b.store, action, 25, testkit.OfPack(action))
			other := testkit.Action(t, b.store, "pk.other")
			request.IDs = append(b.request(t, action, 150), b.request(t, other, 150)...)
			b.dispatch(t, request.IDs...)
			later := b.request(t, action, 3)
			b.dispatch(t, later...)
			began := b.obey(t)
			require.Equal(t, 25, began())
			receipt := b.cancelRequest(t, request)
			require.Equal(t, triage.CancelCounts{Cancelled: 275, Asked: 25}, receipt.CancelCounts)
			b.deliver(t)
			require.Equal(t, 25+len(later), began(), "executions of the cancellation began")
			require.Equal(t, later, b.holders(t, action))
			b.invariants(t)
		})
	}
}

// A paced cancellation stops 20 executions, waits for their share of the pace, and goes on. Interrupted, it names the
// ones that it did not reach, which run on.
func TestAPacedCancellationStopsAFewAtATime(t *testing.T) {
	b := setup(t)
	const pace = 5 * time.Millisecond
	b.operator = triage.New(triage.Config{Pace: pace}, b.store, b.sent)
	action := b.limited(t, "pk.paced", 90)
	ids := b.request(t, action, 92)
	b.dispatch(t, ids...)
	testkit.Exec(t, b.store, `update execution set status = 'running' where status = 'scheduled'`)
	began := time.Now()
	b.cancelRequest(t, triage.CancelRequest{IDs: ids[:41], Paced: true})
	require.GreaterOrEqual(t, time.Since(began), 40*pace)
	require.Equal(t, 41, b.count(t, "canceling"))

	ctx, stop := context.WithCancel(testkit.Context(t))
	defer stop()
	rows := 0
	b.sent.seen = func() {
		if rows++; rows == 2 { // the withdrawn ones, then the first of the others
			stop()
		}
	}
	receipt, err := b.operator.Cancel(ctx,
		&triage.CancelPlan{CancelRequest: triage.CancelRequest{IDs: ids[41:], Paced: true}})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "interrupted", receipt.Outcome)
	require.Equal(t, triage.CancelCounts{Cancelled: 2, Asked: 20}, receipt.CancelCounts)
	require.Equal(t, ids[61:90], receipt.Left)
	require.Equal(t, 29, b.count(t, "running"))
	require.Equal(t, "interrupted", b.audit(t, receipt.Audit).Outcome)
}
