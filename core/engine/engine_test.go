package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
	"github.com/attune-go/attune/lab/testkit"
)

// childVariable makes this test binary an engine replica: a process of its
// own that can be killed.
const childVariable = "ATTUNE_ENGINE_TEST_CHILD"

func TestMain(m *testing.M) {
	if raw := os.Getenv(childVariable); raw != "" {
		os.Exit(replica(raw))
	}
	testkit.Main(m)
}

// servers is where a replica works.
type servers struct {
	Database   string `json:"database"`
	AMQP       string `json:"amqp"`
	Management string `json:"management"`
	Collector  string `json:"collector"` // of traces; empty without
}

func (s servers) config() *config.Config {
	cfg := config.Default()
	cfg.Database.URL, cfg.Database.Schema = s.Database, testkit.Schema
	cfg.Database.MaxConnections = testkit.EngineConnections
	cfg.MessageQueue.URL, cfg.MessageQueue.ManagementURL = s.AMQP, s.Management
	cfg.MessageQueue.RabbitMQ.WorkerQueueTTL = 100 * time.Millisecond // workers of these tests let dispatches expire
	cfg.Executor.HTTP.Listen = ""
	cfg.Telemetry.OTLPEndpoint = s.Collector
	return cfg
}

// replica runs an engine until SIGTERM.
func replica(raw string) int {
	var s servers
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return 2
	}
	logger, err := telemetry.NewLogger(os.Stderr, "info", "text")
	if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	e, err := engine.New(ctx, s.config(), engine.Deps{Logger: logger, Version: "test"})
	if err != nil {
		logger.Error("Replica could not be made", "error", err)
		return 1
	}
	if err := e.Start(ctx); err != nil {
		logger.Error("Replica could not start", "error", err)
		return 1
	}
	<-ctx.Done()
	if err := e.Stop(context.Background()); err != nil {
		return 1
	}
	return 0
}

// startReplica starts a replica as a process of its own.
func startReplica(t *testing.T, s servers) *exec.Cmd {
	t.Helper()
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	var log bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(raw), "GOGC=100")
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of replica %d:\n%s", cmd.Process.Pid, log.String())
		}
	})
	return cmd
}

type bundle struct {
	servers
	store  *store.Store
	relay  *outbox.Relay
	submit *submit.Submitter
}

// setup makes a database, a virtual host, the topology and a way to request.
func setup(t *testing.T) *bundle {
	t.Helper()
	return setupOn(t, testkit.Database(t))
}

func setupOn(t *testing.T, database string) *bundle {
	t.Helper()
	b := &bundle{
		servers: servers{Database: database, AMQP: testkit.VHost(t), Management: testkit.ManagementURL(t)},
		store:   testkit.OpenStore(t, database),
	}
	wire := b.connect(t, "requests")
	require.NoError(t, wire.DeclareExecutor(testkit.Context(t)))
	b.relay = outbox.New(outbox.Config{}, b.store, wire.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, b.relay.Start(testkit.Context(t)))
	t.Cleanup(b.relay.Stop)
	b.submit = submit.New(b.store, b.relay)
	return b
}

