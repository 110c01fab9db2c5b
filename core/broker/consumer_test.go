package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/testkit"
)

func TestBatchesAreNatural(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue(t, "q", nil)
	ctx := testkit.Context(t)
	require.Equal(t, broker.Confirmed, b.broker.Publisher().Publish(ctx, to("q", "alone"))[0].Status)
	c := consume(t, b, broker.ConsumerConfig{Queue: "q", Prefetch: 100, MaxBatch: 40})
	alone := receive(t, c)
	require.Len(t, alone.Deliveries, 1, "a single message waits for no company")
	require.Equal(t, "alone", string(alone.Deliveries[0].Body))
	require.NoError(t, alone.Ack())

	b.broker.Publisher().Publish(ctx, numbered("q", 90))
	testkit.Eventually(t, func() bool {
		state, err := b.broker.QueueState(ctx, "q")
		return err == nil && state.Ready == 0
	}, 10*time.Second)
	position := 0
	for position < 90 {
		batch := receive(t, c)
		require.LessOrEqual(t, len(batch.Deliveries), 40)
		for _, d := range batch.Deliveries {
			require.Equal(t, fmt.Sprint(position), string(d.Body))
			position++
		}
		require.NoError(t, batch.Ack())
	}
}

// Settling one batch leaves an older, open one alone, although an
// acknowledgement of many would cover it.
func TestAckOfALaterBatchSparesTheEarlier(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue(t, "q", nil)
	ctx := testkit.Context(t)
	b.broker.Publisher().Publish(ctx, numbered("q", 6))
	c := consume(t, b, broker.ConsumerConfig{Queue: "q", Prefetch: 6, MaxBatch: 3})
	var first, second *broker.Batch
	testkit.Eventually(t, func() bool {
		first = receive(t, c)
		if len(first.Deliveries) == 3 {
			return true
		}
		for i := range first.Deliveries {
			require.NoError(t, first.Deliveries[i].Nack(true))
		}
		return false
	}, 10*time.Second)
	second = receive(t, c)
	n := len(second.Deliveries)
	require.NoError(t, second.Ack())
	c.Stop()
	b.drop(t) // what is unsettled returns
	testkit.Eventually(t, func() bool {
		state, err := b.broker.QueueState(ctx, "q")
		return err == nil && state.Ready == 6-n
	}, 10*time.Second)
	require.ErrorIs(t, first.Ack(), broker.ErrStale)
}

func TestNackDecidesForOneDelivery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue(t, "q", nil)
	ctx := testkit.Context(t)
	b.broker.Publisher().Publish(ctx, to("q", "reject", "requeue", "keep"))
	c := consume(t, b, broker.ConsumerConfig{Queue: "q", Prefetch: 10})
	settled := make(map[string]int)
	for settled["reject"]+settled["keep"] < 2 || settled["requeue"] < 2 {
		batch := receive(t, c)
		for i := range batch.Deliveries {
			d := &batch.Deliveries[i]
			body := string(d.Body)
			settled[body]++
			switch {
			case body == "reject":
				require.NoError(t, d.Nack(false))
			case body == "requeue" && settled[body] == 1:
				require.NoError(t, d.Nack(true))
			case body == "requeue":
				require.True(t, d.Redelivered)
			}
		}
		require.NoError(t, batch.Ack())
		require.NoError(t, batch.Ack(), "a second acknowledgement changes nothing")
	}
	require.Equal(t, map[string]int{"reject": 1, "requeue": 2, "keep": 1}, settled)
	requireEmpty(t, b, "q")
}

func requireEmpty(t *testing.T, b *testBundle, queue string) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		info, err := b.management.Queue(testkit.Context(t), queue)
		return err == nil && info.Ready != nil && info.Unacked != nil && *info.Ready == 0 && *info.Unacked == 0
	}, 15*time.Second)
}

// Upstream 3: connections closed three times under 10,000 messages cost
// nothing: every message is delivered at least once and acknowledged.
func TestConsumerSurvivesLostConnections(t *testing.T) {
	t.Parallel()
	b := setup(t, func(cfg *broker.Config) { cfg.ConnectTimeout = 20 * time.Second })
	b.queue(t, "q", nil)
	const total = 10_000
	ctx := testkit.Context(t)
	for i, o := range b.broker.Publisher().Publish(ctx, numbered("q", total)) {
		require.Equal(t, broker.Confirmed, o.Status, "%d: %v", i, o.Err)
	}
	c := consume(t, b, broker.ConsumerConfig{Queue: "q", Prefetch: 200, MaxBatch: 100})
	seen := make(map[string]bool)
	stale, drops := 0, 0
	for len(seen) < total {
		batch := receive(t, c)
		if len(seen) >= (drops+1)*total/4 && drops < 3 {
			drops++
			b.drop(t)
		}
		for _, d := range batch.Deliveries {
			seen[d.MessageID] = true
		}
		if err := batch.Ack(); err != nil {
			require.ErrorIs(t, err, broker.ErrStale)
			stale++
		}
	}
	require.Equal(t, 3, drops)
	require.GreaterOrEqual(t, stale, 3, "the batch that was open at a loss must not count as acknowledged")
	// What was stale comes again, until nothing is left.
	testkit.Eventually(t, func() bool {
		select {
		case batch := <-c.Batches():
			_ = batch.Ack()
			return false
		case <-time.After(300 * time.Millisecond):
		}
		state, err := b.broker.QueueState(ctx, "q")
		return err == nil && state.Ready == 0
	}, 20*time.Second)
	requireEmpty(t, b, "q")
}

// A deleted queue is awaited and consumed again when somebody declares it.
func TestConsumerSurvivesItsQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue(t, "q", nil)
	c := consume(t, b, broker.ConsumerConfig{Queue: "q"})
	testkit.Eventually(t, c.Subscribed, 10*time.Second)
	_, err := b.raw.QueueDelete("q", false, false, false)
	require.NoError(t, err)
	testkit.Eventually(t, func() bool { return !c.Subscribed() }, 10*time.Second)
	b.queue(t, "q", nil)
	b.broker.Publisher().Publish(testkit.Context(t), to("q", "again"))
	batch := receive(t, c)
	require.Equal(t, "again", string(batch.Deliveries[0].Body))
	require.NoError(t, batch.Ack())
}

// Stop returns what nobody took and lets what is being handled be settled.
func TestStopLosesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue(t, "q", nil)
	ctx := testkit.Context(t)
	b.broker.Publisher().Publish(ctx, numbered("q", 50))
	c := consume(t, b, broker.ConsumerConfig{Queue: "q", Prefetch: 20, MaxBatch: 5})
	inFlight := receive(t, c)
	n := len(inFlight.Deliveries)
	c.Stop()
	require.NoError(t, inFlight.Ack(), "the batch in flight can still be settled")
	testkit.Eventually(t, func() bool {
		state, err := b.broker.QueueState(ctx, "q")
		return err == nil && state.Ready == 50-n && state.Consumers == 0
	}, 10*time.Second)
}
