package redrive

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
)

// TestAMessageSaysHowOftenItWasSentAgain: moved, moved back, put back and requeued, each
// time counts, whatever the broker counts.
func TestAMessageSaysHowOftenItWasSentAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.queue("parked", nil)
	s.letters(s.expired(1)...)
	first := s.snapshot().Letters[0]
	require.Zero(t, first.Requeues)
	require.Nil(t, first.Requeued)
	moved := s.run(Order{Do: DoMove, Letters: []Letter{first}, Key: "parked"})
	parked := s.drain("parked")[0]
	require.Equal(t, int64(1), parked.Headers["x-attune-requeue-count"])
	require.Equal(t, moved.Op, parked.Headers["x-attune-requeue-op"])
	require.Equal(t, "ann@desk", parked.Headers["x-attune-requeue-by"])
	require.NotEmpty(t, parked.Headers["x-attune-requeue-at"])

	s.send(amqp.Publishing{MessageId: parked.MessageId, Headers: parked.Headers, Body: parked.Body}) // it died again
	second := s.snapshot().Letters[0]
	require.Equal(t, int64(1), second.Requeues)
	require.Equal(t, moved.Op, second.Requeued.Op)
	gone := s.run(Order{Do: DoDiscard, Letters: []Letter{second}})
	require.Equal(t, 1, s.run(Order{Do: DoUndo, Op: gone.Op}).Done)
	s.becomes(message.QueueDeadLetter, 1)
	third := s.snapshot().Letters[0]
	require.Equal(t, int64(2), third.Requeues)
	require.Equal(t, 1, s.run(Order{Do: DoRequeue, Letters: []Letter{third}}).Done)
	require.Equal(t, int64(3), s.drain(requests)[0].Headers["x-attune-requeue-count"], "the fresh request carries it on")

	s.send(amqp.Publishing{Headers: amqp.Table{"x-attune-requeue-op": "o", "x-attune-requeue-count": int64(-5)}, Body: []byte("x")})
	require.Equal(t, int64(1), s.snapshot().Letters[0].Requeues, "once at least, by those that did not count")
}
