package handback_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/handback"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/lab/installation/executor"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// waitTimeout is far longer than a busy machine needs.
const waitTimeout = 60 * time.Second

// world is an adopted database with its virtual host, and a plain pool that works before and after the hand-back.
type world struct {
	database, amqp, management string

	store *store.Store
	pool  *pgxpool.Pool
}

func (w *world) Pool() *pgxpool.Pool { return w.pool }

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{database: testkit.AdoptedDatabase(t), amqp: testkit.VHost(t), management: testkit.ManagementURL(t)}
	w.store = testkit.OpenStore(t, w.database)
	cfg, err := pgxpool.ParseConfig(w.database)
	require.NoError(t, err)
	cfg.ConnConfig.RuntimeParams["search_path"] = "attune, public"
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	w.pool, err = pgxpool.NewWithConfig(testkit.Context(t), cfg)
	require.NoError(t, err)
	t.Cleanup(w.pool.Close)
	return w
}

// engine starts a replica; the returned function stops it.
func (w *world) engine(t *testing.T) func() {
	t.Helper()
	cfg := config.Default()
	cfg.Database.URL, cfg.Database.Schema, cfg.Database.MaxConnections = w.database, testkit.Schema,
		testkit.EngineConnections
	cfg.MessageQueue.URL, cfg.MessageQueue.ManagementURL = w.amqp, w.management
	cfg.Executor.HTTP.Listen = ""
	e, err := engine.New(testkit.Context(t), cfg, engine.Deps{Logger: testkit.Logger(t), Version: "test"})
	require.NoError(t, err)
	require.NoError(t, e.Start(testkit.Context(t)))
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			require.NoError(t, e.Stop(context.Background()))
		}
	}
	t.Cleanup(stop)
	return stop
}

func (w *world) wire(t *testing.T, amqp string) *broker.Broker {
	t.Helper()
	b := broker.New(broker.Config{URL: amqp, NoDeadLetters: true, ConnectTimeout: waitTimeout}, testkit.Logger(t),
		nil)
	require.NoError(t, b.Start(testkit.Context(t)))
	t.Cleanup(b.Stop)
	return b
}

func (w *world) manage(t *testing.T) *broker.Management {
	t.Helper()
	management, err := broker.NewManagement(w.management, testkit.VHostName(t, w.amqp), waitTimeout)
	require.NoError(t, err)
	t.Cleanup(management.Close)
	return management
}

// unrouted requires that no route leads into the queue of dead letters.
func (w *world) unrouted(t *testing.T) {
	t.Helper()
	routes, err := w.manage(t).QueueBindings(testkit.Context(t), message.QueueDeadLetter)
	require.NoError(t, err)
	for _, route := range routes {
		require.Equal(t, "#", route.RoutingKey, "the other executor would end executions of dead letters")
	}
}

func (w *world) handBack(t *testing.T) *handback.Result {
	t.Helper()
	result, err := handback.HandBack(testkit.Context(t),
		handback.Deps{Store: w.store, Broker: w.wire(t, w.amqp), Management: w.manage(t)})
	require.NoError(t, err)
	w.unrouted(t)
	return result
}

func (w *world) down(t *testing.T) {
	t.Helper()
	_, err := migrations.Down(testkit.Context(t), migrations.Options{URL: w.database, Schema: testkit.Schema}, 0)
	require.NoError(t, err)
}

func (w *world) up(t *testing.T) {
	t.Helper()
	_, err := migrations.Up(testkit.Context(t), migrations.Options{URL: w.database, Schema: testkit.Schema})
	require.NoError(t, err)
}

// other starts the executor of the installation; the returned function stops it.
func (w *world) other(t *testing.T) func() {
	t.Helper()
	e, err := executor.Start(testkit.Context(t), w.database, w.amqp)
	require.NoError(t, err)
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			e.Stop()
			require.NoError(t, e.Err())
		}
	}
	t.Cleanup(stop)
	return stop
}

func (w *world) request(t *testing.T, ref string, n int) []int64 {
	t.Helper()
	requests := make([]submit.Request, n)
	for i := range requests {
		requests[i] = submit.Request{ActionRef: ref, Params: json.RawMessage(`{}`)}
	}
	list, err := submit.New(w.store, nil).RequestMany(testkit.Context(t), requests)
	require.NoError(t, err)
	ids := make([]int64, n)
	for i, r := range list {
		ids[i] = r.ID
	}
	return ids
}

// requestWith requests one execution with these parameters.
func (w *world) requestWith(t *testing.T, ref, params string) int64 {
	t.Helper()
	list, err := submit.New(w.store, nil).RequestMany(testkit.Context(t),
		[]submit.Request{{ActionRef: ref, Params: json.RawMessage(params)}})
	require.NoError(t, err)
	return list[0].ID
}

