package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/lab/testkit"
)

// ids lists the message ids of a batch.
func ids(batch *broker.Batch) []string {
	var all []string
	for i := range batch.Deliveries {
		all = append(all, batch.Deliveries[i].MessageID)
	}
	return all
}

// unacked waits until the queue q has so many ready messages and consumers.
func (b *rig) unacked(ready, consumers int) {
	b.t.Helper()
	testkit.Eventually(b.t, func() bool {
		state, err := b.QueueState(b.ctx, "q")
		return err == nil && state.Ready == ready && state.Consumers == consumers
	}, waitTimeout, "%d ready and %d consumers", ready, consumers)
}

func TestBatchesAreNatural(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 50, MaxBatch: 20})

	// Alone, a message goes through at once.
	b.publishAll(broker.Message{
		ID: "alone", CorrelationID: "c", RoutingKey: "q", Type: "T", Body: []byte("{}"),
		Headers: broker.Table{"h": "v"},
	})
	batch := b.next(consumer)
	require.Len(t, batch.Deliveries, 1)
	delivery := batch.Deliveries[0]
	require.Equal(t, "alone", delivery.MessageID)
	require.Equal(t, "c", delivery.CorrelationID)
	require.Equal(t, "T", delivery.Type)
	require.Equal(t, "q", delivery.RoutingKey)
	require.Empty(t, delivery.Exchange)
	require.False(t, delivery.Redelivered)
	require.Equal(t, broker.Table{"h": "v"}, delivery.Headers)
	require.JSONEq(t, "{}", string(delivery.Body))
	require.NoError(t, batch.Ack())

	// While no batch is taken, messages collect up to MaxBatch, in order.
	b.publishAll(messages("q", 70)...)
	b.unacked(20, 1) // prefetch 50 of them
	var got []string
	testkit.Eventually(t, func() bool {
		batch := b.next(consumer)
		require.LessOrEqual(t, len(batch.Deliveries), 20)
		got = append(got, ids(batch)...)
		require.NoError(t, batch.Ack())
		return len(got) == 70
	}, waitTimeout)
	for i, id := range got {
		require.Equal(t, fmt.Sprintf("m%05d", i), id)
	}
	consumer.Stop()
	require.False(t, consumer.Subscribed())
	b.unacked(0, 0)
}

// An acknowledgement covers its own batch only, whatever order batches are
// settled in, and a batch with rejected deliveries can still be acknowledged.
func TestSettlingIsExact(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	b.publishAll(messages("q", 9)...)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 20, MaxBatch: 3})
	var batches []*broker.Batch
	for taken := 0; taken < 9; {
		batch := b.next(consumer)
		taken += len(batch.Deliveries)
		batches = append(batches, batch)
	}
	last := batches[len(batches)-1]
	lastOne := &last.Deliveries[len(last.Deliveries)-1]

	require.NoError(t, lastOne.Ack())
	require.NoError(t, lastOne.Requeue(), "settled is settled")
	require.NoError(t, last.Ack())
	require.NoError(t, last.Ack())
	require.NoError(t, lastOne.Requeue(), "settled is settled")
	require.True(t, consumer.Subscribed(), "the channel has survived")

	// The older batches are untouched by the acknowledgement of a younger one.
	consumer.Stop()
	require.NoError(t, batches[0].Deliveries[0].Requeue())
	b.becomesReady("q", 1)
	rest := 0
	for _, batch := range batches[:len(batches)-1] {
		rest += len(batch.Deliveries)
		require.NoError(t, batch.Ack())
	}
	require.NoError(t, batches[0].Ack())
	require.Positive(t, rest)
	b.Stop() // unsettled deliveries would return now
	require.Equal(t, 1, plainReady(t, b, "q"))
}

func plainReady(t *testing.T, b *rig, queue string) int {
	t.Helper()
	state, err := b.plain.QueueDeclarePassive(queue, true, false, false, false, nil)
	require.NoError(t, err)
	return state.Messages
}

func TestSettlingDecidesForOneDelivery(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	ctx := testkit.Context(t)
	b.Publisher().Publish(ctx, to("q", "done", "requeue", "keep"))
	c := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 10})
	settled := make(map[string]int)
	for settled["done"]+settled["keep"] < 2 || settled["requeue"] < 2 {
		batch := b.next(c)
		for i := range batch.Deliveries {
			d := &batch.Deliveries[i]
			body := string(d.Body)
			settled[body]++
			switch {
			case body == "done":
				require.NoError(t, d.Ack())
			case body == "requeue" && settled[body] == 1:
				require.NoError(t, d.Requeue())
			case body == "requeue":
				require.True(t, d.Redelivered)
			}
		}
		require.NoError(t, batch.Ack())
		require.NoError(t, batch.Ack(), "a second acknowledgement changes nothing")
	}
	require.Equal(t, map[string]int{"done": 1, "requeue": 2, "keep": 1}, settled)
	c.Stop()
	b.becomesReady("q", 0)
}

