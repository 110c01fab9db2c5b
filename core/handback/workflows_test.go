package handback_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// A workflow that was never taken over goes back as it came: an end that its executor has processed, or repeated, is
// not announced again.
func TestEndsThatTheOtherExecutorHasProcessedAreNotAnnounced(t *testing.T) {
	w := setup(t)
	action := w.define(t, "demo.list", sevenItems)
	each := testkit.ActionRow{Ref: "demo.each"}
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT id FROM action WHERE ref = $1`, each.Ref).Scan(&each.ID))
	parent := testkit.Execution(t, w, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	testkit.Exec(t, w,
		`INSERT INTO workflow_execution (execution, workflow_def, task_graph, status, completed_tasks, failed_tasks)
		SELECT $1, a.workflow_def, '{}', 'running', '{done}',
			'{broken}' FROM action a WHERE a.id = $2`, parent, action.ID)
	children := map[string]int64{}
	for _, task := range []string{"done", "broken", "repeated", "ended"} {
		children[task] = testkit.Execution(t, w, each, func(e *testkit.ExecutionRow) {
			e.Parent, e.Status = &parent, lifecycle.StatusFailed
		}).ID
		testkit.Exec(t, w, `INSERT INTO workflow_task_dispatch (workflow_execution, task_name, execution_id)
			SELECT id, $2, $3 FROM workflow_execution WHERE execution = $1`, parent, task, children[task])
	}
	testkit.Exec(t, w, `INSERT INTO execution (action, action_ref, parent, status, retry_count, original_execution)
		VALUES ($1, $2, $3, 'running', 1, $4)`, each.ID, each.Ref, parent, children["repeated"])
	for task, change := range map[string]string{
		"settled": `UPDATE workflow_task_dispatch SET settled = true WHERE task_name = 'settled'`,
		"closed":  `UPDATE workflow_execution SET open = false WHERE id <> 1`,
	} {
		of := parent
		if task == "closed" {
			of = testkit.Execution(t, w, action,
				func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusCancelled }).ID
			testkit.Exec(t, w, `INSERT INTO workflow_execution (execution, workflow_def, task_graph, status)
				SELECT $1, a.workflow_def, '{}', 'cancelled' FROM action a WHERE a.id = $2`, of, action.ID)
		}
		child := testkit.Execution(t, w, each, func(e *testkit.ExecutionRow) {
			e.Parent, e.Status = &of, lifecycle.StatusCompleted
		}).ID
		testkit.Exec(t, w, `INSERT INTO workflow_task_dispatch (workflow_execution, task_name, execution_id)
			SELECT id, $2, $3 FROM workflow_execution WHERE execution = $1`, of, task, child)
		testkit.Exec(t, w, change)
	}
	require.Equal(t, 1, w.handBack(t).Completed, "that of the ended task")
}

// A child that is being cancelled takes no place in its list, as the other executor counts.
func TestTheNextItemIsRequestedBesideOneThatIsBeingCancelled(t *testing.T) {
	w := setup(t)
	action := w.define(t, "demo.list", sevenItems)
	each := testkit.ActionRow{Ref: "demo.each"}
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT id FROM action WHERE ref = $1`, each.Ref).Scan(&each.ID))
	worker := testkit.Worker(t, w, "w1").ID
	parent := testkit.Execution(t, w, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	testkit.Exec(t, w, `INSERT INTO workflow_execution (execution, workflow_def, task_graph, status)
		SELECT $1, a.workflow_def, '{"nodes": {"each": {"concurrency": 2}}}', 'running' FROM action a WHERE a.id = $2`,
		parent, action.ID)
	var children []int64
	for i, status := range []lifecycle.Status{
		lifecycle.StatusRequested, lifecycle.StatusRunning, lifecycle.StatusCanceling, lifecycle.StatusRequested,
	} {
		children = append(children, testkit.Execution(t, w, each, func(e *testkit.ExecutionRow) {
			e.Parent, e.Status = &parent, status
			e.WorkflowTask = map[string]any{"workflow_execution": 1, "task_name": "each", "task_index": 3 - i}
			if status != lifecycle.StatusRequested {
				e.Worker = &worker
			}
		}).ID)
	}
	w.handBack(t)
	require.Equal(t, children[3:], w.requested(t), "the first item that waits")
}

// The other executor knows only requested executions as queued: one that was being admitted is requested again.
func TestAnExecutionThatWasBeingAdmittedIsNotQueued(t *testing.T) {
	w := setup(t)
	action := testkit.Action(t, w, "demo.limited")
	testkit.Policy(t, w, action, 1)
	state := testkit.State(t, w, action, 1, func(s *testkit.StateRow) { s.Active, s.Queued = 1, 1 })
	testkit.Execution(t, w, action, func(e *testkit.ExecutionRow) {
		e.Status, e.AdmissionState = lifecycle.StatusScheduled, &state.ID
	})
	claimed := testkit.Execution(t, w, action,
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusScheduling }).ID
	testkit.Exec(t, w, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
		VALUES ($1, $2, 'queued', 1)`, state.ID, claimed)
	result := w.handBack(t)
	require.Equal(t, 1, result.Active)
	require.Zero(t, result.Queued)
	require.Equal(t, []int64{claimed}, w.requested(t))
}
