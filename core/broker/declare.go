package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/message"
)

// TopologyError reports that an exchange or a queue exists with other properties than the common
// declarations. An operator must resolve it.
type TopologyError struct {
	// Object is the declared object, such as "queue worker.7.executions".
	Object string
	// Reason is the broker's description of the difference.
	Reason string
	cause  error
}

// Error implements error.
func (e *TopologyError) Error() string { return fmt.Sprintf("declare %s: %s", e.Object, e.Reason) }

// Unwrap returns the broker's own error.
func (e *TopologyError) Unwrap() error { return e.cause }

// declarer declares one object after the other. A refused object closes the channel, but does not
// stop later declarations.
type declarer struct {
	broker  *Broker
	ctx     context.Context //nolint:containedctx // of one call of declare
	conn    *connection
	channel *amqp.Channel
	errs    []error
}

// declare runs declarations on the consuming connection and joins the errors.
func (b *Broker) declare(ctx context.Context, list func(declarations)) error {
	conn, err := b.consume.wait(ctx)
	if err != nil {
		return fmt.Errorf("declare topology: %w", err)
	}
	_, err = call(ctx, conn, func() (struct{}, error) {
		d := declarer{broker: b, ctx: ctx, conn: conn}
		list(&d)
		if d.channel != nil {
			discardChannel(d.channel)
		}
		return struct{}{}, errors.Join(d.errs...)
	}, nil)
	return err
}

// step runs one declaration.
func (d *declarer) step(object string, declare func(*amqp.Channel) error) {
	if d.conn.IsClosed() && len(d.errs) > 0 {
		return // already reported
	}
	if d.channel == nil || d.channel.IsClosed() {
		channel, err := d.conn.Channel()
		if err != nil {
			d.errs = append(d.errs, fmt.Errorf("open a channel to declare %s: %w", object, err))
			return
		}
		d.channel = channel
	}
	err := declare(d.channel)
	var refused *amqp.Error
	switch {
	case err == nil:
	case errors.As(err, &refused) && refused.Code == amqp.PreconditionFailed:
		d.errs = append(d.errs, &TopologyError{Object: object, Reason: refused.Reason, cause: err})
	default:
		d.errs = append(d.errs, fmt.Errorf("declare %s: %w", object, err))
	}
}

func (d *declarer) exchange(name, kind string, internal bool) {
	d.step("exchange "+name, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclare(name, kind, true, false, internal, false, nil)
	})
}

// queue declares a queue. The broker refuses every use of a crashed queue until it is deleted. A
// crashed queue is declared again if its messages are copies of database rows; an operator must
// handle the dead-letter queue.
func (d *declarer) queue(name string, arguments Table) {
	declare := func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, arguments)
		return err
	}
	d.step("queue "+name, func(ch *amqp.Channel) error {
		err := declare(ch)
		if !crashed(err) || name == message.QueueDeadLetter {
			return err
		}
		d.recreate(name, err)
		if ch, err = d.conn.Channel(); err != nil { // the refusal has closed the other channel
			return err
		}
		defer discardChannel(ch)
		return declare(ch)
	})
}

// recreate deletes a crashed queue. Another replica may have done so already: a queue with
// consumers or messages stays.
func (d *declarer) recreate(name string, cause error) {
	ch, err := d.conn.Channel()
	if err != nil {
		return // the following declaration reports it
	}
	defer discardChannel(ch)
	if _, err = ch.QueueDelete(name, true, true, false); err == nil {
		d.broker.recreated(d.ctx, name, cause)
	}
}

// crashed reports whether the broker refuses a queue because its process crashed.
func crashed(err error) bool {
	refused, ok := errors.AsType[*amqp.Error](err)
	return ok && refused.Code == amqp.NotFound && strings.Contains(refused.Reason, "crashed")
}

func (d *declarer) bind(queue, exchange string, keys ...string) {
	for _, key := range keys {
		d.step(fmt.Sprintf("binding of queue %s to exchange %s with key %q", queue, exchange, key),
			func(ch *amqp.Channel) error { return ch.QueueBind(queue, key, exchange, false, nil) })
	}
}

// QueueState is the broker's state of a queue at the time of the call.
type QueueState struct {
	Exists bool
	// Consumers is how many consumers are subscribed.
	Consumers int
	// Ready is how many messages wait for delivery, without delivered unsettled ones.
	Ready int
}

// QueueState reads the state of a queue. It is exact, unlike the management API's. A missing queue
// is no error.
func (b *Broker) QueueState(ctx context.Context, name string) (QueueState, error) {
	conn, err := b.consume.wait(ctx)
	if err != nil {
		return QueueState{}, fmt.Errorf("ask for the state of queue %s: %w", name, err)
	}
	state, err := call(ctx, conn, func() (QueueState, error) {
		channel, err := conn.Channel()
		if err != nil {
			return QueueState{}, err
		}
		defer discardChannel(channel)
		queue, err := channel.QueueDeclarePassive(name, true, false, false, false, nil)
		return QueueState{Exists: true, Consumers: queue.Consumers, Ready: queue.Messages}, err
	}, nil)
	var refused *amqp.Error
	if errors.As(err, &refused) && refused.Code == amqp.NotFound {
		return QueueState{}, nil
	}
	if err != nil {
		return QueueState{}, fmt.Errorf("ask for the state of queue %s: %w", name, err)
	}
	return state, nil
}
