package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/cancellation"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// cancel cancels executions as an operator does.
func (b *bundle) cancel(ctx context.Context, request triage.CancelRequest) (*triage.CancelReceipt, error) {
	operator := triage.New(triage.Config{Actor: "ann@desk"}, b.store, b.relay)
	plan, err := operator.PlanCancel(ctx, request)
	if err != nil {
		return nil, err
	}
	return operator.Cancel(ctx, plan)
}

func (b *bundle) mustCancel(t *testing.T, ids ...int64) *triage.CancelReceipt {
	t.Helper()
	receipt, err := b.cancel(testkit.Context(t), triage.CancelRequest{IDs: ids})
	require.NoError(t, err)
	return receipt
}

// poll starts another poll, with a short interval.
func (b *bundle) poll(t *testing.T, cfg cancellation.Config) {
	t.Helper()
	cfg.Interval = 100 * time.Millisecond
	p := cancellation.NewPoll(cfg, b.store, b.relay, testkit.Logger(t), nil)
	require.NoError(t, p.Start(testkit.Context(t)))
	t.Cleanup(p.Stop)
}

func (b *bundle) untilStatus(t *testing.T, status lifecycle.Status, ids ...int64) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = ANY($1) AND status::text = $2`, ids,
			string(status)) == len(ids)
	}, 20*time.Second, "executions %v become %s", ids, status)
}

// Upstream 19, 20: a cancelled execution, whether running, dispatched or queued, releases its slot or its place
// within a second, with both kinds of worker, and the next queued execution runs.
func TestACancelFreesSlotsAtOnce(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T, b *bundle){
		"OurWorker": func(t *testing.T, b *bundle) { b.worker(t, "w1", 3) },
		"ForeignWorker": func(t *testing.T, b *bundle) {
			testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
				AMQPURL: b.AMQP, DatabaseURL: b.Database, Concurrency: 3,
				Behave: func(ctx context.Context, job testkit.Job) testkit.Answer {
					if !strings.Contains(string(job.Config), "600") {
						return testkit.Answer{}
					}
					<-ctx.Done()
					return testkit.Answer{}
				},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.engine(t)
			action := testkit.Action(t, b.store, "pack.three",
				func(a *testkit.ActionRow) { a.Entrypoint = "core.sleep" })
			testkit.Policy(t, b.store, action, 3)
			start(t, b)
			long := b.request(t, "pack.three", 5, `{"seconds": 600}`)
			b.untilStatus(t, lifecycle.StatusRunning, long[:3]...)
			quick := b.request(t, "pack.three", 3, `{}`)
			testkit.Eventually(t, func() bool {
				return testkit.Count(t, b.store, `SELECT count(*) FROM execution_admission_entry`) == 5
			}, 10*time.Second)

			begin := time.Now()
			receipt := b.mustCancel(t, long[0], long[1], long[2], long[3], long[4])
			require.Equal(t, triage.CancelCounts{Asked: 3, Cancelled: 2}, receipt.CancelCounts)
			b.untilStatus(t, lifecycle.StatusCompleted, quick...)
			require.Less(t, time.Since(begin), cancellation.GraceDefault, "by messages, not by a sweep")
			b.settled(t, 20*time.Second)
			require.Equal(t, 5, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'cancelled'`))
			require.Zero(t, testkit.Count(t, b.store,
				`SELECT count(*) FROM execution WHERE id = ANY($1) AND started_at IS NOT NULL`, long[3:]))
		})
	}
}

// river#1397, #1564: the cancel request reaches no queue. The poll sends it again, and the execution
// ends. The worker is of another program, which reads no rows while it runs something.
func TestALostRequestToStopIsSentAgain(t *testing.T) {
	b := setup(t)
	b.engine(t)
	w := testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: b.AMQP, DatabaseURL: b.Database,
		Behave: func(ctx context.Context, _ testkit.Job) testkit.Answer { <-ctx.Done(); return testkit.Answer{} },
	})
	id := b.request(t, "core.echo", 1, `{"message": "hi"}`)[0]
	b.untilStatus(t, lifecycle.StatusRunning, id)
	key, queue := message.CancelKey(w.ID), message.WorkerCancelQueue(w.ID)
	binding := "/api/bindings/" + testkit.VHostName(t, b.AMQP) + "/e/" + message.ExchangeExecutions + "/q/" + queue
	testkit.Manage(t, "DELETE", binding+"/"+key, nil, nil)
	b.mustCancel(t, id)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM outbox WHERE $1 = ANY(routing_keys)`, key) == 0 ||
			testkit.Count(t, b.store, `SELECT count(*) FROM outbox WHERE last_error <> ''`) > 0
	}, 10*time.Second, "the request was returned")
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, b.store, id))
	testkit.Exec(t, b.store, `DELETE FROM outbox WHERE $1 = ANY(routing_keys)`, key) // lost for good
	testkit.Manage(t, "POST", binding, map[string]any{"routing_key": key}, nil)
	testkit.Exec(t, b.store, `UPDATE execution_cancel SET at = at - interval '10 seconds'`)
	b.poll(t, cancellation.Config{})
	b.untilStatus(t, lifecycle.StatusCancelled, id)
	b.settled(t, 20*time.Second)
}

// An existing API cancels a workflow by the row of its execution and a status report: the report is enough to stop its
// tasks.
func TestAStatusReportStopsTheTasksOfACancelledWorkflow(t *testing.T) {
	b := setup(t)
	e := b.engine(t)
	e.StopWorkflowSweep()
	testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: b.AMQP, DatabaseURL: b.Database,
		Behave: func(ctx context.Context, _ testkit.Job) testkit.Answer { <-ctx.Done(); return testkit.Answer{} },
	})
	b.define(t, "pk.flow", `
