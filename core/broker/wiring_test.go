package broker_test

import (
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// The wiring and the settings of a real broker include declarations and policies.
func TestWiringAndSettingsOfARealBroker(t *testing.T) {
	b := newRig(t)
	require.NoError(t, b.DeclareExecutor(b.ctx))
	require.NoError(t, b.DeclareWorker(b.ctx, 7, time.Minute))
	require.NoError(t, b.management.PutPolicy(b.ctx, broker.Policy{
		Name: "short", Pattern: "^worker", ApplyTo: "queues",
		Definition: map[string]any{"message-ttl": 30_000, "max-length": 100, "overflow": "reject-publish"},
	}))
	b.queue("plain",
		amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-expires": int32(60_000)})
	testkit.Eventually(t, func() bool {
		queue, err := b.management.Queue(b.ctx, message.WorkerExecutionsQueue(7))
		require.NoError(t, err)
		return queue.Policy == "short" && len(queue.InForce) > 0
	}, waitTimeout)
	w, err := b.management.Wiring(b.ctx)
	require.NoError(t, err)
	require.NotEmpty(t, w.Version)
	require.Equal(t, "direct", w.Exchanges[message.ExchangeDeadLetter].Kind)
	dies := broker.Binding{
		Source: message.ExchangeDeadLetter, Queue: message.QueueDeadLetter, RoutingKey: message.DispatchKey(7),
	}
	require.NotContains(t, w.Bindings, dies)
	require.NoError(t, b.BindWorkerDeadLetters(b.ctx, 7))
	w, err = b.management.Wiring(b.ctx)
	require.NoError(t, err)
	require.Contains(t, w.Bindings, dies)

	settings := map[string]broker.QueueSettings{}
	for i := range w.Queues {
		settings[w.Queues[i].Name] = w.Queues[i].Settings()
	}
	worker := settings[message.WorkerExecutionsQueue(7)]
	require.Equal(t, 30*time.Second, *worker.TTL, "of the queue's and the policy's the shorter holds")
	require.EqualValues(t, 100, *worker.MaxLength)
	require.Equal(t, "reject-publish", worker.Overflow)
	require.Equal(t, message.ExchangeDeadLetter, *worker.DeadLetterExchange)
	plain := settings["plain"]
	require.Empty(t, *plain.DeadLetterExchange, "the default exchange is not none")
	require.Equal(t, "q", plain.DeadLetterKey)
	require.Equal(t, time.Minute, *plain.Expires)
	require.Nil(t, plain.TTL)
	require.Nil(t, settings[message.QueueDeadLetter].DeadLetterExchange)
}

// A real broker without an alarm blocks no connection.
func TestNodesAndBlockedConnections(t *testing.T) {
	b := newRig(t)
	nodes, err := b.management.Nodes(b.ctx)
	require.NoError(t, err)
	require.NotEmpty(t, nodes)
	require.True(t, nodes[0].Running)
	require.Positive(t, *nodes[0].MemoryUsed)
	require.Positive(t, *nodes[0].MemoryLimit)
	blocked, err := b.management.Blocked(b.ctx)
	require.NoError(t, err)
	require.Empty(t, blocked)

	full := answering(t, http.StatusOK, `[{"name":"127.0.0.1:1 -> 2","state":"blocked","client_properties":{"connection_name":"attune-worker"}},
		{"name":"127.0.0.1:2 -> 2","state":"blocking","client_properties":[]},{"name":"fine","state":"running"}]`)
	blocked, err = full.Blocked(b.ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"attune-worker", "127.0.0.1:2 -> 2"}, blocked)

	odd := answering(t, http.StatusOK,
		`[{"name":"n","running":true,"disk_free":"disk_free_monitoring_disabled","mem_used":7}]`)
	nodes, err = odd.Nodes(b.ctx)
	require.NoError(t, err)
	require.Nil(t, nodes[0].DiskFree, "a number that is not watched is unknown")
	require.Nil(t, nodes[0].MemoryLimit)
}

// A client without properties, for which the broker writes an empty list, hides no consumer.
func TestConsumersBesideAClientWithoutAName(t *testing.T) {
	t.Parallel()
	odd := answering(t, http.StatusOK, `[{"consumer_tag":"t","queue":{"name":"q"},"channel_details":[],
		"name":"127.0.0.1:1 -> 2","client_properties":[]}]`)
	consumers, err := odd.Consumers(testkit.Context(t))
	require.NoError(t, err)
	require.Equal(t, []broker.QueueConsumer{{Queue: "q", Tag: "t"}}, consumers)
}

// TestTheDeliveryLimitThatHolds: of two the smaller, and a negative one is none.
func TestTheDeliveryLimitThatHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ argument, policy, want any }{
		{nil, nil, nil},
		{20.0, nil, 20},
		{nil, 5.0, 5},
		{20.0, 5.0, 5},
		{5.0, 20.0, 5},
		{-1.0, 5.0, 5},
		{5.0, -1.0, 5},
		{-1.0, nil, -1},
		{-1.0, -1.0, -1},
	} {
		q := broker.QueueInfo{
			Arguments: map[string]any{"x-delivery-limit": c.argument},
			InForce:   broker.Definition{"delivery-limit": c.policy},
		}
		got := q.Settings().DeliveryLimit
		if c.want == nil {
			require.Nil(t, got, c)
			continue
		}
		require.NotNil(t, got, c)
		require.EqualValues(t, c.want, *got, c)
	}
}
