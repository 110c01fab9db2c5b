package proof

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// sorter is between the exchanges and the queues of the replicas. It delivers each message twice, each time after
// a random pause, so that the order is lost, and keeps all of them for later.
type sorter struct {
	t       testing.TB
	channel *amqp.Channel
	longest time.Duration

	mu   sync.Mutex
	kept []sorted
	on   sync.WaitGroup // messages that are not yet delivered
}

// sorted is a message and its queue.
type sorted struct {
	queue   string
	message amqp.Publishing
}

// shuffle puts a sorter before the replicas, which have declared their queues.
func (s *stage) shuffle(longest time.Duration) *sorter {
	s.t.Helper()
	conn, err := amqp.Dial(s.AMQP)
	require.NoError(s.t, err)
	out, err := conn.Channel()
	require.NoError(s.t, err)
	x := &sorter{t: s.t, channel: out, longest: longest}
	ctx, cancel := context.WithCancel(context.WithoutCancel(testkit.Context(s.t)))
	var taking sync.WaitGroup
	for queue, from := range engineQueues() {
		in, err := conn.Channel()
		require.NoError(s.t, err)
		before, err := in.QueueDeclare("", false, true, true, false, nil)
		require.NoError(s.t, err)
		require.NoError(s.t, in.QueueBind(before.Name, from[1], from[0], false, nil))
		deliveries, err := in.Consume(before.Name, "", true, true, false, false, nil)
		require.NoError(s.t, err)
		require.NoError(s.t, in.QueueUnbind(queue, from[1], from[0], nil))
		taking.Go(func() {
			for d := range deliveries {
				x.take(ctx, queue, d)
			}
		})
	}
	s.t.Cleanup(func() {
		cancel()
		x.on.Wait()
		_ = conn.CloseDeadline(time.Now().Add(5 * time.Second)) // an unclean close does no harm
		taking.Wait()
	})
	return x
}

func (x *sorter) take(ctx context.Context, queue string, d amqp.Delivery) {
	one := sorted{queue, amqp.Publishing{
		MessageId: d.MessageId, CorrelationId: d.CorrelationId, Type: d.Type, Headers: d.Headers,
		ContentType: d.ContentType,
		Timestamp:   d.Timestamp, DeliveryMode: d.DeliveryMode, Body: d.Body,
	}}
	x.mu.Lock()
	x.kept = append(x.kept, one)
	x.mu.Unlock()
	for range 2 {
		x.on.Go(func() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(rand.N(x.longest)):
			}
			x.deliver(one)
		})
	}
}

func (x *sorter) deliver(one sorted) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.channel.PublishWithContext(context.Background(), "", one.queue, false, false, one.message); err != nil {
		x.t.Errorf("deliver to %s: %v", one.queue, err)
	}
}

// again delivers every message once more, in any order, and returns their number.
func (x *sorter) again() int {
	x.mu.Lock()
	all := append([]sorted(nil), x.kept...)
	x.mu.Unlock()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, one := range all {
		x.deliver(one)
	}
	return len(all)
}

// quiet waits until the replicas have acknowledged everything.
func (f *flow) quiet() {
	f.t.Helper()
	zero := 0
	testkit.Eventually(f.t, func() bool {
		time.Sleep(50 * time.Millisecond)
		zero++
		for queue := range engineQueues() {
			// Only the management API counts unacknowledged messages, and with a delay; the rows are read long
			// after that.
			state, err := f.wire.QueueState(testkit.Context(f.t), queue)
			require.NoError(f.t, err)
			if state.Ready > 0 {
				zero = 0
			}
		}
		return zero == 20
	}, 30*time.Second, "every message is delivered")
}

// F14, F15, S10–S13: three replicas get each of their messages twice and in any order; each task starts once, and
// the rows are the same. When all messages arrive once more, long after, no row changes.
func TestThreeReplicasThatGetEveryMessageTwiceInAnyOrder(t *testing.T) {
	f := newFlow(t)
	for range 3 {
		f.serve()
	}
	x := f.shuffle(150 * time.Millisecond)
	f.worker("w1")
	f.worker("w2")
	f.emit(6)
	f.until(func() bool { return true })
	f.over()
	f.quiet()
	f.requireFlows()

	before := f.rows()
	require.Greater(t, x.again(), 20*f.runs, "events, enforcements, requests and ends")
	f.quiet()
	require.Equal(t, before, f.rows(), "repeated messages change nothing")
	f.emit(2)
	f.over()
	f.requireFlows()
	testkit.Invariants(t, f.store)
}

// The same with a replica that dies in the middle: the broker delivers its messages once more.
func TestTwoReplicasThatGetEveryMessageTwiceAndOneDies(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "let a replica die meanwhile")
	for _, d := range []death{
		{"batch:committed", 7},
		{"advancement:committed", 5},
		{"hot:before-ack", 6},
		{"inbox:before-ack", 3},
	} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			f := newFlow(t)
			victim := f.serve(dieAt(d.point, d.nth))
			f.serve()
			f.shuffle(150 * time.Millisecond)
			f.worker("w1")
			f.worker("w2")
			f.until(victim.killed)
			f.age()
			f.over()
			f.requireFlows()
		})
	}
}