version: "1"
cancellation_policy: cancel_running
tasks: [{name: a, action: pk.go}]
`)
	testkit.Action(t, b.store, "pk.go")
	id := b.request(t, "pk.flow", 1, `{}`)[0]
	var child int64
	testkit.Eventually(t, func() bool {
		return b.store.Pool().QueryRow(testkit.Context(t),
			`SELECT id FROM execution WHERE parent = $1 AND status = 'running'`, id).Scan(&child) == nil
	}, 20*time.Second)

	testkit.Exec(t, b.store, `UPDATE execution SET status = 'canceling' WHERE id = $1`, id)
	body, err := message.New(message.TypeExecutionStatusChanged, message.ExecutionStatusChanged{
		ExecutionID: id, ActionRef: "pk.flow", PreviousStatus: "running", NewStatus: "canceling",
		ChangedAt: time.Now().UTC(),
	}, time.Now(), "api").Encode()
	require.NoError(t, err)
	outcome := b.connect(t, "api").Publisher().Publish(testkit.Context(t), []broker.Message{{
		ID: "m", Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionStatusChanged,
		Type: message.TypeExecutionStatusChanged, Body: body,
	}})[0]
	require.NoError(t, outcome.Err)
	b.untilStatus(t, lifecycle.StatusCancelled, child, id)
	b.settled(t, 20*time.Second)
}

// A worker of another program receives a canceling execution and never starts it. The poll closes
// the execution, and a waiting one gets its slot.
func TestAnExecutionThatAnExistingWorkerNeverStartsEnds(t *testing.T) {
	b := setup(t)
	b.engine(t, func(c *config.Config) {
		c.Executor.HeartbeatInterval, c.Executor.ScheduledTimeout = time.Hour, time.Hour
		c.Executor.HealthCheckInterval = time.Hour // it finds no consumer of the worker's queue
	})
	action := testkit.Action(t, b.store, "pack.one", func(a *testkit.ActionRow) { a.Entrypoint = "core.noop" })
	testkit.Policy(t, b.store, action, 1)
	w := testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{AMQPURL: b.AMQP, DatabaseURL: b.Database})
	w.Kill() // its queue stays, without a consumer
	id := b.request(t, "pack.one", 1, `{}`)[0]
	b.untilStatus(t, lifecycle.StatusScheduled, id)
	next := b.request(t, "pack.one", 1, `{}`)[0]
	receipt := b.mustCancel(t, id)
	require.Equal(t, 1, receipt.Asked)
	b.poll(t, cancellation.Config{Grace: 500 * time.Millisecond, StaleAfter: time.Hour})
	b.untilStatus(t, lifecycle.StatusCancelled, id)
	b.untilStatus(t, lifecycle.StatusScheduled, next)
	testkit.Invariants(t, b.store)
}

// A tree is cancelled while children are created: all of it ends, and no part of it starts later.
func TestATreeEndsWhileItsChildrenAreCreated(t *testing.T) {
	b := setup(t)
	b.engine(t)
	b.worker(t, "w1", 10)
	ctx := testkit.Context(t)
	var root int64
	require.NoError(t, b.store.Pool().QueryRow(ctx,
		`INSERT INTO execution (action_ref, status, started_at) VALUES ('a.parent', 'running', now()) RETURNING id`).Scan(&root))
	adopt := func(ids []int64) { // a child is only made if its parent is alive
		testkit.Exec(t, b.store, `UPDATE execution SET parent = $2 WHERE id = ANY($1)
			AND EXISTS (SELECT FROM execution p WHERE p.id = $2 AND p.status = 'running')`, ids, root)
	}
	adopt(b.request(t, "core.sleep", 15, `{"seconds": 600}`))
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM execution WHERE status = 'running' AND worker IS NOT NULL`) > 5
	}, 20*time.Second)
	var group sync.WaitGroup
	group.Go(func() {
		for range 5 {
			adopt(b.request(t, "core.sleep", 2, `{"seconds": 600}`))
		}
	})
	receipt, err := b.cancel(ctx, triage.CancelRequest{IDs: []int64{root}, Tree: true})
	require.NoError(t, err)
	group.Wait()
	require.GreaterOrEqual(t, receipt.Acted(), 16)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM execution e WHERE parent = $1 AND e.finished_status IS NULL`, root) == 0
	}, 20*time.Second)
	orphans := testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE parent IS NULL AND id <> $1`, root)
	require.LessOrEqual(t, orphans, 10, "created without a running parent")
}

