package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

func TestAFamilyIsTheTreeWithRetriesAndEvents(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.flow")
	child := func(parent *int64) int64 {
		return testkit.Execution(t, b.Store, action, func(e *testkit.ExecutionRow) { e.Parent = parent }).ID
	}
	top := child(nil)
	first, second := child(&top), child(&top)
	leaf := child(&second)
	b.Fail(t, leaf, `{"error": "exit 1"}`)
	again := b.Repeat(t, leaf, "action_failure", 0, nil)

	for _, id := range []int64{top, second, leaf} {
		f, err := b.Family(t.Context(), id)
		require.NoError(t, err)
		require.False(t, f.More)
		var ids []int64
		var depths []int
		for _, r := range f.Tree {
			ids, depths = append(ids, r.ID), append(depths, r.Depth)
		}
		require.Equal(t, []int64{top, first, second, leaf, again}, ids)
		require.Equal(t, []int{0, 1, 1, 2, 2}, depths)
		require.Equal(t, []LedgerEntry{}, f.DeadLetters, "nil would say that there is no ledger")
		require.Nil(t, f.Enforcement)
	}
	f, err := b.Family(t.Context(), leaf)
	require.NoError(t, err)
	require.Len(t, f.Attempts, 2)
	require.Equal(t, second, f.Parent().ID)
	_, err = b.Family(t.Context(), 1<<40)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestALargeFamilyIsMarkedAsCut(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.flow")
	top := testkit.Execution(t, b.Store, action).ID
	testkit.Exec(t, b.Store, `insert into execution (action, action_ref, status, parent)
		select action, action_ref, 'requested', id from execution, generate_series(1, $2) where id = $1`, top, maxBrood+10)
	f, err := b.Family(t.Context(), top)
	require.NoError(t, err)
	require.Len(t, f.Tree, maxBrood+1)
	require.True(t, f.Tree[0].More, "of many children the newest are listed")
	require.True(t, f.More, "the children of only some are read")
}

func TestAFamilyHasItsTasksAndOperations(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.flow")
	top := testkit.Execution(t, b.Store, action).ID
	task := testkit.Execution(t, b.Store, action, func(e *testkit.ExecutionRow) {
		e.Parent, e.WorkflowTask = &top, map[string]any{"task_name": "fetch", "task_index": 3}
	}).ID
	b.Fail(t, task, `{"error": "exit 1"}`)
	again := b.Repeat(t, task, "action_failure", 0, nil)
	act := func(kind, action string, id int64) {
		testkit.Exec(t, b.Store, `insert into operator_audit (actor, source, action, target_type, target_id, target) values ('ada@here', 'test', $1, $2, $3, 'it')`, action, kind, id)
	}
	act("execution", "execution.cancel", task)
	act("execution", "execution.retry", again)
	act("execution", "execution.retry", top)
	act("worker", "worker.cordon", task)

	f, err := b.Family(t.Context(), task)
	require.NoError(t, err)
	require.Equal(t, "fetch", f.Of(task).Task)
	require.EqualValues(t, 3, *f.Of(task).Item)
	require.Empty(t, f.Of(top).Task)
	require.Nil(t, f.Of(top).Item)
	require.Nil(t, f.Of(1<<40))
	require.Len(t, f.Acts, 2, "those on it and on its attempts, of executions only")
	require.Equal(t, "execution.retry", f.Acts[0].Action)
	require.Equal(t, "execution.cancel", f.Acts[1].Action)
	require.Equal(t, task, *f.Acts[1].TargetID)
	require.Equal(t, "ada@here", f.Acts[1].Actor)

	testkit.Exec(t, b.Store, `alter table operator_audit rename to elsewhere`)
	f, err = New(Config{}, Deps{Store: b.Store}).Family(t.Context(), task)
	require.NoError(t, err)
	require.Nil(t, f.Acts, "where acts are not recorded they are unknown")
}
