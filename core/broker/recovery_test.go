package broker_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/lab/testkit"
)

// Upstream 3: consumers did not consume again after the loss of a channel, a queue or a connection.
func TestConsumerComesBack(t *testing.T) {
	t.Parallel()

	t.Run("QueueMadeLater", func(t *testing.T) {
		t.Parallel()
		b := newRig(t)
		consumer := b.consume(broker.ConsumerConfig{Queue: "q"})
		require.False(t, consumer.Subscribed())
		b.queue("q", nil)
		b.publishAll(messages("q", 1)...)
		require.NoError(t, b.next(consumer).Ack())
	})

	t.Run("QueueDeletedAndMadeAgain", func(t *testing.T) {
		t.Parallel()
		b := newRig(t)
		b.queue("q", nil)
		b.publishAll(messages("q", 1)...)
		consumer := b.consume(broker.ConsumerConfig{Queue: "q"})
		held := b.next(consumer)
		_, err := b.plain.QueueDelete("q", false, false, false)
		require.NoError(t, err)
		testkit.Eventually(t, func() bool { return !consumer.Subscribed() }, waitTimeout)
		require.ErrorIs(t, held.Ack(), broker.ErrStale)
		b.queue("q", nil)
		b.publishAll(messages("q", 1)...)
		require.NoError(t, b.next(consumer).Ack())
	})

	t.Run("ConnectionCutWithoutAWord", func(t *testing.T) {
		t.Parallel()
		b := newRig(t)
		b.queue("q", nil)
		proxy := newProxy(t, b.url)
		through := broker.New(broker.Config{URL: proxy.url, MinBackoff: 5 * time.Millisecond}, testkit.Logger(t), nil)
		require.NoError(t, through.Start(b.ctx))
		t.Cleanup(through.Stop)
		consumer := through.Consume(broker.ConsumerConfig{Queue: "q"})
		require.NoError(t, consumer.Start(b.ctx))
		t.Cleanup(consumer.Stop)
		b.unacked(0, 1)
		proxy.cut()
		b.publishAll(messages("q", 1)...)
		testkit.Eventually(t, func() bool {
			return b.next(consumer).Ack() == nil
		}, waitTimeout)
	})
}

// A broker that answers nothing neither hangs a Stop nor a question.
func TestFrozenServer(t *testing.T) {
	behind := newRig(t)
	behind.queue("q", nil)
	proxy := newProxy(t, behind.url)
	b := broker.New(broker.Config{
		URL: proxy.url, CallTimeout: 200 * time.Millisecond, CloseTimeout: 100 * time.Millisecond,
		DialTimeout: 200 * time.Millisecond, ConnectTimeout: time.Second,
	}, testkit.Logger(t), nil)
	require.NoError(t, b.Start(behind.ctx))
	t.Cleanup(b.Stop)
	consumer := b.Consume(broker.ConsumerConfig{Queue: "q"})
	require.NoError(t, consumer.Start(behind.ctx))
	t.Cleanup(consumer.Stop)
	behind.unacked(0, 1)

	proxy.freeze()
	_, err := b.QueueState(behind.ctx, "q")
	require.Error(t, err)
	testkit.Eventually(t, func() bool { return b.State() == broker.StateDisconnected }, waitTimeout)
	begin := time.Now()
	consumer.Stop()
	b.Stop()
	require.Less(t, time.Since(begin), waitTimeout)
}

// Nothing is lost and nothing sticks: every message is seen at least once and
// in the end acknowledged, however often the connections are closed.
func TestNothingIsLostWhenConnectionsClose(t *testing.T) {
	const n = 10_000
	b := newRig(t)
	b.queue("q", nil)
	b.publishAll(messages("q", n)...)
	_ = b.plain.Close()
	consumer := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 200, MaxBatch: 100})

	var (
		mu      sync.Mutex
		seen    = map[string]int{}
		acked   = map[string]bool{}
		pace    = make(chan struct{}) // closed when the connections have been closed thrice
		done    = make(chan struct{})
		working sync.WaitGroup
	)
	working.Go(func() {
		for {
			select {
			case <-done:
				return
			case batch := <-consumer.Batches():
				select { // leave work for after each closing
				case <-pace:
				case <-time.After(5 * time.Millisecond):
				}
				err := batch.Ack()
				mu.Lock()
				for _, id := range ids(batch) {
					seen[id]++
					acked[id] = acked[id] || err == nil
				}
				mu.Unlock()
			}
		}
	})
	for range 3 {
		b.closeConnections()
		testkit.Eventually(t, consumer.Subscribed, waitTimeout)
	}
	close(pace)
	testkit.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(acked) == n
	}, waitTimeout)
	consumer.Stop()
	b.becomesReady("q", 0)
	close(done)
	working.Wait()
	for i := range n {
		require.Positive(t, seen[fmt.Sprintf("m%05d", i)], "message %d was never seen", i)
		require.True(t, acked[fmt.Sprintf("m%05d", i)], "message %d was never acknowledged", i)
	}
}

func TestConsumerOutlivesItsBroker(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	b.publishAll(messages("q", 1)...)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q"})
	held := b.next(consumer)
	b.Stop()
	require.ErrorIs(t, held.Ack(), broker.ErrStale)
	consumer.Stop()
	unstarted := b.Consume(broker.ConsumerConfig{Queue: "q"})
	unstarted.Stop()
	require.Error(t, unstarted.Start(b.ctx))
}
