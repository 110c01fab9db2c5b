package triage_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/triage"
)

// queueRig has one worker that is away, with a queue of five minutes.
type queueRig struct {
	*triage.QueueTTLs

	t          *testing.T
	ctx        context.Context
	st         *store.Store
	broker     *broker.Broker
	management *broker.Management
	vhost      string
	plain      *amqp.Channel
	worker     int64
	sent       []string
}

func newQueueRig(t *testing.T) *queueRig {
	t.Helper()
	amqpURL := testkit.VHost(t)
	r := &queueRig{t: t, ctx: testkit.Context(t), st: testkit.Store(t), vhost: testkit.VHostName(t, amqpURL)}
	r.broker = broker.New(broker.Config{URL: amqpURL}, testkit.Logger(t), nil)
	require.NoError(t, r.broker.Start(r.ctx))
	t.Cleanup(r.broker.Stop)
	var err error
	r.management, err = broker.NewManagement(testkit.ManagementURL(t), r.vhost, 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(r.management.Close)
	conn, err := amqp.Dial(amqpURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // may have been closed by the test
	r.plain, err = conn.Channel()
	require.NoError(t, err)
	r.worker = testkit.Worker(t, r.st, "away", func(w *testkit.WorkerRow) { w.Status, w.HeartbeatAge = "inactive", time.Hour }).ID
	require.NoError(t, r.broker.DeclareExecutor(r.ctx))
	require.NoError(t, r.broker.DeclareWorker(r.ctx, r.worker, 0))
	require.NoError(t, r.broker.BindWorkerDeadLetters(r.ctx, r.worker))
	r.QueueTTLs = r.fresh()
	return r
}

// fresh is what a new process has.
func (r *queueRig) fresh() *triage.QueueTTLs {
	return triage.NewQueueTTLs(triage.QueueTTLConfig{Config: triage.Config{Actor: "ann"}}, r.st, r.broker, r.management)
}

func (r *queueRig) queue() string { return message.WorkerExecutionsQueue(r.worker) }

// send hands n executions over; none may be unroutable.
func (r *queueRig) send(n int) {
	r.t.Helper()
	var all []broker.Message
	for range n {
		id := fmt.Sprintf("m%d", len(r.sent))
		r.sent = append(r.sent, id)
		all = append(all, broker.Message{
			ID: id, Exchange: message.ExchangeExecutions, RoutingKey: message.DispatchKey(r.worker), Type: "T", Headers: broker.Table{"id": id},
		})
	}
	for _, outcome := range r.broker.Publisher().Publish(r.ctx, all) {
		require.NoError(r.t, outcome.Err)
	}
}

// all takes every message out of the worker's queue.
func (r *queueRig) all() (ids []string) {
	r.t.Helper()
	for {
		one, ok, err := r.plain.Get(r.queue(), true)
		require.NoError(r.t, err)
		if !ok {
			return ids
		}
		require.Equal(r.t, message.DispatchKey(r.worker), one.RoutingKey, "by it a dead letter is routed")
		require.Equal(r.t, one.MessageId, one.Headers["id"])
		ids = append(ids, one.MessageId)
	}
}

// whole checks that no message is lost, and that nothing is left of the work.
func (r *queueRig) whole(ttl time.Duration) {
	r.t.Helper()
	got := r.all()
	for _, id := range r.sent {
		require.Contains(r.t, got, id)
	}
	require.LessOrEqual(r.t, len(got), 2*len(r.sent))
	row := r.row()
	require.Equal(r.t, ttl.Milliseconds(), *row.Argument)
	require.False(r.t, row.Interrupted)
	bindings, err := r.management.QueueBindings(r.ctx, r.queue())
	require.NoError(r.t, err)
	require.Equal(r.t, []broker.Binding{{Source: message.ExchangeExecutions, Queue: r.queue(), RoutingKey: message.DispatchKey(r.worker)}}, bindings)
	queues, err := r.management.Queues(r.ctx)
	require.NoError(r.t, err)
	for _, q := range queues {
		require.NotContains(r.t, q.Name, "holding")
		if q.Name == r.queue() {
			require.Equal(r.t, message.ExchangeDeadLetter, q.Arguments["x-dead-letter-exchange"])
			require.Len(r.t, q.Arguments, 2)
		}
	}
}

func (r *queueRig) row() triage.QueueTTL {
	r.t.Helper()
	report, err := r.Report(r.ctx)
	require.NoError(r.t, err)
	require.Len(r.t, report.Queues, 1)
	return report.Queues[0]
}

func (r *queueRig) change(ttl time.Duration, worker string) (*triage.QueueTTLPlan, *triage.QueueTTLReceipt, error) {
	r.t.Helper()
	plan, err := r.PlanTTL(r.ctx, triage.TTLOrder{TTL: ttl, Worker: worker})
	require.NoError(r.t, err)
	receipt, err := r.ApplyTTL(r.ctx, plan)
	return plan, receipt, err
}

const minutes5 = 5 * time.Minute

func TestTheTTLIsLoweredByPolicyAndRaisedBackWithoutOne(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	row := r.row()
	require.EqualValues(t, 300_000, *row.Argument)
	require.Equal(t, row.Argument, row.Effective)
	require.Empty(t, row.Advice)

	r.send(1) // keeps the time that it was sent with
	plan, receipt, err := r.change(time.Second, "")
	require.NoError(t, err)
	require.Empty(t, plan.Recreate)
	require.Equal(t, triage.PolicyWorkerTTL, receipt.Put)
	testkit.Eventually(t, func() bool { row := r.row(); return row.Policy != nil && *row.Effective == 1000 }, 10*time.Second)
	require.Equal(t, triage.PolicyWorkerTTL, r.row().PolicyName)
	_, receipt, err = r.change(time.Second, "")
	require.NoError(t, err)
	require.Equal(t, "unchanged", receipt.Outcome)
	require.Len(t, r.all(), 1)
	r.send(1)
	testkit.Eventually(t, func() bool {
		state, err := r.broker.QueueState(r.ctx, message.QueueDeadLetter)
		return err == nil && state.Ready == 1
	}, 10*time.Second, "at once for new messages")

	// One worker may have more than all have.
	_, _, err = r.change(time.Minute, "away")
	require.NoError(t, err)
	testkit.Eventually(t, func() bool { return *r.row().Effective == 60_000 }, 10*time.Second)

	_, receipt, err = r.change(minutes5, "")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{triage.PolicyWorkerTTL, fmt.Sprintf("%s-%d", triage.PolicyWorkerTTL, r.worker)}, receipt.Deleted)
	testkit.Eventually(t, func() bool { return *r.row().Effective == 300_000 }, 10*time.Second)
	require.Equal(t, 4, testkit.Count(t, r.st, `SELECT count(*) FROM operator_audit WHERE action = 'worker.ttl' AND actor = 'ann' AND outcome IN ('done', 'unchanged')`))
}

// A queue obeys one policy: ours must not put another's out of force.
func TestAnotherPolicyInTheWayIsNamed(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	require.NoError(t, r.management.PutPolicy(r.ctx, broker.Policy{
		Name: "limits", Pattern: "^worker", ApplyTo: "all", Definition: map[string]any{"max-length": 1000},
	}))
	plan, _, err := r.change(time.Minute, "")
	require.ErrorIs(t, err, triage.ErrQueueTTLRefused)
	require.Contains(t, plan.Blocked, `policy "limits"`)
	policies, err := r.management.Policies(r.ctx)
	require.NoError(t, err)
	require.Len(t, policies, 1)

	require.NoError(t, r.management.DeletePolicy(r.ctx, "limits"))
	testkit.Manage(t, "PUT", "/api/operator-policies/"+r.vhost+"/ops", map[string]any{
		"pattern": "^worker", "apply-to": "queues", "definition": map[string]any{"message-ttl": 2000},
	}, nil)
	testkit.Eventually(t, func() bool { row := r.row(); return row.Operator != nil && *row.Effective == 2000 }, 10*time.Second)
	require.Contains(t, r.row().Advice, `operator policy "ops"`)
	plan, _, err = r.change(time.Minute, "")
	require.ErrorIs(t, err, triage.ErrQueueTTLRefused)
	require.Contains(t, plan.Blocked, `operator policy "ops"`)
}

// Who may not change policies is refused by the broker, and does what needs none.
func TestWithoutTheRightToPoliciesTheRestIsDone(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	user := r.vhost + "_reader"
	testkit.Manage(t, "PUT", "/api/users/"+user, map[string]any{"password": "secret", "tags": "management"}, nil)
	defer testkit.Manage(t, "DELETE", "/api/users/"+user, nil, nil)
	testkit.Manage(t, "PUT", "/api/permissions/"+r.vhost+"/"+user, map[string]any{"configure": ".*", "write": ".*", "read": ".*"}, nil)
	base, err := url.Parse(testkit.ManagementURL(t))
	require.NoError(t, err)
	base.User = url.UserPassword(user, "secret")
	management, err := broker.NewManagement(base.String(), r.vhost, 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(management.Close)
	r.QueueTTLs = triage.NewQueueTTLs(triage.QueueTTLConfig{}, r.st, r.broker, management)
	report, err := r.Report(r.ctx)
	require.NoError(t, err)
	require.EqualValues(t, 300_000, *report.Queues[0].Argument)
	_, receipt, err := r.change(time.Minute, "")
	var answer *broker.ManagementError
	require.ErrorAs(t, err, &answer)
	require.Equal(t, "failed", receipt.Outcome)
	_, _, err = r.change(10*time.Minute, "") // needs no policy
	require.NoError(t, err)
	r.whole(10 * time.Minute)
}

func TestRaisingRecreatesTheQueueAndLosesNothing(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	r.send(150)
	plan, receipt, err := r.change(10*time.Minute, "")
	require.NoError(t, err)
	require.Len(t, plan.Recreate, 1)
	require.Len(t, plan.Warnings, 2, "existing workers, and our configuration")
	require.Equal(t, "done", receipt.Recreated[0].Outcome)
	require.Equal(t, 150, receipt.Recreated[0].Moved)
	sent := slices.Clone(r.sent)
	got := r.all()
	require.Equal(t, sent, got, "in their order, once")
	r.sent = nil
	r.whole(10 * time.Minute)
	require.ErrorContains(t, r.broker.DeclareWorker(r.ctx, r.worker, 0), "attune-executor workers ttl")
	require.Contains(t, r.row().Advice, "--recreate", "who declares five minutes is refused")

	// A policy gives it the old time, but not to those who declare it: for them it
	// is recreated again.
	_, receipt, err = r.change(minutes5, "")
	require.NoError(t, err)
	require.Equal(t, triage.PolicyWorkerTTL, receipt.Put)
	r.send(10)
	plan, err = r.PlanTTL(r.ctx, triage.TTLOrder{TTL: minutes5, Recreate: true})
	require.NoError(t, err)
	require.Nil(t, plan.Put)
	require.Equal(t, []string{triage.PolicyWorkerTTL}, plan.Delete)
	require.Empty(t, plan.Warnings, "all declare it")
	receipt, err = r.ApplyTTL(r.ctx, plan)
	require.NoError(t, err)
	require.Equal(t, 10, receipt.Recreated[0].Moved)
	r.whole(minutes5)
	require.NoError(t, r.broker.DeclareWorker(r.ctx, r.worker, 0))
}

// Wherever it stops, nothing is lost, what is sent meanwhile arrives, and the
// second run ends it.
func TestARecreationThatIsStoppedAnywhereIsEndedByTheNext(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"hold", "divert", "empty", "delete", "declare", "return", "refill", "clear", "end"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			r := newQueueRig(t)
			r.send(120)
			killed := errors.New("killed")
			r.Reached(func(step string) error {
				r.send(1)
				if step == at {
					return killed
				}
				return nil
			})
			_, receipt, err := r.change(10*time.Minute, "")
			require.ErrorIs(t, err, killed)
			require.Equal(t, "failed", receipt.Recreated[0].Outcome)
			require.Equal(t, at != "end", r.row().Interrupted)
			r.send(3)

			r.QueueTTLs = r.fresh()
			testkit.Eventually(t, func() bool {
				// The broker may need a moment until it has back what the one that died held.
				_, receipt, err = r.change(10*time.Minute, "away")
				require.NoError(t, err)
				return receipt.Refused == 0
			}, 30*time.Second, "%v", receipt)
			r.whole(10 * time.Minute)
		})
	}
}

