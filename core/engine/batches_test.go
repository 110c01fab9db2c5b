package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
	"github.com/attune-go/attune/lab/testkit"
)

// batchWorker starts a worker of this program and returns its id.
func (b *bundle) batchWorker(t *testing.T, name string, change ...func(*worker.Config)) int64 {
	t.Helper()
	cfg := worker.Config{
		Name: name, MaxConcurrent: 20, HeartbeatInterval: 500 * time.Millisecond,
		Actions: builtin.Actions(),
	}
	for _, c := range change {
		c(&cfg)
	}
	w, err := worker.New(cfg, worker.Deps{Store: b.store, Broker: b.connect(t, name), Logger: testkit.Logger(t)})
	require.NoError(t, err)
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
	return w.ID()
}

// In a mixed fleet only the worker that announces it gets batches; an existing worker and
// one of ours that does not announce it get single messages, as ever. Every execution runs
// once.
func TestOnlyWorkersThatAnnounceItGetBatches(t *testing.T) {
	b := setup(t)
	announces := b.batchWorker(t, "announces")
	plain := b.batchWorker(t, "plain", func(c *worker.Config) { c.SingleMessages = true })
	existing := b.fake(t, func(c *testkit.FakeWorkerConfig) { c.Concurrency = 20 })
	names := map[int64]string{announces: "announces", plain: "plain", existing.ID: "existing"}
	taps := map[int64]<-chan broker.Delivery{}
	for id := range names {
		of, out := b.tap(t, message.DispatchKey(id)), make(chan broker.Delivery, 1000)
		taps[id] = out
		go func() {
			for d := range of {
				out <- broker.Delivery{Properties: broker.Properties{Type: d.Type}, Body: d.Body}
			}
		}()
	}
	b.request(t, "core.noop", 200, `{}`) // before there is an engine: batches are full
	b.engine(t)
	b.settled(t, 60*time.Second)
	require.Equal(t, 200,
		testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'completed' AND attempt = 1`))
	total := 0
	for id, name := range names {
		executions, batches := 0, 0
		want := testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE worker = $1`, id)
		require.Positive(t, want, name)
		for executions < want {
			select {
			case d := <-taps[id]:
				if message.IsBatch(d.Type) {
					singles, err := message.Split(d.Body)
					require.NoError(t, err)
					executions, batches = executions+len(singles), batches+1
					continue
				}
				require.Equal(t, message.TypeExecutionRequested, d.Type)
				var body map[string]any
				require.NoError(t, json.Unmarshal(d.Body, &body))
				require.Equal(t, message.TypeExecutionRequested, body["message_type"])
				executions++
			case <-time.After(20 * time.Second):
				t.Fatalf("%s: %d of %d dispatches were seen", name, executions, want)
			}
		}
		require.Equal(t, want, executions, name)
		require.Equal(t, name == "announces", batches > 0, "%s got %d batches", name, batches)
		total += executions
	}
	require.Equal(t, 200, total)
	require.Len(t, existing.Runs(),
		testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE worker = $1`, existing.ID))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`))
}

// A batch that expires in the queue of a dead worker becomes one dead letter for each of
// its executions, and each of them goes on elsewhere.
func TestABatchThatExpiresIsOneDeadLetterForEachExecution(t *testing.T) {
	b := setup(t)
	testkit.Action(t, b.store, "again.batch")
	other := b.fake(t, fence).ID
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true WHERE id = $1`, other)
	silent := b.withoutConsumer(t, "silent", 2*time.Second, func(w *testkit.WorkerRow) {
		w.Capabilities["attempt_fence"], w.Capabilities["batch"], w.Capabilities["max_concurrent_executions"] = true,
			true, 200
	})
	dispatches := b.tap(t, message.DispatchKey(silent))
	ids := b.request(t, "again.batch", 30, fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 1<<10)))
	b.engine(t, quickRetries)
	for batched := false; !batched; { // the first batch may have one request only
		select {
		case d := <-dispatches:
			batched = d.Type == message.TypeExecutionBatchRequested
		case <-time.After(20 * time.Second):
			t.Fatal("no batch was dispatched")
		}
	}
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE worker = $1`, silent) == 30
	}, 20*time.Second)
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = id = $1`, silent)
	b.settled(t, 60*time.Second)
	require.Equal(t, 30, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE status = 'completed' AND id = ANY($1)`, ids), "no retry")
	require.Equal(t, 30, testkit.Count(t, b.store, `SELECT count(DISTINCT execution) FROM dead_letter WHERE decision = 'retried' AND reason = 'expired'
		AND message_type = 'ExecutionRequested' AND queue = $1 AND convert_from(body, 'UTF8')::jsonb->'payload'->>'execution_id' = execution::text`,
		message.WorkerExecutionsQueue(silent)))
	require.Zero(t, testkit.Count(t, b.store,
		`SELECT count(*) FROM dead_letter WHERE decision IS NULL OR message_type <> 'ExecutionRequested'`))
}

// A batch of completions releases every slot, however often it comes. Elements that cannot be read are one dead letter,
// the batch; one about a row that does not exist dies alone.
func TestABatchOfCompletionsIsSettledItemByItem(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "together.ended")
	testkit.Policy(t, b.store, action, 250)
	b.withoutConsumer(t, "never", time.Hour,
		func(w *testkit.WorkerRow) { w.Capabilities["max_concurrent_executions"] = 250 })
	ids := b.request(t, action.Ref, message.MaxBatchItems-2, `{}`)
	// A look at the worker's queue finds no consumer.
	b.engine(t, func(c *config.Config) { c.Executor.HealthCheckInterval = time.Hour })
	scheduled := func() int {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'scheduled'`)
	}
	testkit.Eventually(t, func() bool { return scheduled() == len(ids) }, 40*time.Second, "all are dispatched")
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'running', started_at = now()`)
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'completed', result = '{}'`)
	elements := []json.RawMessage{
		[]byte(`{"execution_id":"no"}`),
		[]byte(`{"execution_id":987654321,"status":"completed"}`),
	}
	for _, id := range ids {
		elements = append(elements,
			fmt.Appendf(nil, `{"execution_id":%d,"status":"completed","result":%q}`, id, strings.Repeat("x", 1<<10)))
	}
	envelope := message.New(message.TypeExecutionBatchCompleted, message.Batch{Executions: elements}, time.Now(),
		"test")
	body, err := envelope.Encode()
	require.NoError(t, err)
	wire := b.connect(t, "batches")
	m := broker.Message{
		ID: envelope.MessageID, RoutingKey: message.QueueExecutionBatches, Type: envelope.MessageType,
		Body: body,
	}
	for _, outcome := range wire.Publisher().Publish(testkit.Context(t), []broker.Message{m, m}) {
		require.NoError(t, outcome.Err)
	}
	b.settled(t, 60*time.Second)
	poisoned := b.deadLetter(t, envelope.MessageID) // the whole batch
	require.Equal(t, message.KeyExecutionCompleted, poisoned.Key)
	require.Empty(t, poisoned.Decision, "a person decides")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter WHERE execution = 987654321`) == 1
	}, 60*time.Second, "the one without a row is in the ledger")
	testkit.Eventually(t, func() bool {
		state, err := wire.QueueState(testkit.Context(t), message.QueueExecutionBatches)
		return err == nil && state.Ready == 0
	}, 20*time.Second)
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter WHERE execution = ANY($1)`, ids))
}
