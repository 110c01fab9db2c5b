package broker_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
)

func TestOnlyIdleQueuesAreDeleted(t *testing.T) {
	t.Parallel()
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
	require.True(t, deleted, "what is gone already needs no deleting")

	b.queue("notices", nil)
	b.publishAll(broker.Message{ID: "one", RoutingKey: "notices"}, broker.Message{ID: "two", RoutingKey: "notices"})
	deleted, discarded, _, err := b.DeleteQueueIfUnused(b.ctx, "notices")
	require.NoError(t, err)
	require.True(t, deleted)
	require.Equal(t, 2, discarded)

	b.queue("quorum", amqp.Table{"x-queue-type": "quorum"})
	refused("quorum", "not supported")
	require.Equal(t, broker.StateConnected, b.State(), "a refusal costs nobody else the connection")
}
