package alerting

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// The board has those on top that have not ended, whatever came after them.
func TestABoardHasOpenWorkflowsFirst(t *testing.T) {
	b := setup(t, nil)
	var ids []int64
	for i, s := range []lifecycle.Status{
		lifecycle.StatusRunning, lifecycle.StatusFailed, lifecycle.StatusRunning,
		lifecycle.StatusCompleted,
	} {
		state := &workflow.State{Status: lifecycle.StatusRunning, Paused: i == 2,
			Tasks: map[string]*workflow.TaskState{}}
		w := b.AddWorkflow(t, "shop.w"+strconv.Itoa(i), monitortest.Deliver, state, monitortest.Status(s),
			monitortest.Aged(time.Duration(10-i)*time.Minute))
		if s.Terminal() {
			testkit.Exec(t, b.Store, `update workflow_execution set open = false where id = $1`, w.ID)
		}
		ids = append(ids, w.Execution)
	}
	board := func(filter monitor.WorkflowFilter) []int64 {
		x, err := b.WorkflowBoard(t.Context(), filter, 0)
		require.NoError(t, err)
		found := []int64{}
		for _, w := range x.List {
			found = append(found, w.Execution)
		}
		require.LessOrEqual(t, x.Open, len(found))
		require.Equal(t, filter.Limit == 1, x.MoreOpen && x.Next != 0)
		return found
	}
	require.Equal(t, []int64{ids[2], ids[0], ids[3], ids[1]}, board(monitor.WorkflowFilter{}))
	require.Equal(t, []int64{ids[2], ids[3]}, board(monitor.WorkflowFilter{Limit: 1}))
	require.Equal(t, []int64{ids[2]}, board(monitor.WorkflowFilter{Paused: true}))
	require.Equal(t, []int64{ids[2], ids[0], ids[1]},
		board(monitor.WorkflowFilter{Statuses: []string{"running", "failed"}, Action: "*shop*"}))
	require.Equal(t, []int64{ids[2], ids[1]}, board(monitor.WorkflowFilter{Trouble: true}))
	require.Empty(t, board(monitor.WorkflowFilter{Action: "other.*"}))
	_, err := b.WorkflowBoard(t.Context(),
		monitor.WorkflowFilter{Or: []monitor.WorkflowFilter{{Statuses: []string{"done"}}}}, 0)
	require.ErrorIs(t, err, monitor.ErrFilter)
	for _, id := range []int64{ids[3], ids[1]} { // the ended ones are read page by page, the open ones with each
		x, err := b.WorkflowBoard(t.Context(), monitor.WorkflowFilter{}, id)
		require.NoError(t, err)
		require.Equal(t, id, x.From)
		require.Equal(t, 2, x.Open)
		require.Equal(t, id == ids[3], len(x.List) == 3)
		require.Zero(t, x.Next)
	}
	record(t, b.Store)
	o, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.Equal(t, monitor.Count{Value: 1}, o.Flows.Paused)
	require.Equal(t, monitor.Count{Value: 1}, o.Flows.Failed)
}

// Open inquiries and paused workflows are found whatever the rules of the alerts say.
func TestQuestionsAndWorkflowsNeedAttention(t *testing.T) {
	t.Parallel()
	o := &Overview{Reading: monitor.Reading{At: time.Now()}, Flows: &monitor.Flows{
		Inquiries: monitor.Count{Value: 3}, Oldest: 2 * time.Hour, Paused: monitor.Count{Value: 1},
		Failed: monitor.Count{Value: 500, AtLeast: true}, Window: monitor.RecentWindow,
	}}
	texts := func() (list []string) {
		for _, f := range Attention(o, nil) {
			if f.Rule == "" {
				list = append(list, string(f.Level)+" "+f.Text+" / "+f.Target+" "+f.Filter)
			}
		}
		return list
	}
	require.Equal(t, []string{
		"warning at least 500 workflows have failed / workflows status:failed,timeout,abandoned",
		"info 3 questions wait for people / inquiries status:pending",
		"info 1 workflow is paused / workflows status:paused",
	}, texts())
	o.Flows = &monitor.Flows{Inquiries: monitor.Count{Value: 1}, Late: monitor.Count{Value: 1}}
	require.Equal(t, []string{"warning 1 question waits for a person / inquiries status:pending"}, texts())
	o.Flows = &monitor.Flows{}
	require.Empty(t, texts())
}
