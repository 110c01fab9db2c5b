package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/testkit"
)

func TestAFamilyIsTheWholeTreeWithWhatBelongsToTheExecution(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	action := testkit.Action(t, b.store, "demo.flow")
	birth := func(parent *int64) int64 {
		return testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) { e.Parent = parent }).ID
	}
	top := birth(nil)
	first, second := birth(&top), birth(&top)
	leaf := birth(&second)
	b.fail(t, leaf, `{"error": "exit 1"}`)
	again := b.repeat(t, leaf, "action_failure", 0, nil)

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
		require.Empty(t, f.Letters)
		require.Nil(t, f.Enforcement)
	}
	f, err := b.Family(t.Context(), leaf)
	require.NoError(t, err)
	require.Len(t, f.Attempts, 2)
	require.Equal(t, second, f.Parent().ID)
	_, err = b.Family(t.Context(), 1<<40)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestALargeFamilyIsCutAndSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	action := testkit.Action(t, b.store, "demo.flow")
	top := testkit.Execution(t, b.store, action).ID
	testkit.Exec(t, b.store, `insert into execution (action, action_ref, status, parent)
		select action, action_ref, 'requested', id from execution, generate_series(1, $2) where id = $1`, top, maxBrood+10)
	f, err := b.Family(t.Context(), top)
	require.NoError(t, err)
	require.Len(t, f.Tree, maxBrood+1)
	require.True(t, f.Tree[0].More, "of many children the newest are listed")
	require.True(t, f.More, "and not all are asked what they have started")
}
