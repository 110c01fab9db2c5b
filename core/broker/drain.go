package broker

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Drain takes the messages of one queue, in order, and never more than its bound. It is not safe
// for concurrent use. It has a connection of its own, which does not reconnect.
//
// Ack removes the messages that Next returned from the queue. Unacknowledged deliveries, at most
// the prefetch, return to the queue when the connection ends; the broker counts one more delivery
// for each.
type Drain struct {
	conn       *connection
	channel    *amqp.Channel
	deliveries <-chan amqp.Delivery // nil while not subscribed
	waiting    []amqp.Delivery      // delivered before a cancel, not yet returned by Next
	queue      string
	tags       int    // subscriptions so far
	prefetch   int    // bound of unacknowledged messages
	window     int    // the prefetch of this subscription
	bound      int    // bound of all messages
	delivered  int    // by the broker
	acked      int    // by us
	handed     int    // returned by Next, not acknowledged
	last       uint64 // delivery tag of the last of them
	weight     int    // of them, as the budget counts
}

// takePurpose names the connection of a Drain.
const takePurpose = "take"

// Drain connects; Next takes the first messages. A missing queue is ErrNotFound.
func (b *Broker) Drain(ctx context.Context, queue string, bound, prefetch int) (*Drain, error) {
	conn, err := b.dial(ctx, b.cfg.ConnectionName+"/"+takePurpose)
	if err != nil {
		return nil, fmt.Errorf("take from queue %s: %w: %w", queue, ErrNotConnected, err)
	}
	d := &Drain{conn: conn, queue: queue, bound: bound, prefetch: prefetch}
	if d.channel, err = call(ctx, conn, conn.Channel, discardChannel); err != nil {
		conn.goodbye()
		return nil, fmt.Errorf("take from queue %s: %w", queue, err)
	}
	return d, nil
}

// linger is how long Next waits for one more message while a page is not full.
const linger = 10 * time.Millisecond

// Next returns a page of messages, at least one and at most the prefetch. It waits at most wait for
// the first; an empty page means that the bound is reached or the queue is empty. Previous pages
// must have been acknowledged.
func (d *Drain) Next(ctx context.Context, wait time.Duration) ([]Delivery, error) {
	if len(d.waiting) == 0 && d.deliveries == nil {
		if d.delivered >= d.bound {
			return nil, nil
		}
		if err := d.subscribe(ctx); err != nil {
			return nil, fmt.Errorf("take from queue %s: %w", d.queue, err)
		}
	}
	page := d.waiting
	d.waiting = nil
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for d.deliveries != nil && len(page) < d.window {
		select {
		case one, more := <-d.deliveries:
			if !more {
				return nil, fmt.Errorf("take from queue %s: %w: the subscription has ended", d.queue, ErrNotConnected)
			}
			d.delivered++
			page = append(page, one)
			timer.Reset(linger)
		case <-timer.C:
			if len(page) == 0 {
				return nil, nil
			}
			return d.convert(page), nil
		case <-ctx.Done():
			if len(page) == 0 {
				return nil, context.Cause(ctx)
			}
			return d.convert(page), nil
		}
	}
	return d.convert(page), nil
}

func (d *Drain) convert(page []amqp.Delivery) []Delivery {
	deliveries := make([]Delivery, len(page))
	for i := range page {
		deliveries[i] = deliveryOf(&page[i])
		d.weight += deliveries[i].weight
	}
	d.handed, d.last = len(page), page[len(page)-1].DeliveryTag
	return deliveries
}

// subscribe starts the deliveries, at most as many as the bound leaves.
func (d *Drain) subscribe(ctx context.Context) (err error) {
	d.tags++
	d.window = min(d.prefetch, d.bound-d.delivered)
	d.deliveries, err = call(ctx, d.conn, func() (<-chan amqp.Delivery, error) {
		if err := d.channel.Qos(d.window, 0, false); err != nil {
			return nil, err
		}
		return d.channel.Consume(d.queue, d.tag(), false, false, false, false, nil)
	}, nil)
	if _, missing := refusal(err, amqp.NotFound); missing {
		return ErrNotFound
	}
	return err
}

func (d *Drain) tag() string { return fmt.Sprintf("attune-take-%d", d.tags) }

// pause ends the subscription; Next returns its deliveries.
func (d *Drain) pause(ctx context.Context) error {
	if d.deliveries == nil {
		return nil
	}
	defer d.conn.held.leave()() // the answer comes behind the messages
	if err := do(ctx, d.conn, func() error { return d.channel.Cancel(d.tag(), false) }); err != nil {
		return fmt.Errorf("stop taking from queue %s: %w", d.queue, err)
	}
	for one := range d.deliveries { // ends: the library closes it after a cancel
		d.delivered++
		d.waiting = append(d.waiting, one)
	}
	d.deliveries = nil
	return nil
}

// Stop stops the deliveries: Next still returns the messages that have arrived, so that none goes
// back.
func (d *Drain) Stop(ctx context.Context) error {
	if err := d.pause(ctx); err != nil {
		return err
	}
	d.bound = d.delivered
	return nil
}

// Ack removes all messages that Next returned from the queue. Every acknowledgement allows the
// broker to deliver as many more, so the subscription ends before an acknowledgement that could
// exceed the bound.
func (d *Drain) Ack(ctx context.Context) error {
	if d.handed == 0 {
		return nil
	}
	if d.acked+d.handed+d.window > d.bound {
		if err := d.pause(ctx); err != nil {
			return err
		}
	}
	if err := do(ctx, d.conn, func() error { return d.channel.Ack(d.last, true) }); err != nil {
		return fmt.Errorf("acknowledge messages of queue %s: %w", d.queue, err)
	}
	d.conn.held.release(d.weight)
	d.acked += d.handed
	d.handed, d.weight = 0, 0
	return nil
}

// Close ends the connection. Unacknowledged messages return to the queue. Without an error the
// broker has every acknowledgement; after an error the last messages may be delivered again.
func (d *Drain) Close(ctx context.Context) error {
	defer d.conn.held.leave()()
	defer d.conn.goodbye()
	// The broker answers on a channel in the order of the calls.
	if err := do(ctx, d.conn, func() error { return d.channel.Qos(1, 0, false) }); err != nil {
		return fmt.Errorf("take from queue %s: %w", d.queue, err)
	}
	return nil
}

// PurgeQueue removes all ready messages of a queue, and no delivered ones. It returns their number.
// After ErrNotConnected the result is unknown.
func (b *Broker) PurgeQueue(ctx context.Context, name string) (int, error) {
	return use(ctx, b.consume, "purge queue "+name,
		func(channel *amqp.Channel) (int, error) { return channel.QueuePurge(name, false) })
}
