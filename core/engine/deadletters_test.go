package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// ledgerRow is a row of the ledger of dead letters.
type ledgerRow struct {
	Key       string         `json:"routing_key"`
	Queue     string         `json:"queue"`
	Reason    string         `json:"reason"`
	Decision  string         `json:"decision"`
	Detail    string         `json:"detail"`
	Execution int64          `json:"execution"`
	Headers   map[string]any `json:"headers"`
}

// deadLetter waits for the row of a message in the ledger.
func (b *bundle) deadLetter(t *testing.T, messageID string) ledgerRow {
	t.Helper()
	var raw []byte
	testkit.Eventually(t, func() bool {
		err := b.store.Pool().QueryRow(testkit.Context(t),
			`SELECT to_jsonb(l) - 'body' FROM dead_letter l WHERE message_id = $1`, messageID).Scan(&raw)
		return err == nil
	}, 40*time.Second, "message %s is in the ledger", messageID)
	var row ledgerRow
	require.NoError(t, json.Unmarshal(raw, &row))
	return row
}

// withoutConsumer registers a worker whose queue has a TTL and no consumer.
func (b *bundle) withoutConsumer(
	t *testing.T, name string, ttl time.Duration, options ...func(*testkit.WorkerRow),
) int64 {
	t.Helper()
	w := testkit.Worker(t, b.store, name, append([]func(*testkit.WorkerRow){beating}, options...)...)
	wire := b.connect(t, name)
	require.NoError(t, wire.DeclareWorker(testkit.Context(t), w.ID, ttl))
	require.NoError(t, wire.BindWorkerDeadLetters(testkit.Context(t), w.ID))
	return w.ID
}

// The fifth scenario: a dispatch expires in a worker's queue without a consumer. The execution ends
// as documented, is retried at another worker, and its slot is released (upstream 1, 34; S6, S20,
// L5).
func TestExpiredDispatchesAreRetriedElsewhere(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "let messages expire; another test has workers that fence")
	b := setup(t)
	action := testkit.Action(t, b.store, "again.elsewhere", func(a *testkit.ActionRow) { a.MaxRetries = 1 })
	testkit.Policy(t, b.store, action, 1)
	silent := b.withoutConsumer(t, "silent", 500*time.Millisecond)
	b.engine(t, quickRetries)
	first := b.request(t, "again.elsewhere", 1, `{}`)[0]
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM execution WHERE id = $1 AND status = 'scheduled' AND worker = $2`, first, silent)+
			testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`) > 0
	}, 10*time.Second)
	b.fake(t, nil)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, first) == lifecycle.StatusFailed },
		20*time.Second)
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true WHERE id = $1`, silent)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM execution WHERE status = 'completed' AND original_execution = $1`, first) == 1
	}, 20*time.Second)
	b.settled(t, 10*time.Second)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = $1 AND result->>'error' = 'Worker queue TTL expired'
		AND result->>'failed_by' = 'dead_letter_handler' AND result ? 'expired_at'`, first))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter WHERE execution = $1 AND decision = 'failed' AND reason = 'expired'
		AND died IS NOT NULL AND evidence->'worker'->>'name' = 'silent' AND body IS NOT NULL`, first))
}

// Ruling 5: at workers that fence attempts the execution itself goes on elsewhere,
// without a retry.
func TestExpiredDispatchesMoveBetweenWorkersWithFencing(t *testing.T) {
	b := setup(t)
	testkit.Action(t, b.store, "again.moved")
	silent := b.withoutConsumer(t, "silent", 2*time.Second,
		func(w *testkit.WorkerRow) { w.Capabilities["attempt_fence"] = true })
	b.fake(t, fence) // it has its queue before it is given work
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = id <> $1`, silent)
	b.engine(t, quickRetries)
	id := b.request(t, "again.moved", 1, `{}`)[0]
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = $1 AND worker = $2`, id,
			silent) == 1
	}, 10*time.Second)
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = id = $1`, silent)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusCompleted },
		20*time.Second)
	b.settled(t, 10*time.Second)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution`), "no retry")
	require.Positive(t,
		testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter WHERE execution = $1 AND decision = 'retried'`, id))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter WHERE decision IS NULL`))
}

// Upstream 2: a lost report is acted on: the slot that its execution held is free.
func TestALostReportReleasesTheSlot(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "lost.report")
	testkit.Policy(t, b.store, action, 1)
	b.withoutConsumer(t, "never", time.Hour)
	b.engine(t)
	id := b.request(t, action.Ref, 1, `{}`)[0]
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusScheduled },
		10*time.Second)
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'running', started_at = now() WHERE id = $1`, id)
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'completed', result = '{}' WHERE id = $1`, id)
	wire := b.connect(t, "letters")
	envelope := message.New(message.TypeExecutionCompleted,
		message.ExecutionCompleted{ExecutionID: id, Status: "completed"}, time.Now(), "test")
	body, err := envelope.Encode()
	require.NoError(t, err)
	wire.Publisher().Publish(testkit.Context(t), []broker.Message{{
		ID: envelope.MessageID, Exchange: message.ExchangeDeadLetter, RoutingKey: message.KeyExecutionCompleted,
		Type: message.TypeExecutionCompleted, Body: body,
	}})
	require.Equal(t, "released", b.deadLetter(t, envelope.MessageID).Decision)
	b.settled(t, 10*time.Second)
}

// Without the handler dead letters stay in their queue, also on a fresh broker and those
// of workers that came later; no replica consumes them.
func TestWithoutTheHandlerDeadLettersStayOnTheBroker(t *testing.T) {
	t.Parallel()
	b := &bundle{servers: servers{
		Database: testkit.Database(t), AMQP: testkit.VHost(t),
		Management: testkit.ManagementURL(t),
	}}
	b.store = testkit.OpenStore(t, b.Database)
	b.engine(t, func(c *config.Config) { c.MessageQueue.RabbitMQ.DeadLetter.Enabled = false })
	wire := b.connect(t, "operator")
	worker := testkit.Worker(t, b.store, "later").ID
	keys := []string{message.KeyExecutionRequested, message.KeyExecutionCompleted, message.DispatchKey(worker)}
	sent := 0
	for _, key := range keys {
		testkit.Eventually(t, func() bool {
			outcome := wire.Publisher().Publish(testkit.Context(t), []broker.Message{{
				ID: key, Exchange: message.ExchangeDeadLetter, RoutingKey: key, Body: []byte(`{}`),
			}})[0]
			return outcome.Status == broker.Confirmed
		}, 20*time.Second, key)
		sent++
	}
	state, err := wire.QueueState(testkit.Context(t), message.QueueDeadLetter)
	require.NoError(t, err)
	require.Equal(t, []int{sent, 0}, []int{state.Ready, state.Consumers})
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`))
}
