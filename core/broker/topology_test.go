package broker_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

const shortTTL = 50 * time.Millisecond

// dieBothWays lets one message expire in a worker's queue and has another
// rejected, and a third rejected from a queue of the executor.
func (b *rig) dieBothWays(worker int64) {
	b.t.Helper()
	b.publishAll(
		broker.Message{ID: "expired", Exchange: message.ExchangeExecutions, RoutingKey: message.DispatchKey(worker)},
		broker.Message{ID: "cancel", Exchange: message.ExchangeExecutions, RoutingKey: message.CancelKey(worker)},
		broker.Message{
			ID: "completed", Exchange: message.ExchangeExecutions,
			RoutingKey: message.KeyExecutionCompleted,
		},
	)
	for _, queue := range []string{message.WorkerCancelQueue(worker), message.QueueExecutionCompleted} {
		d, ok, err := b.plain.Get(queue, false)
		require.NoError(b.t, err)
		require.True(b.t, ok, queue)
		require.NoError(b.t, d.Nack(false, false))
	}
}

// arrived checks that exactly the three dead letters arrived, with their origin intact, and
// acknowledges them.
func (b *rig) arrived(worker int64) {
	b.t.Helper()
	b.becomesReady(message.QueueDeadLetter, 3)
	consumer := b.consume(broker.ConsumerConfig{Queue: message.QueueDeadLetter})
	deadLetters := map[string]broker.Delivery{}
	for len(deadLetters) < 3 {
		batch := b.next(consumer)
		for _, d := range batch.Deliveries {
			require.NotContains(b.t, deadLetters, d.MessageID, "a dead letter arrives once")
			deadLetters[d.MessageID] = d
		}
		require.NoError(b.t, batch.Ack())
	}
	consumer.Stop()
	require.Equal(b.t, message.DispatchKey(worker), deadLetters["expired"].RoutingKey)
	require.Equal(b.t, message.CancelKey(worker), deadLetters["cancel"].RoutingKey)
	require.Equal(b.t, message.KeyExecutionCompleted, deadLetters["completed"].RoutingKey)
	deaths := broker.Deaths(deadLetters["expired"].Headers)
	require.Len(b.t, deaths, 1)
	require.Equal(b.t, "expired", deaths[0].Reason)
	require.Equal(b.t, message.WorkerExecutionsQueue(worker), deaths[0].Queue)
	require.Equal(b.t, message.ExchangeExecutions, deaths[0].Exchange)
	require.Equal(b.t, []string{message.DispatchKey(worker)}, deaths[0].RoutingKeys)
	require.EqualValues(b.t, 1, deaths[0].Count)
	require.Equal(b.t, "rejected", broker.Deaths(deadLetters["completed"].Headers)[0].Reason)
	require.Zero(b.t, b.ready(message.QueueDeadLetter))
}

func withManagement(t testing.TB) func(*broker.Config) {
	return func(c *broker.Config) { c.ManagementURL = testkit.ManagementURL(t) }
}

// Upstream 1: no dead letter ever arrived.
func TestDeadLettersArrive(t *testing.T) {
	t.Parallel()

	t.Run("ByExactBindingsOnly", func(t *testing.T) {
		t.Parallel()
		b := newRig(t)
		require.NoError(t, b.DeclareExecutor(b.ctx))
		require.NoError(t, b.DeclareWorker(b.ctx, 7, shortTTL))
		require.NoError(t, b.BindWorkerDeadLetters(b.ctx, 7))
		policies, err := b.management.Policies(b.ctx)
		require.NoError(t, err)
		require.Empty(t, policies)
		b.dieBothWays(7)
		b.arrived(7)
	})

	t.Run("ByPolicyOnly", func(t *testing.T) {
		t.Parallel()
		b := newRig(t, withManagement(t))
		require.NoError(t, b.DeclareExecutor(b.ctx))
		require.NoError(t, b.DeclareWorker(b.ctx, 7, shortTTL))
		for _, key := range message.DeadLetterKeys() {
			require.NoError(t, b.plain.QueueUnbind(message.QueueDeadLetter, key, message.ExchangeDeadLetter, nil))
		}
		b.dieBothWays(7)
		b.arrived(7)
	})

	t.Run("ByBothExactlyOnce", func(t *testing.T) {
		t.Parallel()
		b := newRig(t, withManagement(t))
		require.NoError(t, b.DeclareExecutor(b.ctx))
		require.NoError(t, b.DeclareWorker(b.ctx, 7, shortTTL))
		require.NoError(t, b.BindWorkerDeadLetters(b.ctx, 7))
		b.dieBothWays(7)
		b.arrived(7)
	})
}

