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

// declare declares a topology.
func (b *Broker) declare(ctx context.Context, list func(*Topology)) error {
	var t Topology
	list(&t)
	t = t.ofType(b.cfg.QuorumQueues)
	return b.rewire(ctx, func(d *declarer) {
		for _, e := range t.Exchanges {
			d.step("exchange "+e.Name, func(ch *amqp.Channel) error {
				return ch.ExchangeDeclare(e.Name, e.Kind, true, false, e.Internal, false, nil)
			})
		}
		for _, q := range t.Queues {
			d.queue(q)
		}
		for _, one := range t.Bindings {
			d.step(fmt.Sprintf("binding of queue %s to exchange %s with key %q", one.Queue, one.Source, one.RoutingKey),
				func(ch *amqp.Channel) error { return ch.QueueBind(one.Queue, one.RoutingKey, one.Source, false, nil) })
		}
	})
}

// rewire runs declarations and deletions on the consuming connection and joins the errors.
func (b *Broker) rewire(ctx context.Context, list func(*declarer)) error {
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

// queue declares a queue. The broker refuses every use of a crashed queue until it is deleted. A
// crashed queue is declared again if its messages are copies of database rows; an operator must
// handle the dead-letter queue.
func (d *declarer) queue(q DeclaredQueue) {
	declare := func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(q.Name, true, false, false, false, q.Arguments)
		return err
	}
	d.step("queue "+q.Name, func(ch *amqp.Channel) error {
		err := declare(ch)
		if !crashed(err) || q.Name == message.QueueDeadLetter || d.broker.cfg.QuorumQueues {
			return err
		}
		d.recreate(q.Name, err)
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
	state, err := use(ctx, b.consume, "read the state of queue "+name, func(channel *amqp.Channel) (QueueState, error) {
		queue, err := channel.QueueDeclarePassive(name, true, false, false, false, nil)
		return QueueState{Exists: true, Consumers: queue.Consumers, Ready: queue.Messages}, err
	})
	if _, missing := refusal(err, amqp.NotFound); missing {
		return QueueState{}, nil
	}
	return state, err
}

// ExchangeExists reports whether an exchange of this name exists.
func (b *Broker) ExchangeExists(ctx context.Context, name string) (bool, error) {
	exists, err := use(ctx, b.consume, "look up exchange "+name, func(channel *amqp.Channel) (bool, error) {
		// A passive declaration ignores the kind.
		return true, channel.ExchangeDeclarePassive(name, amqp.ExchangeDirect, true, false, false, false, nil)
	})
	if _, missing := refusal(err, amqp.NotFound); missing {
		return false, nil
	}
	return exists, err
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
	return b.declare(ctx, func(t *Topology) { t.queue(name, arguments) })
}

// BindQueues makes bindings. One that exists is no error.
func (b *Broker) BindQueues(ctx context.Context, bindings []Binding) error {
	return b.declare(ctx, func(t *Topology) { t.Bindings = bindings })
}

// UnbindQueues deletes bindings. A missing binding, queue or exchange is no error.
func (b *Broker) UnbindQueues(ctx context.Context, bindings []Binding) error {
	return b.rewire(ctx, func(d *declarer) {
		for _, one := range bindings {
			d.step(fmt.Sprintf("no binding of queue %s to exchange %s with key %q", one.Queue, one.Source,
				one.RoutingKey),
				func(ch *amqp.Channel) error {
					err := ch.QueueUnbind(one.Queue, one.RoutingKey, one.Source, nil)
					if _, missing := refusal(err, amqp.NotFound); missing {
						return nil
					}
					return err
				})
		}
	})
}

// DeleteExchange deletes an exchange with its bindings. A missing exchange is no error.
func (b *Broker) DeleteExchange(ctx context.Context, name string) error {
	return b.rewire(ctx, func(d *declarer) {
		d.step("no exchange "+name, func(ch *amqp.Channel) error { return ch.ExchangeDelete(name, false, false) })
	})
}

// UnbindWorkerDeadLetters deletes the bindings of BindWorkerDeadLetters, for a worker whose queues
// are deleted. A missing binding counts as deleted.
func (b *Broker) UnbindWorkerDeadLetters(ctx context.Context, id int64) error {
	bindings := []Binding{
		{Source: message.ExchangeDeadLetter, Queue: message.QueueDeadLetter, RoutingKey: message.DispatchKey(id)},
		{Source: message.ExchangeDeadLetter, Queue: message.QueueDeadLetter, RoutingKey: message.CancelKey(id)},
	}
	return b.UnbindQueues(ctx, bindings)
}
