package proof

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// The promises of a highly available scheduler, one by one. The chaos tests of this package check each of them
// too; here each has its own test, whose failure names the broken promise.

// dispatched publishes the outbox and counts the dispatches of each execution.
func (r *room) dispatched() map[int64]int {
	r.t.Helper()
	ids, _ := r.sent.take(r.t)
	counts := map[int64]int{}
	for _, id := range ids {
		counts[id]++
	}
	return counts
}

// S1, S2: two schedulers that get the same message at the same moment dispatch the execution once.
func TestHATwoSchedulersOnOneMessageDispatchOnce(t *testing.T) {
	r := newRoom(t)
	free, one := r.limited("pk.free", 0), r.limited("pk.one", 1)
	for range 10 {
		ids := slices.Concat(r.make(free, 1), r.make(one, 1))
		r.together(2, func(replica *scheduler.Scheduler, _ int) { r.try(replica, nil, ids) })
		require.Equal(t, map[int64]int{ids[0]: 1, ids[1]: 1}, r.dispatched())
		r.finish(lifecycle.StatusCompleted, ids...)
		require.Equal(t, scheduler.Result{Released: 2}, r.report(ids...))
	}
	r.settle()
}

// S1, S2, S13, F14: three schedulers that get one message several times each, in batches with others and alone,
// dispatch every execution once.
func TestHAThreeSchedulersOneMessageManyTimes(t *testing.T) {
	r := newRoom(t)
	ids := slices.Concat(r.make(r.limited("pk.free", 0), 5), r.make(r.limited("pk.many", 5), 5))
	r.together(3, func(replica *scheduler.Scheduler, _ int) {
		for range 5 {
			batch := slices.Clone(ids)
			rand.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
			r.try(replica, nil, batch[:1+rand.IntN(len(batch))])
		}
		r.try(replica, nil, ids)
	})
	want := map[int64]int{}
	for _, id := range ids {
		want[id] = 1
	}
	require.Equal(t, want, r.dispatched())
	require.Zero(t, r.count(`SELECT count(*) FROM execution WHERE attempt <> 1`))
	r.settle()
}

// L3: a replica that did not dispatch the execution may read its end; the queue continues in order.
func TestHACompletionByAnotherReplicaAdvancesTheQueue(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.one", 1)
	ids := r.make(action, 4)
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 3}, r.ask(ids...))
	for i, id := range ids[:3] {
		require.Equal(t, map[int64]int{id: 1}, r.dispatched())
		r.finish(lifecycle.StatusCompleted, id)
		require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, r.on(r.replica(), []int64{id}, nil))
		require.Equal(t, ids[i+2:], r.queued(action))
	}
	r.settle()
}

// S7, S13, F14: an end that is reported many times, late, out of order and to different replicas releases one
// slot.
func TestHADuplicateCompletionsReleaseOnce(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.three", 3)
	ids := r.make(action, 12)
	r.ask(ids...)
	for done := 0; done < len(ids); done += 3 {
		running := ids[done:min(done+3, len(ids))]
		r.finish(lifecycle.StatusCompleted, running...)
		r.together(3, func(replica *scheduler.Scheduler, _ int) {
			for range 4 {
				reports := slices.Concat(running, ids[:done], running[:1])
				rand.Shuffle(len(reports), func(i, j int) { reports[i], reports[j] = reports[j], reports[i] })
				r.try(replica, reports, nil)
			}
		})
		require.Equal(t, min(3, len(ids)-done-3), r.holders(action))
	}
	for id, n := range r.dispatched() {
		require.Equal(t, 1, n, "S2: dispatches of execution %d", id)
	}
	require.Equal(t, len(ids), r.count(`SELECT total_completed FROM queue_stats WHERE action_id = $1`, action.ID),
		"counted once each")
	r.settle()
}

// S8, F15: a report of the end changes nothing before the row says that the execution runs, and counts after it,
// whatever messages arrive in between.
func TestHACompletionBeforeTheRunningReport(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.one", 1)
	ids := r.make(action, 2)
	r.ask(ids...)
	require.Equal(t, scheduler.Result{}, r.report(ids[0]), "the row says that it was not even started")
	r.finish(lifecycle.StatusRunning, ids[0])
	require.Equal(t, scheduler.Result{}, r.report(ids[0]), "the row says that it runs")
	require.Equal(t, []lifecycle.Status{lifecycle.StatusRunning, lifecycle.StatusRequested}, r.statuses(ids...))
	r.finish(lifecycle.StatusCompleted, ids[0])
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, r.report(ids[0]))
	// The worker's own message that it runs arrives last.
	r.finish(lifecycle.StatusRunning, ids[0])
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, r.store, ids[0]))
	require.Equal(t, scheduler.Result{}, r.report(ids[0]))
	r.settle()
}

