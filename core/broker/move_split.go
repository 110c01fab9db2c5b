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
	defer func() {
		if err != nil {
			err = fmt.Errorf("split the batches of queue %s after %d: %w", queue, split, err)
		}
	}()
	from, err := b.dial(ctx, b.cfg.ConnectionName+"/split")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	defer from.goodbye()
	source, err := call(ctx, from, from.Channel, discardChannel)
	for left := state.Ready; err == nil && left > 0; left-- { // later messages are behind these
		var one *amqp.Delivery
		one, err = call(ctx, from, func() (*amqp.Delivery, error) {
			got, more, err := source.Get(queue, false)
			if !more {
				left = 0
			}
			return &got, err
		}, nil)
		if err != nil || !message.IsBatch(one.Type) {
			continue // it returns with the channel
		}
		singles, unreadable := message.Split(one.Body)
		if unreadable != nil {
			continue // for workers too: it stays and becomes a dead letter
		}
		if err = b.sendSingles(ctx, one, singles); err != nil {
			break
		}
		if err = do(ctx, from, func() error { return one.Ack(false) }); err == nil {
			split++
		}
	}
	return split, err
}

// sendSingles sends the messages of a batch, each as the batch was published.
func (b *Broker) sendSingles(ctx context.Context, batch *amqp.Delivery, singles []message.Single) error {
	whole := deliveryOf(batch)
	messages := make([]Message, len(singles))
	for i, part := range whole.Split(singles) {
		messages[i] = Message{
			ID: part.MessageID, Exchange: message.ExchangeExecutions, RoutingKey: part.RoutingKey, Body: part.Body,
			Properties: &part.Properties,
		}
	}
	for _, outcome := range b.publisher.Publish(ctx, messages) {
		if outcome.Err != nil {
			return outcome.Err
		}
	}
	return nil
}
