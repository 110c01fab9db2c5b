package handback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/handback"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// No batch remains where a published executor or worker reads: an existing worker with the name of one of ours
// runs everything in its queue.
func TestBatchesAreSplit(t *testing.T) {
	w := setup(t)
	action := testkit.Action(t, w, "demo.batch")
	ours := testkit.Worker(t, w, "ours", func(row *testkit.WorkerRow) {
		row.HeartbeatAge = -time.Hour
		row.Capabilities["attempt_fence"], row.Capabilities["batch"],
			row.Capabilities["max_concurrent_executions"] = true, true, 200
	}).ID
	wire := w.wire(t, w.amqp)
	require.NoError(t, wire.DeclareExecutor(testkit.Context(t)))
	require.NoError(t, wire.DeclareWorker(testkit.Context(t), ours, 0))
	ids := w.request(t, action.Ref, 20)
	stop := w.engine(t)
	w.reaches(t, lifecycle.StatusScheduled, len(ids))
	testkit.Eventually(t, func() bool { return testkit.Count(t, w, `SELECT count(*) FROM outbox`) == 0 }, waitTimeout)
	stop()
	waiting, err := wire.QueueState(testkit.Context(t), message.WorkerExecutionsQueue(ours))
	require.NoError(t, err)
	require.Less(t, waiting.Ready, len(ids), "there are batches")
	sent, err := message.Batches(message.TypeExecutionBatchCompleted,
		[]message.ExecutionCompleted{{ExecutionID: 1 << 40}, {ExecutionID: 1<<40 + 1}}, time.Now(), "test")
	require.NoError(t, err)
	for _, outcome := range wire.Publisher().Publish(testkit.Context(t), []broker.Message{{
		ID: sent[0].ID, RoutingKey: message.QueueExecutionBatches, Type: sent[0].Type, Body: sent[0].Body,
	}}) {
		require.NoError(t, outcome.Err)
	}

	// The hand-back is refused while a worker has batches that it has not started.
	consumer := wire.Consume(broker.ConsumerConfig{Queue: message.WorkerExecutionsQueue(ours), Prefetch: 1})
	require.NoError(t, consumer.Start(testkit.Context(t)))
	testkit.Eventually(t, consumer.Subscribed, waitTimeout)
	var unstarted *handback.UnstartedError
	_, err = handback.HandBack(testkit.Context(t), handback.Deps{Store: w.store, Broker: wire})
	require.ErrorAs(t, err, &unstarted)
	require.Contains(t, err.Error(), "ours holds 20")
	consumer.Stop()
	testkit.Eventually(t, func() bool {
		state, err := wire.QueueState(testkit.Context(t), message.WorkerExecutionsQueue(ours))
		return err == nil && state.Ready == waiting.Ready && state.Consumers == 0
	}, waitTimeout, "the queue has its messages again")

	result := w.handBack(t)
	require.Positive(t, result.Split)
	state, err := wire.QueueState(testkit.Context(t), message.WorkerExecutionsQueue(ours))
	require.NoError(t, err)
	require.Equal(t, len(ids), state.Ready)
	state, err = wire.QueueState(testkit.Context(t), message.QueueExecutionBatches)
	require.NoError(t, err)
	require.False(t, state.Exists)
	state, err = wire.QueueState(testkit.Context(t), message.QueueExecutionCompleted)
	require.NoError(t, err)
	require.Equal(t, 2, state.Ready)
	w.purge(t, message.QueueExecutionCompleted)
	w.down(t)
	w.other(t)
	existing := testkit.StartFakeWorker(t,
		testkit.FakeWorkerConfig{AMQPURL: w.amqp, DatabaseURL: w.database, Name: "ours"})
	require.Equal(t, ours, existing.ID)
	w.reaches(t, lifecycle.StatusCompleted, len(ids))
	require.Len(t, existing.Runs(), len(ids))
}
