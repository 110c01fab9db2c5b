package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
)

// TestWaitingExecutionsGoFirstByKeys moves one waiting execution and marked ones, and undoes it.
func TestWaitingExecutionsGoFirstByKeys(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	action := testkit.Action(t, st, "demo.sleep")
	state := testkit.State(t, st, action, 1, func(r *testkit.StateRow) { r.Queued, r.Paused = 3, true })
	var ids []int64
	for n := range 3 {
		ids = append(ids, testkit.Execution(t, st, action).ID)
		testkit.Exec(t, st, `insert into execution_admission_entry (state_id, execution_id, status, queue_order)
			values ($1, $2, 'queued', $3)`, state.ID, ids[n], n+1)
	}
	testkit.Exec(t, st, `update execution_admission_state set next_queue_order = 4`)
	line := func() (waiting []int64) {
		require.NoError(t, st.Pool().QueryRow(t.Context(), `
			select array_agg(execution_id order by lane desc, queue_order) from execution_admission_entry`).Scan(&waiting))
		return waiting
	}
	x := openTerminal(t, url, "--view", "executions")
	x.shows("demo.sleep")
	x.shows(" RW ")
	x.plans(act.FrontExecution, "Move 1 execution to the front") // the newest
	x.runs("Move 1 execution to the front")
	require.Equal(t, []int64{ids[2], ids[0], ids[1]}, line())
	x.asks(keymap.Undo, "Put back what audit 1 moved")
	x.runs("Put back what audit 1 moved")
	require.Equal(t, ids, line())
	x.plans(act.LaneExecution, fmt.Sprintf("lane execution %d", ids[2]))
	x.press("Enter")
	x.shows("Move 1 execution to the lane high")
	x.runs("Move 1 execution to the lane high")
	require.Equal(t, []int64{ids[2], ids[0], ids[1]}, line())
	x.marksTwo()
	x.plansMarked(act.LaneExecution, "lane 2 marked executions")
	x.press("Enter")
	x.shows("Move 2 executions to the lane high")
	x.runs("Move 2 executions to the lane high")
	require.Equal(t, []int64{ids[1], ids[2], ids[0]}, line())
	x.marksTwo()
	x.plansMarked(act.FrontExecution, "Move 2 executions to the front")
	x.runs("Move 2 executions to the front")
	require.Equal(t, []int64{ids[1], ids[2], ids[0]}, line())
}
