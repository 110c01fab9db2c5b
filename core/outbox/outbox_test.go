package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// childVariable makes this test binary a process that appends, publishes and
// dies at a named point.
const childVariable = "ATTUNE_OUTBOX_TEST_CHILD"

func TestMain(m *testing.M) {
	if raw := os.Getenv(childVariable); raw != "" {
		os.Exit(child(raw))
	}
	testkit.Main(m)
}

type childConfig struct {
	Database string `json:"database"`
	AMQP     string `json:"amqp"`
	Queue    string `json:"queue"`
	Point    string `json:"point"`
	// Stops has the process stop itself at the point, once, and otherwise it dies there.
	Stops bool `json:"stops"`
	Rows  int  `json:"rows"`
}

// child commits one row of two messages and publishes it, killing itself at
// the point.
func child(raw string) int {
	var cfg childConfig
	if err := json.Unmarshal([]byte(raw), &cfg); err != nil {
		return 2
	}
	stop := sync.OnceFunc(crashpoint.Freeze)
	crashPoint = func(point string) {
		switch {
		case point != cfg.Point:
		case cfg.Stops:
			stop()
		default:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.TestTimeout)
	defer cancel()
	owner := store.Config{URL: cfg.Database, Schema: testkit.Schema, MaxConnections: 4, Relay: uuid.New()}
	st, err := store.Open(ctx, owner, telemetry.Discard())
	if err != nil {
		return 1
	}
	// It keeps its connection while it is frozen.
	wire := broker.New(broker.Config{URL: cfg.AMQP, Heartbeat: 10 * time.Minute}, telemetry.Discard(), nil)
	if err := wire.Start(ctx); err != nil {
		return 1
	}
	relay := New(Config{MaxBatch: 2}, st, wire.Publisher(), telemetry.Discard(), nil)
	add := func(messages ...Message) error {
		return st.Tx(ctx, "append", func(ctx context.Context, tx *store.Tx) error {
			id, err := Append(ctx, tx, messages)
			tx.AfterCommit(func() { relay.Published(id, messages) })
			return err
		})
	}
	for i := range max(cfg.Rows, 1) {
		if err := add(
			Message{ID: nth("first", i), RoutingKey: cfg.Queue, Type: "T", Body: []byte(`1`)},
			Message{ID: nth("second", i), RoutingKey: cfg.Queue, Type: "T", Body: []byte(`2`)},
		); err != nil {
			return 1
		}
	}
	if err := relay.Start(ctx); err != nil {
		return 1
	}
	for cfg.Stops && relay.Pending() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if cfg.Stops {
		if err := add(Message{ID: "resumed", RoutingKey: cfg.Queue, Type: "T", Body: []byte(`3`)}); err != nil {
			return 1
		}
	}
	<-ctx.Done()
	return 3 // it should have died
}

// nth is the id of a message of a later row.
func nth(id string, row int) string {
	if row == 0 {
		return id
	}
	return fmt.Sprintf("%s %d", id, row)
}

// queue declares a queue in a fresh virtual host and returns how to read it.
func queue(t *testing.T) (url, name string, read func(n int) []amqp.Delivery) {
	t.Helper()
	url, name = testkit.VHost(t), "q"
	conn, err := amqp.Dial(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	require.NoError(t, err)
	_, err = channel.QueueDeclare(name, true, false, false, false, nil)
	require.NoError(t, err)
	return url, name, func(n int) []amqp.Delivery {
		t.Helper()
		var got []amqp.Delivery
		testkit.Eventually(t, func() bool {
			for len(got) < n {
				d, ok, err := channel.Get(name, true)
				require.NoError(t, err)
				if !ok {
					return false
				}
				got = append(got, d)
			}
			return true
		}, 20*time.Second, "%d messages arrive", n)
		return got
	}
}

func startRelay(t *testing.T, st *store.Store, publisher Publisher, change ...func(*Config)) *Relay {
	t.Helper()
	cfg := Config{SweepInterval: 50 * time.Millisecond, SweepAge: 1200 * time.Millisecond}
	for _, c := range change {
		c(&cfg)
	}
	relay := New(cfg, st, publisher, testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	return relay
}

func dial(t *testing.T, url string) *broker.Broker {
	t.Helper()
	wire := broker.New(broker.Config{URL: url}, testkit.Logger(t), nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	return wire
}

func commit(t *testing.T, st *store.Store, relay *Relay, messages ...Message) {
	t.Helper()
	require.NoError(t, st.Tx(testkit.Context(t), "append", func(ctx context.Context, tx *store.Tx) error {
		id, err := Append(ctx, tx, messages)
		if relay != nil {
			tx.AfterCommit(func() { relay.Published(id, messages) })
		}
		return err
	}))
}

func empty(t *testing.T, st *store.Store) func() bool {
	return func() bool { return testkit.Count(t, st, `SELECT count(*) FROM outbox`) == 0 }
}

func TestACommittedRowIsPublishedAtOnceAndDeleted(t *testing.T) {
	st := testkit.Store(t)
	url, name, read := queue(t)
	// The sweep is switched off: this is the fast path.
	relay := startRelay(t, st, dial(t, url).Publisher(),
		func(c *Config) { c.SweepInterval, c.SweepAge = time.Hour, time.Hour })
	var messages []Message
	for i := range 500 {
		messages = append(messages, Message{ID: fmt.Sprint(i), RoutingKey: name, Type: "T", Body: []byte(`{}`)})
	}
	commit(t, st, relay, messages...)
	got := read(500)
	for i, d := range got {
		require.Equal(t, fmt.Sprint(i), d.MessageId, "messages of one routing key keep their order")
		require.Equal(t, amqp.Persistent, d.DeliveryMode)
		require.Equal(t, "T", d.Type)
	}
	testkit.Eventually(t, empty(t, st), 10*time.Second)
}

// S13: nothing of a transaction that rolled back is ever published.
func TestARolledBackRowIsNeverPublished(t *testing.T) {
	st := testkit.Store(t)
	url, name, read := queue(t)
	relay := startRelay(t, st, dial(t, url).Publisher())
	failure := errors.New("changed our mind")
	err := st.Tx(testkit.Context(t), "append", func(ctx context.Context, tx *store.Tx) error {
		messages := []Message{{ID: "never", RoutingKey: name, Type: "T", Body: []byte(`{}`)}}
		id, err := Append(ctx, tx, messages)
		require.NoError(t, err)
		tx.AfterCommit(func() { relay.Published(id, messages) })
		return failure
	})
	require.ErrorIs(t, err, failure)
	commit(t, st, relay, Message{ID: "marker", RoutingKey: name, Type: "T", Body: []byte(`{}`)})
	require.Equal(t, "marker", read(1)[0].MessageId)
}

// upstream 7, F16: the process is killed between commit and publish, between publish and the handling of the
// confirm, and between publish and delete. Its committed messages arrive; repeated ones have the same message id.
func TestKilledAtEveryPointNothingIsLost(t *testing.T) {
	t.Parallel()
	for point, atMost := range map[string]int{"before-publish": 2, "after-publish": 4, "before-delete": 4} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			database := testkit.Database(t)
			st := testkit.OpenStore(t, database)
			url, name, read := queue(t)
			raw, err := json.Marshal(childConfig{Database: database, AMQP: url, Queue: name, Point: point})
			require.NoError(t, err)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childVariable+"="+string(raw))
			err = cmd.Run()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, syscall.SIGKILL, signalOf(exit), "it died at the point: %v", err)
			require.False(t, empty(t, st)(), "the row is still there")

			startRelay(t, st, dial(t, url).Publisher())
			got := read(atMost)
			counts := map[string]int{}
			for _, d := range got {
				counts[d.MessageId]++
			}
			require.Equal(t, map[string]int{"first": atMost / 2, "second": atMost / 2}, counts)
			testkit.Eventually(t, empty(t, st), 10*time.Second)
		})
	}
}

