package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// movePage is how many messages are in flight while they are moved.
const movePage = 100

// ErrMoveReturned reports that moved messages reached no queue; they are still in the source queue.
var ErrMoveReturned = errors.New("the exchange routes to no queue")

// MoveMessages moves all ready messages of a queue through an exchange, in order, with their ids,
// routing keys, headers and properties (except user_id, which only its owner may send). A message
// leaves the queue only after the broker has confirmed its copy: an interruption loses none, and at
// worst duplicates one page. The time to live starts again.
func (b *Broker) MoveMessages(ctx context.Context, queue, exchange string) (moved int, err error) {
	// The source and the target have a connection each, because a broker in alarm stops reading
	// from publishing connections.
	from, err := dial(ctx, b.cfg, b.cfg.ConnectionName+"/move from")
	if err != nil {
		return 0, fmt.Errorf("move the messages of queue %s: %w: %w", queue, ErrNotConnected, err)
	}
	defer from.goodbye()
	to, err := dial(ctx, b.cfg, b.cfg.ConnectionName+"/move to")
	if err != nil {
		return 0, fmt.Errorf("move the messages of queue %s: %w: %w", queue, ErrNotConnected, err)
	}
	defer to.goodbye()
	m := mover{from: from, to: to, queue: queue, exchange: exchange}
	for {
		n, err := m.page(ctx)
		moved += n
		if err != nil {
			return moved, fmt.Errorf("move the messages of queue %s through %s after %d: %w", queue, exchange, moved, err)
		}
		if n == 0 {
			return moved, nil
		}
	}
}

// mover moves messages page by page.
type mover struct {
	from, to        *connection
	queue, exchange string
	source, target  *amqp.Channel
	returns         chan amqp.Return
	confirmed       func() error // for tests: between the confirms of a page and its acknowledgement
}

func (m *mover) page(ctx context.Context) (int, error) {
	taken, err := ask(ctx, m.from, m.take, nil)
	if err != nil || len(taken) == 0 {
		return 0, err
	}
	if _, err := ask(ctx, m.to, func() (struct{}, error) { return struct{}{}, m.send(ctx, taken) }, nil); err != nil {
		return 0, err
	}
	if m.confirmed != nil {
		if err := m.confirmed(); err != nil {
			return 0, err
		}
	}
	last := taken[len(taken)-1].DeliveryTag
	_, err = ask(ctx, m.from, func() (struct{}, error) { return struct{}{}, m.source.Ack(last, true) }, nil)
	if err != nil {
		return 0, err
	}
	return len(taken), nil
}

// take gets a page; unacknowledged messages return with the channel.
func (m *mover) take() (taken []amqp.Delivery, err error) {
	if m.source == nil {
		if m.source, err = m.from.Channel(); err != nil {
			return nil, err
		}
	}
	for len(taken) < movePage {
		one, ok, err := m.source.Get(m.queue, false)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		taken = append(taken, one)
	}
	return taken, nil
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
		confirms[i], err = m.target.PublishWithDeferredConfirmWithContext(ctx, m.exchange, taken[i].RoutingKey, true, false, again(&taken[i]))
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
			return errors.New("the broker did not take a message")
		}
	}
	select { // a return arrives before the confirm of its message
	case one := <-m.returns:
		return fmt.Errorf("%w: %s", ErrMoveReturned, one.ReplyText)
	default:
		return nil
	}
}

// again is a delivery as it was published.
func again(d *amqp.Delivery) amqp.Publishing {
	return amqp.Publishing{
		Headers: d.Headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode,
		Priority: d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration,
		MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Body: d.Body,
	}
}
