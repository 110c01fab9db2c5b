package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

type noRelay struct{}

func (noRelay) Published(int64, []outbox.Message) {}

// A queue that cannot be filled fails alone: neither the one request that came
// with it nor the other queues pay for it.
func TestAQueueThatCannotBeFilledFailsAlone(t *testing.T) {
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	testkit.Worker(t, st, "w1")
	h := newHot(nil, nil, 1,
		scheduler.New(scheduler.Config{}, scheduler.Deps{Store: st, Relay: noRelay{}, Logger: testkit.Logger(t)}),
		stepConfig{}, testkit.Logger(t), nil).lanes[0]
	ctx := testkit.Context(t)
	var queues, queued []int64
	for _, ref := range []string{"pk.bad", "pk.good"} {
		action := testkit.Action(t, st, ref)
		waiting := testkit.Execution(t, st, action).ID
		state := testkit.State(t, st, action, 1, func(s *testkit.StateRow) { s.Queued = 1 })
		testkit.Exec(t, st, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order) VALUES ($1, $2, 'queued', 1)`, state.ID, waiting)
		testkit.Exec(t, st, `UPDATE execution_admission_state SET next_queue_order = 2 WHERE id = $1`, state.ID)
		queues, queued = append(queues, state.ID), append(queued, waiting)
	}
	testkit.Exec(t, st,
		fmt.Sprintf(`ALTER TABLE execution_admission_state ADD CHECK (id <> %d OR active_count = 0)`, queues[0]))
	newcomer := testkit.Execution(t, st, testkit.Action(t, st, "pk.new")).ID

	require.NoError(t, h.runBatch(ctx, []item{{execution: newcomer}}, chores{queues: queues}))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, st, newcomer))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, st, queued[1]))
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, st, queued[0]))
}

// A server that cannot write is awaited however long it takes; its messages
// are not to blame.
func TestAServerThatCannotWriteIsAwaited(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"53100", "53200", "58030", "25006"} {
		require.Equal(t, batch.Again, classify(fmt.Errorf("batch: %w", &pgconn.PgError{Code: code}), 100), code)
	}
	require.Equal(t, batch.Suspect, classify(errors.New("something else"), 1))
}

// One place decides what an error means for the messages. An outage of the database never loses
// one (upstream 2). A batch retries a lost race a few times, and waits for a lock of another
// transaction without a limit. Only a message that keeps failing alone is poison.
func TestWhatAnErrorMeans(t *testing.T) {
	t.Parallel()
	pg := func(code string) error { return fmt.Errorf("batch: %w", &pgconn.PgError{Code: code}) }
	for _, c := range []struct {
		err   error
		tries int
		want  batch.Verdict
	}{
		{pg("57P01"), 1000, batch.Again},
		{pg("08006"), 1000, batch.Again},
		{&store.OutcomeUnknownError{Err: errors.New("cut")}, 1000, batch.Again},
		{pg("40001"), 1, batch.Again},
		{pg("40P01"), maxRaces + 1, batch.Suspect},
		{pg(store.ExpectationCode), maxRefusals, batch.Again},
		{pg(store.ExpectationCode), maxRefusals + 1, batch.Suspect},
		{pg("23505"), 1, batch.Again},
		{pg("22P02"), 1, batch.Suspect},
		{pg("42703"), 1000, batch.Again},
		{pg("42501"), 1000, batch.Again},
		{pg("0A000"), 1000, batch.Again},
		{pg("55P03"), 1000, batch.Blocked},
		{context.DeadlineExceeded, 1000, batch.Blocked},
	} {
		require.Equal(t, c.want, classify(c.err, c.tries), "%v after %d", c.err, c.tries)
	}
}

// A delivery that waits is tried again after pauses that grow to a bound.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	last, total := time.Duration(0), time.Duration(0)
	for attempts := 1; attempts < 1000; attempts++ {
		pause := laterPause(attempts)
		require.GreaterOrEqual(t, pause, last)
		require.LessOrEqual(t, pause, 15*time.Second)
		if last = pause; attempts < maxAttempts {
			total += pause
		}
	}
	require.Greater(t, total, 10*time.Second, "a row that is committed late is waited for")
}

// Rules that change while batches run, as they do while packs are loaded, are
// waited for: no request is dead-lettered for them.
func TestRulesThatKeepChangingAreWaitedFor(t *testing.T) {
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	testkit.Worker(t, st, "w1")
	action := testkit.Action(t, st, "pk.a")
	request := testkit.Execution(t, st, action).ID
	sched := scheduler.New(scheduler.Config{}, scheduler.Deps{Store: st, Relay: noRelay{}, Logger: testkit.Logger(t)})
	// Every read of the rules finds changed ones.
	testkit.Exec(t, st, `ALTER TABLE admission_epoch RENAME TO held`)
	testkit.Exec(t, st, `CREATE SEQUENCE turns`)
	testkit.Exec(t, st, `CREATE VIEW admission_epoch AS SELECT true AS one, nextval('turns') AS epoch`)
	_, err := sched.Run(testkit.Context(t), scheduler.NewRequestStep([]int64{request}))
	require.ErrorIs(t, err, scheduler.ErrConflict)
	require.Equal(t, batch.Again, classify(err, maxRefusals+1))
	require.Equal(t, batch.Suspect, classify(err, maxChanges+1))
	testkit.Exec(t, st, `DROP VIEW admission_epoch`)
	testkit.Exec(t, st, `ALTER TABLE held RENAME TO admission_epoch`)
	result, err := sched.Run(testkit.Context(t), scheduler.NewRequestStep([]int64{request}))
	require.NoError(t, err)
	require.Equal(t, 1, result.Granted)
}

// Upstream 13: a message about an unfinished claim puts it back, whether a sweep has found it or
// not, and the next batch serves it. A young claim is left to the batch that made it.
func TestAMessagePutsAStaleClaimBack(t *testing.T) {
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	testkit.Worker(t, st, "w1")
	action := testkit.Action(t, st, "pk.a")
	claim := func(age time.Duration) int64 {
		return testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Status, e.Age = lifecycle.StatusScheduling, age }).ID
	}
	stale, young := claim(time.Minute), claim(time.Second)
	sched := scheduler.New(scheduler.Config{}, scheduler.Deps{Store: st, Relay: noRelay{}, Logger: testkit.Logger(t)})
	h := newHot(nil, nil, 1, sched, stepConfig{}, testkit.Logger(t), nil).lanes[0]
	h.reclaim = recovery.New(recovery.Config{}, st, nil, testkit.Logger(t), nil).Reclaim
	ctx := testkit.Context(t)
	require.NoError(t, h.runBatch(ctx, []item{{execution: stale}, {execution: young}}, chores{}))
	require.Equal(t, []int64{stale}, h.reclaimed)
	require.NoError(t, h.runBatch(ctx, []item{{execution: h.reclaimed[0]}}, chores{}))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, st, stale))
	require.Equal(t, lifecycle.StatusScheduling, testkit.StatusOf(t, st, young))
}

// Chores of any mixture are bisected until each stands alone: one that cannot be
// done does not keep the loop from anything else.
func TestChoresAreBisectedUntilEachStandsAlone(t *testing.T) {
	t.Parallel()
	e := chores{
		queues: []int64{1, 2, 3}, expired: []int64{4}, misplaced: []int64{5, 6},
		lost: []scheduler.LostHolder{{Note: 7}}, unstarted: []scheduler.Unstarted{{Execution: 8}, {Execution: 9}},
	}
	alone := 0
	var part func(chores)
	part = func(e chores) {
		if e.size() <= 1 {
			alone += e.size()
			return
		}
		first, second := e.bisect()
		require.Equal(t, e.size(), first.size()+second.size())
		require.Positive(t, first.size())
		require.Positive(t, second.size())
		part(first)
		part(second)
	}
	part(e)
	require.Equal(t, 9, alone)
}

// deliver gives every item a delivery of a real queue.
func deliver(t *testing.T, items []item) {
	t.Helper()
	ctx := testkit.Context(t)
	wire := broker.New(broker.Config{URL: testkit.VHost(t), ConnectionName: "items"}, testkit.Logger(t), nil)
	require.NoError(t, wire.Start(ctx))
	t.Cleanup(wire.Stop)
	require.NoError(t, wire.DeclareExecutor(ctx))
	messages := make([]broker.Message, len(items))
	for i := range items {
		messages[i] = broker.Message{
			ID: fmt.Sprint(i), RoutingKey: message.QueueExecutionRequests, Type: "T",
			Body: []byte(`{}`),
		}
	}
	wire.Publisher().Publish(ctx, messages)
	consumer := wire.Consume(broker.ConsumerConfig{Queue: message.QueueExecutionRequests, Prefetch: len(items)})
	require.NoError(t, consumer.Start(ctx))
	t.Cleanup(consumer.Stop)
	for next := 0; next < len(items); {
		batch := <-consumer.Batches()
		for i := range batch.Deliveries {
			items[next].delivery = &batch.Deliveries[i]
			next++
		}
	}
}

// A locked row delays its own deliveries only. The batch processes the others and postpones the
// affected ones, which succeed after the lock is released. It tries them together, not one by one.
func TestLockedRowsDelayTheirOwnMessagesOnly(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url, func(c *store.Config) { c.HotPath = true })
	testkit.Worker(t, st, "w1")
	metrics := NewMetrics(prometheus.NewRegistry())
	h := newHot(nil, nil, 1,
		scheduler.New(scheduler.Config{}, scheduler.Deps{Store: st, Relay: noRelay{}, Logger: testkit.Logger(t)}),
		stepConfig{}, testkit.Logger(t), metrics).lanes[0]
	ctx := testkit.Context(t)
	held, free := testkit.Action(t, st, "pk.held"), testkit.Action(t, st, "pk.free")
	state := testkit.State(t, st, held, 5)
	var items []item
	for i := range 8 {
		action := held
		if i%4 == 3 {
			action = free
		}
		items = append(items, item{execution: testkit.Execution(t, st, action).ID})
	}
	deliver(t, items)
	other := testkit.Begin(t, testkit.OpenStore(t, url))
	_, err := other.Exec(ctx, `SELECT FROM execution_admission_state WHERE id = $1 FOR UPDATE`, state.ID)
	require.NoError(t, err)

	require.NoError(t, h.runBatch(scheduler.BriefLocks(ctx), items, noChores))
	require.Len(t, h.later.items, 6)
	require.Equal(t, 2,
		testkit.Count(t, st, `SELECT count(*) FROM execution WHERE action_ref = 'pk.free' AND status = 'scheduled'`))
	again := make([]item, 0, 6)
	for _, w := range h.later.items {
		require.True(t, w.blocked)
		again = append(again, w.item)
	}
	h.later.items = nil
	failures := testutil.ToFloat64(metrics.failures)
	require.NoError(t, h.runBatch(scheduler.BriefLocks(ctx), again, noChores))
	require.InDelta(t, failures+1, testutil.ToFloat64(metrics.failures), 0.1, "one batch for all of them")
	require.Len(t, h.later.items, 6)
	require.NoError(t, other.Rollback(ctx))
	require.NoError(t, h.runBatch(scheduler.BriefLocks(ctx), again, noChores))
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE status = 'requested'`))
}

