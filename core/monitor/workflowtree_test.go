package monitor

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/workflow"
)

// The tree says in words what keeps each task, and takes from the definition what
// leads where.
func TestAWorkflowSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	w := b.workflow(t, "shop.deliver", deliver, &workflow.State{
		Status: attune.StatusRunning,
		Tasks: map[string]*workflow.TaskState{
			"reserve": {Status: workflow.TaskCompleted, Total: 1, Next: 1, Succeeded: 1},
			"pay":     {Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1},
			"label":   {Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1},
			"ship":    {Status: workflow.TaskWaiting, Arrived: []string{"reserve"}},
			"tell":    {Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1},
		},
	})
	testkit.Exec(t, b.store, `insert into engine_replica (id, host, version, pid, state, last_seen) values (gen_random_uuid(), 'h', '1', 1, 'connected', now())`)
	lost := testkit.Worker(t, b.store, "lost", func(r *testkit.WorkerRow) { r.HeartbeatAge = time.Hour })
	b.child(t, w, "reserve", -1, attune.StatusCompleted)
	pay := b.child(t, w, "pay", -1, attune.StatusRunning)
	b.child(t, w, "label", -1, attune.StatusRunning, func(r *testkit.ExecutionRow) { r.Worker = &lost.ID })
	b.child(t, w, "tell", -1, attune.StatusRequested)
	testkit.Exec(t, b.store, `insert into inquiry (execution, prompt) values ($1, 'How?')`, pay)

	d, err := b.WorkflowTree(t.Context(), WorkflowAsk{Execution: w.execution})
	require.NoError(t, err)
	why := strings.Join(d.Why, "\n")
	require.Regexp(t, `(?m)^pay waits for the answer to inquiry \d+\.$`, why)
	require.Regexp(t, `(?m)^label runs on lost, for .*\. The worker's last heartbeat was 1h`, why)
	require.Regexp(t, `(?m)^ship waits at its join: it has 1 of 2 \(reserve\), may come: pay, label\.$`, why)
	require.Regexp(t, `(?m)^tell was requested .* ago and stands in no queue yet`, why)
	require.NotContains(t, why, NoEngine)
	require.Equal(t, "allow_finish", d.Cancellation)
	tasks := map[string]WorkflowTask{}
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

	testkit.Exec(t, b.store, `update workflow_execution set paused = true, pause_reason = 'new prices (by ada)' where id = $1`, w.id)
	d, err = b.WorkflowTree(t.Context(), WorkflowAsk{Execution: w.execution})
	require.NoError(t, err)
	require.Contains(t, d.Why[0], "The workflow is paused: new prices (by ada).")

	testkit.Exec(t, b.store, `update workflow_execution set open = false, status = 'failed', error_message = 'pay failed' where id = $1`, w.id)
	testkit.Exec(t, b.store, `update execution set status = 'failed' where id = $1`, w.execution)
	d, err = b.WorkflowTree(t.Context(), WorkflowAsk{Execution: w.execution})
	require.NoError(t, err)
	require.Regexp(t, `^It ended as failed.*: pay failed\.$`, d.Why[0])
}

