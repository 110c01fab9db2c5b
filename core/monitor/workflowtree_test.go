package monitor

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// A filter selects the same workflows as a check of every row.
func TestWorkflowsAreFilteredByTheDatabase(t *testing.T) {
	b := setup(t, nil)
	var ids []int64
	for i, s := range []lifecycle.Status{
		lifecycle.StatusRunning, lifecycle.StatusFailed, lifecycle.StatusRunning,
		lifecycle.StatusTimeout, lifecycle.StatusCompleted,
	} {
		state := &workflow.State{Status: lifecycle.StatusRunning, Paused: i == 2,
			Tasks: map[string]*workflow.TaskState{}}
		w := b.AddWorkflow(t, "shop.w"+strconv.Itoa(i), monitortest.Deliver, state, monitortest.Status(s),
			monitortest.Aged(time.Duration(50-10*i)*time.Minute))
		if s.Terminal() {
			testkit.Exec(t, b.Store,
				`update workflow_execution set open = false, error_message = 'task load: exit status 1' where id = $1`, w.ID)
		}
		ids = append(ids, w.Execution)
	}
	testkit.Exec(t, b.Store,
		`update workflow_execution set failed_tasks = '{load}', current_tasks = '{}' where execution = $1`, ids[1])
	testkit.Exec(t, b.Store, `update workflow_execution set current_tasks = '{fetch,wait}' where execution = $1`,
		ids[0])
	testkit.Exec(t, b.Store, `update workflow_execution set current_tasks = '{}' where execution = any($1)`,
		[]int64{ids[2], ids[3], ids[4]})
	testkit.Exec(t, b.Store, `update execution set parent = $1 where id = $2`, ids[0], ids[3])
	for name, c := range map[string]struct {
		f    WorkflowFilter
		want []int
	}{
		"match":              {WorkflowFilter{Match: []string{"^SHOP", "w[13]$"}}, []int{3, 1}},
		"unmatch":            {WorkflowFilter{Unmatch: []string{"w[13]$", "w0"}}, []int{2, 4}},
		"age":                {WorkflowFilter{MaxAge: 35 * time.Minute, MinAge: 15 * time.Minute}, []int{2, 3}},
		"error":              {WorkflowFilter{Errors: []string{"EXIT status"}}, []int{4, 3, 1}},
		"no error":           {WorkflowFilter{NotErrors: []string{"exit"}}, []int{2, 0}},
		"task":               {WorkflowFilter{Tasks: []string{"^fetch$", "wait"}}, []int{0}},
		"failed task":        {WorkflowFilter{Tasks: []string{"load"}}, []int{1}},
		"not task":           {WorkflowFilter{NotTasks: []string{"load|fetch"}}, []int{2, 4, 3}},
		"failed":             {WorkflowFilter{MinFailed: 1}, []int{1}},
		"none failed":        {WorkflowFilter{MaxFailed: new(int64(0))}, []int{2, 0, 4, 3}},
		"parent":             {WorkflowFilter{Parent: ids[0]}, []int{3}},
		"parented":           {WorkflowFilter{Parented: ParentedAny}, []int{3}},
		"ids":                {WorkflowFilter{IDs: []int64{ids[4], ids[0], 1 << 40}}, []int{0, 4}},
		"paused as a status": {WorkflowFilter{Statuses: []string{WorkflowPaused, "failed"}}, []int{2, 1}},
		"not paused":         {WorkflowFilter{NotPaused: true, Statuses: []string{"running", "timeout"}}, []int{0, 3}},
		"or": {WorkflowFilter{
			Tasks: []string{"fetch"},
			Or:    []WorkflowFilter{{Statuses: []string{"failed"}}, {IDs: []int64{ids[0]}}},
		}, []int{0, 1}},
		"or, a page each": {WorkflowFilter{
			Limit: 1, Tasks: []string{"fetch"},
			Or: []WorkflowFilter{{Statuses: []string{"failed", "timeout"}}},
		}, []int{0, 3}},
	} {
		x, err := b.WorkflowBoard(t.Context(), c.f, 0)
		require.NoError(t, err, name)
		var want, got []int64
		for _, i := range c.want {
			want = append(want, ids[i])
		}
		for _, w := range x.List {
			got = append(got, w.Execution)
		}
		require.Equal(t, want, got, name)
		require.Equal(t, c.f.Limit == 1, x.Next != 0, name)
	}
}
