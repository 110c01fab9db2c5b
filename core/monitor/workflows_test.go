package monitor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

func TestWorkflowSaysWhereItsTasksAre(t *testing.T) {
	b := setup(t, nil)
	w := b.AddWorkflow(t, "shop.deliver", monitortest.Deliver, &workflow.State{
		Status: lifecycle.StatusRunning,
		Tasks: map[string]*workflow.TaskState{
			"reserve": {Status: workflow.TaskCompleted, Total: 1, Next: 1, Succeeded: 1},
			"pay":     {Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1},
			"label":   {Status: workflow.TaskCompleted, Total: 1, Next: 1, Succeeded: 1},
			"ship":    {Status: workflow.TaskWaiting, Arrived: []string{"label"}},
			"tell":    {Status: workflow.TaskSkipped, Why: "reserve has not led to it"},
		},
	})
	reserve := b.AddChild(t, w, "reserve", -1, lifecycle.StatusCompleted)
	pay := b.AddChild(t, w, "pay", -1, lifecycle.StatusRunning)
	b.AddChild(t, w, "label", -1, lifecycle.StatusCompleted, func(r *testkit.ExecutionRow) { r.RetryCount = 2 })
	testkit.Exec(t, b.Store, `insert into inquiry (execution, prompt) values ($1, 'How?')`, pay)
	testkit.Exec(t, b.Store, `insert into workflow_log (workflow_execution, version, lines) values ($1, 1, '{"begins"}'), ($1, 2, '{}'), ($1, 3, '{"a", "b"}')`, w.ID)

	d, err := b.Workflow(t.Context(), w.Execution)
	require.NoError(t, err)
	require.Equal(t, "shop.deliver", d.ActionRef)
	require.Equal(t, WorkflowCounts{Total: 5, Completed: 2, Skipped: 1}, d.Tasks)
	require.Equal(t, []string{"pay"}, d.Current)
	require.Nil(t, d.Within)
	require.JSONEq(t, `{"order": 7, "token": {"$attune_secret": true, "redacted": true}}`, string(d.Variables))
	tasks := map[string]WorkflowTask{}
	var order []string
	for _, task := range d.List {
		tasks[task.Name] = task
		order = append(order, task.Name)
	}
	require.Equal(t, []string{"reserve", "pay", "label", "ship", "tell"}, order)
	require.Equal(t, reserve, tasks["reserve"].Children[0].Execution)
	require.NotNil(t, tasks["reserve"].FinishedAt)
	require.Equal(t, "running", tasks["pay"].Says)
	require.Regexp(t, `^waits for the answer to inquiry \d+$`, tasks["pay"].Why)
	require.EqualValues(t, 3, tasks["label"].Attempts)
	require.EqualValues(t, 3, tasks["label"].Children[0].Attempt)
	require.Equal(t, "waiting 1/2", tasks["ship"].Says)
	require.Equal(t, "has 1 of 2 (label), may come: pay", tasks["ship"].Why)
	require.Equal(t, "reserve has not led to it", tasks["tell"].Why)
	require.Len(t, d.Log, 2, "entries without a text are omitted")
	require.Equal(t, []string{"begins"}, d.Log[0].Lines)
	require.EqualValues(t, 3, d.Log[1].Version)

	drawing, ok := d.Draw(80, false)
	require.True(t, ok)
	require.Contains(t, drawing, "◌ ship")
	require.Contains(t, drawing, "waiting 1/2")
	dot, ok := d.DOT()
	require.True(t, ok)
	require.Contains(t, dot, `"pay" [label="pay\ncore.ask\nrunning", fillcolor=lightblue]`)

	_, err = json.Marshal(d)
	require.NoError(t, err)
}