// A child that waits in a queue tells what its queue waits for, and a workflow within
// is known as one.
func TestAWorkflowNamesItsOwnHoldersAndWorkflowsWithin(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	content := "version: 1\ntasks: [{name: each, action: a.b, with_items: '{{ parameters.list }}', concurrency: 2}, {name: inner, action: a.c}]"
	outer := b.workflow(t, "shop.outer", content, &workflow.State{Status: attune.StatusRunning, Tasks: map[string]*workflow.TaskState{
		"each":  {Status: workflow.TaskRunning, Total: 40, Next: 2, Open: 2},
		"inner": {Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1},
	}})
	holds := b.child(t, outer, "each", 0, attune.StatusRunning)
	waits := b.child(t, outer, "each", 1, attune.StatusRequested)
	inner := b.workflow(t, "shop.inner", deliver, &workflow.State{Status: attune.StatusRunning, Tasks: map[string]*workflow.TaskState{}})
	testkit.Exec(t, b.store, `insert into workflow_task_dispatch (workflow_execution, task_name, execution_id) values ($1, 'inner', $2)`, outer.id, inner.execution)
	action := testkit.Action(t, b.store, "pk.each")
	state := testkit.State(t, b.store, action, 1, func(r *testkit.StateRow) { r.Active, r.Queued = 1, 1 })
	testkit.Exec(t, b.store, `update execution set admitted_at = now() where id = $1`, holds)
	testkit.Hold(t, b.store, holds, state.ID)
	testkit.Exec(t, b.store, `insert into execution_admission_entry (state_id, execution_id, status, lane, queue_order, enqueued_at) values ($1, $2, 'queued', 0, 1, now())`, state.ID, waits)

	d, err := b.WorkflowTree(t.Context(), WorkflowAsk{Execution: outer.execution})
	require.NoError(t, err)
	why := strings.Join(d.Why, "\n")
	require.Regexp(t, `(?m)^each\[1\] waits in queue pk\.each: place 1 of 1, .* 1 of 1 slot is taken .*each\[0\] of this workflow holds a slot of it\.$`, why)
	require.Contains(t, why, "each has 2 of 40 items begun: 2 may run at once.")
	require.Regexp(t, `inner is a workflow itself, \d+, which is running\.`, why)
	require.True(t, d.List[1].Children[0].Nested)
}

// Of one task more children are read than of the others, up to a bound.
func TestMoreChildrenOfOneTask(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	w := b.workflow(t, "shop.many", "version: 1\ntasks: [{name: each, action: a.b, with_items: '{{ parameters.list }}'}, {name: also, action: a.b, with_items: '{{ parameters.list }}'}]",
		&workflow.State{Status: attune.StatusRunning, Tasks: map[string]*workflow.TaskState{}})
	first := b.child(t, w, "each", 0, attune.StatusCompleted)
	testkit.Exec(t, b.store, `with e as (insert into execution (action, action_ref, status, parent) select x.action, x.action_ref, 'completed', $2 from execution x, generate_series(1, 1199) where x.id = $3 returning id)
		insert into workflow_task_dispatch (workflow_execution, task_name, task_index, execution_id, settled)
		select $1, case when row_number() over () <= 1150 then 'each' else 'also' end, row_number() over (), id, true from e`, w.id, w.execution, first)
	for _, step := range []struct{ ask, want int }{{0, 10}, {100, 100}, {5000, MaxTaskChildren}} {
		d, err := b.WorkflowTree(t.Context(), WorkflowAsk{Execution: w.execution, Task: "each", Children: step.ask})
		require.NoError(t, err)
		require.Len(t, d.List[0].Children, step.want)
		require.EqualValues(t, 1151, d.List[0].Made)
		require.Len(t, d.List[1].Children, 10)
		require.True(t, d.List[1].Children[0].Drawn)
	}
}

