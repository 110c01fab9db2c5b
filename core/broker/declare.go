package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
func (e *TopologyError) Error() string {
	text := fmt.Sprintf("declare %s: %s", e.Object, e.Reason)
	if strings.Contains(e.Reason, "'x-queue-type'") {
		text += ": set message_queue.rabbitmq.queue_type to the type of this queue, or move to the other type: " +
			"stop all programs, delete the queue, and start them"
	}
	return text
}

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
	return do(ctx, conn, func() error {
		d := declarer{broker: b, ctx: ctx, conn: conn}
		list(&d)
		if d.channel != nil {
			discardChannel(d.channel)
		}
		return errors.Join(d.errs...)
	})
}

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
	if refused, ok := refusal(err, amqp.PreconditionFailed); ok {
		d.errs = append(d.errs, &TopologyError{Object: object, Reason: refused.Reason, cause: err})
	} else if err != nil {
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
	arguments = ofType(arguments, d.broker.cfg.QuorumQueues)
	declare := func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, arguments)
		return err
	}
	d.step("queue "+name, func(ch *amqp.Channel) error {
		err := declare(ch)
		if !crashed(err) || name == message.QueueDeadLetter || d.broker.cfg.QuorumQueues {
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
	refused, missing := refusal(err, amqp.NotFound)
	return missing && strings.Contains(refused.Reason, "crashed")
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
		return QueueState{}, fmt.Errorf("read the state of queue %s: %w", name, err)
	}
	state, err := onChannel(ctx, conn, func(channel *amqp.Channel) (QueueState, error) {
		queue, err := channel.QueueDeclarePassive(name, true, false, false, false, nil)
		return QueueState{Exists: true, Consumers: queue.Consumers, Ready: queue.Messages}, err
	})
	if _, missing := refusal(err, amqp.NotFound); missing {
		return QueueState{}, nil
	}
	if err != nil {
		return QueueState{}, fmt.Errorf("read the state of queue %s: %w", name, err)
	}
	return state, nil
}

// Recreated is a queue that was missing or had crashed, and was declared again. Its messages are
// lost.
type Recreated struct {
	Queue string
	Cause string
	At    time.Time
}

// Recreated lists the queues that this Broker declared again, each with the last time.
func (b *Broker) Recreated() []Recreated {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.recreatedQueues)
}

func (b *Broker) recreated(ctx context.Context, queue string, cause error) {
	b.logger.WarnContext(ctx, "Missing queue declared again", "queue", queue, "reason", cause)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recreatedQueues = slices.DeleteFunc(b.recreatedQueues, func(r Recreated) bool { return r.Queue == queue })
	b.recreatedQueues = append(b.recreatedQueues, Recreated{Queue: queue, Cause: cause.Error(), At: time.Now()})
}

// DeclareQueue declares a durable queue. A *TopologyError says that it exists with other arguments.
func (b *Broker) DeclareQueue(ctx context.Context, name string, arguments Table) error {
	return b.declare(ctx, func(d declarations) { d.queue(name, arguments) })
}

// BindQueues makes bindings. One that exists is no error.
func (b *Broker) BindQueues(ctx context.Context, bindings []Binding) error {
	return b.declare(ctx, func(d declarations) {
		for _, one := range bindings {
			d.bind(one.Queue, one.Source, one.RoutingKey)
		}
	})
}

// UnbindQueues deletes bindings. A missing binding is no error.
func (b *Broker) UnbindQueues(ctx context.Context, bindings []Binding) error {
	return b.rewire(ctx, func(d *declarer) {
		for _, one := range bindings {
			d.step(fmt.Sprintf("no binding of queue %s to exchange %s with key %q", one.Queue, one.Source,
				one.RoutingKey),
				func(ch *amqp.Channel) error { return ch.QueueUnbind(one.Queue, one.RoutingKey, one.Source, nil) })
		}
	})
}

// DeleteExchange deletes an exchange with its bindings. A missing exchange is no error.
func (b *Broker) DeleteExchange(ctx context.Context, name string) error {
	return b.rewire(ctx, func(d *declarer) {
		d.step("no exchange "+name, func(ch *amqp.Channel) error { return ch.ExchangeDelete(name, false, false) })
	})
}

func (b *Broker) rewire(ctx context.Context, list func(*declarer)) error {
	return b.declare(ctx, func(d declarations) {
		if steps, ok := d.(*declarer); ok { // a list of declarations deletes nothing
			list(steps)
		}
	})
}

// UnbindWorkerDeadLetters deletes the bindings of BindWorkerDeadLetters, for a worker whose queues
// are deleted. A missing binding counts as deleted.
func (b *Broker) UnbindWorkerDeadLetters(ctx context.Context, id int64) error {
	conn, err := b.consume.wait(ctx)
	if err != nil {
		return fmt.Errorf("unbind the dead letters of worker %d: %w", id, err)
	}
	_, err = onChannel(ctx, conn, func(channel *amqp.Channel) (none struct{}, err error) {
		for _, key := range []string{message.DispatchKey(id), message.CancelKey(id)} {
			if err == nil {
				err = channel.QueueUnbind(message.QueueDeadLetter, key, message.ExchangeDeadLetter, nil)
			}
		}
		return none, err
	})
	if _, missing := refusal(err, amqp.NotFound); err == nil || missing {
		return nil
	}
	return fmt.Errorf("unbind the dead letters of worker %d: %w", id, err)
}