// A list with many items shows the failed and running ones.
// A task whose inquiry failed has the reason, and one in a paused workflow names that workflow.
func TestWorkflowNamesUnreadPartsAndPausedParents(t *testing.T) {
	b := setup(t, nil)
	w := b.AddWorkflow(t, "shop.deliver", monitortest.Deliver, &workflow.State{
		Status: lifecycle.StatusRunning,
		Tasks:  map[string]*workflow.TaskState{"pay": {Status: workflow.TaskFailed, Total: 1, Next: 1, Failed: 1}},
	})
	pay := b.AddChild(t, w, "pay", -1, lifecycle.StatusCompleted)
	testkit.Exec(t, b.Store,
		`insert into inquiry_fault (execution, reason) values ($1, 'the question is malformed: prompt must be a text')`, pay)
	outer := b.AddWorkflow(t, "shop.outer", monitortest.Deliver,
		&workflow.State{Status: lifecycle.StatusRunning, Paused: true})
	testkit.Exec(t, b.Store, `update execution set parent = $1, workflow_task = '{"task_name": "inner"}' where id = $2`,
		outer.Execution, w.Execution)

	d, err := b.Workflow(t.Context(), w.Execution)
	require.NoError(t, err)
	for _, task := range d.List {
		if task.Name == "pay" {
			require.Equal(t, "the question is malformed: prompt must be a text", task.Why)
		}
	}
	require.False(t, d.Paused)
	require.Equal(t, outer.Execution, d.PausedAbove)
	page, err := b.Workflows(t.Context(), WorkflowFilter{Paused: true}, 0)
	require.NoError(t, err)
	require.Len(t, page.List, 2, "it is listed as one that starts nothing")
}

func TestWorkflowShowsTheRelevantItemsOfAList(t *testing.T) {
	b := setup(t, nil)
	w := b.AddWorkflow(t, "shop.many",
		"version: 1\ntasks: [{name: each, action: a.b, with_items: '{{ parameters.list }}', concurrency: 2}]",
		&workflow.State{
			Status: lifecycle.StatusRunning,
			Tasks: map[string]*workflow.TaskState{
				"each": {Status: workflow.TaskRunning, Total: 1000, Next: 33, Open: 2, Succeeded: 30, Failed: 1},
			},
		})
	for i := range 30 {
		b.AddChild(t, w, "each", i, lifecycle.StatusCompleted)
	}
	b.AddChild(t, w, "each", 30, lifecycle.StatusFailed,
		func(r *testkit.ExecutionRow) { r.Result = map[string]any{"error": "out of paper"} })
	due := b.AddChild(t, w, "each", 31, lifecycle.StatusRequested, func(r *testkit.ExecutionRow) { r.RetryCount = 1 })
	b.AddChild(t, w, "each", 32, lifecycle.StatusRunning)
	failed := b.AddChild(t, w, "other", -1, lifecycle.StatusFailed)
	testkit.Exec(t, b.Store, `insert into execution_retry (execution, failed, reason, due, waiting) values ($1, $2, 'action_failure', now() + interval '1 hour', true)`,
		due, failed)

	d, err := b.Workflow(t.Context(), w.Execution)
	require.NoError(t, err)
	require.Len(t, d.List, 2, "a task that the definition does not know is shown as well")
	each := d.List[0]
	require.Equal(t, "running 31/1000 (1 failed)", each.Says)
	require.Equal(t, &WorkflowItems{Total: 1000, Made: 33, Succeeded: 30, Failed: 1}, each.Items)
	require.EqualValues(t, 33, each.Made)
	require.Len(t, each.Children, maxTaskChildren)
	var indexes []int64
	for _, child := range each.Children {
		indexes = append(indexes, *child.Index)
	}
	require.Equal(t, []int64{31, 32, 30, 0, 1, 2, 3, 4, 5, 6}, indexes)
	require.NotNil(t, each.Children[0].Due)
	require.Equal(t, "out of paper", each.Children[2].Error)
	require.Equal(t, "other", d.List[1].Name)
}

