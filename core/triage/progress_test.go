package triage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

func TestActionsReportTheirProgress(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.progress", 1)
	ids := b.request(t, action, 4)
	b.dispatch(t, ids...)
	var told [][2]int64
	ctx := triage.WithProgress(testkit.Context(t),
		func(done, total int64) { told = append(told, [2]int64{done, total}) })
	plan := b.planClear(t, action)
	plan.Reason = "not needed any more"
	receipt, err := b.operator.Clear(ctx, plan)
	require.NoError(t, err)
	require.Equal(t, [][2]int64{{3, 3}}, told)
	require.Equal(t, "not needed any more", b.audit(t, receipt.Audit).Reason)

	told = nil
	cancelled, err := b.operator.PlanCancel(ctx, triage.CancelRequest{IDs: ids})
	require.NoError(t, err)
	_, err = b.operator.Cancel(ctx, cancelled)
	require.NoError(t, err)
	require.NotEmpty(t, told)
	require.Equal(t, [2]int64{4, 4}, told[len(told)-1])
	told = nil
	tree, err := b.operator.PlanCancel(ctx, triage.CancelRequest{IDs: b.request(t, action, 1), Tree: true})
	require.NoError(t, err)
	_, err = b.operator.Cancel(ctx, tree)
	require.NoError(t, err)
	require.Equal(t, [][2]int64{{1, 0}}, told, "the size of a tree is unknown")

	told = nil
	testkit.Exec(t, b.store, `update execution_admission_state set queued_count = queued_count + 5`)
	repaired, err := b.operator.Repair(ctx, "", "")
	require.NoError(t, err)
	require.Empty(t, repaired.Remains)
	require.NotEmpty(t, told)
	require.Equal(t, [2]int64{int64(len(repaired.Repaired)), int64(len(repaired.Found))}, told[len(told)-1])
}