// Settling one batch leaves an older, open one alone, although an
// acknowledgement of many would cover it.
func TestAckOfALaterBatchSparesTheEarlier(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	ctx := testkit.Context(t)
	b.Publisher().Publish(ctx, messages("q", 6))
	c := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 6, MaxBatch: 3})
	var first, second *broker.Batch
	testkit.Eventually(t, func() bool {
		first = b.next(c)
		if len(first.Deliveries) == 3 {
			return true
		}
		for i := range first.Deliveries {
			require.NoError(t, first.Deliveries[i].Requeue())
		}
		return false
	}, 10*time.Second)
	second = b.next(c)
	n := len(second.Deliveries)
	require.NoError(t, second.Ack())
	c.Stop()
	b.closeConnections() // unsettled deliveries return
	testkit.Eventually(t, func() bool {
		state, err := b.QueueState(ctx, "q")
		return err == nil && state.Ready == 6-n
	}, 10*time.Second)
	require.ErrorIs(t, first.Ack(), broker.ErrStale)
}

// All of a batch rejected one by one, the last included, leaves nothing for
// Ack to do: the broker closes a channel that acknowledges a settled tag.
func TestAckAfterEveryDeliveryWasSettled(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 10})
	for round := range 20 {
		b.publishAll(messages("q", 3)...)
		for taken := 0; taken < 3; {
			batch := b.next(consumer)
			taken += len(batch.Deliveries)
			for i := len(batch.Deliveries) - 1; i >= round%2; i-- {
				require.NoError(t, batch.Deliveries[i].Ack())
			}
			require.NoError(t, batch.Ack(), "no channel was lost")
		}
	}
	require.Zero(t, b.ready("q"))
	require.True(t, consumer.Subscribed())
}

// Stop returns deliveries that no batch has taken to the queue, in order. Taken batches stay with their consumer.
func TestStopReturnsUntakenDeliveries(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	b.publishAll(messages("q", 10)...)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 8, MaxBatch: 2})
	held := b.next(consumer)
	b.unacked(2, 1)
	consumer.Stop()
	b.unacked(10-len(held.Deliveries), 0)
	require.NoError(t, held.Ack())

	var got []string
	again := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 20})
	for len(got) < 10-len(held.Deliveries) {
		batch := b.next(again)
		got = append(got, ids(batch)...)
		require.NoError(t, batch.Ack())
	}
	for i, id := range got {
		require.Equal(t, fmt.Sprintf("m%05d", i+len(held.Deliveries)), id, "the order is kept")
	}
	again.Stop()
	b.unacked(0, 0)
}

// GiveBack returns all unsettled deliveries in their order, also of a quorum queue, and also taken and detached
// ones. The consumer subscribes again when Await allows it.
func TestGiveBackReturnsEverythingInOrder(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newRig(t)
			b.queue("q", amqp.Table{"x-queue-type": kind})
			b.publishAll(messages("q", 10)...)
			gate := make(chan chan struct{}, 1) // holds the channel that is closed when the consumer may subscribe
			open := make(chan struct{})
			close(open)
			gate <- open
			consumer := b.consume(broker.ConsumerConfig{
				Queue: "q", Prefetch: 8, MaxBatch: 3,
				Await: func(ctx context.Context) bool {
					may := <-gate
					gate <- may
					select {
					case <-may:
						return true
					case <-ctx.Done():
						return false
					}
				},
			})
			held := b.next(consumer)
			detached := held.Deliveries[0].Detach()
			b.unacked(2, 1)
			<-gate
			shut := make(chan struct{})
			gate <- shut
			consumer.GiveBack()
			b.unacked(10, 0)
			// The broker sees the end of the subscription before the consumer notes it.
			testkit.Eventually(t, func() bool { return !consumer.Subscribed() }, waitTimeout)
			require.True(t, detached.Stale())
			require.ErrorIs(t, detached.Ack(), broker.ErrStale)

			close(shut)
			var got []string
			for len(got) < 10 {
				batch := b.next(consumer)
				got = append(got, ids(batch)...)
				require.NoError(t, batch.Ack())
			}
			for i, id := range got {
				require.Equal(t, fmt.Sprintf("m%05d", i), id, "the order is kept")
			}
			b.unacked(0, 1)
		})
	}
}

// Settling a batch of a lost channel changes nothing, and the broker delivers its messages again.
func TestStaleBatchIsANoOp(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	b.publishAll(messages("q", 2)...)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 10, MaxBatch: 1})
	first, second := b.next(consumer), b.next(consumer)
	_ = b.plain.Close()
	b.closeConnections()
	for taken := 0; taken < 2; {
		batch := b.next(consumer)
		taken += len(batch.Deliveries)
		require.True(t, batch.Deliveries[0].Redelivered)
		// Their tags exist on the new channel as well.
		require.ErrorIs(t, first.Ack(), broker.ErrStale)
		require.ErrorIs(t, second.Deliveries[0].Requeue(), broker.ErrStale)
		require.ErrorIs(t, second.Ack(), broker.ErrStale)
		require.Zero(t, b.ready("q"))
		require.NoError(t, batch.Ack())
	}
	require.True(t, consumer.Subscribed())
}

