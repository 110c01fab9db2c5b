package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/phrase"
)

// DeleteQueueIfIdle deletes a queue without consumers and without ready messages; the broker checks
// both atomically. If it refuses, reason says why. A missing queue counts as deleted.
//
// Unacknowledged messages of a closed or polling client do not count as ready and are deleted with
// the queue.
func (b *Broker) DeleteQueueIfIdle(ctx context.Context, name string) (deleted bool, reason string, err error) {
	_, reason, err = b.deleteQueue(ctx, name, true)
	return reason == "" && err == nil, reason, err
}

// DeleteQueueIfUnused deletes a queue without consumers, with its ready messages, and returns their
// number. They are not dead-lettered.
func (b *Broker) DeleteQueueIfUnused(ctx context.Context,
	name string,
) (deleted bool, discarded int, reason string, err error) {
	discarded, reason, err = b.deleteQueue(ctx, name, false)
	return reason == "" && err == nil, discarded, reason, err
}

// deleteQueue uses a connection of its own: a queue type without conditions answers by closing the
// connection.
func (b *Broker) deleteQueue(ctx context.Context, name string, ifEmpty bool) (messages int, reason string, err error) {
	conn, err := b.dial(ctx, b.cfg.ConnectionName+"/delete")
	if err != nil {
		return 0, "", fmt.Errorf("delete queue %s: %w: %w", name, ErrNotConnected, err)
	}
	defer conn.goodbye()
	messages, err = onChannel(ctx, conn, func(channel *amqp.Channel) (int, error) {
		return channel.QueueDelete(name, true, ifEmpty, false)
	})
	if _, missing := refusal(err, amqp.NotFound); err == nil || missing {
		return messages, "", nil
	}
	if _, conditions := refusal(err, amqp.NotImplemented); conditions && b.cfg.QuorumQueues {
		return b.deleteQuorum(ctx, name, ifEmpty)
	}
	if refused, ok := refusal(err, amqp.PreconditionFailed, amqp.NotImplemented, amqp.ResourceLocked); ok {
		return 0, refused.Reason, nil
	}
	return 0, "", fmt.Errorf("delete queue %s: %w", name, err)
}

// deleteQuorum deletes a quorum queue, for which the broker checks no conditions: they are checked just before. A
// dispatch that arrives in between is lost, and its execution is dispatched again after the scheduled timeout.
func (b *Broker) deleteQuorum(ctx context.Context, name string, ifEmpty bool) (messages int, reason string, err error) {
	conn, err := b.dial(ctx, b.cfg.ConnectionName+"/delete")
	if err != nil {
		return 0, "", fmt.Errorf("delete queue %s: %w: %w", name, ErrNotConnected, err)
	}
	defer conn.goodbye()
	messages, err = onChannel(ctx, conn, func(channel *amqp.Channel) (int, error) {
		state, err := channel.QueueDeclarePassive(name, true, false, false, false, nil)
		switch {
		case err != nil:
			return 0, err
		case state.Consumers > 0:
			reason = "queue " + name + " has " + phrase.Plural(state.Consumers, "consumer", "consumers")
			return 0, nil
		case ifEmpty && state.Messages > 0:
			reason = "queue " + name + " has " + phrase.Plural(state.Messages, "message", "messages")
			return 0, nil
		}
		return channel.QueueDelete(name, false, false, false)
	})
	if _, missing := refusal(err, amqp.NotFound); err == nil || missing {
		return messages, reason, nil
	}
	return 0, "", fmt.Errorf("delete queue %s: %w", name, err)
}