func (b *bundle) connect(t *testing.T, name string) *broker.Broker {
	t.Helper()
	wire := broker.New(broker.Config{URL: b.AMQP, ManagementURL: b.Management, ConnectionName: name}, testkit.Logger(t),
		nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	return wire
}

// engine starts a replica in this process.
func (b *bundle) engine(t *testing.T, change ...func(*config.Config)) *engine.Engine {
	t.Helper()
	cfg := b.config()
	for _, c := range change {
		c(cfg)
	}
	e, err := engine.New(testkit.Context(t), cfg, engine.Deps{Logger: testkit.Logger(t), Version: "test"})
	require.NoError(t, err)
	require.NoError(t, e.Start(testkit.Context(t)))
	t.Cleanup(func() { require.NoError(t, e.Stop(context.Background())) })
	return e
}

// worker starts a reference worker in this process.
func (b *bundle) worker(t *testing.T, name string, concurrency int) {
	t.Helper()
	w, err := worker.New(worker.Config{
		Name: name, MaxConcurrent: concurrency, Replace: true, // a test may have made its row
		HeartbeatInterval: 500 * time.Millisecond, Actions: builtin.Actions(),
	},
		worker.Deps{Store: b.store, Broker: b.connect(t, name), Logger: testkit.Logger(t)})
	require.NoError(t, err)
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
}

func (b *bundle) request(t *testing.T, ref string, n int, params string) []int64 {
	t.Helper()
	requests := make([]submit.Request, n)
	for i := range requests {
		requests[i] = submit.Request{ActionRef: ref, Params: json.RawMessage(params)}
	}
	list, err := b.submit.RequestMany(testkit.Context(t), requests)
	require.NoError(t, err)
	ids := make([]int64, n)
	for i, r := range list {
		ids[i] = r.ID
	}
	return ids
}

func (b *bundle) live(t *testing.T) int {
	t.Helper()
	return testkit.Count(t, b.store, `SELECT count(*) FROM execution e WHERE e.finished_status IS NULL`)
}

// settled waits until everything has ended and been released.
func (b *bundle) settled(t *testing.T, timeout time.Duration) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return b.live(t) == 0 && testkit.Count(t, b.store,
			`SELECT count(*) FROM execution_holder`) == 0 &&
			testkit.Count(t, b.store, `SELECT count(*) FROM outbox`) == 0
	}, timeout, "everything ends and is released")
	testkit.Invariants(t, b.store)
	b.requireLegalMoves(t)
}

// requireLegalMoves checks S8 on the recorded history: every move is in the transition table,
// whichever program wrote it.
func (b *bundle) requireLegalMoves(t *testing.T) {
	t.Helper()
	rows, err := b.store.Pool().Query(testkit.Context(t), `
		SELECT DISTINCT old_values->>'status', new_values->>'status' FROM execution_history
		WHERE operation = 'UPDATE' AND new_values->>'status' IS DISTINCT FROM old_values->>'status'`)
	require.NoError(t, err)
	defer rows.Close()
	moves := 0
	for rows.Next() {
		var from, to lifecycle.Status
		require.NoError(t, rows.Scan(&from, &to))
		require.True(t, lifecycle.CanMove(from, to), "%s → %s", from, to)
		moves++
	}
	require.NoError(t, rows.Err())
	require.Positive(t, moves, "the history records moves")
}

// A client that knows nothing but the published protocol is the worker.
func TestAThirdPartyWorkerRunsAnExecutionToItsEnd(t *testing.T) {
	b := setup(t)
	b.engine(t)
	testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: b.AMQP, DatabaseURL: b.Database,
		Behave: func(_ context.Context, job testkit.Job) testkit.Answer {
			return testkit.Answer{Result: map[string]any{"echo": job.Config}}
		},
	})
	ids := b.request(t, "core.echo", 3, `{"message":"hi"}`)
	b.settled(t, 20*time.Second)
	for _, id := range ids {
		require.Equal(t, 1, testkit.Count(t, b.store,
			`SELECT count(*) FROM execution WHERE id = $1 AND status = 'completed' AND result->'echo'->>'message' = 'hi'`, id))
	}
	require.Equal(t, 3, testkit.Count(t, b.store,
		`SELECT total_completed FROM queue_stats WHERE action_id = (SELECT id FROM action WHERE ref = 'core.echo')`))
}

// F1: one of two replicas is killed in the middle of the load. Nothing is
// lost, nothing runs twice, limits hold, and every slot is given back.
func TestKillingOneOfTwoReplicasUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "kill a replica under load; lab/proof kills one at its worst moments")
	b := setup(t)
	action := testkit.Action(t, b.store, "pack.limited", func(a *testkit.ActionRow) { a.Entrypoint = "core.noop" })
	testkit.Policy(t, b.store, action, 5)
	for _, name := range []string{"w1", "w2"} {
		b.worker(t, name, 20)
	}
	victim, other := startReplica(t, b.servers), startReplica(t, b.servers)
	const each = 400
	limited := b.request(t, "pack.limited", each, `{}`)
	free := b.request(t, "core.noop", each, `{}`)
	testkit.Eventually(t, func() bool {
		ended := 2*each - b.live(t)
		return ended > each/2
	}, 40*time.Second, "the load is well under way")
	require.NoError(t, victim.Process.Signal(syscall.SIGKILL))
	_ = victim.Wait()
	b.request(t, "core.noop", 50, `{}`)

	b.settled(t, 60*time.Second)
	require.Equal(t, 2*each+50, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'completed'`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE attempt <> 1`),
		"S2: dispatched once each")
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM (
		SELECT entity_id FROM execution_history WHERE new_values->>'status' = 'running' GROUP BY entity_id HAVING count(*) > 1) twice`))
	requireOrder(t, b, limited)
	require.Len(t, free, each)
	require.NoError(t, other.Process.Signal(syscall.SIGTERM))
	require.NoError(t, other.Wait(), "SIGTERM drains and exits with 0")
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM late_write`), "S8: no late write had to be refused")
}

