package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// shelf is a handler that records returned messages.
type shelf struct {
	settled []*deadletter.Message
	givenUp map[int64]error
	refuses bool
}

func (s *shelf) Settle(_ context.Context, l *deadletter.Message) { s.settled = append(s.settled, l) }

func (s *shelf) GiveUp(_ context.Context, l *deadletter.Message, cause error) error {
	if s.refuses {
		return errors.New("away")
	}
	s.givenUp[l.Execution] = cause
	return nil
}

func (s *shelf) Absent(_ context.Context, deadLetters []*deadletter.Message) ([]*deadletter.Message, error) {
	return deadLetters, nil
}

// scheduledDeadLetter is the dead letter of a dispatch of a scheduled execution, as a handler reads it
// from the broker.
func scheduledDeadLetter(t *testing.T, st *store.Store, action testkit.ActionRow, queue,
	worker int64,
) *deadletter.Message {
	t.Helper()
	e := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) {
		e.Status, e.Worker, e.Attempt, e.AdmissionState = lifecycle.StatusScheduled, &worker, 1, &queue
	})
	body, err := message.New(message.TypeExecutionRequested,
		message.Dispatch{ExecutionID: e.ID, WorkerID: worker, Attempt: 1}, time.Now(), "test").Encode()
	require.NoError(t, err)
	return deadletter.Read(&broker.Delivery{
		Properties: broker.Properties{MessageID: fmt.Sprint(e.ID), Headers: broker.Table{
			"x-death": []any{broker.Table{"reason": "expired", "queue": "q", "time": time.Now()}},
		}},
		RoutingKey: message.DispatchKey(worker),
		Exchange:   message.ExchangeDeadLetter,
		Body:       body,
	})
}

// A dead letter that no batch can decide does not delay the others and waits for an operator. It does
// not become a dead letter again.
func TestADeadLetterThatNoBatchCanDecideFailsAlone(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "fail one dead letter of many; core/deadletter has one that no batch can decide")
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	h := newHot(nil, nil, 1,
		scheduler.New(scheduler.Config{}, scheduler.Deps{Store: st, Relay: noRelay{}, Logger: testkit.Logger(t)}),
		stepConfig{}, testkit.Logger(t), nil).lanes[0]
	handler := &shelf{givenUp: map[int64]error{}}
	h.handler = handler
	w := testkit.Worker(t, st, "stranger")
	action := testkit.Action(t, st, "pk.do")
	queue := testkit.State(t, st, action, 9, func(s *testkit.StateRow) { s.Active = 3 }).ID
	testkit.Exec(t, st, `UPDATE worker_load SET assigned = 3 WHERE worker = $1`, w.ID)
	deadLetters := []*deadletter.Message{scheduledDeadLetter(t, st, action, queue, w.ID), scheduledDeadLetter(t, st,
		action, queue, w.ID), scheduledDeadLetter(t, st, action, queue, w.ID)}
	bad := deadLetters[1].Execution
	testkit.Exec(t, st, fmt.Sprintf(`ALTER TABLE execution ADD CHECK (id <> %d OR status = 'scheduled')`, bad))
	newcomer := testkit.Execution(t, st, testkit.Action(t, st, "pk.new")).ID

	items := append(deadLetterItems(deadLetters), item{execution: newcomer})
	require.Len(t, items, 4)
	items[1].attempts = maxAttempts - 1 // it has been tried
	require.NoError(t, h.runBatch(testkit.Context(t), items, noChores))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, st, newcomer))
	require.Len(t, handler.settled, 2)
	require.Len(t, handler.givenUp, 1)
	require.Contains(t, handler.givenUp, bad)
	require.Equal(t, 2, testkit.Count(t, st, `SELECT count(*) FROM dead_letter WHERE decision = 'failed'`),
		"its row is written by the handler for operators, not by a batch")
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, st, bad))
	require.Empty(t, h.later.items)

	// While even that is refused, it stays in hand.
	handler.refuses = true
	require.NoError(t, h.runBatch(testkit.Context(t), items[1:2], noChores))
	require.Len(t, h.later.items, 1)
}

