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

// TestReachesFollowsTheKey through every kind of exchange, and never round in circles.
func TestReachesFollowsTheKey(t *testing.T) {
	t.Parallel()
	w := &broker.Wiring{
		Exchanges: map[string]broker.ExchangeInfo{
			"direct": {Name: "direct", Kind: "direct"}, "topic": {Name: "topic", Kind: "topic"},
			"fanout":  {Name: "fanout", Kind: "fanout"},
			"headers": {Name: "headers", Kind: "headers"}, "empty": {Name: "empty", Kind: "fanout"},
			"caught":   {Name: "caught", Kind: "direct", Arguments: map[string]any{"alternate-exchange": "fanout"}},
			"governed": {Name: "governed", Kind: "direct", Policy: "p"}, "loop": {Name: "loop", Kind: "fanout"},
		},
		Queues:   []broker.QueueInfo{{Name: "q"}},
		Policies: []broker.Policy{{Name: "p", Definition: map[string]any{"alternate-exchange": "fanout"}}},
		Routes: []broker.Route{
			{Source: "direct", Destination: "q", Key: "#"},
			{Source: "direct", Destination: "q", Key: "a.b"},
			{Source: "topic", Destination: "q", Key: "a.*"},
			{Source: "topic", Destination: "q", Key: "x.#.z"},
			{Source: "fanout", Destination: "q"},
			{Source: "headers", Destination: "q"},
			{Source: "loop", Destination: "loop", ToExchange: true},
			{Source: "direct", Destination: "topic", ToExchange: true, Key: "a.via"},
		},
	}
	for _, one := range []struct {
		exchange, key string
		want          broker.Reach
	}{
		{"direct", "a.b", broker.Kept},
		{"direct", "execution.dispatch.worker.7", broker.Lost}, // a hash at a direct exchange is a character of the key
		{"direct", "#", broker.Kept},
		{"direct", "a.via", broker.Kept},
		{"topic", "a.c", broker.Kept},
		{"topic", "a.c.d", broker.Lost},
		{"topic", "x.z", broker.Kept},
		{"topic", "x.1.2.z", broker.Kept},
		{"fanout", "whatever", broker.Kept},
		{"headers", "whatever", broker.Unsure},
		{"empty", "a", broker.Lost},
		{"caught", "a", broker.Kept},
		{"governed", "a", broker.Kept},
		{"loop", "a", broker.Lost},
		{"missing", "a", broker.Lost},
		{"", "q", broker.Kept},
		{"", "no such queue", broker.Lost},
	} {
		require.Equal(t, one.want, w.Reaches(one.exchange, one.key), "%s %s", one.exchange, one.key)
	}
	require.Equal(t, broker.Kept, w.ReachesAny("fanout"))
	require.Equal(t, broker.Lost, w.ReachesAny("direct"))
	w.Policies, w.PoliciesUnknown = nil, "refused"
	require.Equal(t, broker.Unsure, w.Reaches("governed", "a"), "a policy that cannot be read may catch it")
}

// The wiring and the settings of a real broker include declarations and policies.
func TestWiringAndSettingsOfARealBroker(t *testing.T) {
	t.Parallel()
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
	require.Empty(t, w.PoliciesUnknown)
	require.NotEmpty(t, w.Version)
	require.Equal(t, "direct", w.Exchanges[message.ExchangeDeadLetter].Kind)
	require.Equal(t, broker.Kept, w.Reaches(message.ExchangeDeadLetter, message.KeyExecutionRequested))
	require.Equal(t, broker.Lost, w.Reaches(message.ExchangeDeadLetter, message.DispatchKey(7)))
	require.NoError(t, b.BindWorkerDeadLetters(b.ctx, 7))
	w, err = b.management.Wiring(b.ctx)
	require.NoError(t, err)
	require.Equal(t, broker.Kept, w.Reaches(message.ExchangeDeadLetter, message.DispatchKey(7)))

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
	t.Parallel()
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
	require.Equal(t, []broker.BlockedConnection{
		{Client: "attune-worker", State: "blocked"},
		{Client: "127.0.0.1:2 -> 2", State: "blocking"},
	}, blocked)

	odd := answering(t, http.StatusOK,
		`[{"name":"n","running":true,"disk_free":"disk_free_monitoring_disabled","mem_used":7}]`)
	nodes, err = odd.Nodes(b.ctx)
	require.NoError(t, err)
	require.Nil(t, nodes[0].DiskFree, "a number that is not watched is unknown")
	require.Nil(t, nodes[0].MemoryLimit)
}

// TestAKeyLeadsToQueues: by every binding that takes it, through exchanges, and each
// queue once.
func TestAKeyLeadsToQueues(t *testing.T) {
	t.Parallel()
	w := &broker.Wiring{
		Exchanges: map[string]broker.ExchangeInfo{
			"t": {Name: "t", Kind: "topic"}, "d": {Name: "d", Kind: "direct"},
			"loop": {Name: "loop", Kind: "fanout"},
		},
		Queues: []broker.QueueInfo{{Name: "q"}},
		Routes: []broker.Route{
			{Source: "t", Key: "a.*", Destination: "one"},
			{Source: "t", Key: "#", Destination: "one"},
			{Source: "t", Key: "a.b", Destination: "d", ToExchange: true},
			{Source: "d", Key: "a.b", Destination: "two"},
			{Source: "d", Key: "#", Destination: "never"},
			{Source: "t", Key: "#", Destination: "loop", ToExchange: true},
			{Source: "loop", Destination: "t", ToExchange: true},
		},
	}
	require.Equal(t, []string{"one", "two"}, w.Leads("t", "a.b"))
	require.Equal(t, []string{"one"}, w.Leads("t", "z"))
	require.Empty(t, w.Leads("d", "z"))
	require.Equal(t, []string{"q"}, w.Leads("", "q"))
	require.Empty(t, w.Leads("", "gone"))
	require.Empty(t, w.Leads("gone", "q"))
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