// Without routes of ours the topology is the published one, on which the
// broker drops dead letters.
func TestNoDeadLettersLeavesThePublishedTopology(t *testing.T) {
	b := newRig(t, withManagement(t), func(c *broker.Config) { c.NoDeadLetters = true })
	require.NoError(t, b.DeclareExecutor(b.ctx))
	require.NoError(t, b.DeclareWorker(b.ctx, 8, shortTTL))
	require.NoError(t, b.BindWorkerDeadLetters(b.ctx, 8))
	policies, err := b.management.Policies(b.ctx)
	require.NoError(t, err)
	require.Empty(t, policies)
	keys := append(message.DeadLetterKeys(), message.DispatchKey(8), message.CancelKey(8))
	for _, probe := range b.ProbeDeadLetters(b.ctx, keys) {
		require.NoError(t, probe.Err)
		require.False(t, probe.Routed, probe.Key)
	}
	b.dieBothWays(8)
	require.Zero(t, b.ready(message.QueueDeadLetter))
}

// The probe finds lost routes: the key of a worker before it is bound.
func TestProbeFindsLostRoutes(t *testing.T) {
	b := newRig(t)
	require.NoError(t, b.DeclareExecutor(b.ctx))
	keys := []string{message.KeyExecutionCompleted, message.DispatchKey(1), message.CancelKey(1)}
	probes := b.ProbeDeadLetters(b.ctx, keys)
	require.Equal(t, []broker.RouteProbe{
		{Key: keys[0], Routed: true}, {Key: keys[1]}, {Key: keys[2]},
	}, probes)
	require.NoError(t, b.BindWorkerDeadLetters(b.ctx, 1))
	allRouted := func() {
		for _, probe := range b.ProbeDeadLetters(b.ctx, keys) {
			require.True(t, probe.Routed, probe.Key)
		}
	}
	allRouted()
	b.becomesReady(message.QueueDeadLetter, 0) // an operator does not see a probe

	b.publishAll(broker.Message{
		ID: "dead", Exchange: message.ExchangeDeadLetter, RoutingKey: keys[0], Type: "x",
	})
	allRouted()
	first, ok, err := b.plain.Get(message.QueueDeadLetter, false)
	require.NoError(t, err)
	require.True(t, ok)
	_, ok, err = b.plain.Get(message.QueueDeadLetter, false)
	require.NoError(t, err)
	require.False(t, ok, "nor does a read reach it behind waiting dead letters")
	require.NoError(t, first.Nack(false, true))
	consumer := b.consume(broker.ConsumerConfig{Queue: message.QueueDeadLetter})
	deadLetter := b.next(consumer)
	require.Len(t, deadLetter.Deliveries, 1)
	require.NoError(t, deadLetter.Ack())
	b.becomesReady(message.QueueDeadLetter, 0)
	allRouted()
	require.Equal(t, broker.TypeProbe, b.next(consumer).Deliveries[0].Type, "a consumer at that moment gets it")
	b.Stop()
	require.ErrorIs(t, b.ProbeDeadLetters(b.ctx, keys)[0].Err, broker.ErrNotConnected)
}