// S15, F15: a cancel that is written and published before the request is read prevents every dispatch.
func TestHACancelledBeforeRequested(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.one", 1)
	ids := r.make(action, 3)
	r.finish(lifecycle.StatusCancelled, ids[0])
	require.Equal(t, scheduler.Result{}, r.report(ids[0]), "the cancel is reported first")
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 1}, r.ask(ids...))
	r.finish(lifecycle.StatusCancelled, ids[2])
	require.Equal(t, map[int64]int{ids[1]: 1}, r.dispatched())
	r.finish(lifecycle.StatusCompleted, ids[1])
	r.on(r.replica(), []int64{ids[2], ids[1], ids[0]}, ids)
	require.Empty(t, r.dispatched(), "no execution is left to run")
	require.Zero(t, r.holders(action))
	require.Empty(t, r.queued(action))
	r.settle()
}

// S13, upstream 7, F16: a scheduler dies with a scheduled execution whose message was not published. The message
// is in the database; another scheduler publishes it, and the worker starts it once.
func TestHACrashAfterClaimBeforePublish(t *testing.T) {
	s := newStage(t)
	s.worker("w1")
	victim := s.serve(dieAt("batch:committed", 1))
	ids := s.request(actFree, 1)
	testkit.Eventually(t, victim.killed, 20*time.Second)
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, s.store, ids[0]))
	// The row of the request, which is published, may still be there.
	require.Equal(t, 1, s.count(`SELECT count(*) FROM outbox WHERE routing_keys[1] LIKE 'execution.dispatch.%'`),
		"the unpublished message is there")
	s.age()
	s.serve()
	s.over()
	s.requireOnce(ids)
}

// S13, L3, upstream 7, F16: a scheduler dies after it gave a released slot to the next execution, whose message was
// not published. Another one publishes it.
func TestHACrashAfterReleaseBeforeRepublish(t *testing.T) {
	s := newStage(t)
	testkit.Exec(t, s.store, `UPDATE policy SET threshold = 1`)
	gate := make(chan struct{})
	s.gate(gate)
	s.worker("w1")
	first := s.serve()
	ids := s.request(actLimited, 2)
	testkit.Eventually(t,
		func() bool { return s.count(`SELECT count(*) FROM execution WHERE status = 'running'`) == 1 }, 20*time.Second)
	testkit.Eventually(t, func() bool { return s.count(`SELECT count(*) FROM execution_admission_entry`) == 1 },
		20*time.Second)
	require.Zero(t, first.stop(t))
	close(gate)
	testkit.Eventually(t,
		func() bool { return s.count(`SELECT count(*) FROM execution WHERE status = 'completed'`) == 1 },
		20*time.Second)

	victim := s.run("serve", "ATTUNE__EXECUTOR__HTTP__LISTEN=", dieAt("batch:committed", 1))
	testkit.Eventually(t, victim.killed, 20*time.Second)
	require.Equal(t, 1, s.count(`SELECT count(*) FROM execution WHERE status = 'scheduled' AND EXISTS (SELECT FROM execution_holder h WHERE h.execution = execution.id)`), "the next one has the slot")
	require.Equal(t, 1, s.count(`SELECT count(*) FROM execution_holder`), "S7: the other one has released it")
	require.Positive(t, s.count(`SELECT count(*) FROM outbox`), "its dispatch was not sent")
	s.age()
	s.serve()
	s.over()
	s.requireOnce(ids)
}

