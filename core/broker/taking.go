package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// takingPriority lets whoever takes come before the consumers of everyday, so that
// what was planned is what is taken.
const takingPriority = 10

// ErrTakingOver says that nothing more came.
var ErrTakingOver = errors.New("nothing more comes from the queue")

// Taking takes the messages of a queue one by one, in their order, and holds each
// until it is acknowledged or returned. It is for one goroutine.
type Taking struct {
	errand     *Errand
	queue      string
	prefetch   int
	back       Return
	channel    *amqp.Channel
	deliveries <-chan amqp.Delivery
	consumer   int // how many subscriptions there were
	held       int // of this subscription
}

// Take begins to take. At most prefetch messages come before some of them are
// settled; when all of those are to be held, taking goes on with a new
// subscription, since the broker counts them for each.
func (e *Errand) Take(ctx context.Context, queue string, prefetch int, back Return) (*Taking, error) {
	t := &Taking{errand: e, queue: queue, prefetch: prefetch, back: back}
	channel, err := ask(ctx, e.take, e.take.Channel, discardChannel)
	if err != nil {
		return nil, fmt.Errorf("take from queue %s: %w", queue, err)
	}
	t.channel = channel
	return t, t.subscribe(ctx)
}

func (t *Taking) tag() string { return fmt.Sprintf("attune-taking-%d", t.consumer) }

func (t *Taking) subscribe(ctx context.Context) error {
	t.consumer++
	t.held = 0
	deliveries, err := ask(ctx, t.errand.take, func() (<-chan amqp.Delivery, error) {
		if err := t.channel.Qos(t.prefetch, 0, false); err != nil {
			return nil, err
		}
		return t.channel.Consume(t.queue, t.tag(), false, false, false, false, Table{"x-priority": int32(takingPriority)})
	}, nil)
	if err != nil {
		return fmt.Errorf("take from queue %s: %w", t.queue, err)
	}
	t.deliveries = deliveries
	return nil
}

// Next waits for the next message, at most for the given time: after it, and when
// the queue or the connection is gone, the error is ErrTakingOver.
func (t *Taking) Next(ctx context.Context, patience time.Duration) (*Whole, error) {
	if t.held >= t.prefetch {
		if err := t.resubscribe(ctx); err != nil {
			return nil, err
		}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case d, ok := <-t.deliveries:
		if !ok {
			return nil, fmt.Errorf("%w: the channel was lost", ErrTakingOver)
		}
		t.held++
		w := wholeOf(&d)
		w.consumer = t.consumer
		return w, nil
	case <-timer.C:
		return nil, ErrTakingOver
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// resubscribe leaves what is held with the channel and takes on.
func (t *Taking) resubscribe(ctx context.Context) error {
	_, err := ask(ctx, t.errand.take, func() (struct{}, error) { return struct{}{}, t.channel.Cancel(t.tag(), false) }, nil)
	if err != nil {
		return fmt.Errorf("take from queue %s: %w", t.queue, err)
	}
	return t.subscribe(ctx)
}

// Ack settles a message: it leaves the queue. The protocol has no answer to it:
// Settled tells that it has arrived.
func (t *Taking) Ack(ctx context.Context, w *Whole) error {
	_, err := ask(ctx, t.errand.take, func() (struct{}, error) { return struct{}{}, t.channel.Ack(w.tag, false) }, nil)
	if err != nil {
		return fmt.Errorf("acknowledge a message of queue %s: %w", t.queue, t.unanswered(err))
	}
	if w.consumer == t.consumer {
		t.held--
	}
	return nil
}

// Settled waits until the broker has taken every Ack before: it answers what comes
// after them on the channel only then.
func (t *Taking) Settled(ctx context.Context) error {
	_, err := ask(ctx, t.errand.take, func() (struct{}, error) { return struct{}{}, t.channel.Qos(t.prefetch, 0, false) }, nil)
	if err != nil {
		return fmt.Errorf("acknowledge messages of queue %s: %w", t.queue, t.unanswered(err))
	}
	return nil
}

// unanswered says of an error that the connection was lost, where it was.
func (t *Taking) unanswered(err error) error {
	if t.errand.Lost() || t.channel.IsClosed() || severed(err) {
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	return err
}

// End returns what is held and was not settled, and stops taking. It waits until
// the broker has seen both.
func (t *Taking) End(ctx context.Context) error {
	_, err := ask(ctx, t.errand.take, func() (struct{}, error) {
		if t.channel.IsClosed() {
			return struct{}{}, nil
		}
		if err := t.channel.Cancel(t.tag(), false); err != nil {
			return struct{}{}, err
		}
		for range t.deliveries { // what came meanwhile goes back with the rest
		}
		return struct{}{}, giveBack(t.channel, t.back)
	}, nil)
	if err != nil {
		return fmt.Errorf("return messages to queue %s: %w", t.queue, err)
	}
	return nil
}
