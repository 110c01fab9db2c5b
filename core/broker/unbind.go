package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/message"
)

// UnbindWorkerDeadLetters deletes the bindings of BindWorkerDeadLetters, for a worker whose queues
// are deleted. A missing binding counts as deleted.
func (b *Broker) UnbindWorkerDeadLetters(ctx context.Context, id int64) error {
	conn, err := b.consume.wait(ctx)
	if err != nil {
		return fmt.Errorf("unbind the dead letters of worker %d: %w", id, err)
	}
	_, err = call(ctx, conn, func() (struct{}, error) {
		channel, err := conn.Channel()
		if err != nil {
			return struct{}{}, err
		}
		defer discardChannel(channel)
		for _, key := range []string{message.DispatchKey(id), message.CancelKey(id)} {
			if err := channel.QueueUnbind(message.QueueDeadLetter, key, message.ExchangeDeadLetter, nil); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	}, nil)
	var refused *amqp.Error
	if err == nil || errors.As(err, &refused) && refused.Code == amqp.NotFound {
		return nil
	}
	return fmt.Errorf("unbind the dead letters of worker %d: %w", id, err)
}