// The probe of deaths proves expiry and rejection, and leaves nothing behind.
func TestProbeDeath(t *testing.T) {
	b := newRig(t)
	require.Error(t, b.ProbeDeath(b.ctx), "there is no dead-letter exchange")
	require.NoError(t, b.DeclareExecutor(b.ctx))
	require.NoError(t, b.ProbeDeath(b.ctx))
	require.Zero(t, b.ready(message.QueueDeadLetter))
	testkit.Eventually(t, func() bool {
		queues, err := b.management.Queues(b.ctx)
		require.NoError(t, err)
		return len(queues) == 7
	}, waitTimeout, "the private queues are gone")
}

// The listed topology is the topology of the broker after the declaration.
func TestTheListedTopologyIsTheDeclaredOne(t *testing.T) {
	b := newRig(t, func(c *broker.Config) { c.NoDeadLetters = true })
	require.NoError(t, b.DeclareExecutor(b.ctx))
	require.NoError(t, b.DeclareWorker(b.ctx, 7, 0))
	ours, workers := broker.ExecutorTopology(false), broker.WorkerTopology(7, 0, false)
	there, err := b.management.Wiring(b.ctx)
	require.NoError(t, err)
	for _, want := range ours.Exchanges {
		require.Equal(t, broker.ExchangeInfo{
			Name: want.Name, Kind: want.Kind, Durable: true, Internal: want.Internal, Arguments: map[string]any{},
		}, there.Exchanges[want.Name])
		exists, err := b.ExchangeExists(b.ctx, want.Name)
		require.NoError(t, err)
		require.True(t, exists)
	}
	exists, err := b.ExchangeExists(b.ctx, "nowhere")
	require.NoError(t, err)
	require.False(t, exists)
	require.Len(t, there.Queues, len(ours.Queues)+len(workers.Queues))
	require.ElementsMatch(t, append(ours.Bindings, workers.Bindings...), there.Bindings)
}

// A consumer is listed with the name of its connection.
func TestConsumersAreListedWithTheirConnections(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	b.consume(broker.ConsumerConfig{Queue: "q", Tag: "executor.test"})
	testkit.Eventually(t, func() bool {
		consumers, err := b.management.Consumers(b.ctx)
		require.NoError(t, err)
		return len(consumers) == 1 && consumers[0].Queue == "q" && consumers[0].Tag == "executor.test" &&
			consumers[0].Connection == t.Name()+"/consume"
	}, 15*time.Second)
}

// The policy is ours alone: another that governs the exchange stays in force,
// and a broker without the management API is none the worse.
func TestForeignPolicyIsKept(t *testing.T) {
	b := newRig(t, withManagement(t))
	require.NoError(t, b.management.PutPolicy(b.ctx, broker.Policy{
		Name: "theirs", Pattern: "^attune", ApplyTo: "all", Priority: 5,
		Definition: map[string]any{"alternate-exchange": "theirs"},
	}))
	require.NoError(t, b.DeclareExecutor(b.ctx))
	policies, err := b.management.Policies(b.ctx)
	require.NoError(t, err)
	require.Len(t, policies, 1)
	require.Equal(t, "theirs", policies[0].Name)

	without := newRig(t, func(c *broker.Config) { c.ManagementURL = "http://127.0.0.1:1" })
	require.NoError(t, without.DeclareExecutor(without.ctx))
}

