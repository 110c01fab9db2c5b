package broker_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/testkit"
)

func TestPeekLeavesMessagesWhereTheyAre(t *testing.T) {
	t.Parallel()
	b := newRig(t)
	ctx := testkit.Context(t)
	b.queue("q", nil)
	sent := append(to("q", "first\x00\xff", "second"), to("q", "third")...)
	b.Publisher().Publish(ctx, sent)

	found, err := b.management.Peek(ctx, "q", 2, 4)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, sent[0].ID, found[0].Properties["message_id"])
	require.Equal(t, "q", found[0].RoutingKey)
	require.False(t, found[0].Redelivered)
	require.Equal(t, "firs", string(found[0].Body))
	require.Equal(t, len(sent[0].Body), found[0].Size)

	found, err = b.management.Peek(ctx, "q", 10, 0)
	require.NoError(t, err)
	require.Len(t, found, 3)
	for i, m := range found {
		require.Equal(t, sent[i].ID, m.Properties["message_id"], "the order is kept")
		require.Equal(t, sent[i].Body, m.Body)
	}
	require.True(t, found[0].Redelivered)
}

func TestPeekRefusesWhatItWouldHarm(t *testing.T) {
	t.Parallel()
	b := newRig(t)
	ctx := testkit.Context(t)
	b.queue("quorum", amqp.Table{"x-queue-type": "quorum"})
	_, err := b.management.Peek(ctx, "quorum", 1, 0)
	require.ErrorIs(t, err, broker.ErrPeekQuorum)
	_, err = b.management.Peek(ctx, "missing", 1, 0)
	require.ErrorIs(t, err, broker.ErrNotFound)
}
