package broker_test

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/lab/testkit"
)

// fill puts so many messages into a queue, the ids of which count from 0.
func (b *rig) fill(queue string, n int) {
	b.t.Helper()
	for i := range n {
		require.NoError(b.t, b.plain.Publish("", queue, false, false,
			amqp.Publishing{MessageId: fmt.Sprint(i), DeliveryMode: amqp.Persistent}))
	}
	b.becomesReady(queue, n)
}

const soon = 200 * time.Millisecond

// everything acknowledges page after page, and returns the ids in the order in which they came. It waits for the
// given number of messages, and does not expect more.
func everything(b *rig, d *broker.Drain, expected int, each func(page int)) (ids []string) {
	b.t.Helper()
	for n := 0; ; n++ {
		wait := waitTimeout
		if len(ids) >= expected {
			wait = soon
		}
		page, err := d.Next(b.ctx, wait)
		require.NoError(b.t, err)
		if page == nil {
			return ids
		}
		for _, one := range page {
			ids = append(ids, one.MessageID)
		}
		if each != nil {
			each(n)
		}
		require.NoError(b.t, d.Ack(b.ctx))
	}
}

func numbers(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(i))
	}
	return ids
}

func TestADrainTakesInOrderUpToItsBound(t *testing.T) {
	b := newRig(t)
	for _, c := range []struct{ there, bound, prefetch, want int }{
		{100, 100, 7, 100},
		{100, 41, 20, 41},
		{100, 3, 20, 3},
		{100, 20, 20, 20},
		{100, 21, 20, 21},
		{5, 50, 20, 5},
		{30, 30, 1, 30},
	} {
		name := fmt.Sprintf("q-%d-%d-%d", c.there, c.bound, c.prefetch)
		b.queue(name, amqp.Table{"x-queue-type": "quorum"})
		b.fill(name, c.there)
		d, err := b.Drain(b.ctx, name, c.bound, c.prefetch)
		require.NoError(t, err)
		require.Equal(t, numbers(c.want), everything(b, d, c.want, nil), name)
		require.NoError(t, d.Close(b.ctx))
		b.becomesReady(name, c.there-c.want)
		for _, one := range b.drain(name) {
			require.False(t, one.Redelivered, "%s: %s was delivered beyond the bound", name, one.MessageId)
		}
	}
}

// A queue with a delivery limit loses nothing, however often a drain stops. A drain that stops in order returns no
// delivery.
func TestADrainThatStopsReturnsNothing(t *testing.T) {
	b := newRig(t)
	b.queue("limited", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(3)})
	b.fill("limited", 100)
	var ids []string
	for range 6 {
		d, err := b.Drain(b.ctx, "limited", 100, 10)
		require.NoError(t, err)
		ids = append(ids, everything(b, d, 1, func(int) { require.NoError(t, d.Stop(b.ctx)) })...)
		require.NoError(t, d.Close(b.ctx))
	}
	require.Equal(t, numbers(len(ids)), ids)
	rest := b.drain("limited")
	require.Len(t, rest, 100-len(ids))
	for _, one := range rest {
		require.False(t, one.Redelivered, "%s went back", one.MessageId)
	}
}

// A drain that is cut returns at most one prefetch.
func TestADrainThatIsCutReturnsAPrefetch(t *testing.T) {
	b := newRig(t)
	b.queue("q", amqp.Table{"x-queue-type": "quorum"})
	b.fill("q", 50)
	d, err := b.Drain(b.ctx, "q", 50, 10)
	require.NoError(t, err)
	for range 2 {
		_, err = d.Next(b.ctx, waitTimeout)
		require.NoError(t, err)
		require.NoError(t, d.Ack(b.ctx))
	}
	page, err := d.Next(b.ctx, waitTimeout)
	require.NoError(t, err)
	require.NotEmpty(t, page)
	require.NoError(t, d.Close(b.ctx))
	again := 0
	testkit.Eventually(t, func() bool {
		for _, one := range b.drain("q") {
			if one.Redelivered {
				again++
			}
		}
		return again > 0
	}, waitTimeout, "the unacknowledged deliveries return")
	require.LessOrEqual(t, again, 10)
}

func TestADrainOfNothing(t *testing.T) {
	b := newRig(t)
	d, err := b.Drain(b.ctx, "missing", 10, 10)
	require.NoError(t, err)
	_, err = d.Next(b.ctx, soon)
	require.ErrorIs(t, err, broker.ErrNotFound)
	b.queue("empty", nil)
	d, err = b.Drain(b.ctx, "empty", 10, 10)
	require.NoError(t, err)
	require.Empty(t, everything(b, d, 0, nil))
	require.NoError(t, d.Close(b.ctx))
}

func TestPurgeQueueSaysHowMany(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	b.fill("q", 12)
	n, err := b.PurgeQueue(b.ctx, "q")
	require.NoError(t, err)
	require.Equal(t, 12, n)
	_, err = b.PurgeQueue(b.ctx, "missing")
	require.Error(t, err)
}

// Large messages that a Drain did not acknowledge do not delay the next one.
func TestADrainThatIsCutLeavesNoBytesBehind(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	body := make([]byte, 4<<20)
	for range 4 {
		sent(t, testkit.Forger(t, b.url), "", "q", amqp.Publishing{Body: body})
	}
	for range 2 {
		drain, err := b.Drain(b.ctx, "q", 4, 4)
		require.NoError(t, err)
		began := time.Now()
		page, err := drain.Next(b.ctx, waitTimeout)
		require.NoError(t, err)
		require.NotEmpty(t, page)
		require.Less(t, time.Since(began), 9*time.Second)
		require.NoError(t, drain.Close(b.ctx))
		b.becomesReady("q", 4)
	}
}
