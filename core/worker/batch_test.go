package worker_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// counting gives a worker an action that counts its starts and ends with release.
func counting(starts *atomic.Int32, release <-chan struct{}) func(*worker.Config) {
	return func(c *worker.Config) {
		c.Actions = worker.Actions{"batch.count": func(ctx context.Context, _ worker.Task) (any, error) {
			starts.Add(1)
			select {
			case <-release:
			case <-ctx.Done():
			}
			return map[string]any{}, ctx.Err()
		}}
	}
}

func (b *bundle) scheduled(t *testing.T, w *worker.Worker, action testkit.ActionRow, n int) (ids []int64) {
	t.Helper()
	for range n {
		ids = append(ids, b.schedule(t, w, action, nil))
	}
	return ids
}

// A batch starts each of its executions once, also if it is delivered twice, and never more at once than the worker
// has places. An execution that was cancelled before its start ends as cancelled.
func TestABatchStartsEachExecutionOnce(t *testing.T) {
	b := setup(t)
	var starts atomic.Int32
	release := make(chan struct{})
	w := b.worker(t, counting(&starts, release))
	action := testkit.Action(t, b.store, "batch.count")
	ids := b.scheduled(t, w, action, 10)
	testkit.Exec(t, b.store, `update execution set status = 'canceling' where id = $1`, ids[1])
	m := b.dispatchBatch(t, w, ids...)
	b.publish(t, m)
	testkit.Eventually(t, func() bool { return starts.Load() == 4 }, waitTimeout, "four places")
	b.cancel(t, w, ids[0])
	testkit.Exec(t, b.store, `update execution set status = 'canceling' where id = $1`, ids[0])
	close(release)
	for i, id := range ids {
		status, _ := b.await(t, id)
		if i > 1 {
			require.Equal(t, lifecycle.StatusCompleted, status)
		} else if i == 1 {
			require.Equal(t, lifecycle.StatusCancelled, status)
		}
	}
	testkit.Eventually(t, func() bool {
		state, err := b.engine.QueueState(testkit.Context(t), message.WorkerExecutionsQueue(w.ID()))
		return err == nil && state.Ready == 0
	}, waitTimeout)
	require.EqualValues(t, 9, starts.Load())
}

// A stopping worker returns a partly started batch. The next process with its name starts only the rest.
func TestAStoppedWorkerReturnsItsBatch(t *testing.T) {
	b := setup(t)
	var starts atomic.Int32
	release := make(chan struct{})
	w := b.worker(t, counting(&starts, release), func(c *worker.Config) { c.ShutdownTimeout = testkit.TestTimeout })
	action := testkit.Action(t, b.store, "batch.count")
	ids := b.scheduled(t, w, action, 7)
	b.dispatchBatch(t, w, ids...)
	testkit.Eventually(t, func() bool { return starts.Load() == 4 }, waitTimeout)
	stopped := make(chan struct{})
	go func() { w.Stop(); close(stopped) }()
	testkit.Eventually(t, func() bool {
		state, err := b.engine.QueueState(testkit.Context(t), message.WorkerExecutionsQueue(w.ID()))
		return err == nil && state.Ready == 1
	}, waitTimeout, "the batch is back")
	close(release)
	<-stopped
	// A worker that wants single messages accepts batches too.
	b.worker(t, counting(&starts, release), func(c *worker.Config) { c.SingleMessages = true })
	for _, id := range ids {
		status, _ := b.await(t, id)
		require.Equal(t, lifecycle.StatusCompleted, status)
	}
	require.EqualValues(t, 7, starts.Load())
}

// A batch with a malformed element is dead-lettered; its other elements run.
func TestABatchWithAMalformedElementIsDeadLettered(t *testing.T) {
	b := setup(t)
	w := b.worker(t)
	action := b.core(t, "core.noop")
	ids := b.scheduled(t, w, action, 2)
	element := func(id int64) json.RawMessage {
		raw, err := json.Marshal(message.Dispatch{ExecutionID: id, WorkerID: w.ID(), Attempt: 1})
		require.NoError(t, err)
		return raw
	}
	b.publish(t, encode(t, message.TypeExecutionBatchRequested, message.DispatchKey(w.ID()), message.Batch{
		Executions: []json.RawMessage{element(ids[0]), []byte(`{"execution_id":"no"}`), element(ids[1])},
	}))
	for _, id := range ids {
		status, _ := b.await(t, id)
		require.Equal(t, lifecycle.StatusCompleted, status)
	}
	deadLetters := b.engine.Consume(broker.ConsumerConfig{Queue: message.QueueDeadLetter, Prefetch: 10})
	require.NoError(t, deadLetters.Start(testkit.Context(t)))
	defer deadLetters.Stop()
	batch := <-deadLetters.Batches()
	require.Len(t, batch.Deliveries, 1)
	require.Equal(t, message.TypeExecutionBatchRequested, batch.Deliveries[0].Type)
	require.Contains(t, string(batch.Deliveries[0].Body), `{"execution_id":"no"}`)
	require.NoError(t, batch.Ack())
	testkit.Eventually(t, func() bool {
		state, err := b.engine.QueueState(testkit.Context(t), message.WorkerExecutionsQueue(w.ID()))
		return err == nil && state.Ready == 0
	}, waitTimeout)
}

// Ends that are written together are reported in one message as soon as an engine consumes batches.
func TestEndsAreReportedInBatches(t *testing.T) {
	b := setup(t)
	require.NoError(t, b.engine.DeclareBatches(testkit.Context(t)))
	consumer := b.engine.Consume(broker.ConsumerConfig{Queue: message.QueueExecutionBatches, Prefetch: 10})
	require.NoError(t, consumer.Start(testkit.Context(t)))
	defer consumer.Stop()
	testkit.Eventually(t, consumer.Subscribed, waitTimeout)
	w := b.worker(t, func(c *worker.Config) { c.MaxConcurrent, c.BatchCompletions = 200, true })
	action, messages := b.core(t, "core.noop"), 0
	// A worker without an answer of the broker in time reports ends one by one, and queries again some seconds later.
	for timeout := time.After(testkit.TestTimeout); messages == 0; {
		ids := b.scheduled(t, w, action, 200)
		b.dispatchBatch(t, w, ids...)
		for ended := map[int64]bool{}; len(ended) < len(ids); {
			for _, id := range ids { // single messages
				if len(b.completions(id)) > 0 {
					ended[id] = true
				}
			}
			select {
			case <-timeout:
				t.Fatalf("%d of %d executions were reported, in %d messages", len(ended), len(ids), messages)
			case <-time.After(10 * time.Millisecond):
			case batch := <-consumer.Batches():
				for i := range batch.Deliveries {
					singles, err := message.Split(batch.Deliveries[i].Body)
					require.NoError(t, err)
					require.Greater(t, len(singles), 1)
					messages++
					for _, one := range singles {
						end, err := message.DecodePayload[message.ExecutionCompleted](one.Payload)
						require.NoError(t, err)
						require.Equal(t, "completed", end.Status)
						ended[end.ExecutionID] = true
					}
				}
				require.NoError(t, batch.Ack())
			}
		}
	}
}
