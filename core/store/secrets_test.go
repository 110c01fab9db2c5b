package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// upstream 47: a retry has the secret parameters of the execution that it
// repeats, and not the secrets of its result.
func TestARetryHasTheSecretParameters(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "probe.secret")
	failed := testkit.Execution(t, st, action, func(row *testkit.ExecutionRow) {
		row.Status, row.Config = lifecycle.StatusFailed, map[string]any{"password": secret.Marker()}
	}).ID
	var rows store.InsertSecretValuesParams
	store.AddSecret(&rows, secret.OfConfig, failed,
		secret.Sealed{Path: "/password", Kind: secret.FromSchema, Ref: "/password", Value: []byte(`"c1"`)})
	store.AddSecret(&rows, secret.OfConfig, failed,
		secret.Sealed{Path: "/token", Kind: secret.FromParameter, Value: []byte(`"c2"`), KeyHash: "of another service"})
	store.AddSecret(&rows, secret.OfResult, failed,
		secret.Sealed{Path: "/data/x", Kind: secret.FromSchema, Value: []byte(`"c3"`)})
	require.NoError(t, st.InsertSecretValues(t.Context(), rows))

	again, err := st.RepeatExecutions(t.Context(),
		store.RepeatExecutionsParams{Failed: []int64{failed}, Reasons: []string{"failed"}, Delays: []float64{0}})
	require.NoError(t, err)
	require.Len(t, again, 1)
	values, err := store.SecretsOf(t.Context(), st.Queries, secret.OfConfig, again[0].ID)
	require.NoError(t, err)
	require.Equal(t, []secret.Sealed{
		{Path: "/password", Kind: secret.FromSchema, Ref: "/password", Value: []byte(`"c1"`)},
		{Path: "/token", Kind: secret.FromParameter, Value: []byte(`"c2"`), KeyHash: "of another service"},
	}, values)
	values, err = store.SecretsOf(t.Context(), st.Queries, secret.OfResult, again[0].ID)
	require.NoError(t, err)
	require.Empty(t, values)
}

// Sources of several entities are read together, without other ones. Inserting a path again replaces it.
func TestSecretsAreReadBySource(t *testing.T) {
	st := testkit.Store(t)
	var rows store.InsertSecretValuesParams
	for _, one := range []struct {
		source secret.Source
		value  string
	}{
		{secret.Source{Entity: secret.OfConfig, ID: 1, Path: "/a"}, `"old"`},
		{secret.Source{Entity: secret.OfConfig, ID: 1, Path: "/b"}, `"b"`},
		{secret.Source{Entity: secret.OfResult, ID: 1, Path: "/a"}, `"r"`},
		{secret.Source{Entity: secret.OfResult, ID: 2, Path: "/a"}, `"r2"`},
	} {
		store.AddSecret(&rows, one.source.Entity, one.source.ID,
			secret.Sealed{Path: one.source.Path, Kind: secret.FromSchema, Value: []byte(one.value)})
	}
	require.NoError(t, st.InsertSecretValues(t.Context(), rows))
	var newer store.InsertSecretValuesParams
	store.AddSecret(&newer, secret.OfConfig, 1,
		secret.Sealed{Path: "/a", Kind: secret.FromSchema, Value: []byte(`"new"`)})
	require.NoError(t, st.InsertSecretValues(t.Context(), newer))

	wanted := []secret.Source{
		{Entity: secret.OfConfig, ID: 1, Path: "/a"},
		{Entity: secret.OfResult, ID: 2, Path: "/a"},
		{Entity: secret.OfResult, ID: 3, Path: "/a"},
	}
	found, err := store.ReadSecrets(t.Context(), st.Queries, wanted)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, `"new"`, string(found[wanted[0]].Value))
	require.Equal(t, `"r2"`, string(found[wanted[1]].Value))
	none, err := store.ReadSecrets(t.Context(), st.Queries, nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// Deleting an execution or enforcement deletes its secrets, whichever program deletes it.
func TestSecretsAreDeletedWithTheirOwner(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "probe.secret")
	stays, goes := testkit.Execution(t, st, action).ID, testkit.Execution(t, st, action).ID
	var rows store.InsertSecretValuesParams
	for _, entity := range []string{secret.OfConfig, secret.OfResult, secret.OfEnforcement} {
		for _, id := range []int64{stays, goes} {
			store.AddSecret(&rows, entity, id, secret.Sealed{Path: "/a", Kind: secret.FromSchema, Value: []byte(`"c"`)})
		}
	}
	require.NoError(t, st.InsertSecretValues(t.Context(), rows))
	testkit.Exec(t, st, "DELETE FROM execution WHERE id = $1", goes)
	left := func(entity string) int {
		return testkit.Count(t, st, "SELECT count(*) FROM execution_secret_value WHERE entity_type = $1", entity)
	}
	require.Equal(t, []int{1, 1, 2}, []int{left(secret.OfConfig), left(secret.OfResult), left(secret.OfEnforcement)})
	testkit.Exec(t, st, `INSERT INTO enforcement (id, rule_ref, trigger_ref, status, payload, condition, conditions, config)
		VALUES ($1, 'p.r', 'p.t', 'created', '{}', 'all', '[]', '{}')`, goes)
	testkit.Exec(t, st, "DELETE FROM enforcement WHERE id = $1", goes)
	require.Equal(t, []int{1, 1, 1}, []int{left(secret.OfConfig), left(secret.OfResult), left(secret.OfEnforcement)})
}
