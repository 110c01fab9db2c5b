package proof

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// stop is an acknowledged cancel.
type stop struct {
	triage.CancelResult

	at time.Time
}

// cancel cancels a requested execution in any status.
func (s *stage) cancel(id int64) []stop {
	s.t.Helper()
	plan, err := s.operator.PlanCancel(testkit.Context(s.t),
		triage.CancelRequest{IDs: []int64{id}, Reason: "to see what comes of it"})
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

// attempt is an execution's row, with the time of its last start by its action; zero if it never started.
type attempt struct {
	origin int64
	status lifecycle.Status
	begun  time.Time
}

func (s *stage) attempts() map[int64]attempt {
	s.t.Helper()
	rows, err := s.store.Pool().Query(testkit.Context(s.t),
		`SELECT id, coalesce(original_execution, id), status FROM execution`)
	require.NoError(s.t, err)
	defer rows.Close()
	all := map[int64]attempt{}
	s.runLog.mu.Lock()
	defer s.runLog.mu.Unlock()
	for rows.Next() {
		var id int64
		var a attempt
		require.NoError(s.t, rows.Scan(&id, &a.origin, &a.status))
		require.LessOrEqual(s.t, len(s.runLog.starts[id]), 1, "S2: the starts of execution %d", id)
		a.begun = s.runLog.begun[id]
		all[id] = a
	}
	require.NoError(s.t, rows.Err())
	return all
}

// requireStopped checks that no cancelled execution or retry of it started after the acknowledgement of its cancel
// (S15), except running ones with a cancel request.
func (s *stage) requireStopped(stops []stop) {
	s.t.Helper()
	all := s.attempts()
	for _, st := range stops {
		acting := st.ID
		if st.Retry != 0 {
			acting = st.Retry
		}
		switch st.Outcome {
		case triage.CancelDone:
			require.Equal(s.t, lifecycle.StatusCancelled, all[acting].status, "S8: execution %d was cancelled", acting)
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

// S15 and F1: executions are cancelled in every status, some more than once, while replicas die between the
// decision and the message. An acknowledged cancel holds: no other replica starts or retries the execution.
// Everything else runs as without faults.
func TestACancelHoldsWhenReplicasDie(t *testing.T) {
	s := newStage(t)
	testkit.Exec(t, s.store, `UPDATE policy SET threshold = 1`)
	s.runLog.longest = 60 * time.Millisecond
	s.worker("w1")
	s.worker("w2")
	points, dice := crashpoint.Engine(), testkit.Dice(t)
	first, second := s.dyingReplica(dice, points[dice.IntN(len(points))]), s.dyingReplica(dice,
		points[dice.IntN(len(points))])
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
	s.requireReported(slices.Collect(maps.Keys(s.attempts()))...)
	require.Zero(t, third.stop(t))
}