// S9, S14, L4, upstream 32: a worker's heartbeats become stale, and the engine closes what it ran. The worker was
// only cut off, and reports after the decision: the row stays as decided, what the worker wrote is stored beside
// it, and neither its report nor a second one releases a slot that another execution holds by now.
func TestHALateCompletionAfterTheEngineGaveUp(t *testing.T) {
	s := newStage(t)
	testkit.Exec(t, s.store, `UPDATE policy SET threshold = 1`)
	answer := make(chan struct{})
	late := testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: s.AMQP, DatabaseURL: s.Database, HeartbeatInterval: 200 * time.Millisecond,
		Behave: func(ctx context.Context, _ testkit.Job) testkit.Answer {
			select {
			case <-ctx.Done():
			case <-answer:
			}
			return testkit.Answer{Status: "completed", Times: 2}
		},
	})
	engine := s.serve("ATTUNE__EXECUTOR__NO_WORKERS=wait", "ATTUNE__EXECUTOR__HEARTBEAT_INTERVAL=1s",
		"ATTUNE__EXECUTOR__HEARTBEAT_STALENESS_MULTIPLIER=10", "ATTUNE__EXECUTOR__TIMEOUT_CHECK_INTERVAL=200ms")
	ids := s.request(actLimited, 3)
	testkit.Eventually(t, func() bool { return len(late.Runs()) == 1 }, 20*time.Second)
	s.cordoned(late.Name) // it gets nothing else, even if its heartbeats resume
	id := late.Runs()[0].Job.ExecutionID
	late.StopHeartbeat()
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, s.store, id) == lifecycle.StatusAbandoned },
		20*time.Second)

	gate := make(chan struct{})
	s.gate(gate)
	s.worker("w1")
	testkit.Eventually(t,
		func() bool { return s.count(`SELECT count(*) FROM execution WHERE status = 'running'`) == 1 }, 20*time.Second)
	close(answer)
	testkit.Eventually(t, func() bool { return len(s.completions.of(id)) == 2 }, 20*time.Second,
		"the engine reported one end, and the worker another")
	testkit.Eventually(t,
		func() bool { return s.count(`SELECT count(*) FROM late_write WHERE execution = $1`, id) > 0 }, 20*time.Second)
	require.Equal(t, lifecycle.StatusAbandoned, testkit.StatusOf(t, s.store, id))
	require.Equal(t, 1, s.count(`SELECT count(*) FROM execution_holder`), "S3: one holds the one slot")
	require.Equal(t, 1, s.count(`SELECT count(*) FROM execution_admission_entry`),
		"S7: the last one still waits for it")
	close(gate)
	s.over()
	require.Equal(t, 2, s.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'completed'`, ids))
	require.Len(t, late.Runs(), 1)
	require.Zero(t, engine.stop(t))
}

// gate holds the actions of workers that start from now on until the gate is closed.
func (s *stage) gate(gate <-chan struct{}) {
	s.runLog.mu.Lock()
	defer s.runLog.mu.Unlock()
	s.runLog.gate = gate
}

// F14, S13: all old messages are published again, in any order, after the end. Nothing is dispatched, released or
// started any more.
func TestHAReplayOfEverythingChangesNothing(t *testing.T) {
	s := newStage(t)
	everything := s.record("#")
	s.worker("w1")
	s.serve()
	s.serve()
	ids := s.load(func() bool { return true })
	s.over()
	s.requireOnce(ids)
	// Messages that were published at the end may still be on their way to the recorder.
	testkit.Eventually(t, func() bool { return len(everything()) >= 3*len(ids) }, 10*time.Second,
		"request, dispatch and end of each")
	again := everything()
	rand.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
	before := s.count(`SELECT count(*) FROM execution_history`)
	for _, outcome := range s.wire.Publisher().Publish(testkit.Context(t), again) {
		require.Equal(t, broker.Confirmed, outcome.Status, "%v", outcome.Err)
	}
	last := s.request(actLimited, 4)
	s.over()
	testkit.Eventually(t, func() bool {
		for _, queue := range []string{message.QueueExecutionRequests, message.QueueExecutionCompleted} {
			state, err := s.wire.QueueState(testkit.Context(t), queue)
			require.NoError(t, err)
			if state.Ready > 0 {
				return false
			}
		}
		return true
	}, 20*time.Second)
	s.requireOnce(append(ids, last...))
	require.LessOrEqual(t, s.count(`SELECT count(*) FROM execution_history`)-before, 4*len(last),
		"only the last four have a history of their own")
}

// record stores every message that is published to the exchange of executions from now on.
func (s *stage) record(key string) func() []broker.Message {
	var mu sync.Mutex
	var kept []broker.Message
	s.subscribe(key, func(routingKey, kind string, body []byte) {
		mu.Lock()
		defer mu.Unlock()
		kept = append(kept, broker.Message{
			ID: uuid.NewString(), Exchange: message.ExchangeExecutions, RoutingKey: routingKey, Type: kind, Body: body,
		})
	})
	return func() []broker.Message {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(kept)
	}
}
