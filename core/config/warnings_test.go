package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The exchange is an argument of queues that others declare too.
func TestAnotherDeadLetterExchangeIsNamed(t *testing.T) {
	t.Parallel()
	cfg := load(t, "message_queue: { rabbitmq: { dead_letter: { exchange: other.dlx } } }\n")
	require.Len(t, cfg.Warnings, 1)
	require.Contains(t, cfg.Warnings[0], "message_queue.rabbitmq.dead_letter.exchange has no effect: the exchange is attune.dlx")
	require.Equal(t, "attune.dlx", cfg.MessageQueue.RabbitMQ.DeadLetter.Exchange)
	require.Empty(t, load(t, "message_queue: { rabbitmq: { dead_letter: { exchange: attune.dlx } } }\n").Warnings)
}