// The board has those on top that have not ended, whatever came after them.
func TestABoardHasOpenWorkflowsFirst(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var ids []int64
	for i, s := range []attune.Status{attune.StatusRunning, attune.StatusFailed, attune.StatusRunning, attune.StatusCompleted} {
		state := &workflow.State{Status: attune.StatusRunning, Paused: i == 2, Tasks: map[string]*workflow.TaskState{}}
		w := b.workflow(t, "shop.w"+strconv.Itoa(i), deliver, state, status(s), aged(time.Duration(10-i)*time.Minute))
		if s.Terminal() {
			testkit.Exec(t, b.store, `update workflow_execution set open = false where id = $1`, w.id)
		}
		ids = append(ids, w.execution)
	}
	board := func(filter WorkflowFilter) []int64 {
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
	require.Equal(t, []int64{ids[2], ids[0], ids[3], ids[1]}, board(WorkflowFilter{}))
	require.Equal(t, []int64{ids[2], ids[3]}, board(WorkflowFilter{Limit: 1}))
	require.Equal(t, []int64{ids[2]}, board(WorkflowFilter{Paused: true}))
	require.Equal(t, []int64{ids[2], ids[0], ids[1]}, board(WorkflowFilter{Statuses: []string{"running", "failed"}, Action: "*shop*"}))
	require.Equal(t, []int64{ids[2], ids[1]}, board(WorkflowFilter{Trouble: true}))
	require.Empty(t, board(WorkflowFilter{Action: "other.*"}))
	_, err := b.WorkflowBoard(t.Context(), WorkflowFilter{Or: []WorkflowFilter{{Statuses: []string{"done"}}}}, 0)
	require.ErrorIs(t, err, ErrFilter)
	for _, id := range []int64{ids[3], ids[1]} { // the ended ones are read page by page, the open ones with each
		x, err := b.WorkflowBoard(t.Context(), WorkflowFilter{}, id)
		require.NoError(t, err)
		require.Equal(t, id, x.From)
		require.Equal(t, 2, x.Open)
		require.Equal(t, id == ids[3], len(x.List) == 3)
		require.Zero(t, x.Next)
	}
	o, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.Equal(t, Count{Value: 1}, o.Flows.Paused)
	require.Equal(t, Count{Value: 1}, o.Flows.Failed)
}

// A filter says of each workflow what its row says.
func TestWorkflowsAreFilteredByTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var ids []int64
	for i, s := range []attune.Status{attune.StatusRunning, attune.StatusFailed, attune.StatusRunning, attune.StatusTimeout, attune.StatusCompleted} {
		state := &workflow.State{Status: attune.StatusRunning, Paused: i == 2, Tasks: map[string]*workflow.TaskState{}}
		w := b.workflow(t, "shop.w"+strconv.Itoa(i), deliver, state, status(s), aged(time.Duration(50-10*i)*time.Minute))
		if s.Terminal() {
			testkit.Exec(t, b.store, `update workflow_execution set open = false, error_message = 'task load: exit status 1' where id = $1`, w.id)
		}
		ids = append(ids, w.execution)
	}
	testkit.Exec(t, b.store, `update workflow_execution set failed_tasks = '{load}', current_tasks = '{}' where execution = $1`, ids[1])
	testkit.Exec(t, b.store, `update workflow_execution set current_tasks = '{fetch,wait}' where execution = $1`, ids[0])
	testkit.Exec(t, b.store, `update workflow_execution set current_tasks = '{}' where execution = any($1)`, []int64{ids[2], ids[3], ids[4]})
	testkit.Exec(t, b.store, `update execution set parent = $1 where id = $2`, ids[0], ids[3])
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
		"or":                 {WorkflowFilter{Tasks: []string{"fetch"}, Or: []WorkflowFilter{{Statuses: []string{"failed"}}, {IDs: []int64{ids[0]}}}}, []int{0, 1}},
		"or, a page each":    {WorkflowFilter{Limit: 1, Tasks: []string{"fetch"}, Or: []WorkflowFilter{{Statuses: []string{"failed", "timeout"}}}}, []int{0, 3}},
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

// What waits for somebody is found whatever the rules of the alerts say.
func TestQuestionsAndWorkflowsNeedAttention(t *testing.T) {
	t.Parallel()
	o := &Overview{Reading: Reading{At: time.Now()}, Flows: &Flows{
		Inquiries: Count{Value: 3}, Oldest: 2 * time.Hour, Paused: Count{Value: 1}, Failed: Count{Value: flowBound, AtLeast: true}, Window: RecentWindow,
	}}
	texts := func() (list []string) {
		for _, f := range Attention(o, nil, nil) {
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
	o.Flows = &Flows{Inquiries: Count{Value: 1}, Late: Count{Value: 1}}
	require.Equal(t, []string{"warning 1 question waits for a person / inquiries status:pending"}, texts())
	o.Flows = &Flows{}
	require.Empty(t, texts())
}