// S15: a storm of executions that fail and are repeated, and of cancels at random
// moments: after a cancel was acknowledged no attempt of that execution starts.
func TestAfterAnAcknowledgedCancelNoAttemptStarts(t *testing.T) {
	b := setup(t)
	b.engine(t, func(c *config.Config) {
		c.Executor.Retry.BaseDelay, c.Executor.Retry.Multiplier, c.Executor.Retry.Jitter = 50*time.Millisecond, 1, 0
	})
	b.worker(t, "w1", 10)
	b.worker(t, "w2", 10)
	b.poll(t, cancellation.Config{})
	action := testkit.Action(t, b.store, "pack.fails",
		func(a *testkit.ActionRow) { a.Entrypoint, a.MaxRetries = "core.fail", 30 })
	testkit.Policy(t, b.store, action, 8)
	ids := b.request(t, "pack.fails", 40, `{}`)
	ctx := testkit.Context(t)
	acknowledged := make([]time.Time, len(ids))
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() {
			time.Sleep(rand.N(3 * time.Second))
			for range 200 { // one that has just ended, and is about to be repeated, is no acknowledgement
				receipt, err := b.cancel(ctx, triage.CancelRequest{IDs: []int64{id}})
				if err != nil {
					panic(fmt.Sprintf("cancel %d: %v", id, err))
				}
				if receipt.Acted() > 0 {
					acknowledged[i] = b.now(ctx)
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	group.Wait()
	b.settled(t, 30*time.Second)
	for i, id := range ids {
		if acknowledged[i].IsZero() {
			continue // its failure was noted before it was repeated: nothing was alive any more
		}
		require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution
			WHERE (id = $1 OR original_execution = $1) AND started_at > $2`, id, acknowledged[i]), "S15: execution %d", id)
	}
}

// now is the database's time.
func (b *bundle) now(ctx context.Context) (at time.Time) {
	if err := b.store.Pool().QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&at); err != nil {
		panic(err)
	}
	return at
}

// Cancels at random moments against an existing worker, which writes running without a check and does not know
// attempts: everything ends, executions that were cancelled at once never ran, and every slot is released.
func TestCancelsAgainstStartsOfAnExistingWorker(t *testing.T) {
	b := setup(t)
	b.engine(t)
	b.poll(t, cancellation.Config{})
	w := testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: b.AMQP, DatabaseURL: b.Database, Concurrency: 10,
		Behave: func(ctx context.Context, _ testkit.Job) testkit.Answer { <-ctx.Done(); return testkit.Answer{} },
	})
	action := testkit.Action(t, b.store, "pack.eight", func(a *testkit.ActionRow) { a.Entrypoint = "core.noop" })
	testkit.Policy(t, b.store, action, 8)
	ids := b.request(t, "pack.eight", 40, `{}`)
	ctx := testkit.Context(t)
	outcomes := make([]triage.CancelOutcome, len(ids))
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() {
			time.Sleep(rand.N(1500 * time.Millisecond))
			receipt, err := b.cancel(ctx, triage.CancelRequest{IDs: []int64{id}})
			if err != nil {
				panic(fmt.Sprintf("cancel %d: %v", id, err))
			}
			outcomes[i] = receipt.Executions[0].Outcome
		})
	}
	group.Wait()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status <> 'cancelled' OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = execution.id)`) == 0
	}, 30*time.Second, "everything is cancelled and released")
	testkit.Invariants(t, b.store)
	ran := map[int64]bool{}
	for _, run := range w.Runs() {
		ran[run.Job.ExecutionID] = true
	}
	for i, id := range ids {
		require.False(t, outcomes[i] == triage.CancelDone && ran[id],
			"S15: execution %d was acknowledged as cancelled and ran", id)
	}
}
