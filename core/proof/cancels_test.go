package proof

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/triage"
)

// stop is a cancellation that was acknowledged.
type stop struct {
	triage.CancelResult

	at time.Time
}

// cancel stops one of those that were requested, whatever it is doing.
func (s *stage) cancel(id int64) []stop {
	s.t.Helper()
	plan, err := s.operator.PlanCancel(testkit.Context(s.t),
		triage.CancelOrder{IDs: []int64{id}, Reason: "to see what comes of it"})
	require.NoError(s.t, err)
	receipt, err := s.operator.Cancel(testkit.Context(s.t), plan)
	require.NoError(s.t, err)
	var stops []stop
	for _, result := range receipt.Executions {
		require.NotEqual(s.t, triage.CancelMissing, result.Outcome)
		stops = append(stops, stop{CancelResult: result, at: time.Now()})
	}
	return stops
}

// attempt is an execution as its row says, with the time of its last start as
// its action says; zero if it was never started.
type attempt struct {
	origin int64
	status attune.Status
	begun  time.Time
}

func (s *stage) attempts() map[int64]attempt {
	s.t.Helper()
	rows, err := s.store.Pool().Query(testkit.Context(s.t),
		`SELECT id, coalesce(original_execution, id), status FROM execution`)
	require.NoError(s.t, err)
	defer rows.Close()
	all := map[int64]attempt{}
	s.diary.mu.Lock()
	defer s.diary.mu.Unlock()
	for rows.Next() {
		var id int64
		var a attempt
		require.NoError(s.t, rows.Scan(&id, &a.origin, &a.status))
		require.LessOrEqual(s.t, len(s.diary.starts[id]), 1, "S2: the starts of execution %d", id)
		a.begun = s.diary.begun[id]
		all[id] = a
	}
	require.NoError(s.t, rows.Err())
	return all
}

// requireStopped asks of every cancellation that nothing which it was about was
// started after it had been acknowledged (S15). Only what ran already, and was
// asked to stop, may have been on its way to its action.
func (s *stage) requireStopped(stops []stop) {
	s.t.Helper()
	all := s.attempts()
	for _, st := range stops {
		acting := st.ID
		if st.Repetition != 0 {
			acting = st.Repetition
		}
		switch st.Outcome {
		case triage.CancelDone:
			require.Equal(s.t, attune.StatusCancelled, all[acting].status, "S8: execution %d was cancelled", acting)
		case triage.CancelAsked:
		default:
			continue
		}
		for id, a := range all {
			if a.origin == all[acting].origin && (id != acting || st.Outcome == triage.CancelDone) {
				require.False(s.t, a.begun.After(st.at), "S15: execution %d of %d was started after its cancel: %+v",
					id, a.origin, st)
			}
		}
	}
}

// S15 and F1: executions are cancelled wherever they are, some of them more than
// once, while replicas die between deciding and telling. A cancel that was
// acknowledged holds: what it was about is not started and not repeated by
// whoever comes next. Everything else runs as if nothing had happened.
func TestACancelHoldsWhoeverDies(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	testkit.Exec(t, s.store, `UPDATE policy SET threshold = 1`)
	s.diary.longest = 60 * time.Millisecond
	s.worker("w1")
	s.worker("w2")
	points, dice := crashpoint.Engine(), testkit.Dice(t)
	first, second := s.doomed(dice, points[dice.IntN(len(points))]), s.doomed(dice, points[dice.IntN(len(points))])
	var stops []stop
	acted := map[triage.CancelOutcome]int{}
	some := func() {
		recent := s.asked[max(0, len(s.asked)-60):]
		for range 2 {
			for _, st := range s.cancel(recent[dice.IntN(len(recent))]) {
				stops = append(stops, st)
				acted[st.Outcome]++
			}
		}
	}
	s.load(func() bool {
		some()
		return first.killed() && second.killed()
	})
	s.age()
	third := s.serve()
	s.load(func() bool {
		some()
		return acted[triage.CancelDone] >= 10
	})
	s.over()
	t.Logf("of %d cancels: %v", len(stops), acted)
	s.requireStopped(stops)
	for id, a := range s.attempts() {
		testkit.Eventually(t, func() bool { return len(s.told.of(id)) > 0 }, 5*time.Second,
			"S14: the end of execution %d is told", id)
		require.Equal(t, []string{string(a.status)}, s.told.of(id), "S14: what is told of execution %d", id)
	}
	require.Zero(t, third.stop(t))
}