// signalOf is the signal that ended a process.
func signalOf(exit *exec.ExitError) syscall.Signal {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok {
		return status.Signal()
	}
	return 0
}

// upstream 4: a message that reached no queue, or that the broker refused, does not count as published. The other
// messages of its row are published once.
func TestReturnedMessagesAreSplitOffAndTriedAgain(t *testing.T) {
	st := testkit.Store(t)
	url, name, read := queue(t)
	wire := dial(t, url)
	returned := make(chan Message, 100)
	relay := startRelay(t, st, wire.Publisher(), func(c *Config) {
		c.SweepAge = 2 * time.Second
		c.Undeliverable = func(_ context.Context, _ *store.Tx, messages []Message) (map[string]bool, error) {
			for _, m := range messages {
				returned <- m
			}
			return nil, nil
		}
	})
	commit(t, st, relay,
		Message{ID: "a", RoutingKey: name, Type: "T", Body: []byte(`{}`)},
		Message{ID: "lost", RoutingKey: "later", Type: "T", Body: []byte(`{"kept":true}`)},
		Message{ID: "b", RoutingKey: name, Type: "T", Body: []byte(`{}`)})
	require.Equal(t, "lost", (<-returned).ID)
	got := read(2)
	require.Equal(t, []string{"a", "b"}, []string{got[0].MessageId, got[1].MessageId})
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st,
			`SELECT count(*) FROM outbox WHERE message_ids = '{lost}' AND last_error IS NOT NULL`) == 1
	}, 10*time.Second, "the returned message is a row of its own with the answer of the broker")

	conn, err := amqp.Dial(url)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	channel, err := conn.Channel()
	require.NoError(t, err)
	_, err = channel.QueueDeclare("later", true, false, false, false, nil)
	require.NoError(t, err)
	testkit.Eventually(t, func() bool {
		d, ok, err := channel.Get("later", true)
		return err == nil && ok && d.MessageId == "lost" && string(d.Body) == `{"kept":true}`
	}, 15*time.Second, "it arrives once its queue exists, as it was written")
	testkit.Eventually(t, empty(t, st), 10*time.Second)
}

