package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/lab/testkit"
)

func TestOnlyIdleQueuesAreDeleted(t *testing.T) {
	b := newRig(t)
	refused := func(queue, because string) {
		t.Helper()
		deleted, reason, err := b.DeleteQueueIfIdle(b.ctx, queue)
		require.NoError(t, err)
		require.False(t, deleted)
		require.Contains(t, reason, because)
		state, err := b.QueueState(b.ctx, queue)
		require.NoError(t, err)
		require.True(t, state.Exists)
	}

	b.queue("q", nil)
	b.publishAll(broker.Message{ID: "one", RoutingKey: "q"})
	refused("q", "not empty")

	consumer := b.consume(broker.ConsumerConfig{Queue: "q"})
	require.NoError(t, b.next(consumer).Ack())
	refused("q", "in use")
	deleted, _, reason, err := b.DeleteQueueIfUnused(b.ctx, "q")
	require.NoError(t, err)
	require.False(t, deleted)
	require.Contains(t, reason, "in use")
	consumer.Stop()

	deleted, reason, err = b.DeleteQueueIfIdle(b.ctx, "q")
	require.NoError(t, err)
	require.Empty(t, reason)
	require.True(t, deleted)
	deleted, _, err = b.DeleteQueueIfIdle(b.ctx, "q")
	require.NoError(t, err)
	require.True(t, deleted, "a missing queue counts as deleted")

	b.queue("notices", nil)
	b.publishAll(broker.Message{ID: "one", RoutingKey: "notices"}, broker.Message{ID: "two", RoutingKey: "notices"})
	deleted, discarded, _, err := b.DeleteQueueIfUnused(b.ctx, "notices")
	require.NoError(t, err)
	require.True(t, deleted)
	require.Equal(t, 2, discarded)

	b.queue("quorum", amqp.Table{"x-queue-type": "quorum"})
	refused("quorum", "not supported")
	require.Equal(t, broker.StateConnected, b.State(), "a refusal closes no other channel of the connection")
}

// The broker checks no conditions for quorum queues, so they are checked before.
func TestOnlyAnIdleQuorumQueueIsDeleted(t *testing.T) {
	b := newRig(t, func(c *broker.Config) { c.QuorumQueues = true })
	require.NoError(t, b.DeclareQueue(b.ctx, "q", nil))
	b.publishAll(broker.Message{ID: "one", RoutingKey: "q"})
	deleted, reason, err := b.DeleteQueueIfIdle(b.ctx, "q")
	require.NoError(t, err)
	require.False(t, deleted)
	require.Contains(t, reason, "has 1 message")
	consumer := b.consume(broker.ConsumerConfig{Queue: "q"})
	require.NoError(t, b.next(consumer).Ack())
	deleted, _, reason, err = b.DeleteQueueIfUnused(b.ctx, "q")
	require.NoError(t, err)
	require.False(t, deleted)
	require.Contains(t, reason, "has 1 consumer")
	consumer.Stop()
	testkit.Eventually(t, func() bool { // a quorum queue notices the end of a consumer late
		deleted, _, err = b.DeleteQueueIfIdle(b.ctx, "q")
		require.NoError(t, err)
		return deleted
	}, waitTimeout)
	require.Equal(t, broker.StateConnected, b.State())
}

// A queue keeps its type: the other one is refused, with the way out.
func TestAQueueOfTheOtherTypeIsRefused(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	quorum := broker.New(broker.Config{URL: b.url, QuorumQueues: true}, nil, nil)
	require.NoError(t, quorum.Start(b.ctx))
	t.Cleanup(quorum.Stop)
	err := quorum.DeclareQueue(b.ctx, "q", nil)
	require.ErrorContains(t, err, "set message_queue.rabbitmq.queue_type to the type of this queue")
	require.NoError(t, quorum.DeclareCommon(b.ctx))
	require.NoError(t, quorum.DeclareWorker(b.ctx, 7, 0), "with a TTL")
	queues, err := b.management.Queues(b.ctx)
	require.NoError(t, err)
	for _, q := range queues {
		if q.Name != "q" {
			require.Equal(t, "quorum", q.Arguments["x-queue-type"], q.Name)
		}
	}
}

// A URL may name several nodes: the next one is used while one does not answer, by both clients.
func TestAnotherNodeIsUsed(t *testing.T) {
	b := newRig(t)
	dead := fmt.Sprintf("@127.0.0.1:%d,", testkit.FreePort(t))
	other := broker.New(broker.Config{URL: strings.Replace(b.url, "@", dead, 1)}, nil, nil)
	require.NoError(t, other.Start(b.ctx))
	t.Cleanup(other.Stop)
	testkit.Eventually(t, func() bool { return other.State() == broker.StateConnected }, waitTimeout)
	vhost, err := broker.VHostOf(strings.Replace(b.url, "@", dead, 1))
	require.NoError(t, err)
	both := strings.Replace(testkit.ManagementURL(t), "@", dead, 1)
	management, err := broker.NewManagement(both, vhost, 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(management.Close)
	_, err = management.Queues(b.ctx)
	require.NoError(t, err)
}
