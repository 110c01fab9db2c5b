package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// The tree explains why each task waits, and has the transitions of the definition.
func TestAWorkflowSaysWhyItWaits(t *testing.T) {
	b := setup(t)
	w := b.AddWorkflow(t, "shop.deliver", monitortest.Deliver, &workflow.State{
		Status: lifecycle.StatusRunning,
		Tasks: map[string]*workflow.TaskState{
			"reserve": {Status: workflow.TaskCompleted, Total: 1, Next: 1, Succeeded: 1},
			"pay":     {Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1},
			"label":   {Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1},
			"ship":    {Status: workflow.TaskWaiting, Arrived: []string{"reserve"}},
			"tell":    {Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1},
		},
	})
	testkit.Exec(t, b.Store, `insert into engine_replica (id, host, version, pid, state, last_seen) values (gen_random_uuid(), 'h', '1', 1, 'connected', now())`)
	lost := testkit.Worker(t, b.Store, "lost", func(r *testkit.WorkerRow) { r.HeartbeatAge = time.Hour })
	b.AddChild(t, w, "reserve", -1, lifecycle.StatusCompleted)
	pay := b.AddChild(t, w, "pay", -1, lifecycle.StatusRunning)
	b.AddChild(t, w, "label", -1, lifecycle.StatusRunning, func(r *testkit.ExecutionRow) { r.Worker = &lost.ID })
	b.AddChild(t, w, "tell", -1, lifecycle.StatusRequested)
	testkit.Exec(t, b.Store, `insert into inquiry (execution, prompt) values ($1, 'How?')`, pay)

	d, err := b.WorkflowTree(t.Context(), monitor.WorkflowAsk{Execution: w.Execution})
	require.NoError(t, err)
	why := strings.Join(d.Why, "\n")
	require.Regexp(t, `(?m)^pay waits for the answer to inquiry \d+\.$`, why)
	require.Regexp(t, `(?m)^label runs on lost, for .*\. The worker's last heartbeat was 1h`, why)
	require.Regexp(t, `(?m)^ship waits at its join: it has 1 of 2 \(reserve\), may come: pay, label\.$`, why)
	require.Regexp(t, `(?m)^tell was requested .* ago and is in no queue yet`, why)
	require.NotContains(t, why, NoEngine)
	require.Equal(t, "allow_finish", d.Cancellation)
	tasks := map[string]monitor.WorkflowTask{}
	for _, task := range d.List {
		tasks[task.Name] = task
	}
	require.Equal(t, []string{"pay", "label"}, tasks["ship"].Before)
	require.EqualValues(t, 2, tasks["ship"].Join)
	require.True(t, tasks["ship"].List)
	require.Equal(t, []string{"pay", "label", "tell"}, tasks["reserve"].After)
	require.Equal(t, "up to 3 times", tasks["label"].Retry)
	require.False(t, tasks["pay"].Children[0].Nested)
	require.False(t, tasks["pay"].Children[0].Drawn)

	testkit.Exec(t, b.Store,
		`update workflow_execution set paused = true, pause_reason = 'new prices (by ada)' where id = $1`, w.ID)
	d, err = b.WorkflowTree(t.Context(), monitor.WorkflowAsk{Execution: w.Execution})
	require.NoError(t, err)
	require.Contains(t, d.Why[0], "The workflow is paused: new prices (by ada).")

	testkit.Exec(t, b.Store,
		`update workflow_execution set open = false, status = 'failed', error_message = 'pay failed' where id = $1`,
		w.ID)
	testkit.Exec(t, b.Store, `update execution set status = 'failed' where id = $1`, w.Execution)
	d, err = b.WorkflowTree(t.Context(), monitor.WorkflowAsk{Execution: w.Execution})
	require.NoError(t, err)
	require.Regexp(t, `^It ended as failed.*: pay failed\.$`, d.Why[0])
}

