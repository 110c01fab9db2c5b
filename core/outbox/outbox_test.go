package outbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/supervise/supervisetest"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/testkit"
)

// The variables that make the test binary the process that is killed.
const (
	envPoint    = "ATTUNE_OUTBOX_TEST_POINT"
	envDatabase = "ATTUNE_OUTBOX_TEST_DATABASE"
	envAMQP     = "ATTUNE_OUTBOX_TEST_AMQP"
)

func TestMain(m *testing.M) {
	if point := os.Getenv(envPoint); point != "" {
		fmt.Fprintln(os.Stderr, die(point)) // reached only if the point is not
		os.Exit(3)
	}
	testkit.Main(m)
}

// die commits messages, hands them to a relay and is killed at the point.
func die(point string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	crashPoint = func(reached string) {
		if reached == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			<-ctx.Done() // nothing else happens until the signal is delivered
		}
	}
	st, err := store.Open(ctx, store.Config{URL: os.Getenv(envDatabase), Schema: testkit.Schema, MaxConnections: 4}, telemetry.Discard())
	if err != nil {
		return err
	}
	b := broker.New(broker.Config{URL: os.Getenv(envAMQP)}, nil, nil)
	if err := b.Start(ctx); err != nil {
		return err
	}
	relay := New(Config{}, st, b.Publisher(), telemetry.Discard(), nil)
	if err := relay.Start(ctx); err != nil {
		return err
	}
	messages := crashMessages()
	var id int64
	if err := st.Tx(ctx, "test", func(ctx context.Context, tx *store.Tx) error {
		id, err = Append(ctx, tx, messages)
		return err
	}); err != nil {
		return err
	}
	crashPoint("after-commit")
	relay.Published(id, messages)
	<-ctx.Done()
	return errors.New("the crash point was not reached")
}

func crashMessages() []Message {
	messages := make([]Message, 20)
	for i := range messages {
		messages[i] = Message{
			ID: uuid.NewSHA1(uuid.NameSpaceOID, fmt.Append(nil, i)).String(), RoutingKey: "q", Type: "T", Body: []byte("{}"),
		}
	}
	return messages
}

// testBundle is a database, a virtual host with a queue "q", and a broker.
type testBundle struct {
	store    *store.Store
	broker   *broker.Broker
	raw      *amqp.Channel
	database string
	amqp     string
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{database: testkit.Database(t), amqp: testkit.VHost(t)}
	b.store = testkit.OpenStore(t, b.database)
	b.broker = broker.New(broker.Config{URL: b.amqp}, testkit.Logger(t), nil)
	require.NoError(t, b.broker.Start(testkit.Context(t)))
	t.Cleanup(b.broker.Stop)
	conn, err := amqp.Dial(b.amqp)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	b.raw, err = conn.Channel()
	require.NoError(t, err)
	b.queue(t, "q")
	return b
}

func (b *testBundle) queue(t *testing.T, name string) {
	t.Helper()
	_, err := b.raw.QueueDeclare(name, true, false, false, false, nil)
	require.NoError(t, err)
}

