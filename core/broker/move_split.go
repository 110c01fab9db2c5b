package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/message"
)

// movePage is how many messages are under way at a time.
const movePage = 100

// errReturned says that sent messages reached no queue; the broker keeps the batch.
var errReturned = errors.New("the exchange routes to no queue")

// mover takes messages out of a queue on one connection and sends them on another, because a
// broker in alarm stops reading from connections that send.
type mover struct {
	from, to        *connection
	queue, exchange string
	source, target  *amqp.Channel
	returns         chan amqp.Return
}

// send publishes a page and waits until the broker has confirmed all of it.
func (m *mover) send(ctx context.Context, taken []amqp.Delivery) (err error) {
	if m.target == nil {
		if m.target, err = m.to.Channel(); err != nil {
			return err
		}
		if err := m.target.Confirm(false); err != nil {
			return err
		}
		m.returns = m.target.NotifyReturn(make(chan amqp.Return, movePage))
	}
	confirms := make([]*amqp.DeferredConfirmation, len(taken))
	for i := range taken {
		confirms[i], err = m.target.PublishWithDeferredConfirmWithContext(ctx, m.exchange, taken[i].RoutingKey, true,
			false, republished(&taken[i]))
		if err != nil {
			return err
		}
	}
	for _, confirm := range confirms {
		ok, err := confirm.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("the broker refused a message")
		}
	}
	select { // a return arrives before the confirm of its message
	case one := <-m.returns:
		return fmt.Errorf("%w: %s", errReturned, one.ReplyText)
	default:
		return nil
	}
}

// republished is a delivery as it was published.
func republished(d *amqp.Delivery) amqp.Publishing {
	return amqp.Publishing{
		Headers: d.Headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
		DeliveryMode: d.DeliveryMode,
		Priority:     d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration,
		MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Body: d.Body,
	}
}

// SplitBatches replaces each batch message in a queue by its single messages, and returns the
// number of batches. Every other message keeps its place; the broker counts one more delivery for
// it. A batch leaves the queue only after the broker has confirmed all of its messages: an
// interruption loses nothing, and at worst duplicates one batch. A missing queue has no batches.
// SplitBatches does not see messages that a consumer holds.
func (b *Broker) SplitBatches(ctx context.Context, queue string) (split int, err error) {
	state, err := b.QueueState(ctx, queue)
	if err != nil || !state.Exists || state.Ready == 0 {
		return 0, err
	}
	from, err := b.dial(ctx, b.cfg.ConnectionName+"/split from")
	if err != nil {
		return 0, fmt.Errorf("split the batches of queue %s: %w: %w", queue, ErrNotConnected, err)
	}
	defer from.goodbye()
	to, err := b.dial(ctx, b.cfg.ConnectionName+"/split to")
	if err != nil {
		return 0, fmt.Errorf("split the batches of queue %s: %w: %w", queue, ErrNotConnected, err)
	}
	defer to.goodbye()
	m := mover{from: from, to: to, queue: queue, exchange: message.ExchangeExecutions}
	if m.source, err = call(ctx, from, from.Channel, discardChannel); err != nil {
		return 0, fmt.Errorf("split the batches of queue %s: %w", queue, err)
	}
	for range state.Ready { // later messages are behind these
		more, done, err := m.splitNext(ctx)
		if err != nil {
			return split, fmt.Errorf("split the batches of queue %s after %d: %w", queue, split, err)
		}
		if !more {
			break
		}
		if done {
			split++
		}
	}
	return split, nil
}

// splitNext takes the next message, and splits it if it is a batch. Otherwise the message returns
// with the channel.
func (m *mover) splitNext(ctx context.Context) (more, split bool, err error) {
	type got struct {
		one amqp.Delivery
		ok  bool
	}
	next, err := call(ctx, m.from, func() (got, error) {
		one, ok, err := m.source.Get(m.queue, false)
		return got{one, ok}, err
	}, nil)
	if err != nil || !next.ok || !message.IsBatch(next.one.Type) {
		return next.ok, false, err
	}
	singles, err := message.Split(next.one.Body)
	if err != nil {
		return true, false, nil //nolint:nilerr // unreadable, for workers too: it stays and becomes a dead letter
	}
	for len(singles) > 0 {
		page := singles[:min(len(singles), movePage)]
		singles = singles[len(page):]
		copies := make([]amqp.Delivery, len(page))
		whole := deliveryOf(&next.one)
		for i, part := range whole.Split(page) {
			copies[i] = next.one
			copies[i].MessageId, copies[i].Type, copies[i].Body, copies[i].RoutingKey = part.MessageID, part.Type,
				part.Body, part.RoutingKey
		}
		if err := do(ctx, m.to, func() error { return m.send(ctx, copies) }); err != nil {
			return true, false, err
		}
	}
	_, err = call(ctx, m.from,
		func() (struct{}, error) { return struct{}{}, m.source.Ack(next.one.DeliveryTag, false) },
		nil)
	return true, err == nil, err
}
