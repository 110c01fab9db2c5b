package advancement_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

// existing makes a workflow as the existing engine leaves it: no state, no source,
// children as executions that name their task, one row for each.
func (w *world) existing(action testkit.ActionRow, params any, children map[string]lifecycle.Status) int64 {
	w.t.Helper()
	id := testkit.Execution(w.t, w.store, action,
		func(e *testkit.ExecutionRow) { e.Status, e.Config = lifecycle.StatusRunning, params }).ID
	testkit.Exec(w.t, w.store, `INSERT INTO workflow_execution (execution, workflow_def, task_graph, status, variables)
		SELECT $1, a.workflow_def, $3, 'running', d.definition -> 'vars' FROM action a
		JOIN workflow_definition d ON d.id = a.workflow_def WHERE a.id = $2`, id, action.ID, w.graphOf(action))
	for task, status := range children {
		of := testkit.ActionRow{ID: w.ids(`SELECT id FROM action WHERE ref = $1`, "pk."+task)[0], Ref: "pk." + task}
		child := testkit.Execution(w.t, w.store, of, func(e *testkit.ExecutionRow) {
			e.Parent, e.Status, e.Worker = &id, status, &w.worker
			e.Result = map[string]any{"data": map[string]any{"value": 41}}
			e.WorkflowTask = map[string]any{
				"workflow_execution": w.workflowOf(id), "task_name": task,
				"task_index": nil, "retry_count": 0,
			}
		}).ID
		testkit.Exec(w.t, w.store,
			`INSERT INTO workflow_task_dispatch (workflow_execution, task_name, execution_id) VALUES ($1, $2, $3)`,
			w.workflowOf(id), task, child)
	}
	return id
}

// graphOf is the task graph that the other engine makes of a definition.
func (w *world) graphOf(action testkit.ActionRow) []byte {
	w.t.Helper()
	definition, err := workflow.ParseJSON([]byte(w.text(`SELECT d.definition FROM workflow_definition d
		JOIN action a ON a.workflow_def = d.id WHERE a.id = $1`, action.ID)))
	require.NoError(w.t, err)
	raw, err := definition.TaskGraph()
	require.NoError(w.t, err)
	graph := map[string]json.RawMessage{}
	require.NoError(w.t, json.Unmarshal(raw, &graph))
	delete(graph, "workflow")
	raw, err = json.Marshal(graph)
	require.NoError(w.t, err)
	return raw
}

// A workflow of another engine continues with its children: none runs again, and the next tasks start.
func TestAWorkflowOfAnotherEngineIsTakenOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		children map[string]lifecycle.Status
		ran      []string
	}{
		"before its first child": {nil, []string{"a/0/0", "b/0/0"}},
		"while the first runs": {map[string]lifecycle.Status{"a": lifecycle.StatusScheduled}, []string{"a/0/0",
			"b/0/0"}},
		"after the first": {map[string]lifecycle.Status{"a": lifecycle.StatusCompleted}, []string{"b/0/0"}},
		"while the second runs": {
			map[string]lifecycle.Status{"a": lifecycle.StatusCompleted, "b": lifecycle.StatusScheduled},
			[]string{"b/0/0"},
		},
		"when all but it is done": {
			map[string]lifecycle.Status{"a": lifecycle.StatusCompleted, "b": lifecycle.StatusCompleted},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.does = func(string, int, int) end {
				return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 41}}}
			}
			id := w.existing(w.define("pk.chain", chain), map[string]any{"n": 7}, c.children)
			require.Equal(t, []int64{w.workflowOf(id)}, w.due(), "the sweep finds it")
			w.take(nil, w.ids(`SELECT id FROM execution WHERE parent = $1`, id))
			w.check(id)
			require.Equal(t, map[string]any{"sum": 42.0, "succeeded": true}, w.completes(id), fmt.Sprint(w.log(id)))
			require.Equal(t, c.ran, w.ran)
		})
	}
}

// A workflow whose task graph is unreadable ends with the reason, and stops its children.
func TestAWorkflowThatCannotBeTakenOverEnds(t *testing.T) {
	w := setup(t)
	action := w.define("pk.chain", chain)
	for graph, why := range map[string]string{
		`{}`:                   "tasks are missing: a workflow has at least one",
		`[]`:                   "read the task graph of a workflow",
		`{"nodes": 7}`:         "read the task graph of a workflow",
		`{"nodes": {"a": {}}}`: "name has 0 characters",
		`{"tasks": [{"name": "a", "action": "pk.a"}]}`: "tasks are missing: a workflow has at least one",
	} {
		id := w.existing(action, nil, map[string]lifecycle.Status{"a": lifecycle.StatusRequested})
		testkit.Exec(t, w.store,
			`UPDATE workflow_execution SET task_graph = $2, completed_tasks = '{x}' WHERE execution = $1`, id, []byte(graph))
		w.check(id)
		w.poll()
		status, result := w.outcome(id)
		require.Equal(t, lifecycle.StatusFailed, status)
		require.Contains(t, result["error"], "it was started by another engine and cannot be taken over: ")
		require.Contains(t, result["error"], why)
		require.Equal(t, "{x}", w.text(`SELECT completed_tasks FROM workflow_execution WHERE execution = $1`, id))
		require.Equal(t, "cancelled", w.text(`SELECT status FROM execution WHERE parent = $1`, id))
	}
	require.Empty(t, w.ran)
}