// A child in a queue has the reason of its queue, and a nested workflow is marked as one.
func TestAWorkflowNamesItsOwnHoldersAndWorkflowsWithin(t *testing.T) {
	b := setup(t)
	content := "version: 1\ntasks: [{name: each, action: a.b, with_items: '{{ parameters.list }}', concurrency: 2}, {name: inner, action: a.c}]"
	outer := b.AddWorkflow(t, "shop.outer", content,
		&workflow.State{Status: lifecycle.StatusRunning, Tasks: map[string]*workflow.TaskState{
			"each":  {Status: workflow.TaskRunning, Total: 40, Next: 2, Open: 2},
			"inner": {Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1},
		}})
	holds := b.AddChild(t, outer, "each", 0, lifecycle.StatusRunning)
	waits := b.AddChild(t, outer, "each", 1, lifecycle.StatusRequested)
	inner := b.AddWorkflow(t, "shop.inner", monitortest.Deliver,
		&workflow.State{Status: lifecycle.StatusRunning, Tasks: map[string]*workflow.TaskState{}})
	testkit.Exec(t, b.Store,
		`insert into workflow_task_dispatch (workflow_execution, task_name, execution_id) values ($1, 'inner', $2)`,
		outer.ID, inner.Execution)
	action := testkit.Action(t, b.Store, "pk.each")
	state := testkit.State(t, b.Store, action, 1, func(r *testkit.StateRow) { r.Active, r.Queued = 1, 1 })
	testkit.Exec(t, b.Store, `update execution set admitted_at = now() where id = $1`, holds)
	testkit.Hold(t, b.Store, holds, state.ID)
	testkit.Exec(t, b.Store, `insert into execution_admission_entry (state_id, execution_id, status, lane, queue_order, enqueued_at) values ($1, $2, 'queued', 0, 1, now())`, state.ID, waits)

	d, err := b.WorkflowTree(t.Context(), monitor.WorkflowAsk{Execution: outer.Execution})
	require.NoError(t, err)
	why := strings.Join(d.Why, "\n")
	require.Regexp(t, `(?m)^each\[1\] waits in queue pk\.each: place 1 of 1, .* 1 of 1 slot is taken .*each\[0\] of this workflow holds a slot of it\.$`, why)
	require.Contains(t, why, "each has 2 of 40 items begun: 2 may run at once.")
	require.Regexp(t, `inner is a workflow itself, \d+, which is running\.`, why)
	require.True(t, d.List[1].Children[0].Nested)
}

// Of one task more children are read than of the others, up to a bound.
func TestMoreChildrenOfOneTask(t *testing.T) {
	b := setup(t)
	w := b.AddWorkflow(t, "shop.many", "version: 1\ntasks: [{name: each, action: a.b, with_items: '{{ parameters.list }}'}, {name: also, action: a.b, with_items: '{{ parameters.list }}'}]",
		&workflow.State{Status: lifecycle.StatusRunning, Tasks: map[string]*workflow.TaskState{}})
	first := b.AddChild(t, w, "each", 0, lifecycle.StatusCompleted)
	testkit.Exec(t, b.Store, `with e as (insert into execution (action, action_ref, status, parent) select x.action, x.action_ref, 'completed', $2 from execution x, generate_series(1, 1199) where x.id = $3 returning id)
		insert into workflow_task_dispatch (workflow_execution, task_name, task_index, execution_id, settled)
		select $1, case when row_number() over () <= 1150 then 'each' else 'also' end, row_number() over (), id, true from e`, w.ID, w.Execution, first)
	for _, step := range []struct{ ask, want int }{{0, 10}, {100, 100}, {5000, monitor.MaxTaskChildren}} {
		d, err := b.WorkflowTree(t.Context(),
			monitor.WorkflowAsk{Execution: w.Execution, Task: "each", Children: step.ask})
		require.NoError(t, err)
		require.Len(t, d.List[0].Children, step.want)
		require.EqualValues(t, 1151, d.List[0].Made)
		require.Len(t, d.List[1].Children, 10)
		require.True(t, d.List[1].Children[0].Drawn)
	}
}
