package worker_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		runChild()
		return
	}
	_ = os.Setenv("INHERITED", "yes")
	_ = os.Setenv("ATTUNE__SECURITY__ENCRYPTION_KEY", "kept from actions")
	testkit.Main(m)
}

const waitTimeout = 20 * time.Second

// bundle is a stand-in for the engine: it dispatches executions and records their completions.
type bundle struct {
	databaseURL, brokerURL string
	store                  *store.Store
	engine                 *broker.Broker

	mu        sync.Mutex
	completed map[int64][]message.ExecutionCompleted // guarded by mu
	ids       map[int64][]string                     // message ids; guarded by mu
}

func setup(t testing.TB) *bundle {
	t.Helper()
	return setupOn(t, testkit.Database(t))
}

func setupOn(t testing.TB, databaseURL string) *bundle {
	t.Helper()
	b := &bundle{
		databaseURL: databaseURL, brokerURL: testkit.VHost(t),
		completed: make(map[int64][]message.ExecutionCompleted), ids: make(map[int64][]string),
	}
	b.store = testkit.OpenStore(t, b.databaseURL)
	b.engine = b.broker(t, "engine")
	require.NoError(t, b.engine.DeclareExecutor(testkit.Context(t)))
	consumer := b.engine.Consume(broker.ConsumerConfig{
		Queue: message.QueueExecutionCompleted, Prefetch: 500,
		MaxBatch: 250,
	})
	require.NoError(t, consumer.Start(testkit.Context(t)))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case batch := <-consumer.Batches():
				b.record(batch)
			}
		}
	}()
	t.Cleanup(func() { consumer.Stop(); cancel(); <-done })
	return b
}

func (b *bundle) broker(t testing.TB, name string) *broker.Broker {
	t.Helper()
	connection := broker.New(broker.Config{
		URL: b.brokerURL, ConnectionName: name, MinBackoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond,
	}, testkit.Logger(t), nil)
	require.NoError(t, connection.Start(testkit.Context(t)))
	t.Cleanup(connection.Stop)
	return connection
}

func (b *bundle) record(batch *broker.Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, delivery := range batch.Deliveries {
		envelope, err := message.Decode[message.ExecutionCompleted](delivery.Body)
		if err != nil {
			continue
		}
		id := envelope.Payload.ExecutionID
		b.completed[id] = append(b.completed[id], envelope.Payload)
		b.ids[id] = append(b.ids[id], envelope.MessageID)
	}
	_ = batch.Ack()
}

// completions returns the completions of an execution so far.
func (b *bundle) completions(execution int64) []message.ExecutionCompleted {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]message.ExecutionCompleted(nil), b.completed[execution]...)
}

// worker starts a worker that is stopped at the end of the test.
func (b *bundle) worker(t testing.TB, options ...func(*worker.Config)) *worker.Worker {
	t.Helper()
	w := b.unstarted(t, options...)
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
	return w
}

func (b *bundle) unstarted(t testing.TB, options ...func(*worker.Config)) *worker.Worker {
	t.Helper()
	w, _ := b.unstartedOn(t, options...)
	return w
}

// unstartedOn returns the worker's own connections too.
func (b *bundle) unstartedOn(t testing.TB, options ...func(*worker.Config)) (*worker.Worker, *broker.Broker) {
	t.Helper()
	connection := b.broker(t, "worker")
	cfg := worker.Config{
		Name: "w1", Actions: builtin.Actions(), MaxConcurrent: 4, CancelPoll: 100 * time.Millisecond,
		HeartbeatInterval: 100 * time.Millisecond, KillGrace: 300 * time.Millisecond, ShutdownTimeout: 10 * time.Second,
		TempDir: t.TempDir(),
	}
	worker.SetProbeTimeout(&cfg, time.Minute)
	for _, option := range options {
		option(&cfg)
	}
	w, err := worker.New(cfg, worker.Deps{Store: b.store, Broker: connection, Logger: testkit.Logger(t)})
	require.NoError(t, err)
	return w, connection
}

// schedule writes an execution as the engine's dispatch does.
func (b *bundle) schedule(t testing.TB, w *worker.Worker, action testkit.ActionRow, config any) int64 {
	t.Helper()
	id := w.ID()
	return testkit.Execution(t, b.store, action, func(row *testkit.ExecutionRow) {
		row.Worker, row.Status, row.Attempt, row.Config = &id, lifecycle.StatusScheduled, 1, config
	}).ID
}

// dispatch publishes dispatches of the first attempt.
func (b *bundle) dispatch(t testing.TB, w *worker.Worker, executions ...int64) {
	t.Helper()
	b.dispatchAttempt(t, w, 1, executions...)
}

func (b *bundle) dispatchAttempt(t testing.TB, w *worker.Worker, attempt int32, executions ...int64) {
	t.Helper()
	messages := make([]broker.Message, 0, len(executions))
	for _, id := range executions {
		messages = append(messages, b.dispatchOf(t, w, attempt, id))
	}
	b.publish(t, messages...)
}