// A dead letter whose execution fits no worker now stays in hand, undecided, and
// its execution keeps its slot; when room comes it goes there.
func TestADeadLetterWaitsForCapacity(t *testing.T) {
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	h := newHot(nil, nil, 1,
		scheduler.New(scheduler.Config{}, scheduler.Deps{Store: st, Relay: noRelay{}, Logger: testkit.Logger(t)}),
		stepConfig{}, testkit.Logger(t), nil).lanes[0]
	handler := &shelf{givenUp: map[int64]error{}}
	h.handler = handler
	fences := func(w *testkit.WorkerRow) {
		w.Capabilities["attempt_fence"], w.Capabilities["max_concurrent_executions"], w.HeartbeatAge = true, 1,
			-time.Hour
	}
	old := testkit.Worker(t, st, "old", fences)
	other := testkit.Worker(t, st, "other", fences)
	testkit.Exec(t, st, `UPDATE worker SET cordoned = true WHERE id = $1`, old.ID)
	action := testkit.Action(t, st, "pk.do")
	queue := testkit.State(t, st, action, 9, func(s *testkit.StateRow) { s.Active = 1 }).ID
	testkit.Exec(t, st, `UPDATE worker_load SET assigned = CASE WHEN worker = $1 THEN 1 ELSE 3 END`, old.ID)
	deadLetter := scheduledDeadLetter(t, st, action, queue, old.ID)

	for range 3 {
		require.NoError(t, h.runBatch(testkit.Context(t), deadLetterItems([]*deadletter.Message{deadLetter}), noChores))
	}
	require.True(t, deadLetter.Open())
	require.Empty(t, handler.settled)
	require.Len(t, h.later.items, 3)
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM dead_letter`))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution_holder WHERE attempt = 1`))

	testkit.Exec(t, st, `UPDATE worker_load SET assigned = 0 WHERE worker = $1`, other.ID)
	require.NoError(t, h.runBatch(testkit.Context(t), deadLetterItems([]*deadletter.Message{deadLetter}), noChores))
	require.Len(t, handler.settled, 1)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM dead_letter WHERE decision = 'retried'`))
	require.Equal(t, 1,
		testkit.Count(t, st, `SELECT count(*) FROM execution WHERE worker = $1 AND attempt = 2`, other.ID))
}

// The broker's clock may be wrong, so nothing depends on its time of a death. The timeout counts from
// when the dead letter was first read, by the database's clock, or from the dispatch if it is
// redelivered.
func TestNoClockOfTheBrokerKeepsASlot(t *testing.T) {
	s := newCrowded(t)
	read := func(died time.Time, again bool) *deadletter.Message {
		deadLetter := scheduledDeadLetter(t, s.store, s.action, s.queue, s.old)
		delivery := *deadLetter.Delivery()
		delivery.Redelivered = again
		delivery.Headers = broker.Table{"x-death": []any{broker.Table{"reason": "expired", "queue": "q", "time": died}}}
		return deadletter.Read(&delivery)
	}
	age := func(deadLetter *deadletter.Message, by time.Duration) {
		testkit.Exec(t, s.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
		testkit.Exec(t, s.store, `UPDATE execution SET updated = now() - $2::interval WHERE id = $1`,
			deadLetter.Execution, by)
		testkit.Exec(t, s.store, `ALTER TABLE execution ENABLE TRIGGER USER`)
	}
	yearAhead, hourBehind, again := read(time.Now().AddDate(1, 0, 0), false), read(time.Now().Add(-time.Hour),
		false), read(time.Now(), true)
	deadLetters := []*deadletter.Message{yearAhead, hourBehind, again}
	for _, deadLetter := range deadLetters {
		age(deadLetter, 4*time.Minute)
	}
	s.batch(t, deadLetters)
	for _, deadLetter := range deadLetters {
		require.True(t, deadLetter.Open(), "first read, or dispatched a moment ago")
	}
	for _, deadLetter := range deadLetters {
		age(deadLetter, 6*time.Minute)
	}
	s.batch(t, deadLetters)
	require.Equal(t, []bool{true, true, false}, []bool{yearAhead.Open(), hourBehind.Open(), again.Open()},
		"those were first seen just now")
	require.Equal(t, 1, testkit.Count(t, s.store, `SELECT count(*) FROM dead_letter WHERE decision = 'failed'`))
}

// Dead letters for which no worker has room do not take the whole prefetch: a few wait
// in hand, further ones are decided at once, and others pass them.
func TestOnlyAFewDeadLettersWaitForCapacity(t *testing.T) {
	s := newCrowded(t)
	var deadLetters []*deadletter.Message
	for range deadletter.Prefetch {
		deadLetters = append(deadLetters, scheduledDeadLetter(t, s.store, s.action, s.queue, s.old))
	}
	require.Less(t, deadletter.MaxOpen+deadletter.MaxBatch, deadletter.Prefetch)
	for some := range slices.Chunk(deadLetters, deadletter.MaxBatch) {
		s.batch(t, some)
	}
	open := 0
	for _, deadLetter := range deadLetters {
		if deadLetter.Open() {
			open++
		}
	}
	require.Equal(t, deadletter.MaxOpen, open)
	require.Len(t, s.hot.later.items, deadletter.MaxOpen)
	require.Len(t, s.handler.settled, deadletter.Prefetch-deadletter.MaxOpen)
	require.Equal(t, deadletter.Prefetch-deadletter.MaxOpen,
		testkit.Count(t, s.store, `SELECT count(*) FROM dead_letter WHERE decision = 'failed'`))
	require.Equal(t, deadletter.MaxOpen,
		testkit.Count(t, s.store, `SELECT count(*) FROM execution WHERE status = 'scheduled'`))
}

// crowded is an engine whose only other worker has no room.
type crowded struct {
	store      *store.Store
	hot        *lane
	handler    *shelf
	action     testkit.ActionRow
	queue, old int64
}

func newCrowded(t *testing.T) *crowded {
	t.Helper()
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	s := &crowded{store: st, handler: &shelf{givenUp: map[int64]error{}}, action: testkit.Action(t, st, "pk.do")}
	s.hot = newHot(nil, nil, 1,
		scheduler.New(scheduler.Config{}, scheduler.Deps{Store: st, Relay: noRelay{}, Logger: testkit.Logger(t)}),
		stepConfig{}, testkit.Logger(t), nil).lanes[0]
	s.hot.handler = s.handler
	fences := func(w *testkit.WorkerRow) {
		w.Capabilities["attempt_fence"], w.Capabilities["max_concurrent_executions"], w.HeartbeatAge = true, 1,
			-time.Hour
	}
	s.old = testkit.Worker(t, st, "old", fences).ID
	testkit.Worker(t, st, "other", fences)
	testkit.Exec(t, st, `UPDATE worker SET cordoned = true WHERE id = $1`, s.old)
	testkit.Exec(t, st, `UPDATE worker_load SET assigned = 100`)
	s.queue = testkit.State(t, st, s.action, 100, func(s *testkit.StateRow) { s.Active = 100 }).ID
	return s
}

// batch decides dead letters as they come.
func (s *crowded) batch(t *testing.T, deadLetters []*deadletter.Message) {
	t.Helper()
	require.NoError(t, s.hot.runBatch(testkit.Context(t), deadLetterItems(deadLetters), noChores))
}
