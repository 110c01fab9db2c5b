package broker

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Batch is the result of one receive from a Consumer. Its methods and those of its deliveries may
// be called from any goroutine.
type Batch struct {
	// Deliveries has at least one element, in the order of the queue.
	Deliveries []Delivery

	subscription *subscription
	first        uint64   // delivery tag of the first delivery
	tags         []uint64 // parallel to Deliveries
	settled      []bool   // parallel to Deliveries; guarded by the subscription
	unsettled    int      // guarded by the subscription
	detached     bool     // one delivery that was detached from another batch
	split        []*parts // of deliveries; only the receiver uses it
}

// Delivery is one received message.
type Delivery struct {
	Properties

	RoutingKey string
	Exchange   string
	// Expiration is the message's own time to live in milliseconds, as sent.
	Expiration  string
	Redelivered bool
	Body        []byte

	weight   int // its bytes in memory, as the budget counts them
	batch    *Batch
	position int
	parts    *parts // nil unless it is a part of another delivery
	part     int
}

// Ack settles all unsettled deliveries of the batch. It returns ErrStale if the channel is lost;
// the messages are then delivered again. Nil means that the acknowledgement was sent: the protocol
// has no answer to it, so after a loss of the connection the messages may still be delivered again.
func (b *Batch) Ack() error {
	err := b.subscription.acknowledge(b)
	for _, p := range b.split {
		if of := p.rest(); err == nil {
			err = of
		}
	}
	return err
}

// Acknowledge settles unsettled deliveries of any batches and consumers. Deliveries older than
// every unsettled one of their channel share one frame; each later one needs its own. It never
// acknowledges a delivery that is not in the list. It returns ErrStale if a channel is lost; its
// messages are then delivered again.
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

// Requeue returns one message to its queue. It must precede the batch's Ack; settled deliveries
// stay settled. It returns ErrStale if the channel is lost.
func (d *Delivery) Requeue() error {
	if d.parts != nil {
		return d.parts.requeue()
	}
	return d.batch.subscription.requeue(d.batch, d.position)
}

// Ack settles this delivery alone. Acknowledge settles several with fewer frames.
func (d *Delivery) Ack() error {
	if d.parts != nil {
		return d.parts.accept(d.part)
	}
	return d.batch.subscription.accept(d.batch, d.position)
}

// Detach removes the delivery from its batch, so that the batch's Ack skips it: the caller settles
// it later. A settled delivery stays settled. While a delivery is detached, later batches of its
// consumer are acknowledged message by message, and it counts towards the prefetch.
func (d *Delivery) Detach() *Delivery {
	if d.parts != nil {
		d.parts.detach(d.part)
		return d
	}
	return d.batch.subscription.detach(d.batch, d.position)
}

// Stale reports whether the delivery can no longer be settled: its channel is lost, and the broker
// delivers the message again.
func (d *Delivery) Stale() bool {
	if d.parts != nil {
		return d.parts.stale()
	}
	return d.batch.subscription.isDead()
}

// append adds a delivery. It needs no lock: only the list of open batches refers to the batch yet,
// and it reads no batch before the hand-out.
func (b *Batch) append(d *amqp.Delivery) {
	one := deliveryOf(d)
	one.batch, one.position = b, len(b.Deliveries)
	b.Deliveries = append(b.Deliveries, one)
	b.tags = append(b.tags, d.DeliveryTag)
	b.settled = append(b.settled, false)
	b.unsettled++
}

// weightOf is the size of a received message in memory, as the budget counts it.
func weightOf(d *amqp.Delivery) int {
	memory, _ := d.Headers[headerWeight].(int64) // only large headers have it
	return min(len(d.Body), maxHeld) + int(memory)
}

// deliveryOf is a received message, not yet part of a batch.
func deliveryOf(d *amqp.Delivery) Delivery {
	weight := weightOf(d)
	delete(d.Headers, headerWeight)
	return Delivery{
		Properties: Properties{
			MessageID: d.MessageId, CorrelationID: d.CorrelationId, Type: d.Type, ContentType: d.ContentType,
			ContentEncoding: d.ContentEncoding, ReplyTo: d.ReplyTo, AppID: d.AppId, UserID: d.UserId,
			DeliveryMode: d.DeliveryMode, Priority: d.Priority, Timestamp: d.Timestamp, Headers: d.Headers,
		},
		RoutingKey: d.RoutingKey, Exchange: d.Exchange, Expiration: d.Expiration, Redelivered: d.Redelivered,
		Body: d.Body, weight: weight,
	}
}