// requireOrder checks S3 for a queue whose limit is five: at most five executions hold a slot at once.
func requireOrder(t *testing.T, b *bundle, ids []int64) {
	t.Helper()
	require.Zero(t, testkit.Count(t, b.store, `
		SELECT count(*) FROM (
			SELECT sum(step) OVER (ORDER BY at, step) AS running FROM (
				SELECT h.time AS at, 1 AS step FROM execution_history h
				WHERE h.entity_id = ANY($1) AND h.new_values->>'status' = 'scheduled'
				UNION ALL
				SELECT e.finished_at, -1 FROM execution e WHERE e.id = ANY($1)) steps) s
		WHERE running > 5`, ids), "S3: more than five held a slot at once")
}

// L4: the executions of a dead worker end and release their slots; queued executions continue at another worker.
func TestTheWorkOfADeadWorkerIsDecidedAndItsSlotsAreGivenBack(t *testing.T) {
	b := setup(t)
	b.engine(t, func(c *config.Config) {
		c.Executor.HeartbeatInterval, c.Executor.HeartbeatStalenessMultiplier = time.Second, 10
		c.Executor.TimeoutCheckInterval = 200 * time.Millisecond
		c.Executor.NoWorkers = "wait"
	})
	action := testkit.Action(t, b.store, "pack.two", func(a *testkit.ActionRow) { a.Entrypoint = "core.noop" })
	testkit.Policy(t, b.store, action, 2)
	doomed := testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: b.AMQP, DatabaseURL: b.Database, HeartbeatInterval: 200 * time.Millisecond,
		Behave: func(context.Context, testkit.Job) testkit.Answer { return testkit.Answer{Never: true} },
	})
	b.request(t, "pack.two", 6, `{}`)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'running'`) == 2
	}, 10*time.Second)
	doomed.Kill()
	b.worker(t, "rescue", 5)
	b.settled(t, 30*time.Second)
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'abandoned'`))
	require.Equal(t, 4, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'completed'`))
}

func TestUnreadableMessagesAreDeadLetteredAndBlockNothing(t *testing.T) {
	b := setup(t)
	wire := b.connect(t, "poison")
	b.engine(t)
	b.worker(t, "w1", 5)
	for i, body := range []string{
		`not JSON`,
		`{"message_type":"ExecutionRequested","timestamp":"2026-01-01T00:00:00Z","payload":{}}`,
	} {
		for _, key := range []string{message.KeyExecutionRequested, message.KeyExecutionCompleted} {
			outcomes := wire.Publisher().Publish(testkit.Context(t), []broker.Message{{
				ID: "poison-" + key + string(rune('a'+i)), Exchange: message.ExchangeExecutions, RoutingKey: key,
				Type: "x", Body: []byte(body),
			}})
			require.Equal(t, broker.Confirmed, outcomes[0].Status, "%v", outcomes[0].Err)
		}
	}
	b.request(t, "core.echo", 5, `{"message":"after the poison"}`)
	b.settled(t, 20*time.Second)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter WHERE reason = 'poison' AND decision IS NULL AND detail LIKE 'given up: %'`) == 4
	}, 10*time.Second, "upstream 1: all four are in the ledger and wait for a person")
}

// requestMessage asks for an execution by message alone.
func requestMessage(t *testing.T, id int64, name string) broker.Message {
	t.Helper()
	body, err := message.New(message.TypeExecutionRequested,
		message.ExecutionRequested{ExecutionID: id, ActionRef: "core.echo"},
		time.Now(), "test").Encode()
	require.NoError(t, err)
	return broker.Message{
		ID: name, Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionRequested,
		Type: message.TypeExecutionRequested, Body: body,
	}
}

