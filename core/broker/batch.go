package broker

import (
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Batch is what one receive from a Consumer brings. Its methods and those of
// its deliveries may be called from any goroutine.
type Batch struct {
	// Deliveries has at least one element, in the order of the queue.
	Deliveries []Delivery

	subscription *subscription
	first        uint64   // the tag of the first delivery
	tags         []uint64 // parallel to Deliveries
	settled      []bool   // parallel to Deliveries; guarded by the subscription
	unsettled    int      // guarded by the subscription
	detached     bool     // one delivery, taken out of another batch
	split        []*parts // of deliveries; only the taker uses it
}

// Delivery is one received message.
type Delivery struct {
	MessageID       string
	CorrelationID   string
	Type            string
	RoutingKey      string
	Exchange        string
	ContentType     string
	ContentEncoding string
	AppID           string
	// Expiration is the message's own time to live in milliseconds, as sent.
	Expiration  string
	Priority    uint8
	Redelivered bool
	Headers     Table
	Timestamp   time.Time
	Body        []byte

	batch    *Batch
	position int
	parts    *parts // nil unless it is a part of another delivery
	part     int
}

// Ack settles all deliveries of the batch that were not settled before. It
// returns ErrStale if the channel is gone; the messages then come again. Nil
// says that the acknowledgement was sent: the protocol has no answer to it, so
// a connection lost in that moment may bring the messages again all the same.
func (b *Batch) Ack() error {
	err := b.subscription.acknowledge(b)
	for _, p := range b.split {
		if of := p.rest(); err == nil {
			err = of
		}
	}
	return err
}

// Acknowledge settles deliveries of any batches and consumers that were not settled before.
// Deliveries older than every unsettled one of their channel need one frame together, each
// later one needs its own. It never acknowledges a delivery that it is not given. It returns
// ErrStale if a channel is gone; the messages of that channel then come again.
func Acknowledge(deliveries []*Delivery) error {
	of := make(map[*subscription][]*Delivery)
	for _, d := range deliveries {
		if d.parts != nil {
			if d = d.parts.last(d.part); d == nil {
				continue
			}
		}
		of[d.batch.subscription] = append(of[d.batch.subscription], d)
	}
	var failed error
	for s, list := range of {
		failed = errors.Join(failed, s.acceptAll(list))
	}
	return failed
}

// Requeue gives one message back to its queue. It must come before the batch's Ack;
// whatever is settled stays settled. It returns ErrStale if the channel is gone.
func (d *Delivery) Requeue() error {
	if d.parts != nil {
		return d.parts.requeue()
	}
	return d.batch.subscription.requeue(d.batch, d.position)
}

// Ack settles this delivery alone, now. Acknowledge settles several with fewer frames.
func (d *Delivery) Ack() error {
	if d.parts != nil {
		return d.parts.accept(d.part)
	}
	return d.batch.subscription.accept(d.batch, d.position)
}

// Detach takes the delivery out of its batch, so that the batch's Ack leaves it
// alone: it is to be settled by itself, later. What was settled before stays as it
// is. While a delivery is detached, later batches of its consumer are acknowledged
// message by message, and it counts towards the prefetch.
func (d *Delivery) Detach() *Delivery {
	if d.parts != nil {
		d.parts.detach(d.part)
		return d
	}
	return d.batch.subscription.detach(d.batch, d.position)
}

// Stale reports whether the delivery can no longer be settled: its channel is
// gone, and the message comes, or has come, again.
func (d *Delivery) Stale() bool {
	if d.parts != nil {
		return d.parts.stale()
	}
	return d.batch.subscription.isDead()
}

// append adds a delivery; nobody else knows the batch yet but the list of open
// ones, which does not look inside before it is handed out.
func (b *Batch) append(d *amqp.Delivery) {
	one := deliveryOf(d)
	one.batch, one.position = b, len(b.Deliveries)
	b.Deliveries = append(b.Deliveries, one)
	b.tags = append(b.tags, d.DeliveryTag)
	b.settled = append(b.settled, false)
	b.unsettled++
}

// deliveryOf is a message that was delivered, without what settles it.
func deliveryOf(d *amqp.Delivery) Delivery {
	return Delivery{
		MessageID: d.MessageId, CorrelationID: d.CorrelationId, Type: d.Type,
		RoutingKey: d.RoutingKey, Exchange: d.Exchange,
		ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, AppID: d.AppId,
		Expiration: d.Expiration, Priority: d.Priority, Redelivered: d.Redelivered,
		Headers: d.Headers, Timestamp: d.Timestamp, Body: d.Body,
	}
}

// lastUnsettled is the position of the last delivery that was not settled.
func (b *Batch) lastUnsettled() int {
	for i := len(b.settled) - 1; i > 0; i-- {
		if !b.settled[i] {
			return i
		}
	}
	return 0
}