func (b *testBundle) relay(t *testing.T, publisher Publisher, cfg Config) *Relay {
	t.Helper()
	relay := New(cfg, b.store, publisher, testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	return relay
}

func (b *testBundle) commit(t *testing.T, messages ...Message) int64 {
	t.Helper()
	var id int64
	require.NoError(t, b.store.Tx(testkit.Context(t), "test", func(ctx context.Context, tx *store.Tx) error {
		var err error
		id, err = Append(ctx, tx, messages)
		return err
	}))
	require.NotZero(t, id)
	return id
}

// rows is how many rows the outbox holds.
func (b *testBundle) rows(t *testing.T) int {
	t.Helper()
	return testkit.Count(t, b.store, "select count(*) from outbox")
}

// drain takes what is in the queue and returns the message ids in order.
func (b *testBundle) drain(t *testing.T, queue string) (ids []string) {
	t.Helper()
	for {
		d, ok, err := b.raw.Get(queue, true)
		require.NoError(t, err)
		if !ok {
			return ids
		}
		ids = append(ids, d.MessageId)
	}
}

func to(key string) Message {
	return Message{ID: uuid.NewString(), RoutingKey: key, Type: "T", Body: []byte("{}"), Trace: "trace"}
}

// quick makes sweeps due within a test.
var quick = Config{SweepInterval: 50 * time.Millisecond, SweepAge: 300 * time.Millisecond}

// fakePublisher answers with what decide says and records what was confirmed.
type fakePublisher struct {
	decide func(call int, messages []broker.Message) broker.Status

	mu        sync.Mutex
	calls     int
	confirmed []string
}

func (f *fakePublisher) Publish(_ context.Context, messages []broker.Message) []broker.Outcome {
	f.mu.Lock()
	call := f.calls
	f.calls++
	f.mu.Unlock()
	status := f.decide(call, messages)
	outcomes := make([]broker.Outcome, len(messages))
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, m := range messages {
		outcomes[i] = broker.Outcome{Status: status}
		if status == broker.Confirmed {
			f.confirmed = append(f.confirmed, m.ID)
		} else {
			outcomes[i].Err = errors.New("as the test wants")
		}
	}
	return outcomes
}

func (f *fakePublisher) ids() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.confirmed...)
}

func TestLifeCycle(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t)
	supervisetest.Stress(t, func(t *testing.T) supervise.Service {
		t.Helper()
		fake := &fakePublisher{decide: func(int, []broker.Message) broker.Status { return broker.Confirmed }}
		return New(Config{}, st, fake, telemetry.Discard(), nil)
	})
}

// Upstream 6 and 7: many rows are published without waiting for a sweep, in
// the order of their commits, and nothing of them stays behind.
func TestCommittedIsPublishedInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	relay := b.relay(t, b.broker.Publisher(), Config{})
	var want []string
	for range 50 {
		messages := []Message{to("q"), to("q"), to("q")}
		for _, m := range messages {
			want = append(want, m.ID)
		}
		relay.Published(b.commit(t, messages...), messages)
	}
	testkit.Eventually(t, func() bool { return b.rows(t) == 0 }, 20*time.Second)
	require.Equal(t, want, b.drain(t, "q"))
}

// S13: nothing is published for a transaction that was rolled back.
func TestRolledBackIsNeverPublished(t *testing.T) {
	t.Parallel()
	b := setup(t)
	relay := b.relay(t, b.broker.Publisher(), quick)
	refused := errors.New("rolled back")
	require.ErrorIs(t, b.store.Tx(testkit.Context(t), "test", func(ctx context.Context, tx *store.Tx) error {
		_, err := Append(ctx, tx, []Message{to("q")})
		require.NoError(t, err)
		return refused
	}), refused)
	marker := to("q")
	relay.Published(b.commit(t, marker), []Message{marker})
	testkit.Eventually(t, func() bool { return b.rows(t) == 0 }, 20*time.Second)
	require.Equal(t, []string{marker.ID}, b.drain(t, "q"))
}

// S13: a row that nobody handed over is found by a sweep and published with
// the ids and bodies of its commit.
func TestSweepPublishesWhatWasLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	left := []Message{to("q"), to("q")}
	b.commit(t, left...)
	b.relay(t, b.broker.Publisher(), quick)
	testkit.Eventually(t, func() bool { return b.rows(t) == 0 }, 20*time.Second)
	require.Equal(t, []string{left[0].ID, left[1].ID}, b.drain(t, "q"))
}

// Upstream 4: what no queue takes is split off, told of, kept with its reason,
// and delivered with the same id when there is a queue; its neighbours are not
// published again.
func TestReturnedIsSplitOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	told := make(chan Message, 100)
	relay := b.relay(t, b.broker.Publisher(), Config{
		SweepInterval: 50 * time.Millisecond, SweepAge: 2 * time.Second, Returned: func(m Message) { told <- m },
	})
	messages := []Message{to("q"), to("late"), to("q")}
	first := b.commit(t, messages...)
	relay.Published(first, messages)
	select {
	case m := <-told:
		require.Equal(t, messages[1], m)
	case <-time.After(20 * time.Second):
		require.Fail(t, "nobody was told of the returned message")
	}
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, "select count(*) from outbox where id = $1", first) == 0
	}, 20*time.Second)
	require.Equal(t, 1, testkit.Count(t, b.store,
		"select count(*) from outbox where message_ids = array[$1] and attempts >= 1 and last_error <> ''", messages[1].ID))
	b.queue(t, "late")
	testkit.Eventually(t, func() bool { return b.rows(t) == 0 }, 20*time.Second)
	require.Equal(t, []string{messages[1].ID}, b.drain(t, "late"))
	require.Equal(t, []string{messages[0].ID, messages[2].ID}, b.drain(t, "q"))
}

