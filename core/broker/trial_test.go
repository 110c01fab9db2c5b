package broker_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// trials records trials in memory. The first ends fail, as many as fails says; refused is closed at the first refused
// begin.
type trials struct {
	mu      sync.Mutex
	open    map[string]time.Time
	begun   int
	most    int // at a time
	fails   int
	refused chan struct{}
}

func (r *trials) BeginTrial(_ context.Context, fingerprint, _ string) (float64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.open[fingerprint]; ok {
		if r.refused != nil {
			close(r.refused)
			r.refused = nil
		}
		return time.Since(at).Seconds(), nil
	}
	r.open[fingerprint] = time.Now()
	r.begun++
	r.most = max(r.most, len(r.open))
	return -1, nil
}

func (r *trials) EndTrial(_ context.Context, fingerprint string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails--; r.fails >= 0 {
		return errors.New("the database is away")
	}
	delete(r.open, fingerprint)
	return nil
}

func (r *trials) count() (begun, open, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun, len(r.open), r.most
}

// dies leaves n messages of queues redelivered, as after the death of a process.
func (b *rig) dies(queues ...string) {
	b.t.Helper()
	conn, err := amqp.Dial(b.url)
	require.NoError(b.t, err)
	channel, err := conn.Channel()
	require.NoError(b.t, err)
	for _, queue := range queues {
		for {
			_, more, err := channel.Get(queue, false)
			require.NoError(b.t, err)
			if !more {
				break
			}
		}
	}
	require.NoError(b.t, conn.Close())
}

// After the death of a process its small messages come together, and its large ones one at a time, over all queues.
// Nothing is condemned.
func TestLargeMessagesOfADeadProcessAreTriedAlone(t *testing.T) {
	b := newRig(t)
	record := &trials{open: map[string]time.Time{}}
	link := broker.New(broker.Config{URL: b.url, Trials: record}, testkit.Logger(t), nil)
	require.NoError(t, link.Start(b.ctx))
	t.Cleanup(link.Stop)
	forger := testkit.Forger(t, b.url)
	large := bytes.Repeat([]byte("x"), 200<<10)
	for _, queue := range []string{"a", "b"} {
		b.queue(queue, nil)
		for i := range 12 {
			one := amqp.Publishing{MessageId: strconv.Itoa(i), Body: []byte("small")}
			if i%4 == 3 {
				one.Body = large
			}
			sent(t, forger, "", queue, one)
		}
	}
	b.dies("a", "b")
	b.becomesReady("a", 12)
	var got sync.WaitGroup
	for _, queue := range []string{"a", "b"} {
		consumer := link.Consume(broker.ConsumerConfig{Queue: queue})
		require.NoError(t, consumer.Start(b.ctx))
		t.Cleanup(consumer.Stop)
		got.Go(func() {
			for n := 0; n < 12; {
				batch := b.next(consumer)
				for i, d := range batch.Deliveries {
					if d.MessageID != strconv.Itoa(n+i) {
						t.Errorf("message %s of queue %s comes as number %d", d.MessageID, queue, n+i)
					}
					if d.Doubtful() && len(batch.Deliveries) > 1 {
						t.Errorf("message %s of queue %s comes with others", d.MessageID, queue)
					}
				}
				n += len(batch.Deliveries)
				if err := batch.Ack(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	got.Wait()
	testkit.Eventually(t, func() bool { _, open, _ := record.count(); return open == 0 }, waitTimeout)
	begun, _, most := record.count()
	require.Equal(t, 6, begun, "the large ones")
	require.Equal(t, 1, most, "one at a time")
	b.becomesReady("a", 0)
	b.becomesReady(message.QueueDeadLetter, 0)
}

// A message that was tried alone by a process that died is dead-lettered with a mark that keeps it unread, and so is a
// dead letter itself.
func TestAMessageThatEndedAProcessIsNotReadAgain(t *testing.T) {
	b := newRig(t)
	require.NoError(t, b.DeclareCommon(b.ctx))
	b.queue("q", nil)
	body := bytes.Repeat([]byte("x"), 200<<10)
	for _, queue := range []string{"q", message.QueueDeadLetter} {
		sent(t, testkit.Forger(t, b.url), "", queue, amqp.Publishing{MessageId: "m-" + queue, Body: body})
	}
	b.dies("q", message.QueueDeadLetter)
	record := &trials{open: map[string]time.Time{}}
	for _, queue := range []string{"q", message.QueueDeadLetter} {
		d := broker.Delivery{Properties: broker.Properties{MessageID: "m-" + queue}, Body: body}
		record.open[d.Fingerprint(queue)] = time.Now().Add(-time.Minute)
	}
	link := broker.New(broker.Config{URL: b.url, Trials: record}, testkit.Logger(t), nil)
	require.NoError(t, link.Start(b.ctx))
	t.Cleanup(link.Stop)
	for _, queue := range []string{"q", message.QueueDeadLetter} {
		consumer := link.Consume(broker.ConsumerConfig{Queue: queue, MaxBatch: 1})
		require.NoError(t, consumer.Start(b.ctx))
		t.Cleanup(consumer.Stop)
		if queue == "q" {
			b.becomesReady(message.QueueDeadLetter, 2)
			continue
		}
		found := map[string]broker.Table{}
		for range 2 {
			batch := b.next(consumer)
			found[batch.Deliveries[0].MessageID] = batch.Deliveries[0].Headers
			require.Equal(t, body, batch.Deliveries[0].Body)
			require.NoError(t, batch.Ack())
		}
		require.Equal(t, true, found["m-q"][broker.HeaderUnread])
		require.Equal(t, broker.ErrEndedProcess.Error(), found["m-q"][broker.HeaderReason])
		require.Equal(t, true, found["m-"+message.QueueDeadLetter][broker.HeaderUnread])
	}
	b.becomesReady("q", 0)
}

// Another process, which lives, tries a copy of the message, or has lost its connection to the broker a moment ago: the
// message waits for the end of that trial. An end that cannot be recorded is recorded later.
func TestATrialOfALivingProcessCondemnsNothing(t *testing.T) {
	b := newRig(t)
	require.NoError(t, b.DeclareCommon(b.ctx))
	b.queue("q", nil)
	body := bytes.Repeat([]byte("x"), 200<<10)
	sent(t, testkit.Forger(t, b.url), "", "q", amqp.Publishing{MessageId: "m", Body: body})
	b.dies("q")
	d := broker.Delivery{Properties: broker.Properties{MessageID: "m"}, Body: body}
	print, refused := d.Fingerprint("q"), make(chan struct{})
	record := &trials{open: map[string]time.Time{print: time.Now()}, refused: refused, fails: 1}
	link := broker.New(broker.Config{URL: b.url, Trials: record}, testkit.Logger(t), nil)
	require.NoError(t, link.Start(b.ctx))
	t.Cleanup(link.Stop)
	consumer := link.Consume(broker.ConsumerConfig{Queue: "q"})
	require.NoError(t, consumer.Start(b.ctx))
	t.Cleanup(consumer.Stop)
	<-refused
	record.mu.Lock()
	delete(record.open, print)
	record.mu.Unlock()
	batch := b.next(consumer)
	require.Equal(t, "m", batch.Deliveries[0].MessageID)
	require.NoError(t, batch.Ack())
	testkit.Eventually(t, func() bool { _, open, _ := record.count(); return open == 0 }, waitTimeout)
	b.becomesReady(message.QueueDeadLetter, 0)
}
