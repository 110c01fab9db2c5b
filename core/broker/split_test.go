package broker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// A message that was split is acknowledged when the last of its parts is settled.
//
//nolint:tparallel // the subtests share one queue
func TestASplitDeliveryIsSettledWithItsLastPart(t *testing.T) {
	url := testkit.VHost(t)
	connection := broker.New(broker.Config{URL: url, ConnectionName: "split"}, testkit.Logger(t), nil)
	require.NoError(t, connection.Start(testkit.Context(t)))
	t.Cleanup(connection.Stop)
	require.NoError(t, connection.DeclareExecutor(testkit.Context(t)))
	require.NoError(t, connection.DeclareBatches(testkit.Context(t)))
	payloads := []message.ExecutionCompleted{{ExecutionID: 1}, {ExecutionID: 2}, {ExecutionID: 3}}
	sent, err := message.Batches(message.TypeExecutionBatchCompleted, payloads, time.Now(), "test")
	require.NoError(t, err)
	publish := func() {
		outcome := connection.Publisher().Publish(testkit.Context(t), []broker.Message{{
			ID: sent[0].ID, RoutingKey: message.QueueExecutionBatches, Type: sent[0].Type, Body: sent[0].Body,
		}})[0]
		require.NoError(t, outcome.Err)
	}
	take := func(consumer *broker.Consumer) (*broker.Batch, []*broker.Delivery) {
		batch := <-consumer.Batches()
		singles, err := message.Split(batch.Deliveries[0].Body)
		require.NoError(t, err)
		return batch, batch.Deliveries[0].Split(singles)
	}
	for name, c := range map[string]struct {
		settle func(t *testing.T, batch *broker.Batch, parts []*broker.Delivery)
		stays  bool
	}{
		"with the batch": {func(t *testing.T, batch *broker.Batch,
			_ []*broker.Delivery,
		) {
			require.NoError(t, batch.Ack())
		}, false},
		"one is put off": {func(t *testing.T, batch *broker.Batch, parts []*broker.Delivery) {
			parts[1].Detach()
			require.NoError(t, batch.Ack())
		}, true},
		"one is put off and settled": {func(t *testing.T, batch *broker.Batch, parts []*broker.Delivery) {
			one := parts[1].Detach()
			require.NoError(t, batch.Ack())
			require.NoError(t, one.Ack())
		}, false},
		"one is settled before the batch": {func(t *testing.T, _ *broker.Batch, parts []*broker.Delivery) {
			require.NoError(t, parts[1].Detach().Ack())
		}, true},
		"all one by one": {func(t *testing.T, _ *broker.Batch, parts []*broker.Delivery) {
			for _, one := range parts {
				require.NoError(t, one.Ack())
			}
		}, false},
		"returned": {func(t *testing.T, batch *broker.Batch, parts []*broker.Delivery) {
			require.NoError(t, parts[0].Ack())
			require.NoError(t, parts[1].Requeue())
			require.NoError(t, parts[2].Requeue())
			require.NoError(t, batch.Ack())
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			subscriptions := 0
			consumer := connection.Consume(broker.ConsumerConfig{
				Queue: message.QueueExecutionBatches, Prefetch: 1,
				Await: func(context.Context) bool { subscriptions++; return subscriptions == 1 },
			})
			publish()
			require.NoError(t, consumer.Start(testkit.Context(t)))
			defer consumer.Stop()
			batch, parts := take(consumer)
			require.Equal(t, message.KeyExecutionCompleted, parts[0].RoutingKey)
			c.settle(t, batch, parts)
			consumer.GiveBack() // unsettled deliveries return
			testkit.Eventually(t, func() bool {
				state, err := connection.QueueState(testkit.Context(t), message.QueueExecutionBatches)
				return err == nil && state.Consumers == 0 && (state.Ready == 1) == c.stays
			}, waitTimeout)
			_, err := connection.PurgeQueue(testkit.Context(t), message.QueueExecutionBatches)
			require.NoError(t, err)
		})
	}

	t.Run("one is given up", func(t *testing.T) {
		consumer := connection.Consume(broker.ConsumerConfig{Queue: message.QueueExecutionBatches, Prefetch: 1})
		publish()
		publish()
		require.NoError(t, consumer.Start(testkit.Context(t)))
		defer consumer.Stop()
		batch, parts := take(consumer)
		parts[2].GiveUp(t.Context(), errors.New("poison"), 1)
		require.NoError(t, batch.Ack())
		next, _ := take(consumer) // the broker delivers it when the first is acknowledged
		state, err := connection.QueueState(testkit.Context(t), message.QueueDeadLetter)
		require.NoError(t, err)
		require.Equal(t, 1, state.Ready)
		require.NoError(t, next.Ack())
	})
}