func (b *bundle) dispatchOf(t testing.TB, w *worker.Worker, attempt int32, execution int64) broker.Message {
	t.Helper()
	return encode(t, message.TypeExecutionRequested, message.DispatchKey(w.ID()), message.Dispatch{
		ExecutionID: execution, WorkerID: w.ID(), ActionRef: "any.action",
		ScheduledAttemptUpdatedAt: time.Now().UTC(), Attempt: attempt,
	})
}

// dispatchBatch publishes dispatches of the first attempt in one message.
func (b *bundle) dispatchBatch(t testing.TB, w *worker.Worker, executions ...int64) broker.Message {
	t.Helper()
	var payloads []message.Dispatch
	for _, id := range executions {
		payloads = append(payloads, message.Dispatch{
			ExecutionID: id, WorkerID: w.ID(), ActionRef: "any.action", ScheduledAttemptUpdatedAt: time.Now().UTC(),
			Attempt: 1,
		})
	}
	sent, err := message.Batches(message.TypeExecutionBatchRequested, payloads, time.Now(), "test")
	require.NoError(t, err)
	require.Len(t, sent, 1)
	m := broker.Message{
		ID: sent[0].ID, Exchange: message.ExchangeExecutions, RoutingKey: message.DispatchKey(w.ID()),
		Type: sent[0].Type, Body: sent[0].Body,
	}
	b.publish(t, m)
	return m
}

// run schedules and dispatches one execution and waits for its end.
func (b *bundle) run(t testing.TB, w *worker.Worker, action testkit.ActionRow, config any) (lifecycle.Status, result) {
	t.Helper()
	id := b.schedule(t, w, action, config)
	b.dispatch(t, w, id)
	return b.await(t, id)
}

func (b *bundle) cancel(t testing.TB, w *worker.Worker, executions ...int64) {
	t.Helper()
	for _, id := range executions {
		b.publish(t, encode(t, message.TypeExecutionCancelRequested, message.CancelKey(w.ID()),
			message.ExecutionCancelRequested{ExecutionID: id, WorkerID: w.ID()}))
	}
}

func (b *bundle) publish(t testing.TB, messages ...broker.Message) {
	t.Helper()
	for _, outcome := range b.engine.Publisher().Publish(testkit.Context(t), messages) {
		require.NoError(t, outcome.Err)
	}
}

func encode[P any](t testing.TB, kind, key string, payload P) broker.Message {
	t.Helper()
	envelope := message.New(kind, payload, time.Now(), "test")
	body, err := envelope.Encode()
	require.NoError(t, err)
	return broker.Message{
		ID: envelope.MessageID, Exchange: message.ExchangeExecutions, RoutingKey: key, Type: kind,
		Body: body,
	}
}

// result is the published form of a result.
type result struct {
	ExitCode        int             `json:"exit_code"`
	DurationMS      int64           `json:"duration_ms"`
	Succeeded       bool            `json:"succeeded"`
	Stdout          string          `json:"stdout"`
	StdoutTruncated bool            `json:"stdout_truncated"`
	StderrLog       string          `json:"stderr_log"`
	StderrTruncated bool            `json:"stderr_truncated"`
	Data            json.RawMessage `json:"data"`
	QueueAck        json.RawMessage `json:"queue_ack"`
	Error           string          `json:"error"`
	OutputError     string          `json:"output_error"`
	Cancelled       bool            `json:"cancelled"`
}

// await waits for the completion message and returns the status and the result of the row.
func (b *bundle) await(t testing.TB, execution int64) (lifecycle.Status, result) {
	t.Helper()
	testkit.Eventually(t, func() bool { return len(b.completions(execution)) > 0 }, waitTimeout,
		"execution %d was not completed", execution)
	status := testkit.StatusOf(t, b.store, execution)
	require.Equal(t, string(status), b.completions(execution)[0].Status)
	var raw []byte
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
		"select result from execution where id = $1", execution).Scan(&raw))
	var r result
	require.NoError(t, json.Unmarshal(raw, &r), "%s", raw)
	return status, r
}

func (b *bundle) awaitRunning(t testing.TB, execution int64) {
	t.Helper()
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, execution) == lifecycle.StatusRunning },
		waitTimeout,
		"execution %d did not start", execution)
}

// script inserts an action that runs a shell script.
func (b *bundle) script(t testing.TB, ref, script string, set map[string]any) testkit.ActionRow {
	t.Helper()
	path := filepath.Join(t.TempDir(), "action.sh")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	action := testkit.Action(t, b.store, ref, func(row *testkit.ActionRow) { row.Entrypoint = path })
	for column, value := range set {
		testkit.Exec(t, b.store, "update action set "+column+" = $2 where id = $1", action.ID, value)
	}
	return action
}

// core reads an action of the core pack, which every schema has.
func (b *bundle) core(t testing.TB, ref string) testkit.ActionRow {
	t.Helper()
	row := testkit.ActionRow{Ref: ref}
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), "select id, pack from action where ref = $1", ref).
		Scan(&row.ID, &row.PackID))
	return row
}