func TestAQueueThatIsInUseIsNotTakenAway(t *testing.T) {
	t.Parallel()

	t.Run("ByAConsumer", func(t *testing.T) {
		t.Parallel()
		r := newQueueRig(t)
		_, err := r.plain.Consume(r.queue(), "", false, false, false, false, nil)
		require.NoError(t, err)
		_, receipt, err := r.change(10*time.Minute, "")
		require.NoError(t, err)
		require.Equal(t, 1, receipt.Refused)
		require.Equal(t, "refused", receipt.Outcome)
		require.Contains(t, receipt.Recreated[0].Reason, "1 consume it")
		require.EqualValues(t, 300_000, *r.row().Argument)
	})

	t.Run("ByAWorkerThatBeats", func(t *testing.T) {
		t.Parallel()
		r := newQueueRig(t)
		testkit.Exec(t, r.st, `UPDATE worker SET status = 'active', last_heartbeat = now()`)
		_, receipt, err := r.change(10*time.Minute, "")
		require.NoError(t, err)
		require.Contains(t, receipt.Recreated[0].Reason, "heartbeats")
		testkit.Exec(t, r.st, `UPDATE worker SET status = 'inactive'`) // it was stopped, a moment ago
		_, receipt, err = r.change(10*time.Minute, "")
		require.NoError(t, err)
		require.Zero(t, receipt.Refused)
	})

	t.Run("ByAConsumerThatComesMeanwhile", func(t *testing.T) {
		t.Parallel()
		r := newQueueRig(t)
		r.send(20)
		r.Reached(func(step string) error {
			if step != "empty" {
				return nil
			}
			r.send(1)
			_, err := r.plain.Consume(r.queue(), "late", true, false, false, false, nil)
			r.Reached(func(string) error { return nil })
			return err
		})
		_, receipt, err := r.change(10*time.Minute, "")
		require.NoError(t, err)
		require.Contains(t, receipt.Recreated[0].Reason, "in use")
		require.NoError(t, r.plain.Cancel("late", false))
		r.sent = nil // the consumer has had them
		r.whole(minutes5)
	})

	t.Run("BySomebodyWhoDeclaresItAgain", func(t *testing.T) {
		t.Parallel()
		r := newQueueRig(t)
		r.send(20)
		r.Reached(func(step string) error {
			if step == "delete" {
				return r.broker.DeclareWorker(r.ctx, r.worker, 0)
			}
			return nil
		})
		_, receipt, err := r.change(10*time.Minute, "")
		require.NoError(t, err)
		require.Contains(t, receipt.Recreated[0].Reason, "somebody has declared it meanwhile")
		r.whole(minutes5)
	})
}

