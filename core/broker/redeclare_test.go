package broker_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
)

// drain takes everything out of a queue.
func (b *rig) drain(queue string) (all []amqp.Delivery) {
	b.t.Helper()
	for {
		one, ok, err := b.plain.Get(queue, true)
		require.NoError(b.t, err)
		if !ok {
			return all
		}
		all = append(all, one)
	}
}

// An operator changes the time to live so: the queue goes, and the worker declares it anew.
func TestAWorkerQueueIsDeclaredWithAnotherTTLOnceItIsDeleted(t *testing.T) {
	b := newRig(t)
	require.NoError(t, b.DeclareCommon(b.ctx))
	require.NoError(t, b.DeclareWorker(b.ctx, 7, time.Minute))
	queue := message.WorkerExecutionsQueue(7)
	err := b.DeclareWorker(b.ctx, 7, 2*time.Minute)
	var refused *broker.TopologyError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "delete the queue and start the worker")
	deleted, reason, err := b.DeleteQueueIfIdle(b.ctx, queue)
	require.NoError(t, err)
	require.True(t, deleted, reason)
	require.NoError(t, b.DeclareWorker(b.ctx, 7, 2*time.Minute))
	info, err := b.management.Queue(b.ctx, queue)
	require.NoError(t, err)
	require.EqualValues(t, 120_000, info.Arguments["x-message-ttl"])
	require.NoError(t, b.plain.Publish(message.ExchangeExecutions, message.DispatchKey(7), false, false,
		amqp.Publishing{Body: []byte("{}")}))
	b.becomesReady(queue, 1)
}

func TestPoliciesComeAndGo(t *testing.T) {
	b := newRig(t)
	policy := broker.Policy{
		Name: "p", Pattern: `^q\.`, ApplyTo: "queues", Priority: 1,
		Definition: map[string]any{"message-ttl": 1000},
	}
	require.NoError(t, b.management.PutPolicy(b.ctx, policy))
	require.NoError(t, b.management.DeletePolicy(b.ctx, "p"))
	require.NoError(t, b.management.DeletePolicy(b.ctx, "p"), "a missing policy counts as deleted")
	policies, err := b.management.Policies(b.ctx)
	require.NoError(t, err)
	require.Empty(t, policies)
}