// A message that names an execution which does not exist is tried again after
// growing pauses and then kept as a dead letter that says why. Meanwhile it delays no other
// message, and is not redelivered in a loop (upstream 5).
func TestAMessageWithoutARowBecomesADeadLetter(t *testing.T) {
	b := setup(t)
	ctx := testkit.Context(t)
	wire := b.connect(t, "ghost")
	b.engine(t)
	wire.Publisher().Publish(ctx, []broker.Message{requestMessage(t, 424242, "ghost")})
	for range 20 {
		id := b.request(t, "core.echo", 1, `{"message":"hello"}`)[0]
		testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) != lifecycle.StatusRequested },
			10*time.Second)
	}
	deadLetter := b.deadLetter(t, "ghost")
	require.Equal(t, message.KeyExecutionRequested, deadLetter.Key)
	require.Equal(t, message.QueueExecutionRequests, deadLetter.Queue)
	require.Equal(t, "poison", deadLetter.Reason)
	require.Empty(t, deadLetter.Decision, "it waits for a person")
	require.Contains(t, deadLetter.Detail, "execution 424242 does not exist")
	require.Equal(t, "7", deadLetter.Headers["x-attune-attempts"])
	require.Zero(t, testkit.Count(t, b.store,
		`SELECT count(*) FROM dead_letter WHERE evidence->'message'->>'redelivered' = 'true'`))
}

// MassTransit 1627: a message that is there before its row is served when the row
// comes, without a sweep.
func TestAMessageBeforeItsRowIsServedWhenTheRowComes(t *testing.T) {
	b := setup(t)
	ctx := testkit.Context(t)
	wire := b.connect(t, "early")
	b.engine(t)
	const id = 515151
	wire.Publisher().Publish(ctx, []broker.Message{requestMessage(t, id, "early")})
	testkit.Eventually(t, func() bool {
		state, err := wire.QueueState(ctx, message.QueueExecutionRequests)
		return err == nil && state.Ready == 0 && state.Consumers > 0
	}, 10*time.Second)
	testkit.Exec(t, b.store,
		`INSERT INTO execution (id, action, action_ref) SELECT $1, id, ref FROM action WHERE ref = 'core.echo'`, id)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) != lifecycle.StatusRequested },
		10*time.Second)
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`))
}

func TestReadinessNamesFailingChecks(t *testing.T) {
	b := setup(t)
	e := b.engine(t, func(c *config.Config) { c.Executor.HTTP.Listen = "127.0.0.1:0" })
	get := func(path string) (int, string) {
		request, err := http.NewRequestWithContext(testkit.Context(t), http.MethodGet, "http://"+e.Addr()+path, nil)
		require.NoError(t, err)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	testkit.Eventually(t, func() bool { code, _ := get("/readyz"); return code == http.StatusOK }, 20*time.Second)
	_, body := get("/readyz")
	for _, name := range []string{
		"database", "broker", message.QueueExecutionRequests, message.QueueExecutionCompleted,
		"loop recovery",
	} {
		require.Contains(t, body, name)
	}
	_, metrics := get("/metrics")
	for _, name := range []string{
		"attune_rounds_total", "attune_outbox_messages",
		"attune_loop_last_tick_timestamp_seconds",
	} {
		require.Contains(t, metrics, name)
	}
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM engine_replica WHERE id = $1`, e.ID()))
	require.NoError(t, e.Stop(context.Background()))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM engine_replica`),
		"a stopped replica leaves the list")
}

func TestStartRefusesADatabaseThatWasNotMigrated(t *testing.T) {
	s := servers{Database: testkit.EmptyDatabase(t), AMQP: testkit.VHost(t), Management: testkit.ManagementURL(t)}
	e, err := engine.New(testkit.Context(t), s.config(), engine.Deps{Logger: testkit.Logger(t)})
	require.NoError(t, err)
	err = e.Start(testkit.Context(t))
	require.ErrorContains(t, err, "migrate up")
	require.NotContains(t, strings.ToLower(err.Error()), "password")
	require.NoError(t, e.Stop(context.Background()))
}
