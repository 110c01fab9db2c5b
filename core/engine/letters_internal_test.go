package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/handover"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/testkit"
)

// shelf is a desk that remembers what comes back.
type shelf struct {
	settled []*deadletter.Letter
	givenUp map[int64]error
	refuses bool
}

func (s *shelf) Settle(_ context.Context, l *deadletter.Letter) { s.settled = append(s.settled, l) }

func (s *shelf) GiveUp(_ context.Context, l *deadletter.Letter, cause error) error {
	if s.refuses {
		return errors.New("away")
	}
	s.givenUp[l.Execution] = cause
	return nil
}

// buried is a letter about an execution that was handed to a worker, as a handler
// reads it from the broker.
func buried(t *testing.T, st *store.Store, action testkit.ActionRow, queue, worker int64) *deadletter.Letter {
	t.Helper()
	e := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) {
		e.Status, e.Worker, e.Attempt, e.AdmissionState = attune.StatusScheduled, &worker, 1, &queue
	})
	body, err := message.New(message.TypeExecutionRequested, message.Dispatch{ExecutionID: e.ID, WorkerID: worker, Attempt: 1}, time.Now(), "test").Encode()
	require.NoError(t, err)
	return deadletter.Read(&broker.Delivery{
		MessageID: fmt.Sprint(e.ID), RoutingKey: message.DispatchKey(worker), Exchange: message.ExchangeDeadLetter, Body: body,
		Headers: broker.Table{"x-death": []any{broker.Table{"reason": "expired", "queue": "q", "time": time.Now()}}},
	})
}

// A letter that no round can decide costs its neighbours nothing and is given to a
// person; it never becomes a letter again.
func TestALetterThatNoRoundCanDecideFailsAlone(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	h := newHot(nil, nil, handover.New(handover.Config{}, st, nobody{}, testkit.Logger(t), nil), course{}, testkit.Logger(t), nil)
	desk := &shelf{givenUp: map[int64]error{}}
	h.desk = desk
	w := testkit.Worker(t, st, "stranger")
	action := testkit.Action(t, st, "pk.do")
	queue := testkit.State(t, st, action, 9, func(s *testkit.StateRow) { s.Active = 3 }).ID
	testkit.Exec(t, st, `UPDATE worker_load SET assigned = 3 WHERE worker = $1`, w.ID)
	letters := []*deadletter.Letter{buried(t, st, action, queue, w.ID), buried(t, st, action, queue, w.ID), buried(t, st, action, queue, w.ID)}
	bad := letters[1].Execution
	testkit.Exec(t, st, fmt.Sprintf(`ALTER TABLE execution ADD CHECK (id <> %d OR status = 'scheduled')`, bad))
	newcomer := testkit.Execution(t, st, testkit.Action(t, st, "pk.new")).ID

	items := append(ofLetters(letters), item{execution: newcomer})
	require.Len(t, items, 4)
	items[1].attempts = maxAttempts - 1 // it has been tried
	require.NoError(t, h.round(testkit.Context(t), items, noErrands))
	require.Equal(t, attune.StatusScheduled, testkit.StatusOf(t, st, newcomer))
	require.Len(t, desk.settled, 2)
	require.Len(t, desk.givenUp, 1)
	require.Contains(t, desk.givenUp, bad)
	require.Equal(t, 2, testkit.Count(t, st, `SELECT count(*) FROM dead_letter WHERE decision = 'failed'`), "its row is written by a person's desk, not by a round")
	require.Equal(t, attune.StatusScheduled, testkit.StatusOf(t, st, bad))
	require.Empty(t, h.later.items)

	// While even that is refused, it stays in hand.
	desk.refuses = true
	require.NoError(t, h.round(testkit.Context(t), items[1:2], noErrands))
	require.Len(t, h.later.items, 1)
}

// A letter whose execution finds no room anywhere stays in hand, undecided, and
// its execution keeps its slot; when room comes it goes there.
func TestALetterWaitsForRoom(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	h := newHot(nil, nil, handover.New(handover.Config{}, st, nobody{}, testkit.Logger(t), nil), course{}, testkit.Logger(t), nil)
	desk := &shelf{givenUp: map[int64]error{}}
	h.desk = desk
	fences := func(w *testkit.WorkerRow) {
		w.Capabilities["attempt_fence"], w.Capabilities["max_concurrent_executions"], w.HeartbeatAge = true, 1, -time.Hour
	}
	old := testkit.Worker(t, st, "old", fences)
	other := testkit.Worker(t, st, "other", fences)
	testkit.Exec(t, st, `UPDATE worker SET cordoned = true WHERE id = $1`, old.ID)
	action := testkit.Action(t, st, "pk.do")
	queue := testkit.State(t, st, action, 9, func(s *testkit.StateRow) { s.Active = 1 }).ID
	testkit.Exec(t, st, `UPDATE worker_load SET assigned = CASE WHEN worker = $1 THEN 1 ELSE 3 END`, old.ID)
	letter := buried(t, st, action, queue, old.ID)

	for range 3 {
		require.NoError(t, h.round(testkit.Context(t), ofLetters([]*deadletter.Letter{letter}), noErrands))
	}
	require.True(t, letter.Open())
	require.Empty(t, desk.settled)
	require.Len(t, h.later.items, 3)
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM dead_letter`))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE attempt = 1 AND admission_state_id IS NOT NULL`))

	testkit.Exec(t, st, `UPDATE worker_load SET assigned = 0 WHERE worker = $1`, other.ID)
	require.NoError(t, h.round(testkit.Context(t), ofLetters([]*deadletter.Letter{letter}), noErrands))
	require.Len(t, desk.settled, 1)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM dead_letter WHERE decision = 'retried'`))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE worker = $1 AND attempt = 2`, other.ID))
}
