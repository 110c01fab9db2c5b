package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/message"
)

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
	from, err := dial(ctx, b.cfg, b.cfg.ConnectionName+"/split from")
	if err != nil {
		return 0, fmt.Errorf("split the batches of queue %s: %w: %w", queue, ErrNotConnected, err)
	}
	defer from.goodbye()
	to, err := dial(ctx, b.cfg, b.cfg.ConnectionName+"/split to")
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
		for i, part := range deliveryParts(&next.one, page) {
			copies[i] = next.one
			copies[i].MessageId, copies[i].Type, copies[i].Body, copies[i].RoutingKey = part.MessageID, part.Type,
				part.Body, part.RoutingKey
		}
		if _, err := call(ctx, m.to, func() (struct{}, error) { return struct{}{}, m.send(ctx, copies) },
			nil); err != nil {
			return true, false, err
		}
	}
	_, err = call(ctx, m.from,
		func() (struct{}, error) { return struct{}{}, m.source.Ack(next.one.DeliveryTag, false) },
		nil)
	return true, err == nil, err
}

// deliveryParts are the single messages of a batch.
func deliveryParts(d *amqp.Delivery, singles []message.Single) []*Delivery {
	one := deliveryOf(d)
	return one.Split(singles)
}
