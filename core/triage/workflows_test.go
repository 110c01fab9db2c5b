package triage_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// workflow inserts a running workflow and returns its execution.
func (b *bundle) workflow(t *testing.T, ref string) int64 {
	t.Helper()
	action := testkit.Action(t, b.store, ref)
	e := testkit.Execution(t, b.store, action, func(r *testkit.ExecutionRow) { r.Status = lifecycle.StatusRunning })
	testkit.Exec(t, b.store, `
		with d as (
			insert into workflow_definition (ref, pack, pack_ref, label, version, definition)
			select $2, a.pack, a.pack_ref, 'w', '1', '{}' from action a where a.id = $1 returning id)
		insert into workflow_execution (execution, workflow_def, task_graph, status, current_tasks)
		select $3, d.id, '{}', 'running', '{"pay"}' from d`, action.ID, ref, e.ID)
	return e.ID
}

// A pause and a resume change the published columns once, with the reason and the author. Each is
// audited, also without a change.
func TestPauseAndResumeAWorkflow(t *testing.T) {
	b := setup(t)
	id := b.workflow(t, "shop.deliver")
	columns := func() (paused bool, reason string) {
		rows, err := b.store.Pool().Query(t.Context(),
			`select paused, coalesce(pause_reason, '') from workflow_execution where execution = $1`, id)
		require.NoError(t, err)
		defer rows.Close()
		require.True(t, rows.Next())
		require.NoError(t, rows.Scan(&paused, &reason))
		return paused, reason
	}
	for _, step := range []struct {
		pause, changed bool
		reason, says   string
		paused         bool
		kept           string
	}{
		{false, false, "", "is not paused", false, ""},
		{true, true, "new prices", "starts nothing more; what runs goes on to its end", true, "new prices (by ada)"},
		{true, false, "", "is paused already", true, "new prices (by ada)"},
		{true, false, "new prices", "is paused already", true, "new prices (by ada)"},
		{true, true, "stocktaking", "is paused already: only the reason changes", true, "stocktaking (by ada)"},
		{false, true, "done", "goes on", false, ""},
		{true, true, "", "starts nothing more; what runs goes on to its end", true, "by ada"},
	} {
		act := b.operator.As("ada").ResumeWorkflow
		if step.pause {
			act = b.operator.As("ada").PauseWorkflow
		}
		receipt, err := act(t.Context(), id, step.reason)
		require.NoError(t, err)
		require.Equal(t, step.says, receipt.Says)
		require.Equal(t, step.changed, receipt.Changed)
		require.Equal(t, step.paused, receipt.Paused)
		require.Equal(t, []string{"pay"}, receipt.Running)
		require.NotZero(t, receipt.Audit)
		paused, reason := columns()
		require.Equal(t, step.paused, paused)
		require.Equal(t, step.kept, reason)
	}
	require.Equal(t, 4, testkit.Exec(t, b.store,
		`select from operator_audit where target_type = 'workflow' and target_id = $1 and actor = 'ada' and outcome = 'done' and action in ('workflow.pause', 'workflow.resume')`, id))
}

// A resume below a paused workflow names the workflow that must be resumed.
func TestAWorkflowIsPausedWithItsParent(t *testing.T) {
	b := setup(t)
	outer, inner := b.workflow(t, "shop.deliver"), b.workflow(t, "shop.pack")
	testkit.Exec(t, b.store, `update execution set parent = $1, workflow_task = '{"task_name": "pack"}' where id = $2`,
		outer, inner)
	_, err := b.operator.PauseWorkflow(t.Context(), outer, "new prices")
	require.NoError(t, err)
	receipt, err := b.operator.ResumeWorkflow(t.Context(), inner, "")
	require.NoError(t, err)
	require.False(t, receipt.Changed)
	require.Equal(t, outer, receipt.PausedAbove)
	require.Equal(t, fmt.Sprintf("workflow %d above it is paused, and it goes on with that", outer), receipt.Says)
	_, err = b.operator.PauseWorkflow(t.Context(), inner, "")
	require.NoError(t, err)
	receipt, err = b.operator.ResumeWorkflow(t.Context(), inner, "")
	require.NoError(t, err)
	require.True(t, receipt.Changed)
	require.Contains(t, receipt.Says, "is not paused any more, but workflow")
	_, err = b.operator.ResumeWorkflow(t.Context(), outer, "")
	require.NoError(t, err)
	receipt, err = b.operator.ResumeWorkflow(t.Context(), inner, "")
	require.NoError(t, err)
	require.Equal(t, "is not paused", receipt.Says)
}

func TestAnUnknownOrEndedWorkflowIsNotPaused(t *testing.T) {
	b := setup(t)
	id := b.workflow(t, "shop.deliver")
	_, err := b.operator.PauseWorkflow(t.Context(), 1<<40, "")
	require.ErrorIs(t, err, triage.ErrNoWorkflow)
	alone := testkit.Execution(t, b.store, testkit.Action(t, b.store, "shop.alone")).ID
	_, err = b.operator.PauseWorkflow(t.Context(), alone, "")
	require.ErrorIs(t, err, triage.ErrNoWorkflow)

	testkit.Exec(t, b.store, `update execution set status = 'completed' where id = $1`, id)
	_, err = b.operator.PauseWorkflow(t.Context(), id, "")
	var ended *triage.WorkflowEndedError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, lifecycle.StatusCompleted, ended.Status)
}

// Workflows have no queue: an override would have no effect, so it is refused.
func TestAWorkflowHasNoQueueToPause(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "shop.flow")
	testkit.Exec(t, b.store, `with d as (
			insert into workflow_definition (ref, pack, pack_ref, label, version, definition)
			select 'shop.flow', a.pack, a.pack_ref, 'w', '1', '{}' from action a where a.id = $1 returning id)
		update action set workflow_def = d.id from d where action.id = $1`, action.ID)
	_, err := b.operator.Override(t.Context(),
		triage.Override{Target: triage.Target{Action: "shop.flow"}, Act: triage.Pause})
	require.ErrorIs(t, err, triage.ErrNoQueue)
	require.ErrorContains(t, err, "workflow pause")
}
