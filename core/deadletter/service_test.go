package deadletter_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

type noRelay struct{}

func (noRelay) Published(int64, []outbox.Message) {}

// service is a handler with its batches on real servers.
type service struct {
	store    *store.Store
	wire     *broker.Broker
	amqp     string
	registry *prometheus.Registry
	metrics  *deadletter.Metrics
	ended    chan []int64
	queueTTL time.Duration
}

func newService(t *testing.T) *service {
	t.Helper()
	d := &service{
		store: testkit.Store(t), amqp: testkit.VHost(t), registry: prometheus.NewRegistry(),
		ended: make(chan []int64, 100),
	}
	d.metrics, d.wire = deadletter.NewMetrics(d.registry), d.connect(t)
	require.NoError(t, d.wire.DeclareExecutor(testkit.Context(t)))
	return d
}

func (d *service) connect(t *testing.T) *broker.Broker {
	t.Helper()
	wire := broker.New(broker.Config{URL: d.amqp, ManagementURL: testkit.ManagementURL(t)}, testkit.Logger(t), nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	return wire
}

// open starts a handler like that of a replica. Failed batches give the dead letter up.
func (d *service) open(t *testing.T) *deadletter.Handler {
	t.Helper()
	ctx := testkit.Context(t)
	consumer := d.connect(t).Consume(broker.ConsumerConfig{
		Queue:    message.QueueDeadLetter,
		Prefetch: deadletter.Prefetch, MaxBatch: deadletter.MaxBatch,
	})
	hot := testkit.OpenStore(t, d.store.Pool().Config().ConnString(), func(c *store.Config) { c.HotPath = true })
	rounds := scheduler.New(scheduler.Config{}, scheduler.Deps{Store: hot, Relay: noRelay{}, Logger: testkit.Logger(t)})
	var h *deadletter.Handler
	h = deadletter.NewHandler(deadletter.Deps{
		Store: d.store, Consumer: consumer, Logger: testkit.Logger(t), Metrics: d.metrics,
		Ended: func(_ context.Context, ids []int64) error { d.ended <- ids; return nil },
		Decide: func(ctx context.Context, deadLetters []*deadletter.Message) error {
			for {
				_, err := rounds.Run(ctx, deadletter.NewStep(deadLetters, deadletter.MaxOpen).WithQueueTTL(d.queueTTL))
				if ctx.Err() != nil {
					return ctx.Err()
				}
				var open []*deadletter.Message
				for _, l := range deadLetters {
					switch {
					case err != nil:
						if err := h.GiveUp(ctx, l, err); err != nil {
							return err
						}
					case l.Open():
						open = append(open, l)
					default:
						h.Settle(ctx, l)
					}
				}
				if deadLetters = open; len(deadLetters) == 0 {
					return nil
				}
			}
		},
	})
	require.NoError(t, h.Start(ctx))
	require.NoError(t, consumer.Start(ctx))
	t.Cleanup(consumer.Stop)
	t.Cleanup(h.Stop)
	return h
}

// death is the header of a death in a queue.
func death(queue, reason, exchange, key string, at time.Time) broker.Table {
	return broker.Table{"x-death": []any{broker.Table{
		"count": int64(1), "reason": reason, "queue": queue, "exchange": exchange, "time": at,
		"routing-keys": []any{key},
	}}, "x-first-death-queue": queue, "x-first-death-reason": reason, "x-first-death-exchange": exchange}
}

// expired is a dispatch that expired in the queue of its worker.
func expired(t *testing.T, worker int64, payload message.Dispatch) broker.Message {
	t.Helper()
	payload.WorkerID = worker
	m := deadLetter(t, message.DispatchKey(worker), message.TypeExecutionRequested, payload)
	m.Headers = death(message.WorkerExecutionsQueue(worker), "expired", message.ExchangeExecutions, m.RoutingKey,
		time.Now().Truncate(time.Second))
	return m
}

// deadLetter is a message in the dead-letter queue.
func deadLetter[P any](t *testing.T, key, kind string, payload P) broker.Message {
	t.Helper()
	envelope := message.New(kind, payload, time.Now(), "test")
	body, err := envelope.Encode()
	require.NoError(t, err)
	return broker.Message{
		ID: envelope.MessageID, Exchange: message.ExchangeDeadLetter, RoutingKey: key, Type: kind,
		Body: body,
	}
}

func (d *service) send(t *testing.T, deadLetters ...broker.Message) {
	t.Helper()
	for i := range deadLetters {
		if worker, ok := message.WorkerOfKey(deadLetters[i].RoutingKey); ok {
			require.NoError(t, d.wire.BindWorkerDeadLetters(testkit.Context(t), worker))
		}
		if deadLetters[i].ID == "" {
			deadLetters[i].ID = uuid.NewString()
		}
	}
	for _, outcome := range d.wire.Publisher().Publish(testkit.Context(t), deadLetters) {
		require.Equal(t, broker.Confirmed, outcome.Status, "%v", outcome.Err)
	}
}

// row is a row of the ledger.
type row struct {
	ID        int64           `json:"id"`
	MessageID string          `json:"message_id"`
	Type      string          `json:"message_type"`
	Exchange  string          `json:"exchange"`
	Key       string          `json:"routing_key"`
	Queue     string          `json:"queue"`
	Reason    string          `json:"reason"`
	Decision  string          `json:"decision"`
	By        string          `json:"decided_by"`
	At        *time.Time      `json:"decided_at"`
	Detail    string          `json:"detail"`
	Execution int64           `json:"execution"`
	Status    string          `json:"execution_status"`
	Worker    int64           `json:"worker"`
	Attempt   int32           `json:"attempt"`
	ActionRef string          `json:"action_ref"`
	Died      *time.Time      `json:"died"`
	XDeath    []any           `json:"x_death"`
	Headers   map[string]any  `json:"headers"`
	Evidence  map[string]any  `json:"evidence"`
	Body      json.RawMessage `json:"-"`
}

func (d *service) rows(t *testing.T) []row {
	t.Helper()
	var raw []byte
	require.NoError(t, d.store.Pool().QueryRow(testkit.Context(t),
		`SELECT coalesce(jsonb_agg(to_jsonb(l) - 'body' ORDER BY id), '[]') FROM dead_letter l`).Scan(&raw))
	var rows []row
	require.NoError(t, json.Unmarshal(raw, &rows))
	return rows
}

// settled waits until the ledger has n rows and the queue nothing, and returns the
// rows.
func (d *service) settled(t *testing.T, n int) []row {
	t.Helper()
	testkit.Eventually(t, func() bool {
		state, err := d.wire.QueueState(testkit.Context(t), message.QueueDeadLetter)
		return err == nil && state.Ready == 0 && testkit.Count(t, d.store, `SELECT count(*) FROM dead_letter`) >= n
	}, 15*time.Second, "%d dead letters are stored", n)
	rows := d.rows(t)
	require.Len(t, rows, n)
	return rows
}

// scheduled inserts a dispatched execution that holds its slot.
func (d *service) scheduled(t *testing.T, action testkit.ActionRow, worker int64) testkit.ExecutionRow {
	t.Helper()
	state := testkit.Count(t, d.store,
		`SELECT coalesce(max(id), 0) FROM execution_admission_state WHERE action_id = $1`, action.ID)
	if state == 0 {
		state = int(testkit.State(t, d.store, action, 100).ID)
	}
	id := int64(state)
	e := testkit.Execution(t, d.store, action, func(e *testkit.ExecutionRow) {
		e.Status, e.Worker, e.Attempt, e.AdmissionState, e.Age = lifecycle.StatusScheduled, &worker, 1, &id,
			6*time.Minute
	})
	testkit.Exec(t, d.store, `UPDATE execution_admission_state SET active_count = active_count + 1 WHERE id = $1`, id)
	testkit.Exec(t, d.store, `INSERT INTO queue_stats (action_id, active_count) VALUES ($1, 1)
		ON CONFLICT (action_id) DO UPDATE SET active_count = queue_stats.active_count + 1`, action.ID)
	testkit.Exec(t, d.store,
		`INSERT INTO worker_load (worker, assigned) VALUES ($1, 1) ON CONFLICT (worker) DO UPDATE SET assigned = worker_load.assigned + 1`, worker)
	return e
}

func fenced(w *testkit.WorkerRow) {
	w.Capabilities["attempt_fence"] = true
	w.HeartbeatAge = -time.Hour
}

// at returns the value behind a path of names and positions in JSON.
func at(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			table, ok := value.(map[string]any)
			require.True(t, ok, "%v in %v", step, value)
			value = table[step]
		case int:
			list, ok := value.([]any)
			require.True(t, ok && step < len(list), "%v in %v", step, value)
			value = list[step]
		}
	}
	return value
}