// After an interruption the worker is back: its queue is given back what it had.
func TestAnInterruptedRecreationGivesBackToAWorkerThatIsBack(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	r.send(20)
	r.Reached(func(step string) error {
		if step == "empty" {
			return errors.New("killed")
		}
		return nil
	})
	_, _, err := r.change(10*time.Minute, "")
	require.ErrorContains(t, err, "killed")
	testkit.Exec(t, r.st, `UPDATE worker SET status = 'active', last_heartbeat = now()`)
	require.Contains(t, r.row().Advice, "interrupted")
	r.QueueTTLs = r.fresh()
	_, receipt, err := r.change(10*time.Minute, "")
	require.NoError(t, err)
	require.Equal(t, 1, receipt.Refused)
	require.Contains(t, receipt.Recreated[0].Reason, "heartbeats")
	r.whole(minutes5)
}

func TestOneChangeRunsAtATime(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	r.Reached(func(string) error {
		plan, err := r.fresh().PlanTTL(r.ctx, triage.TTLOrder{TTL: time.Minute})
		require.NoError(t, err)
		_, err = r.fresh().ApplyTTL(r.ctx, plan)
		require.ErrorIs(t, err, triage.ErrQueueTTLRefused)
		require.Zero(t, testkit.Count(t, r.st, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND state = 'idle in transaction'`), "the broker may take longer than a transaction may be idle")
		return nil
	})
	_, _, err := r.change(10*time.Minute, "")
	require.NoError(t, err)
	r.whole(10 * time.Minute)
	_, err = r.PlanTTL(r.ctx, triage.TTLOrder{TTL: time.Millisecond})
	require.ErrorIs(t, err, triage.ErrLimit)
	_, err = r.PlanTTL(r.ctx, triage.TTLOrder{TTL: time.Minute, Worker: "nobody"})
	require.ErrorIs(t, err, triage.ErrNoWorkerQueue)
}

// What expires in a recreated queue finds its way among the dead letters, what was
// moved there too.
func TestWhatExpiresInARecreatedQueueIsADeadLetter(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	r.send(3)
	plan, err := r.PlanTTL(r.ctx, triage.TTLOrder{TTL: time.Second, Worker: "away", Recreate: true})
	require.NoError(t, err)
	_, err = r.ApplyTTL(r.ctx, plan)
	require.NoError(t, err)
	r.send(1)
	testkit.Eventually(t, func() bool {
		state, err := r.broker.QueueState(r.ctx, message.QueueDeadLetter)
		return err == nil && state.Ready == 4
	}, 10*time.Second)
	for range 4 {
		one, ok, err := r.plain.Get(message.QueueDeadLetter, true)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, message.DispatchKey(r.worker), one.RoutingKey)
		death := broker.Deaths(one.Headers)[0]
		require.Equal(t, "expired", death.Reason)
		require.Equal(t, r.queue(), death.Queue)
	}
}