// Executions that outlive their workflow have their present state.
func TestWorkflowThatHasEndedBeforeItsTasks(t *testing.T) {
	b := setup(t, nil)
	running := func() *workflow.TaskState {
		return &workflow.TaskState{Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1}
	}
	w := b.AddWorkflow(t, "shop.deliver", monitortest.Deliver,
		&workflow.State{Status: lifecycle.StatusCancelled, Tasks: map[string]*workflow.TaskState{
			"reserve": running(), "pay": running(), "label": running(), "tell": running(),
			"ship": {Status: workflow.TaskRunning, Total: 2, Next: 1, Open: 1},
		}})
	for task, s := range map[string]lifecycle.Status{
		"reserve": lifecycle.StatusCompleted, "pay": lifecycle.StatusCancelled, "label": lifecycle.StatusTimeout,
		"tell": lifecycle.StatusRunning,
	} {
		b.AddChild(t, w, task, -1, s)
	}
	b.AddChild(t, w, "ship", 0, lifecycle.StatusCompleted)
	statuses := func() map[string]string {
		d, err := b.Workflow(t.Context(), w.Execution)
		require.NoError(t, err)
		found := map[string]string{}
		for _, task := range d.List {
			found[task.Name] = task.Says
		}
		return found
	}
	require.Equal(t, "running", statuses()["pay"], "an engine has still to decide")
	testkit.Exec(t, b.Store, `update workflow_execution set open = false, status = 'cancelled' where id = $1`, w.ID)
	require.Equal(t, map[string]string{
		"reserve": "completed", "pay": "cancelled", "label": "timeout", "tell": "running", "ship": "cancelled 1/2",
	}, statuses())
}

// An execution that is no workflow is refused with its kind.
func TestAnExecutionThatIsNoWorkflowIsNamed(t *testing.T) {
	b := setup(t, nil)
	w := b.AddWorkflow(t, "shop.deliver", monitortest.Deliver,
		&workflow.State{Status: lifecycle.StatusRunning, Tasks: map[string]*workflow.TaskState{}})
	child := b.AddChild(t, w, "pay", -1, lifecycle.StatusRunning)
	alone := testkit.Execution(t, b.Store, testkit.Action(t, b.Store, "shop.alone")).ID
	waiting := testkit.Action(t, b.Store, "shop.waiting")
	testkit.Exec(t, b.Store, `update action set workflow_def = (select max(id) from workflow_definition) where id = $1`,
		waiting.ID)
	later := testkit.Execution(t, b.Store, waiting).ID
	for id, want := range map[int64]string{
		child: fmt.Sprintf("is no workflow but task pay of workflow %d", w.Execution),
		alone: "(shop.alone) is no workflow",
		later: "(shop.waiting) is a workflow that was not begun: it is requested",
	} {
		_, err := b.Workflow(t.Context(), id)
		var none *NoWorkflowError
		require.ErrorAs(t, err, &none)
		require.ErrorContains(t, err, want)
	}
	_, err := b.Workflow(t.Context(), 1<<40)
	require.ErrorIs(t, err, ErrNotFound)
}

// A workflow of another engine is read from the published columns.
func TestWorkflowOfAnotherEngine(t *testing.T) {
	b := setup(t, nil)
	w := b.AddWorkflow(t, "shop.deliver", monitortest.Deliver,
		&workflow.State{Status: lifecycle.StatusRunning, Tasks: map[string]*workflow.TaskState{}})
	testkit.Exec(t, b.Store, `update workflow_execution set state = null, task_graph = task_graph - 'workflow', completed_tasks = '{reserve}', current_tasks = '{pay}' where id = $1`, w.ID)
	d, err := b.Workflow(t.Context(), w.Execution)
	require.NoError(t, err)
	drawing, ok := d.Draw(0, true)
	require.True(t, ok)
	require.Regexp(t, `\+ reserve +completed`, drawing)
	require.Regexp(t, `\* pay +running`, drawing)

	testkit.Exec(t, b.Store, `update workflow_execution set task_graph = '{"nodes": 7}' where id = $1`, w.ID)
	d, err = b.Workflow(t.Context(), w.Execution)
	require.NoError(t, err)
	require.NotEmpty(t, d.Unreadable)
	_, ok = d.Draw(0, true)
	require.False(t, ok)
	page, err := b.Workflows(t.Context(), WorkflowFilter{}, 0)
	require.NoError(t, err)
	require.Len(t, page.List, 1, "a workflow with a wrong definition is listed")
}

