package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
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
			return errors.New("the broker did not take a message")
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