func (w *world) reaches(t *testing.T, status lifecycle.Status, n int) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, w, "SELECT count(*) FROM execution WHERE status::text = $1", string(status)) == n
	}, waitTimeout, "%d executions are %s", n, status)
}

// steps is a worker whose jobs end one by one, on request.
func (w *world) steps(t *testing.T) (*testkit.FakeWorker, chan<- struct{}) {
	t.Helper()
	step := make(chan struct{})
	return testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: w.amqp, DatabaseURL: w.database, Concurrency: 8,
		Behave: func(ctx context.Context, _ testkit.Job) testkit.Answer {
			select {
			case <-step:
			case <-ctx.Done():
			}
			return testkit.Answer{}
		},
	}), step
}

// TestTheOtherExecutorGoesOnAtOnce: two of six executions run and four wait when the engine stops. The executor of
// the installation completes all six, in order and never more than two at once.
func TestTheOtherExecutorGoesOnAtOnce(t *testing.T) {
	w := setup(t)
	action := testkit.Action(t, w, "demo.sleep")
	testkit.Policy(t, w, action, 2)
	worker, step := w.steps(t)
	stop := w.engine(t)
	ids := w.request(t, action.Ref, 6)
	w.reaches(t, lifecycle.StatusRunning, 2)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, w, "SELECT count(*) FROM execution_admission_entry WHERE status = 'queued'") == 4
	}, waitTimeout, "four wait")
	stop()
	gone := message.DispatchKey(4711) // of a worker without a row
	testkit.Manage(t, "POST", "/api/bindings/"+testkit.VHostName(t, w.amqp)+"/e/"+message.ExchangeDeadLetter+"/q/"+
		message.QueueDeadLetter, map[string]any{"routing_key": gone}, nil)

	result := w.handBack(t)
	require.Equal(t, 2, result.Active)
	require.Equal(t, 4, result.Queued)
	require.Zero(t, result.Requested, "every slot is taken: releases wake the queue")
	require.Equal(t, ids[:2], w.entries(t, "active"))
	require.Equal(t, ids[2:], w.entries(t, "queued"))
	require.Equal(t, 1, testkit.Count(t, w, `SELECT count(*) FROM execution_admission_state s
		WHERE s.max_concurrent = 2 AND s.group_key IS NULL
		  AND s.next_queue_order > (SELECT max(queue_order) FROM execution_admission_entry q WHERE q.state_id = s.id)
		  AND (SELECT count(DISTINCT queue_order) FROM execution_admission_entry q WHERE q.state_id = s.id) = 6`))
	require.Equal(t, 1, testkit.Count(t, w, `SELECT count(*) FROM queue_stats WHERE queue_length = 4 AND active_count = 2
		AND max_concurrent = 2 AND oldest_enqueued_at IS NOT NULL`))
	w.down(t)

	w.other(t)
	for range 6 {
		step <- struct{}{}
	}
	w.reaches(t, lifecycle.StatusCompleted, 6)
	require.LessOrEqual(t, worker.MostAtOnce(), 2)
	require.Len(t, worker.Runs(), 6, "each runs once")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, w, "SELECT count(*) FROM execution_admission_entry") == 0
	}, waitTimeout, "every slot is released")
}

func (w *world) entries(t *testing.T, status string) []int64 {
	t.Helper()
	return testkit.Column[int64](t, w.pool,
		"SELECT execution_id FROM execution_admission_entry WHERE status = $1 ORDER BY queue_order", status)
}

// TestThereAndBackAgain: the engine continues what the other executor has started after the schema is migrated
// once more.
func TestThereAndBackAgain(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "hand an installation back and adopt it again")
	w := setup(t)
	action := testkit.Action(t, w, "demo.sleep")
	testkit.Policy(t, w, action, 2)
	worker, step := w.steps(t)
	stop := w.engine(t)
	w.request(t, action.Ref, 8)
	w.reaches(t, lifecycle.StatusRunning, 2)
	stop()
	w.handBack(t)
	w.down(t)

	stopOther := w.other(t)
	for range 3 {
		step <- struct{}{}
	}
	w.reaches(t, lifecycle.StatusCompleted, 3)
	w.reaches(t, lifecycle.StatusRunning, 2)
	stopOther()
	w.up(t)

	w.engine(t)
	for range 5 {
		step <- struct{}{}
	}
	w.reaches(t, lifecycle.StatusCompleted, 8)
	require.LessOrEqual(t, worker.MostAtOnce(), 2)
	require.Len(t, worker.Runs(), 8, "each runs once")
}