// A returned message that a handler takes over leaves the outbox in the handler's transaction. The
// other messages of its row are published.
func TestReturnedMessagesOfAHandlerLeaveTheOutbox(t *testing.T) {
	st := testkit.Store(t)
	url, name, read := queue(t)
	testkit.Exec(t, st, `CREATE TABLE took (id text)`)
	failed := make(chan struct{}, 1)
	relay := startRelay(t, st, dial(t, url).Publisher(), func(c *Config) {
		c.SweepAge, c.SweepInterval = time.Second, 100*time.Millisecond
		c.Undeliverable = func(ctx context.Context, tx *store.Tx, messages []Message) (map[string]bool, error) {
			require.Len(t, messages, 1)
			if _, err := tx.Exec(ctx, `INSERT INTO took VALUES ($1)`, messages[0].ID); err != nil {
				return nil, err
			}
			select {
			case failed <- struct{}{}:
				return nil, errors.New("not this time")
			default:
				return map[string]bool{messages[0].ID: true}, nil
			}
		}
	})
	commit(t, st, relay,
		Message{ID: "gone", RoutingKey: "nowhere", Type: "T", Body: []byte(`{}`)},
		Message{ID: "a", RoutingKey: name, Type: "T", Body: []byte(`{}`)})
	require.Equal(t, "a", read(1)[0].MessageId)
	testkit.Eventually(t, empty(t, st), 15*time.Second)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM took WHERE id = 'gone'`),
		"with the second try, and once")
}

// flaky is a publisher that is unavailable until restored.
type flaky struct {
	mu   sync.Mutex
	away bool
	sent []string
}

func (f *flaky) Publish(_ context.Context, messages []broker.Message) []broker.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	outcomes := make([]broker.Outcome, len(messages))
	for i, m := range messages {
		if f.away {
			outcomes[i] = broker.Outcome{Status: broker.NotSent, Err: broker.ErrNotConnected}
			continue
		}
		f.sent = append(f.sent, m.ID)
		outcomes[i] = broker.Outcome{Status: broker.Confirmed}
	}
	return outcomes
}

func (f *flaky) back() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = false
}

func (f *flaky) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sent)
}

// While the broker is away memory stays bounded; everything is published when
// it is back, whichever rows memory still held.
func TestABrokerThatIsAwayFillsTheTableNotTheMemory(t *testing.T) {
	st := testkit.Store(t)
	publisher := &flaky{away: true}
	relay := startRelay(t, st, publisher, func(c *Config) { c.MaxPending = 10 })
	for i := range 50 {
		commit(t, st, relay, Message{ID: fmt.Sprint(i), RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	}
	relay.mu.Lock()
	require.LessOrEqual(t, relay.own.size, 10)
	relay.mu.Unlock()
	require.Equal(t, 50, testkit.Count(t, st, `SELECT count(*) FROM outbox`))
	publisher.back()
	testkit.Eventually(t, func() bool { return publisher.count() >= 50 && empty(t, st)() }, 30*time.Second)
	seen := map[string]bool{}
	for _, id := range publisher.sent {
		seen[id] = true
	}
	require.Len(t, seen, 50, "every message was published")
}

// Stop publishes all pending rows.
func TestStopFlushes(t *testing.T) {
	st := testkit.Store(t)
	publisher := &flaky{}
	relay := New(Config{SweepInterval: time.Hour, SweepAge: time.Hour, FlushTimeout: time.Minute}, st, publisher,
		testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	for i := range 20 {
		commit(t, st, relay, Message{ID: fmt.Sprint(i), RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	}
	relay.Stop()
	require.Equal(t, 20, publisher.count())
	require.True(t, empty(t, st)(), "published rows are deleted before Stop returns")
}

// Two replicas sweep the same table: every row is taken by one of them.
func TestSweepsOfTwoReplicasShareTheRows(t *testing.T) {
	st := testkit.Store(t)
	for i := range 300 {
		commit(t, st, nil, Message{ID: fmt.Sprint(i), RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	}
	testkit.Exec(t, st, `UPDATE outbox SET created = now() - interval '1 minute'`)
	one, two := &flaky{}, &flaky{}
	startRelay(t, st, one, func(c *Config) { c.SweepAge = 30 * time.Second })
	startRelay(t, st, two, func(c *Config) { c.SweepAge = 30 * time.Second })
	testkit.Eventually(t, empty(t, st), 20*time.Second)
	require.Equal(t, 300, one.count()+two.count(), "each once")
	all := strings.Join(append(one.sent, two.sent...), " ")
	require.Contains(t, all, "299")
}