func BenchmarkConsume(b *testing.B) {
	t := newRig(b, func(c *broker.Config) { c.ConfirmTimeout = time.Minute })
	t.queue("q", nil)
	all := messages("q", b.N)
	body := make([]byte, 500)
	for i := range all {
		all[i].Body = body
	}
	t.publishAll(all...)
	b.ResetTimer()
	consumer := t.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 500, MaxBatch: 250})
	batches := 0
	for taken := 0; taken < b.N; batches++ {
		batch := t.next(consumer)
		taken += len(batch.Deliveries)
		require.NoError(b, batch.Ack())
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	b.ReportMetric(float64(b.N)/float64(batches), "msg/batch")
}

// A detached delivery is settled by itself: neither the acknowledgement of its
// own batch nor that of a later one covers it, and it comes back when the
// consumer's connection goes.
func TestADetachedDeliveryIsSettledByItself(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	b.publishAll(messages("q", 3)...)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 10})
	var kept []*broker.Delivery
	for seen := 0; seen < 3; {
		batch := b.next(consumer)
		seen += len(batch.Deliveries)
		for i := range batch.Deliveries {
			kept = append(kept, batch.Deliveries[i].Detach())
		}
		require.NoError(t, batch.Ack(), "nothing is left in it")
	}
	b.publishAll(messages("q", 4)...)
	for seen := 0; seen < 4; {
		batch := b.next(consumer)
		seen += len(batch.Deliveries)
		require.NoError(t, batch.Ack())
	}
	require.NoError(t, kept[1].Ack())
	require.NoError(t, kept[1].Ack(), "once is enough")
	require.NoError(t, kept[2].Requeue())
	again := b.next(consumer)
	require.Equal(t, kept[2].MessageID, again.Deliveries[0].MessageID)
	require.NoError(t, again.Ack())
	require.False(t, kept[0].Stale())
	b.closeConnections()
	last := b.next(consumer)
	require.True(t, kept[0].Stale())
	require.Len(t, last.Deliveries, 1)
	require.Equal(t, kept[0].MessageID, last.Deliveries[0].MessageID)
	require.ErrorIs(t, kept[0].Ack(), broker.ErrStale)
	require.NoError(t, last.Ack())
	b.becomesReady("q", 0)
}

// Deliveries of several batches are acknowledged together in any mixture, and none of the
// others with them, however they lie between each other.
func TestAcknowledgeSparesEveryOtherDelivery(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	const all = 60
	b.publishAll(messages("q", all)...)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: all + 10, MaxBatch: 7})
	var deliveries []*broker.Delivery
	for len(deliveries) < all {
		batch := b.next(consumer)
		for i := range batch.Deliveries {
			deliveries = append(deliveries, &batch.Deliveries[i])
		}
	}
	b.publishAll(messages("q", 1)...) // they lie in a batch that was not taken yet
	var first, second, kept []*broker.Delivery
	for i, d := range deliveries {
		switch {
		case i == 20 || i == 41:
			kept = append(kept, d)
		case i == 30:
			d = d.Detach()
			second = append(second, d)
		case i%3 == 1:
			second = append(second, d)
		default:
			first = append(first, d)
		}
	}
	require.NoError(t, broker.Acknowledge(nil))
	require.NoError(t, broker.Acknowledge(first))
	require.NoError(t, broker.Acknowledge(second))
	require.NoError(t, broker.Acknowledge(append(first, second...)), "settled is settled")
	require.True(t, consumer.Subscribed(), "the channel has survived")
	consumer.Stop()
	b.becomesReady("q", 1)
	b.closeConnections()
	b.becomesReady("q", 1+len(kept))
	require.ErrorIs(t, broker.Acknowledge(kept), broker.ErrStale)
}

// A consumer that has stopped keeps its channel until the last of its deliveries is
// acknowledged.
func TestAcknowledgeEndsAStoppedConsumer(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	b.publishAll(messages("q", 4)...)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 10})
	var deliveries []*broker.Delivery
	for len(deliveries) < 4 {
		batch := b.next(consumer)
		for i := range batch.Deliveries {
			deliveries = append(deliveries, &batch.Deliveries[i])
		}
	}
	consumer.Stop()
	require.NoError(t, broker.Acknowledge(deliveries[2:]))
	require.NoError(t, broker.Acknowledge(deliveries[:2]))
	b.Stop()
	require.Zero(t, plainReady(t, b, "q"))
}