// TestAReplicaThatGoesOnAfterAHandBack: if the schema stays after a hand-back, the engine uses the queues again.
func TestAReplicaThatGoesOnAfterAHandBack(t *testing.T) {
	w := setup(t)
	action := testkit.Action(t, w, "demo.sleep")
	testkit.Policy(t, w, action, 2)
	worker, step := w.steps(t)
	stop := w.engine(t)
	w.request(t, action.Ref, 6)
	w.reaches(t, lifecycle.StatusRunning, 2)
	stop()
	w.handBack(t)
	again := w.handBack(t)
	require.Equal(t, 2, again.Active, "it may be repeated")
	require.Equal(t, 4, again.Queued)

	w.engine(t)
	for range 6 {
		step <- struct{}{}
	}
	w.reaches(t, lifecycle.StatusCompleted, 6)
	require.LessOrEqual(t, worker.MostAtOnce(), 2)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, w, "SELECT active_count + queued_count FROM execution_admission_state") == 0
	}, waitTimeout, "every slot is released")
	testkit.Invariants(t, w.store)
}

// Messages wake executions that no release wakes: those without a place in a queue, free slots, ends of children, and
// the rest of the outbox.
func TestMessagesWakeExecutionsThatNoReleaseWakes(t *testing.T) {
	w := setup(t)
	plain, limited := testkit.Action(t, w, "demo.plain"), testkit.Action(t, w, "demo.limited")
	testkit.Policy(t, w, limited, 2)
	unplaced := testkit.Execution(t, w, plain)
	claimed := testkit.Execution(t, w, plain, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusScheduling })
	testkit.Execution(t, w, plain, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusCompleted })
	retry := testkit.Execution(t, w, plain, func(e *testkit.ExecutionRow) { e.RetryCount = 1 })
	testkit.Exec(t, w, `INSERT INTO execution_retry (failed, execution, reason, due) VALUES ($1, $2, 'failed', now() + interval '1 hour')`,
		unplaced.ID, retry.ID)
	state := testkit.State(t, w, limited, 2, func(s *testkit.StateRow) { s.Active, s.Queued = 1, 3 })
	holder := testkit.Execution(t, w, limited, func(e *testkit.ExecutionRow) {
		e.Status, e.AdmissionState = lifecycle.StatusScheduled, &state.ID
	})
	var waiting []int64
	for i, lane := range []int{0, 0, 1} {
		e := testkit.Execution(t, w, limited)
		waiting = append(waiting, e.ID)
		testkit.Exec(t, w, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order, lane)
			VALUES ($1, $2, 'queued', $3, $4)`, state.ID, e.ID, i+1, lane)
	}
	ctx := testkit.Context(t)
	require.NoError(t, w.store.Tx(ctx, "leave a message", func(ctx context.Context, tx *store.Tx) error {
		_, err := outbox.Append(ctx, tx, []outbox.Message{
			{
				ID: "left", Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionCompleted,
				Type: message.TypeExecutionCompleted, Body: []byte(`{}`),
			},
			{
				ID: "nobody", Exchange: message.ExchangeExecutions, RoutingKey: message.DispatchKey(4711),
				Type: message.TypeExecutionRequested, Body: []byte(`{}`),
			},
		})
		return err
	}))

	survey, err := handback.Read(ctx, w.store)
	require.NoError(t, err)
	require.EqualValues(t, 2, survey.Unpublished)
	kinds := map[string]handback.Item{}
	for _, item := range survey.Items {
		kinds[item.Kind] = item
	}
	require.Equal(t, []int64{retry.ID}, kinds["pending retries"].IDs)
	require.NotEmpty(t, kinds["pending retries"].Notes, "with the time at which it is due")
	require.Equal(t, []int64{waiting[2]}, kinds["priorities"].IDs)

	result := w.handBack(t)
	require.Equal(t, handback.Result{Active: 1, Queued: 3, Requested: 4, Published: 5, Undeliverable: 1}, *result)
	require.Equal(t, []int64{holder.ID}, w.entries(t, "active"))
	require.Equal(t, []int64{waiting[2], waiting[0], waiting[1]}, w.entries(t, "queued"), "high priority is first")
	require.Equal(t, []int64{unplaced.ID, claimed.ID, retry.ID, waiting[2]}, w.requested(t), "one slot is free")
	require.Zero(t, testkit.Count(t, w, "SELECT count(*) FROM outbox"))
}

// requested reads the messages of the queue of requests.
func (w *world) requested(t *testing.T) []int64 {
	t.Helper()
	var messages []struct {
		Payload string `json:"payload"`
	}
	testkit.Manage(t, "POST", "/api/queues/"+testkit.VHostName(t, w.amqp)+"/"+message.QueueExecutionRequests+"/get",
		map[string]any{"count": 100, "ackmode": "ack_requeue_true", "encoding": "auto"}, &messages)
	var ids []int64
	for _, m := range messages {
		var envelope struct {
			Payload message.ExecutionRequested `json:"payload"`
		}
		require.NoError(t, json.Unmarshal([]byte(m.Payload), &envelope))
		ids = append(ids, envelope.Payload.ExecutionID)
	}
	return ids
}

// TestGroupsAreThoseOfTheOtherExecutor: a limit of the pack counts each action and group, with the other
// executor's keys.
func TestGroupsAreThoseOfTheOtherExecutor(t *testing.T) {
	w := setup(t)
	action := testkit.Action(t, w, "demo.grouped", func(a *testkit.ActionRow) {
		a.ParamSchema = map[string]any{"tier": map[string]any{"type": "number", "default": 1}}
	})
	testkit.Policy(t, w, action, 5, testkit.OfPack(action),
		func(p *testkit.PolicyRow) { p.Parameters = []string{"tier", "place.region"} })
	state := testkit.State(t, w, action, 0, func(s *testkit.StateRow) { s.Unlimited, s.Active = true, 3 })
	for _, params := range []map[string]any{
		{"place": map[string]any{"region": "a&b"}},
		{"tier": json.RawMessage("1.0")},
		{"tier": json.RawMessage("1")},
	} {
		testkit.Execution(t, w, action, func(e *testkit.ExecutionRow) {
			e.Status, e.AdmissionState, e.Config = lifecycle.StatusRunning, &state.ID, params
		})
	}
	require.Equal(t, 3, w.handBack(t).Active)
	keys := testkit.Column[string](t, w.pool, `SELECT s.group_key FROM execution_admission_state s
		JOIN execution_admission_entry q ON q.state_id = s.id WHERE s.max_concurrent = 5 ORDER BY q.execution_id`)
	require.Equal(t, []string{
		`{"place.region":"a&b","tier":1}`, `{"place.region":null,"tier":1.0}`, `{"place.region":null,"tier":1}`,
	}, keys)
}

func TestRefusesWhileAReplicaRuns(t *testing.T) {
	w := setup(t)
	action := testkit.Action(t, w, "demo.sleep")
	testkit.Policy(t, w, action, 1)
	w.engine(t)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, w, "SELECT count(*) FROM engine_replica") == 1
	}, waitTimeout, "the replica has reported itself")
	_, err := handback.HandBack(testkit.Context(t), handback.Deps{Store: w.store, Broker: w.wire(t, w.amqp)})
	var running *handback.RunningError
	require.ErrorAs(t, err, &running)
	require.Len(t, running.Replicas, 1)
	require.ErrorContains(t, err, "stop each with SIGTERM")
}

// Without the management API the routes of known workers are deleted, for dispatches and for cancel requests.
func TestRoutesOfWorkersAreDeletedWithoutTheManagementAPI(t *testing.T) {
	w := setup(t)
	worker := testkit.Worker(t, w, "w1").ID
	w.engine(t)()
	for _, key := range []string{message.DispatchKey(worker), message.CancelKey(worker)} {
		testkit.Manage(t, "POST", "/api/bindings/"+testkit.VHostName(t, w.amqp)+"/e/"+message.ExchangeDeadLetter+"/q/"+
			message.QueueDeadLetter, map[string]any{"routing_key": key}, nil)
	}
	_, err := handback.HandBack(testkit.Context(t), handback.Deps{Store: w.store, Broker: w.wire(t, w.amqp)})
	require.NoError(t, err)
	w.unrouted(t)
}

func TestRefusesWithoutABroker(t *testing.T) {
	w := setup(t)
	action := testkit.Action(t, w, "demo.limited")
	testkit.Policy(t, w, action, 1)
	state := testkit.State(t, w, action, 1, func(s *testkit.StateRow) { s.Active = 1 })
	testkit.Execution(t, w, action,
		func(e *testkit.ExecutionRow) { e.Status, e.AdmissionState = lifecycle.StatusRunning, &state.ID })
	b := broker.New(broker.Config{URL: "amqp://127.0.0.1:1/", NoDeadLetters: true, ConnectTimeout: time.Second},
		testkit.Logger(t), nil)
	require.NoError(t, b.Start(testkit.Context(t)))
	t.Cleanup(b.Stop)
	_, err := handback.HandBack(testkit.Context(t), handback.Deps{Store: w.store, Broker: b})
	require.ErrorContains(t, err, "nothing was changed")
	require.Zero(t, testkit.Count(t, w, "SELECT count(*) FROM execution_admission_entry"))
}
