package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// blocked is a publisher whose broker takes nothing before it is released.
type blocked struct {
	flaky
	released chan struct{}
}

func (b *blocked) Publish(ctx context.Context, messages []broker.Message) []broker.Outcome {
	select {
	case <-b.released:
		return b.flaky.Publish(ctx, messages)
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	outcomes := make([]broker.Outcome, len(messages))
	for i := range outcomes {
		outcomes[i] = broker.Outcome{Status: broker.NotSent, Err: broker.ErrBlocked}
	}
	return outcomes
}

func owned(t *testing.T, database string) *store.Store {
	t.Helper()
	return testkit.OpenStore(t, database, func(c *store.Config) { c.Relay = uuid.New() })
}

// sweeps waits until the relay has swept so many times more.
func sweeps(t *testing.T, relay *Relay, n int) {
	t.Helper()
	for range n {
		last := relay.Sweep().LastTick()
		testkit.Eventually(t, func() bool { return relay.Sweep().LastTick().After(last) }, 20*time.Second)
	}
}

// A replica whose broker is blocked keeps its rows, however old they are.
func TestNoOtherReplicaPublishesTheRowsOfABlockedOwner(t *testing.T) {
	database := testkit.Database(t)
	st := owned(t, database)
	one, two := &blocked{released: make(chan struct{})}, &flaky{}
	slow := func(c *Config) { c.Lease = 30 * time.Second }
	owner := startRelay(t, st, one, slow)
	const rows, size = 200, 100
	for i := range rows {
		var messages []Message
		for j := range size {
			messages = append(messages,
				Message{ID: fmt.Sprint(i*size + j), RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
		}
		commit(t, st, owner, messages...)
	}
	require.Equal(t, rows*size, owner.Pending())
	testkit.Exec(t, st, `UPDATE outbox SET created = created - interval '1 minute'`)
	other := startRelay(t, owned(t, database), two, slow)
	sweeps(t, other, 5)
	sweeps(t, owner, 5)
	close(one.released)
	testkit.Eventually(t, empty(t, st), 30*time.Second)
	require.Zero(t, two.count())
	require.Equal(t, rows*size, one.count(), "each once")
}

// A replica without a connection to the broker gives its rows up.
func TestAReplicaWithoutABrokerGivesItsRowsUp(t *testing.T) {
	database := testkit.Database(t)
	st := owned(t, database)
	one, two := &flaky{away: true}, &flaky{}
	owner := startRelay(t, st, one)
	startRelay(t, owned(t, database), two)
	for i := range 5 {
		commit(t, st, owner, Message{ID: fmt.Sprint(i), RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	}
	testkit.Eventually(t, empty(t, st), 30*time.Second)
	require.Equal(t, 5, two.count())
}

// A stopped replica ends its lease, and another one publishes its remaining rows at once.
func TestAStoppedReplicaLeavesItsRows(t *testing.T) {
	database := testkit.Database(t)
	st := owned(t, database)
	cfg := Config{Lease: time.Hour, FlushTimeout: 10 * time.Millisecond}
	owner := New(cfg, st, &flaky{away: true}, testkit.Logger(t), nil)
	require.NoError(t, owner.Start(testkit.Context(t)))
	commit(t, st, owner, Message{ID: "left", RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	owner.Stop()
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM outbox_owner`))
	two := &flaky{}
	startRelay(t, owned(t, database), two, func(c *Config) { c.Lease = time.Hour })
	testkit.Eventually(t, empty(t, st), 20*time.Second)
	require.Equal(t, []string{"left"}, two.sent)
}

// A replica that stood still for longer than its lease publishes only the batch that
// was in flight once more.
func TestAResumedReplicaRepeatsOnlyItsBatchInFlight(t *testing.T) {
	const rows = 10
	database := testkit.Database(t)
	st := testkit.OpenStore(t, database)
	url, name, read := queue(t)
	raw, err := json.Marshal(childConfig{
		Database: database, AMQP: url, Queue: name, Point: "before-publish", Stops: true, Rows: rows,
	})
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(raw))
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testkit.Eventually(t, func() bool { return stopped(cmd.Process.Pid) }, 30*time.Second)
	startRelay(t, owned(t, database), dial(t, url).Publisher())
	counts := map[string]int{}
	for _, d := range read(2 * rows) {
		counts[d.MessageId]++
	}
	require.Len(t, counts, 2*rows, "each once")
	testkit.Eventually(t, empty(t, st), 10*time.Second)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	for _, d := range read(3) {
		counts[d.MessageId]++
	}
	require.Equal(t, 1, counts["resumed"], "rows that went to the other replica were dropped before it")
	require.Equal(t, []int{2, 2}, []int{counts["first"], counts["second"]})
}

// stopped reads the state of a process.
func stopped(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(rest, "T")
}

// Claimed rows are published in the order of their commits, whatever the order of the answer.
func TestClaimedRowsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	relay := New(Config{}, nil, nil, testkit.Logger(t), nil)
	claimed := []store.ClaimOutboxRow{{ID: 3}, {ID: 1}, {ID: 2}}
	require.True(t, relay.takeOver(testkit.Context(t), claimed))
	var ids []int64
	for _, each := range relay.take(&relay.own) {
		ids = append(ids, each.id)
	}
	require.Equal(t, []int64{1, 2, 3}, ids)
}

// After a lapsed lease a relay neither publishes nor settles rows that another replica has claimed.
func TestRowsOfAnotherReplicaAreLeftAlone(t *testing.T) {
	database := testkit.Database(t)
	st := owned(t, database)
	undeliverable := 0
	relay := New(Config{Undeliverable: func(context.Context, *store.Tx, []Message) (map[string]bool, error) {
		undeliverable++
		return nil, nil
	}}, st, &flaky{}, testkit.Logger(t), nil)
	lost := Message{ID: "lost", RoutingKey: "k", Type: "T", Body: []byte(`{}`)}
	commit(t, st, relay, lost)
	commit(t, st, relay, Message{ID: "kept", RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	testkit.Exec(t, st, `UPDATE outbox SET owner = gen_random_uuid(), claimed_at = now() WHERE message_ids = '{lost}'`)
	rows := relay.take(&relay.own)
	relay.split(testkit.Context(t), rows[0], rows[0].messages, rows[0].messages, broker.ErrReturned)
	require.Zero(t, undeliverable)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM outbox WHERE message_ids = '{lost}' AND last_error IS NULL`))

	relay.again(&relay.own, rows)
	relay.lease.lapsed = true
	require.NoError(t, relay.confirmOwned(testkit.Context(t)))
	require.Len(t, relay.own.pending, 1)
	require.Equal(t, "kept", relay.own.pending[0].messages[0].ID)
}

// Without the database a relay stops publishing before its lease ends: another replica may claim its rows then.
func TestARelayPublishesOnlyWithinItsLease(t *testing.T) {
	relay := New(Config{Lease: time.Hour}, owned(t, testkit.Database(t)), &flaky{}, testkit.Logger(t), nil)
	away, end := context.WithCancel(testkit.Context(t))
	end()
	relay.lease.renewed = time.Now()
	require.True(t, relay.entitled(away))
	relay.lease.renewed = time.Now().Add(-50 * time.Minute)
	require.False(t, relay.entitled(away))
	require.True(t, relay.entitled(testkit.Context(t)), "renewed")
}

// Published rows that could not be deleted are deleted by a sweep.
func TestPublishedRowsAreDeletedLater(t *testing.T) {
	st := testkit.Store(t)
	relay := New(Config{}, st, &flaky{}, testkit.Logger(t), nil)
	commit(t, st, relay, Message{ID: "m", RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	require.True(t, relay.publish(testkit.Context(t), &relay.own, relay.take(&relay.own)))
	ended, end := context.WithCancel(testkit.Context(t))
	end()
	require.Error(t, relay.deleteDone(ended))
	require.NoError(t, relay.sweepOnce(testkit.Context(t)))
	require.True(t, empty(t, st)())
	require.Empty(t, relay.held)
}

// A replica whose broker is away claims one row at a time, as a test.
func TestAReplicaWithoutABrokerClaimsOneRow(t *testing.T) {
	st := testkit.Store(t)
	relay := New(Config{SweepAge: time.Millisecond}, st, &flaky{}, testkit.Logger(t), nil)
	for i := range 5 {
		commit(t, st, nil, Message{ID: fmt.Sprint(i), RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	}
	testkit.Exec(t, st, `UPDATE outbox SET created = created - interval '1 minute'`)
	relay.away.Store(true)
	for range 2 {
		require.NoError(t, relay.sweepOnce(testkit.Context(t)))
		require.Equal(t, 1, relay.Pending())
	}
}
