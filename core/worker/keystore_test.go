package worker_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/lab/testkit"
)

// key adds a key of the system, a pack or an action, encrypted with a key of that letter unless it is empty.
func (b *bundle) key(t testing.TB, ref, name, owner string, of testkit.ActionRow, value any, sealedWith string) {
	t.Helper()
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	if sealedWith != "" {
		raw, err = keyring(t, sealedWith).Seal(value)
		require.NoError(t, err)
	}
	testkit.Exec(t, b.store, `insert into key (ref, owner_type, owner_pack, owner_action, name, encrypted, value)
		values ($1, $2::text::owner_type_enum, case $2 when 'pack' then (select pack from action where id = $3) end,
			case $2 when 'action' then $3::bigint end, $4, $5, $6::text::jsonb)`,
		ref, owner, of.ID, name, sealedWith != "", string(raw))
}

// The keys of the system, of the pack and of the action are parameters of an action, by name. The more specific key
// wins, and each wins over a parameter of the execution.
func TestKeysOfTheKeystoreAreParameters(t *testing.T) {
	b := setupOn(t, testkit.AdoptedDatabase(t))
	w, log := b.sealing(t, "w1", keyring(t, "k"))
	set := map[string]any{
		"parameter_delivery": "stdin", "parameter_format": "json", "output_format": "json",
		"param_schema": `{"region":{"default":"default"},"pin":{"secret":true}}`,
	}
	action, other := b.script(t, "probe.keys", "cat", set), b.script(t, "other.keys", "cat", set)

	b.key(t, "sys.region", "region", "system", action, "eu-west", "")
	b.key(t, "sys.token", "token", "system", action, "system-token", "k")
	b.key(t, "probe.token", "token", "pack", action, map[string]any{"value": "pack-token"}, "k")
	b.key(t, "probe.keys.limit", "limit", "action", action, 12345678901234567, "")
	b.key(t, "probe.keys.pin", "pin", "action", action, "plain-pin", "")

	status, r := b.run(t, w, action, map[string]any{"region": "asked", "user": "u"})
	require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
	const marker = `{"$attune_secret":true,"redacted":true}`
	require.JSONEq(t, `{"region":"eu-west","user":"u","token":{"value":`+marker+`},"limit":12345678901234567,"pin":`+
		marker+`}`, string(r.Data))

	status, r = b.run(t, w, other, nil)
	require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
	require.JSONEq(t, `{"region":"eu-west","token":`+marker+`}`, string(r.Data),
		"neither keys of another pack nor of another action")
	for _, text := range []string{"system-token", "pack-token"} {
		testkit.NowhereInDatabase(t, b.store, text)
		require.NotContains(t, log.String(), text)
	}
}

// A key that cannot be decrypted fails the executions that declare it, by name and without its value. The others run
// without it.
func TestKeysThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys secret.Keyring
		why  string
	}{
		"no key":      {secret.Keyring{}, "security.encryption_key is not set"},
		"another key": {keyring(t, "x"), "it was encrypted with another security.encryption_key, or is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupOn(t, testkit.AdoptedDatabase(t))
			w, log := b.sealing(t, "w1", c.keys)
			set := map[string]any{"parameter_delivery": "stdin", "parameter_format": "json", "output_format": "json"}
			plain := b.script(t, "probe.plain", "cat", set)
			set["param_schema"] = `{"token":{"type":"string"}}`
			declares := b.script(t, "probe.declares", "cat", set)
			b.key(t, "sys.token", "token", "system", plain, "system-token", "k")

			status, r := b.run(t, w, declares, nil)
			require.Equal(t, lifecycle.StatusFailed, status)
			require.Equal(t, "open the key sys.token for the parameter token: "+c.why, r.Error)
			status, r = b.run(t, w, plain, map[string]any{"user": "u"})
			require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
			require.JSONEq(t, `{"user":"u"}`, string(r.Data))
			require.Contains(t, log.String(), `"key":"sys.token"`)

			b.key(t, "probe.plain.own", "own", "action", plain, "own-token", "k")
			status, r = b.run(t, w, plain, nil)
			require.Equal(t, lifecycle.StatusFailed, status)
			require.Equal(t, "open the key probe.plain.own for the parameter own: "+c.why, r.Error)
		})
	}
}