// Rows that did not get out are repeated in the order of their commits, before
// what came after them.
func TestRepetitionKeepsTheOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fake := &fakePublisher{decide: func(call int, _ []broker.Message) broker.Status {
		if call < 3 {
			return broker.NotSent
		}
		return broker.Confirmed
	}}
	relay := New(Config{}, b.store, fake, testkit.Logger(t), nil)
	var want []string
	for range 5 {
		m := to("q")
		want = append(want, m.ID)
		relay.Published(b.commit(t, m), []Message{m})
	}
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	testkit.Eventually(t, func() bool { return b.rows(t) == 0 }, 20*time.Second)
	require.Equal(t, want, fake.ids())
}

// While the broker is away memory stays bounded and the table keeps the rest,
// which a sweep publishes afterwards.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	back := make(chan struct{})
	fake := &fakePublisher{decide: func(int, []broker.Message) broker.Status {
		<-back
		return broker.Confirmed
	}}
	cfg := quick
	cfg.MaxPending = 4
	relay := b.relay(t, fake, cfg)
	sent := make(map[string]bool)
	for range 20 {
		m := to("q")
		sent[m.ID] = true
		relay.Published(b.commit(t, m), []Message{m})
	}
	relay.mu.Lock()
	size, pending := relay.size, len(relay.pending)
	relay.mu.Unlock()
	require.LessOrEqual(t, size, 4)
	require.LessOrEqual(t, pending, 4)
	require.Equal(t, 20, b.rows(t))
	close(back)
	testkit.Eventually(t, func() bool { return b.rows(t) == 0 }, 20*time.Second)
	for _, id := range fake.ids() {
		delete(sent, id)
	}
	require.Empty(t, sent)
}

// Stop lets what is in flight be confirmed and publishes what is pending.
func TestStopFlushes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	relay := b.relay(t, b.broker.Publisher(), Config{})
	var want []string
	for range 30 {
		m := to("q")
		want = append(want, m.ID)
		relay.Published(b.commit(t, m), []Message{m})
	}
	relay.Stop()
	require.Zero(t, b.rows(t))
	require.Equal(t, want, b.drain(t, "q"), "nothing is published twice")
}

// S13 and upstream 7: a process killed at any point between its commit and the
// end of its row loses nothing, and what it repeats has the same ids.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	for point, published := range map[string]bool{
		"after-commit": false, "before-publish": false, "after-publish": true, "before-delete": true,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			child := exec.CommandContext(testkit.Context(t), os.Args[0]) //nolint:gosec // the test binary itself
			child.Env = append(os.Environ(), envPoint+"="+point, envDatabase+"="+b.database, envAMQP+"="+b.amqp)
			output, err := child.CombinedOutput()
			var ended *exec.ExitError
			require.ErrorAs(t, err, &ended)
			require.Equal(t, -1, ended.ExitCode(), "the child must die of its signal: %s", output)
			require.Equal(t, 1, b.rows(t), "what was committed and not settled is still there")
			before := b.drain(t, "q")
			if published {
				require.Len(t, before, len(crashMessages()))
			} else {
				require.Empty(t, before)
			}

			b.relay(t, b.broker.Publisher(), quick)
			testkit.Eventually(t, func() bool { return b.rows(t) == 0 }, 20*time.Second)
			after := b.drain(t, "q")
			require.Len(t, after, len(crashMessages()))
			for i, m := range crashMessages() {
				require.Equal(t, m.ID, after[i])
				if published {
					require.Equal(t, m.ID, before[i])
				}
			}
		})
	}
}
