package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// DeclareQueue declares a durable queue. A *TopologyError says that it exists
// with other arguments.
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

// rewire deletes declared objects.
func (b *Broker) rewire(ctx context.Context, list func(*declarer)) error {
	return b.declare(ctx, func(d declarations) {
		if steps, ok := d.(*declarer); ok { // a list of declarations deletes nothing
			list(steps)
		}
	})
}
