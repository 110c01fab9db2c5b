package handback_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/testkit"
)

// A workflow that was never taken over goes back as it came: an end that its executor has processed, or repeated, is
// not announced again.
func TestEndsThatTheOtherExecutorHasProcessedAreNotAnnounced(t *testing.T) {
	t.Parallel()
	w := setup(t)
	action := w.define(t, "demo.list", sevenItems)
	each := testkit.ActionRow{Ref: "demo.each"}
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT id FROM action WHERE ref = $1`, each.Ref).Scan(&each.ID))
	parent := testkit.Execution(t, w, action, func(e *testkit.ExecutionRow) { e.Status = attune.StatusRunning }).ID
	testkit.Exec(t, w, `INSERT INTO workflow_execution (execution, workflow_def, task_graph, status, completed_tasks, failed_tasks)
		SELECT $1, a.workflow_def, '{}', 'running', '{done}', '{broken}' FROM action a WHERE a.id = $2`, parent, action.ID)
	children := map[string]int64{}
	for _, task := range []string{"done", "broken", "repeated", "ended"} {
		children[task] = testkit.Execution(t, w, each, func(e *testkit.ExecutionRow) {
			e.Parent, e.Status = &parent, attune.StatusFailed
		}).ID
		testkit.Exec(t, w, `INSERT INTO workflow_task_dispatch (workflow_execution, task_name, execution_id)
			SELECT id, $2, $3 FROM workflow_execution WHERE execution = $1`, parent, task, children[task])
	}
	testkit.Exec(t, w, `INSERT INTO execution (action, action_ref, parent, status, retry_count, original_execution)
		VALUES ($1, $2, $3, 'running', 1, $4)`, each.ID, each.Ref, parent, children["repeated"])
	require.Equal(t, 1, w.handBack(t).Completed, "that of the ended task")
}