// Our declarations equal the declarations of the other programs, so the broker refuses none. A
// differing one is named, and the rest is still declared.
func TestDeclarationsAreThoseOfTheOthers(t *testing.T) {
	b := newRig(t)
	for range 2 {
		require.NoError(t, b.DeclareCommon(b.ctx))
		require.NoError(t, b.DeclareExecutor(b.ctx))
		require.NoError(t, b.DeclareWorker(b.ctx, 7, 0))
		require.NoError(t, b.BindWorkerDeadLetters(b.ctx, 7))
	}
	dlx := amqp.Table{"x-dead-letter-exchange": "attune.dlx"}
	ttl := amqp.Table{"x-dead-letter-exchange": "attune.dlx", "x-message-ttl": int32(300000)}
	for name, arguments := range map[string]amqp.Table{
		"attune.dlx.queue":                 nil,
		"attune.executor.events.queue":     dlx,
		"attune.enforcements.queue":        dlx,
		"attune.execution.requests.queue":  dlx,
		"attune.execution.status.queue":    dlx,
		"attune.execution.completed.queue": dlx,
		"attune.inquiry.responses.queue":   dlx,
		"worker.7.executions":              ttl,
		"worker.7.cancel":                  dlx,
		"worker.7.packs":                   dlx,
	} {
		b.queue(name, arguments)
	}
	for name, kind := range map[string]string{
		"attune.events": "topic", "attune.executions": "topic", "attune.notifications": "fanout",
		"attune.dlx": "direct",
	} {
		require.NoError(t, b.plain.ExchangeDeclare(name, kind, true, false, false, false, nil))
	}
	routes := []broker.Message{
		{ID: "1", Exchange: "attune.events", RoutingKey: "event.created"},
		{ID: "2", Exchange: "attune.executions", RoutingKey: "enforcement.created"},
		{ID: "3", Exchange: "attune.executions", RoutingKey: "execution.requested"},
		{ID: "4", Exchange: "attune.executions", RoutingKey: "execution.status.changed"},
		{ID: "5", Exchange: "attune.executions", RoutingKey: "execution.completed"},
		{ID: "6", Exchange: "attune.executions", RoutingKey: "inquiry.responded"},
		{ID: "7", Exchange: "attune.executions", RoutingKey: "execution.dispatch.worker.7"},
		{ID: "8", Exchange: "attune.executions", RoutingKey: "execution.cancel.worker.7"},
		{ID: "9", Exchange: "attune.events", RoutingKey: "pack.registered"},
		{ID: "10", Exchange: "attune.events", RoutingKey: "pack.deleted"},
	}
	b.publishAll(routes...)
	for _, q := range []string{"worker.7.executions", "worker.7.cancel", "attune.enforcements.queue"} {
		require.Equal(t, 1, b.ready(q), q)
	}
	require.Equal(t, 2, b.ready("worker.7.packs"))
}

func TestDifferentDeclarationIsNamed(t *testing.T) {
	b := newRig(t)
	b.queue(message.QueueEnforcements, nil)
	err := b.DeclareExecutor(b.ctx)
	var refused *broker.TopologyError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "queue "+message.QueueEnforcements, refused.Object)
	require.Contains(t, refused.Reason, "inequivalent arg 'x-dead-letter-exchange'")
	state, err := b.QueueState(b.ctx, message.QueueInquiryResponses)
	require.NoError(t, err)
	require.True(t, state.Exists, "the rest is declared nevertheless")
	require.True(t, b.ProbeDeadLetters(b.ctx, []string{message.KeyPackDeleted})[0].Routed)

	require.NoError(t, b.DeclareWorker(b.ctx, 7, time.Minute))
	require.ErrorAs(t, b.DeclareWorker(b.ctx, 7, time.Hour), &refused)
	require.Equal(t, "queue worker.7.executions", refused.Object)
}

func TestQueueStateIsExact(t *testing.T) {
	b := newRig(t)
	state, err := b.QueueState(b.ctx, "missing")
	require.NoError(t, err)
	require.Equal(t, broker.QueueState{}, state)
	b.queue("q", nil)
	b.publishAll(messages("q", 3)...)
	state, err = b.QueueState(b.ctx, "q")
	require.NoError(t, err)
	require.Equal(t, broker.QueueState{Exists: true, Ready: 3}, state)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q"})
	b.unacked(0, 1)
	consumer.Stop()
	b.unacked(3, 0)
}