func TestWorkflowsArePagedAndFiltered(t *testing.T) {
	b := setup(t, nil)
	var ids []int64
	for i := range 5 {
		state := &workflow.State{Status: lifecycle.StatusRunning, Paused: i == 3, Tasks: map[string]*workflow.TaskState{
			"reserve": {Status: workflow.TaskCompleted}, "pay": {Status: workflow.TaskRunning},
		}}
		w := b.AddWorkflow(t, fmt.Sprintf("shop.w%d", i), monitortest.Deliver, state,
			monitortest.Aged(time.Duration(10-i)*time.Minute))
		if i < 2 {
			testkit.Exec(t, b.Store, `update execution set status = 'failed' where id = $1`, w.Execution)
			testkit.Exec(t, b.Store, `update workflow_execution set status = 'failed', open = false, error_message = 'pay failed' where id = $1`, w.ID)
		}
		ids = append(ids, w.Execution)
	}
	listed := func(filter WorkflowFilter, cursor int64) (list []int64, next int64) {
		page, err := b.Workflows(t.Context(), filter, cursor)
		require.NoError(t, err)
		for _, w := range page.List {
			list = append(list, w.Execution)
		}
		require.False(t, page.Bounded)
		return list, page.Next
	}
	all, next := listed(WorkflowFilter{}, 0)
	require.Equal(t, []int64{ids[4], ids[3], ids[2], ids[1], ids[0]}, all)
	require.Zero(t, next)
	two, next := listed(WorkflowFilter{Limit: 2}, 0)
	require.Equal(t, []int64{ids[4], ids[3]}, two)
	two, next = listed(WorkflowFilter{Limit: 2}, next)
	require.Equal(t, []int64{ids[2], ids[1]}, two)
	two, next = listed(WorkflowFilter{Limit: 2}, next)
	require.Equal(t, []int64{ids[0]}, two)
	require.Zero(t, next)
	failed, _ := listed(WorkflowFilter{Statuses: []string{"failed"}}, 0)
	require.Equal(t, []int64{ids[1], ids[0]}, failed)
	running, _ := listed(WorkflowFilter{Statuses: []string{"running", "canceling"}}, 0)
	require.Equal(t, []int64{ids[4], ids[3], ids[2]}, running)
	paused, _ := listed(WorkflowFilter{Paused: true}, 0)
	require.Equal(t, []int64{ids[3]}, paused)
	named, _ := listed(WorkflowFilter{Action: "shop.W1*"}, 0)
	require.Equal(t, []int64{ids[1]}, named)

	page, err := b.Workflows(t.Context(), WorkflowFilter{Statuses: []string{"failed"}}, 0)
	require.NoError(t, err)
	require.Equal(t, "pay failed", page.List[0].Error)
	require.Equal(t, WorkflowCounts{Total: 5, Completed: 1}, page.List[0].Tasks)
	require.Equal(t, []string{"pay"}, page.List[0].Current)
	_, err = b.Workflows(t.Context(), WorkflowFilter{Statuses: []string{"done"}}, 0)
	require.ErrorIs(t, err, ErrFilter)
}

