package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestActionsWithRetriesAreNamedOnAnAdoptedSchemaOnly(t *testing.T) {
	st := testkit.Store(t)
	for ref, retries := range map[string]int32{"demo.a": 2, "demo.b": 0, "demo.c": 1} {
		testkit.Action(t, st, ref, func(a *testkit.ActionRow) { a.MaxRetries = retries })
	}
	testkit.Exec(t, st, `update attune_schema_origin set origin = 'own'`)
	rows, err := st.AdoptedActionsWithRetries(t.Context(), 10)
	require.NoError(t, err)
	require.Empty(t, rows)

	testkit.Exec(t, st, `update attune_schema_origin set origin = 'adopted'`)
	rows, err = st.AdoptedActionsWithRetries(t.Context(), 10)
	require.NoError(t, err)
	two, one := int32(2), int32(1)
	require.Equal(t, []store.AdoptedActionsWithRetriesRow{
		{Ref: "demo.a", MaxRetries: &two},
		{Ref: "demo.c", MaxRetries: &one},
	}, rows)
}
