package submit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/lab/testkit"
)

const schemaOfDeploy = `{
	"target": {"type": "string", "required": true},
	"port": {"type": "integer", "minimum": 1, "default": 80},
	"token": {"type": "string", "secret": true},
	"login": {"type": "object", "properties": {"user": {"type": "string"}, "password": {"type": "string", "secret": true}}}}`

// deploy is an action with a schema of parameters.
func deploy(t *testing.T, b *bundle) {
	t.Helper()
	testkit.Action(t, b.store, "probe.deploy")
	_, err := b.store.Pool().Exec(t.Context(), "UPDATE action SET param_schema = $1 WHERE ref = 'probe.deploy'",
		schemaOfDeploy)
	require.NoError(t, err)
}

func keyring(t *testing.T) secret.Keyring {
	t.Helper()
	keys, err := secret.NewKeyring(strings.Repeat("k", secret.LeastKey))
	require.NoError(t, err)
	return keys
}

func TestParametersThatDoNotFitAreRefusedWithAllMistakes(t *testing.T) {
	b := setup(t)
	deploy(t, b)
	for params, want := range map[string]string{
		``:                            "the parameters do not fit probe.deploy: target is missing",
		`{"port":"hunter2","more":1}`: "the parameters do not fit probe.deploy: target is missing; port is a string, not an integer",
		`{"target":"x","token":{"$attune_secret":true,"redacted":true}}`: "the parameters do not fit probe.deploy: token is the marker of a secret, not its value",
	} {
		_, err := b.submit.Request(t.Context(),
			submit.Request{ActionRef: "probe.deploy", Params: json.RawMessage(params)})
		require.EqualError(t, err, want)
		var invalid *submit.InvalidParamsError
		require.ErrorAs(t, err, &invalid)
		require.NotEmpty(t, invalid.Mistakes)
	}
	require.Equal(t, 0, testkit.Count(t, b.store, "SELECT count(*) FROM execution"))
	done, err := b.submit.Request(t.Context(), submit.Request{
		ActionRef: "probe.deploy",
		Params:    json.RawMessage(`{"target":"x","unknown":12345678901234567890,"port":"{{ later }}"}`),
	})
	require.NoError(t, err, "unknown parameters and templates are allowed")
	row, err := b.store.GetExecution(t.Context(), done.ID)
	require.NoError(t, err)
	require.JSONEq(t, `{"target":"x","unknown":12345678901234567890,"port":"{{ later }}"}`, string(row.Config),
		"defaults are not stored")
}

// upstream 52: no written value holds a secret in the clear; one encrypted row holds it.
func TestSecretParametersAreSealed(t *testing.T) {
	b := setup(t)
	deploy(t, b)
	b.submit = b.submit.WithKeyring(keyring(t))
	list, err := b.submit.RequestMany(t.Context(), []submit.Request{
		{ActionRef: "probe.deploy", Params: json.RawMessage(`{"target":"open"}`)},
		{
			ActionRef: "probe.deploy",
			Params: json.RawMessage(
				`{"target":"a","token":"hunter2-token","login":{"user":"u","password":"hunter2-pass"}}`),
		},
		{ActionRef: "probe.ping", Params: json.RawMessage(`{"token":"not known to be secret"}`)},
	})
	require.NoError(t, err)

	row, err := b.store.GetExecution(t.Context(), list[1].ID)
	require.NoError(t, err)
	const marker = `{"$attune_secret":true,"redacted":true}`
	public := `{"target":"a","token":` + marker + `,"login":{"user":"u","password":` + marker + `}}`
	require.JSONEq(t, public, string(row.Config))
	values, err := store.SecretsOf(t.Context(), b.store.Queries, secret.OfConfig, list[1].ID)
	require.NoError(t, err)
	require.Len(t, values, 2)
	opened := map[string]any{}
	for _, one := range values {
		require.Equal(t, secret.FromSchema, one.Kind)
		require.Equal(t, one.Path, one.Ref)
		require.Empty(t, one.KeyHash, "the hash of the key is the key")
		opened[one.Path], err = keyring(t).Open(one)
		require.NoError(t, err)
	}
	require.Equal(t, map[string]any{"/token": "hunter2-token", "/login/password": "hunter2-pass"}, opened)
	require.Equal(t, 2, testkit.Count(t, b.store, "SELECT count(*) FROM execution_secret_value"))
	testkit.NowhereInDatabase(t, b.store, "hunter2")
	for _, messages := range b.relay.rows {
		for _, m := range messages {
			require.NotContains(t, string(m.Body), "hunter2")
		}
	}
}

func TestSecretParametersWithoutAKeyAreRefused(t *testing.T) {
	b := setup(t)
	deploy(t, b)
	_, err := b.submit.Request(context.Background(), submit.Request{
		ActionRef: "probe.deploy", Params: json.RawMessage(`{"target":"a","token":"hunter2"}`),
	})
	require.ErrorIs(t, err, submit.ErrSealed)
	require.EqualError(t, err,
		"request probe.deploy: secret parameters cannot be stored: security.encryption_key is not set")
	require.Equal(t, 0, testkit.Count(t, b.store, "SELECT count(*) FROM execution"))
}