// A message's action and parameters are a hint for the batch. Sweeps, and messages without an action, give none.
func TestMessagesHintAtTheirActions(t *testing.T) {
	t.Parallel()
	read := func(ended bool, payload string) scheduler.Hint {
		kind := message.TypeExecutionRequested
		if ended {
			kind = message.TypeExecutionCompleted
		}
		it := item{ended: ended, delivery: &broker.Delivery{
			Body: []byte(`{"message_id":"7d444840-9dc0-11d1-b245-5ffdce74fad2",
			"message_type":"` + kind + `","version":"1.0","timestamp":"2026-01-01T00:00:00Z","headers":{},"payload":` + payload + `}`),
		}}
		require.NoError(t, it.decode(nil), payload)
		return it.hint
	}
	require.Equal(t, scheduler.Hint{ActionID: 3, ActionRef: "pk.a", Config: []byte(`{"a":1}`)},
		read(false, `{"execution_id":1,"action_id":3,"action_ref":"pk.a","config":{"a":1}}`))
	require.Equal(t, scheduler.Hint{ActionRef: "pk.a"},
		read(false, `{"execution_id":1,"action_id":null,"action_ref":"pk.a","config":null}`))
	require.Equal(t, scheduler.Hint{}, read(false, `{"execution_id":1}`))
	require.Equal(t, scheduler.Hint{ActionRef: "pk.a"},
		read(false, `{"execution_id":1,"action_ref":"pk.a","config":{"a":"`+strings.Repeat("x", maxHintedConfig)+`"}}`),
		"large parameters are not kept")
	require.Equal(t, scheduler.Hint{ActionID: 3, ActionRef: "pk.a"},
		read(true, `{"execution_id":1,"action_id":3,"action_ref":"pk.a","status":"completed","attempt":9,"worker_id":9,"completed_at":"2026-01-01T00:00:00Z"}`))
	require.Equal(t, scheduler.Hint{},
		read(true, `{"execution_id":1,"status":"completed","completed_at":"2026-01-01T00:00:00Z"}`))

	todo := collect([]item{
		{execution: 1},
		{execution: 2, delivery: &broker.Delivery{}, hint: scheduler.Hint{ActionID: 5}},
	}, noChores)
	require.Equal(t, map[int64]scheduler.Hint{2: {ActionID: 5}}, todo.said)
}
