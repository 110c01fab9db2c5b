package floor

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// link passes messages through one durable queue: each is confirmed, received and acknowledged.
type link struct {
	out, in  *amqp.Channel
	queue    string
	received <-chan amqp.Delivery
}

// Through makes the program pass requests, dispatches and completions through a broker.
func (p *Program) Through(url string) error {
	for range 2 {
		conn, err := amqp.Dial(url)
		if err != nil {
			return fmt.Errorf("connect to the broker: %w", err)
		}
		p.connections = append(p.connections, conn)
	}
	for i := range 3 {
		l, err := newLink(p.connections[0], p.connections[1], fmt.Sprintf("floor.%d", i))
		if err != nil {
			return fmt.Errorf("make the queue floor.%d: %w", i, err)
		}
		p.links = append(p.links, l)
	}
	return nil
}

func newLink(out, in *amqp.Connection, queue string) (l *link, err error) {
	l = &link{queue: queue}
	if l.out, err = out.Channel(); err != nil {
		return nil, err
	}
	if l.in, err = in.Channel(); err != nil {
		return nil, err
	}
	if _, err = l.in.QueueDeclare(queue, true, false, false, false, nil); err != nil {
		return nil, err
	}
	if err = l.out.Confirm(false); err != nil {
		return nil, err
	}
	if l.received, err = l.in.Consume(queue, "", false, false, false, false, nil); err != nil {
		return nil, err
	}
	return l, nil
}

// pass passes messages; without a broker it does nothing.
func (p *Program) pass(ctx context.Context, which int, bodies ...[]byte) error {
	if p.links == nil {
		return nil
	}
	l := p.links[which]
	for _, body := range bodies {
		confirmed, err := l.out.PublishWithDeferredConfirm("", l.queue, true, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, ContentType: "application/json", Body: body})
		if err != nil {
			return fmt.Errorf("publish to %s: %w", l.queue, err)
		}
		if _, err := confirmed.WaitContext(ctx); err != nil {
			return fmt.Errorf("await a confirm of %s: %w", l.queue, err)
		}
	}
	for range bodies {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d := <-l.received: // of a closed channel the acknowledgement fails
			if err := d.Ack(false); err != nil {
				return fmt.Errorf("acknowledge a message of %s: %w", l.queue, err)
			}
		}
	}
	return nil
}

func (p *Program) unlink() {
	for _, l := range p.links {
		_, _ = l.in.QueueDelete(l.queue, false, false, false) // the servers are private
	}
	for _, conn := range p.connections {
		_ = conn.Close()
	}
}
