package broker

import (
	"context"

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
	remove := func(channel *amqp.Channel) (int, error) { return channel.QueueDelete(name, true, ifEmpty, false) }
	messages, err = apart(ctx, b, "delete", "delete queue "+name, remove)
	if _, conditions := refusal(err, amqp.NotImplemented); conditions && b.cfg.QuorumQueues {
		messages, err = apart(ctx, b, "delete", "delete queue "+name, func(channel *amqp.Channel) (n int, err error) {
			n, reason, err = deleteQuorum(channel, name, ifEmpty)
			return n, err
		})
	}
	if _, missing := refusal(err, amqp.NotFound); missing {
		return messages, "", nil
	}
	if refused, ok := refusal(err, amqp.PreconditionFailed, amqp.NotImplemented, amqp.ResourceLocked); ok {
		return 0, refused.Reason, nil
	}
	return messages, reason, err
}

// deleteQuorum deletes a quorum queue, for which the broker checks no conditions: they are checked just before. A
// dispatch that arrives in between is lost, and its execution is dispatched again after the scheduled timeout.
func deleteQuorum(channel *amqp.Channel, name string, ifEmpty bool) (messages int, reason string, err error) {
	state, err := channel.QueueDeclarePassive(name, true, false, false, false, nil)
	switch {
	case err != nil:
		return 0, "", err
	case state.Consumers > 0:
		return 0, "queue " + name + " has " + phrase.Plural(state.Consumers, "consumer", "consumers"), nil
	case ifEmpty && state.Messages > 0:
		return 0, "queue " + name + " has " + phrase.Plural(state.Messages, "message", "messages"), nil
	}
	messages, err = channel.QueueDelete(name, false, false, false)
	return messages, "", err
}