// None of the queries reads a table from end to end, however much there is.
func TestTheQueriesOfWorkflowsUseTheirIndexes(t *testing.T) {
	b := setup(t, nil)
	w := b.AddWorkflow(t, "shop.deliver", monitortest.Deliver,
		&workflow.State{Status: lifecycle.StatusRunning, Tasks: map[string]*workflow.TaskState{}})
	testkit.Exec(t, b.Store, `insert into execution (action, action_ref, status, created, updated)
		select e.action, e.action_ref, 'completed', now(), now() from execution e, generate_series(1, 6000) where e.id = $1`, w.Execution)
	testkit.Exec(t, b.Store, `insert into workflow_execution (execution, workflow_def, task_graph, status, open)
		select e.id, w.workflow_def, w.task_graph, 'completed', false from execution e, workflow_execution w where w.id = $1 and e.id > $2`, w.ID, w.Execution)
	testkit.Exec(t, b.Store, `insert into workflow_task_dispatch (workflow_execution, task_name, execution_id, settled)
		select x.id, t.name, x.execution, true from workflow_execution x, (values ('a'), ('b')) t (name)`)
	testkit.Exec(t, b.Store, `insert into workflow_log (workflow_execution, version, lines) select x.id, v, '{x}' from workflow_execution x, generate_series(1, 2) v`)
	page := func(f WorkflowFilter, of part) []any {
		p := f.params()
		return []any{
			p.Pattern, p.Statuses, p.OnlyPaused, p.NotPaused, p.Match, p.Unmatch, p.Errors, p.NotErrors, p.Tasks,
			p.NotTasks, p.MinFailed, p.MaxFailed,
			p.Parent, p.Parented, of.ended, p.OnlyTrouble, 50, of.open, int64(1) << 60, 0, p.Ids, 200,
		}
	}
	tables := []string{"execution", "workflow_execution", "workflow_task_dispatch", "workflow_log"}
	for _, table := range tables {
		testkit.Exec(t, b.Store, `vacuum analyze `+table)
	}
	for name, query := range map[string]struct {
		sql  string
		args []any
	}{
		"ViewWorkflowPage": {store.ViewWorkflowPage, page(WorkflowFilter{}, part{})},
		"ViewWorkflowPage open": {
			store.ViewWorkflowPage,
			page(WorkflowFilter{Statuses: []string{"running", WorkflowPaused}, Paused: true, Match: []string{"x"}},
				part{open: true}),
		},
		"ViewWorkflowPage ids": {store.ViewWorkflowPage, page(WorkflowFilter{IDs: []int64{w.Execution, 7}}, part{})},
		"ViewWorkflowEdge":     {store.ViewWorkflowEdge, []any{int64(1) << 60, 0, 200}},
		"ViewWorkflow":         {store.ViewWorkflow, []any{1000, w.Execution}},
		"ViewWorkflowOf":       {store.ViewWorkflowOf, []any{w.Execution}},
		"ViewWorkflowTasks":    {store.ViewWorkflowTasks, []any{w.ID, 100}},
		"ViewWorkflowPage bad": {
			store.ViewWorkflowPage,
			page(WorkflowFilter{Trouble: true, Tasks: []string{"x"}, Errors: []string{"x"}}, part{ended: true}),
		},
		"ViewWorkflowChildren": {store.ViewWorkflowChildren, []any{w.ID, 100, "a", 100, 10}},
		"CountPausedWorkflows": {store.CountPausedWorkflows, []any{100}},
		"ViewWorkflowLog":      {store.ViewWorkflowLog, []any{w.ID, 100}},
		"LockActWorkflow":      {store.LockActWorkflow, []any{w.Execution}},
	} {
		rows, err := b.Store.Pool().Query(t.Context(), "explain "+query.sql, query.args...)
		require.NoError(t, err, name)
		var plan strings.Builder
		for rows.Next() {
			var text string
			require.NoError(t, rows.Scan(&text))
			plan.WriteString(text + "\n")
		}
		require.NoError(t, rows.Err(), name)
		for _, table := range tables {
			require.NotRegexp(t, `Seq Scan on `+table+`\b`, plan.String(), "%s:\n%s", name, plan.String())
		}
	}
}
