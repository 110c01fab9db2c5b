package broker_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
)

func TestDeclaringTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, func(cfg *broker.Config) { cfg.ManagementURL = testkit.ManagementURL(t) })
	ctx := testkit.Context(t)
	for range 2 {
		require.NoError(t, b.broker.DeclareCommon(ctx))
		require.NoError(t, b.broker.DeclareExecutor(ctx))
		require.NoError(t, b.broker.DeclareWorker(ctx, 7, 0))
		require.NoError(t, b.broker.BindWorkerDeadLetters(ctx, 7))
	}
	// What other participants declare is accepted as the same.
	b.queue(t, "worker.7.executions", amqp.Table{"x-dead-letter-exchange": "attune.dlx", "x-message-ttl": int64(300_000)})
	b.queue(t, message.QueueDeadLetter, nil)
}

func TestADifferentDeclarationIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := testkit.Context(t)
	require.NoError(t, b.broker.DeclareCommon(ctx))
	b.queue(t, "worker.7.executions", amqp.Table{"x-dead-letter-exchange": "attune.dlx", "x-message-ttl": int32(1000)})
	err := b.broker.DeclareWorker(ctx, 7, 0)
	var mismatch *broker.TopologyError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, "queue worker.7.executions", mismatch.Object)
	require.Contains(t, mismatch.Reason, "x-message-ttl")
	state, err := b.broker.QueueState(ctx, "worker.7.cancel")
	require.NoError(t, err)
	require.True(t, state.Exists, "what follows a refusal is declared nevertheless")
}

func TestQueueState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := testkit.Context(t)
	state, err := b.broker.QueueState(ctx, "q")
	require.NoError(t, err)
	require.False(t, state.Exists)
	b.queue(t, "q", nil)
	b.broker.Publisher().Publish(ctx, to("q", "a", "b"))
	state, err = b.broker.QueueState(ctx, "q")
	require.NoError(t, err)
	require.Equal(t, broker.QueueState{Exists: true, Ready: 2}, state)
	c := consume(t, b, broker.ConsumerConfig{Queue: "q"})
	testkit.Eventually(t, c.Subscribed, 10*time.Second)
	state, err = b.broker.QueueState(ctx, "q")
	require.NoError(t, err)
	require.Equal(t, broker.QueueState{Exists: true, Consumers: 1}, state)
}

// Upstream 1: a dead letter arrives, by expiry and by rejection, exactly once,
// with the exact bindings, with the policy, and with both.
func TestDeadLettersArrive(t *testing.T) {
	t.Parallel()
	for name, routes := range map[string]struct{ bindings, policy bool }{
		"ByBindings": {bindings: true},
		"ByPolicy":   {policy: true},
		"ByBoth":     {bindings: true, policy: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(cfg *broker.Config) {
				if routes.policy {
					cfg.ManagementURL = testkit.ManagementURL(t)
				}
			})
			ctx := testkit.Context(t)
			require.NoError(t, b.broker.DeclareExecutor(ctx))
			if routes.bindings {
				require.NoError(t, b.broker.BindWorkerDeadLetters(ctx, 7))
			}
			require.NoError(t, b.broker.DeclareWorker(ctx, 7, 200*time.Millisecond))
			requireDeath(t, b, message.DispatchKey(7), "expired")

			c := consume(t, b, broker.ConsumerConfig{Queue: message.QueueExecutionCompleted})
			testkit.Eventually(t, c.Subscribed, 10*time.Second)
			go func() {
				batch := <-c.Batches()
				_ = batch.Deliveries[0].Nack(false)
			}()
			requireDeath(t, b, message.KeyExecutionCompleted, "rejected")
		})
	}
}

// requireDeath sends a message to its death and expects one letter of it.
func requireDeath(t *testing.T, b *testBundle, key, reason string) {
	t.Helper()
	m := broker.Message{
		ID: key, Exchange: message.ExchangeExecutions, RoutingKey: key, Body: []byte("{}"),
	}
	require.Equal(t, broker.Confirmed, b.broker.Publisher().Publish(testkit.Context(t), []broker.Message{m})[0].Status)
	var letter amqp.Delivery
	testkit.Eventually(t, func() bool {
		got, ok, err := b.raw.Get(message.QueueDeadLetter, true)
		require.NoError(t, err)
		letter = got
		return ok
	}, 10*time.Second)
	require.Equal(t, m.ID, letter.MessageId)
	require.Equal(t, key, letter.RoutingKey)
	deaths := broker.Deaths(letter.Headers)
	require.Len(t, deaths, 1)
	require.Equal(t, reason, deaths[0].Reason)
	require.Equal(t, []string{key}, deaths[0].RoutingKeys)
	require.Equal(t, int64(1), deaths[0].Count)
	_, again, err := b.raw.Get(message.QueueDeadLetter, true)
	require.NoError(t, err)
	require.False(t, again, "a dead letter arrives once")
}

// Upstream 1: the probe sees that a route is missing before a letter is lost.
func TestProbeFindsLostRoutes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := testkit.Context(t)
	require.NoError(t, b.broker.DeclareExecutor(ctx))
	require.NoError(t, b.broker.BindWorkerDeadLetters(ctx, 1))
	keys := append(message.DeadLetterKeys(), message.DispatchKey(1), message.CancelKey(1))
	for _, probe := range b.broker.ProbeDeadLetters(ctx, append(keys, message.DispatchKey(2))) {
		require.NoError(t, probe.Err)
		require.Equal(t, probe.Key != message.DispatchKey(2), probe.Routed, probe.Key)
	}
	ready := 0
	for {
		d, ok, err := b.raw.Get(message.QueueDeadLetter, true)
		require.NoError(t, err)
		if !ok {
			break
		}
		require.Equal(t, broker.TypeProbe, d.Type)
		ready++
	}
	require.Equal(t, len(keys), ready)
}

// A policy that somebody else made for the exchange is left alone.
func TestForeignPolicyIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t, func(cfg *broker.Config) { cfg.ManagementURL = testkit.ManagementURL(t) })
	ctx := testkit.Context(t)
	foreign := broker.Policy{
		Name: "theirs", Pattern: "^attune", ApplyTo: "exchanges",
		Definition: map[string]any{"alternate-exchange": "theirs"},
	}
	require.NoError(t, b.management.PutPolicy(ctx, foreign))
	require.NoError(t, b.broker.DeclareExecutor(ctx))
	policies, err := b.management.Policies(ctx)
	require.NoError(t, err)
	require.Len(t, policies, 1)
	require.Equal(t, "theirs", policies[0].Name)
}

func TestManagementTellsAbsentFromZero(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := testkit.Context(t)
	_, err := b.management.Queue(ctx, "missing")
	require.ErrorIs(t, err, broker.ErrNotFound)
	b.queue(t, "q", nil)
	requireEmpty(t, b, "q") // pointers that become non-nil zeros
	queues, err := b.management.Queues(ctx)
	require.NoError(t, err)
	require.Len(t, queues, 1)
	overview, err := b.management.Overview(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, overview.RabbitMQVersion)
	alarms, err := b.management.Alarms(ctx)
	require.NoError(t, err)
	require.Empty(t, alarms)
}
