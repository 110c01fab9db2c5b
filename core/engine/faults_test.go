package engine_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// storm is two replicas and two workers on servers that a test may stop.
type storm struct {
	*bundle
	stack *devstack.Stack
	wire  *broker.Broker

	unreadable int // dead letters that were sent
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	stack := testkit.NewStack(t)
	database := stack.DatabaseURL()
	_, err := migrations.Up(testkit.Context(t), migrations.Options{URL: database, Schema: testkit.Schema})
	require.NoError(t, err)
	s := &storm{stack: stack, bundle: &bundle{
		servers: servers{Database: database, AMQP: stack.AMQPURL(), Management: stack.ManagementURL()},
		store:   testkit.OpenStore(t, database),
	}}
	// Servers of tests commit asynchronously. One that is killed here must keep its confirmed transactions.
	testkit.Exec(t, s.store, `ALTER DATABASE `+devstack.DatabaseName+` SET synchronous_commit = on`)
	s.store.Pool().Reset()
	s.wire = s.reconnecting(t, "requests")
	require.NoError(t, s.wire.DeclareExecutor(testkit.Context(t)))
	s.relay = outbox.New(outbox.Config{}, s.store, s.wire.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, s.relay.Start(testkit.Context(t)))
	t.Cleanup(s.relay.Stop)
	s.submit = submit.New(s.store, s.relay)

	limited := testkit.Action(t, s.store, "storm.limited", func(a *testkit.ActionRow) { a.Entrypoint = "core.sleep" })
	testkit.Policy(t, s.store, limited, 5)
	for range 2 {
		s.engine(t, func(c *config.Config) { c.MessageQueue.RabbitMQ.ReconnectDelay = reconnectDelay })
	}
	for _, name := range []string{"w1", "w2"} {
		w, err := worker.New(worker.Config{
			Name: name, MaxConcurrent: 15, Actions: builtin.Actions(), HeartbeatInterval: time.Second,
		}, worker.Deps{Store: s.store, Broker: s.reconnecting(t, name), Logger: testkit.Logger(t)})
		require.NoError(t, err)
		require.NoError(t, w.Start(testkit.Context(t)))
		t.Cleanup(w.Stop)
	}
	return s
}

const reconnectDelay = 300 * time.Millisecond

// reconnecting connects to the broker, and again soon after it is back.
func (s *storm) reconnecting(t *testing.T, name string) *broker.Broker {
	t.Helper()
	wire := broker.New(broker.Config{URL: s.AMQP, ConnectionName: name, MaxBackoff: reconnectDelay}, testkit.Logger(t),
		nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	return wire
}

// load requests 300 executions, half of them in a queue with a limit, and
// returns when a fifth has ended.
func (s *storm) load(t *testing.T) (limited []int64) {
	t.Helper()
	const half = 150
	limited = s.request(t, "storm.limited", half, `{"seconds":0.05}`)
	s.request(t, "core.sleep", half, `{"seconds":0.1}`)
	testkit.Eventually(t, func() bool { return s.live(t) < 2*half*4/5 }, 20*time.Second, "a fifth has ended")
	require.Positive(t, s.live(t), "there is something left to interrupt")
	s.sendDeadLetters(t)
	return limited
}

// sendDeadLetters sends unreadable dead letters, which the replicas store.
func (s *storm) sendDeadLetters(t *testing.T) {
	t.Helper()
	deadLetters := make([]broker.Message, 200)
	for i := range deadLetters {
		deadLetters[i] = broker.Message{
			ID: uuid.NewString(), Exchange: message.ExchangeDeadLetter, RoutingKey: message.KeyEventCreated,
			Type: message.TypeEventCreated, Body: []byte("garbage"),
		}
	}
	for _, outcome := range s.wire.Publisher().Publish(testkit.Context(t), deadLetters) {
		require.Equal(t, broker.Confirmed, outcome.Status, "%v", outcome.Err)
	}
	s.unreadable += len(deadLetters)
}

// over waits, however often the database does not answer, until everything
// has ended, and holds the rows against the invariants.
func (s *storm) over(t *testing.T, limited []int64) {
	t.Helper()
	var left int
	testkit.Eventually(t, func() bool {
		err := s.store.Pool().QueryRow(testkit.Context(t),
			`SELECT count(*) FROM execution e WHERE e.finished_status IS NULL`).Scan(&left)
		return err == nil && left == 0
	}, 40*time.Second, "everything ends")
	s.settled(t, 30*time.Second)
	require.Zero(t, testkit.Count(t, s.store, `SELECT count(*) FROM execution WHERE status <> 'completed'`))
	require.Zero(t, testkit.Count(t, s.store, `SELECT count(*) FROM execution WHERE attempt <> 1`),
		"S2: dispatched once each")
	require.Zero(t, testkit.Count(t, s.store, `SELECT count(*) FROM (
		SELECT entity_id FROM execution_history WHERE new_values->>'status' = 'running' GROUP BY entity_id HAVING count(*) > 1) twice`))
	require.Zero(t, testkit.Count(t, s.store, `SELECT count(*) FROM late_write`), "S8: no late write had to be refused")
	requireOrder(t, s.bundle, limited)
	testkit.Eventually(t, func() bool {
		deadLetters, err := s.wire.QueueState(testkit.Context(t), message.QueueDeadLetter)
		return err == nil && deadLetters.Ready == 0 &&
			testkit.Count(t, s.store, `SELECT count(*) FROM dead_letter`) >= s.unreadable
	}, 20*time.Second, "S20: what was confirmed is in the ledger")
	require.Equal(t, s.unreadable, testkit.Count(t, s.store, `SELECT count(*) FROM dead_letter`),
		"each once, and nothing was given up")
	require.Zero(t, testkit.Count(t, s.store,
		`SELECT count(*) FROM dead_letter WHERE message_type IS DISTINCT FROM 'EventCreated' OR decision IS NOT NULL`))
}

// F2 and F3: a server goes away in the middle of the load and comes back.
// Everything that was requested runs once and ends, and limits hold.
//
//nolint:paralleltest,tparallel // one stack, one fault after the other
func TestServersThatGoAwayLoseNothing(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "take the servers away")
	s := newStorm(t)

	t.Run("TheDatabaseIsKilled", func(t *testing.T) {
		limited := s.load(t)
		require.NoError(t, s.stack.KillPostgres(testkit.Context(t)))
		require.Equal(t, store.ClassUnreachable, store.ClassOf(s.store.Ping(testkit.Context(t))))
		require.NoError(t, s.stack.StartPostgres(testkit.Context(t)))
		s.over(t, limited)
	})

	t.Run("TheBrokerIsKilled", func(t *testing.T) {
		// The broker answers a declaration before it writes it.
		_, err := s.stack.Rabbitmqctl(testkit.Context(t), "eval", "mnesia:sync_log().")
		require.NoError(t, err)
		limited := s.load(t)
		require.NoError(t, s.stack.KillBroker(testkit.Context(t)))
		require.NoError(t, s.stack.StartBroker(testkit.Context(t)))
		s.over(t, limited)
	})

	t.Run("AnOutageOfTheDatabaseIsNotTheEndOfAllWorkers", func(t *testing.T) { requireOutageEndsNoWorkers(t, s.stack) })
}
