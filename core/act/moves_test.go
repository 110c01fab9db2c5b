package act_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/lab/testkit"
)

// Marked executions are moved by one act with one audit, and its undo puts them back.
func TestMarkedExecutionsGoFirst(t *testing.T) {
	b := setup(t)
	_, ids := b.waiting("pk.front", 5)
	line := func() (waiting []int64) {
		require.NoError(t, b.store.Pool().QueryRow(t.Context(), `
			select array_agg(execution_id order by lane desc, queue_order) from execution_admission_entry`).Scan(&waiting))
		return waiting
	}
	before := line()
	last := len(before) - 1
	targets := []act.Target{{ID: before[last]}, {ID: before[last-1]}, {ID: 1 << 40}}
	plan := b.planMany(act.FrontExecution, targets)
	require.Equal(t, "Move 2 executions to the front of their lane", plan.Title)
	require.Contains(t, words(plan.Lines), "3 chosen: 2 wait in a queue, 1 do not.")
	receipt := b.run(plan)
	require.Equal(t, "2 of 3 moved to the front of their lane, 1 not waiting.", receipt.Text)
	require.Len(t, receipt.Audits, 1)
	require.Equal(t, before[last-1:], line()[:2])

	lane, err := b.Plan(testkit.Context(t), act.Request{
		Kind: act.LaneExecution, Target: act.Target{ID: before[0]}, Values: map[string]string{act.FieldLane: "high"},
	})
	require.NoError(t, err)
	require.Equal(t, "Move 1 execution to the lane high", lane.Title)
	b.run(lane)
	require.Equal(t, before[0], line()[0])
	undo, err := b.Plan(testkit.Context(t), *receipt.Undo)
	require.NoError(t, err)
	require.Equal(t, "2 of 2 moved back to their old places.", b.run(undo).Text)
	require.Equal(t, before, line())
	none := b.plan(act.FrontExecution, act.Target{ID: ids[0] + 1<<40})
	require.Equal(t, "none of them waits in a queue", none.Nothing)
}
