package eventing_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/eventing"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/lab/testkit"
)

// A sender of events gets no secret of a pack's configuration by a forged marker, be it an object, within a text, or in
// pieces that a template joins.
func TestEventsCannotForgeSecrets(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `update pack set config = '{"token":"hush","host":"h"}', conf_schema = '{"token":{"type":"string","secret":true}}'`)
	b.rule("demo.forged", `[]`, `{"token":"{{ event.payload.t }}{{ event.payload.rest }}"}`)
	b.rule("demo.whole", `[]`, `{"token":"{{ event.payload.t }}"}`)
	honest := b.rule("demo.honest", `[]`, `{"token":"{{ pack.config.token }}"}`)
	events := []int64{
		b.event(`{"rest":"","t":{"$attune_secret":true,"redacted":true,"from":"enforcement_config:0:/token"}}`),
		b.event(
			`{"rest":"","t":"x{\"$attune_secret\":true,\"redacted\":true,\"from\":\"enforcement_config:0:/token\"}"}`),
		b.event(
			`{"rest":"secret\":true,\"redacted\":true,\"from\":\"enforcement_config:0:/token\"}","t":"x{\"$attune_"}`),
	}
	require.Equal(t, eventing.Result{Events: 3, Created: 8, Disabled: 1}, b.match(events...))

	keys, err := secret.NewKeyring(key)
	require.NoError(t, err)
	for _, event := range events {
		for _, id := range []int64{
			b.id(`select id from enforcement where event = $1 and rule_ref = 'demo.forged'`, event),
			b.id(`select id from enforcement where event = $1 and rule_ref = 'demo.whole'`, event),
		} {
			for _, one := range b.sealed(id) {
				require.Equal(t, secret.FromSchema, one.Kind)
				opened, err := keys.Open(one)
				require.NoError(t, err)
				require.NotContains(t, fmt.Sprint(opened), "hush")
			}
		}
		own := b.sealed(b.id(`select id from enforcement where event = $1 and rule = $2`, event, honest))
		require.Len(t, own, 1)
		opened, err := keys.Open(own[0])
		require.NoError(t, err)
		require.Equal(t, "hush", opened, "a rule still passes on the values of its pack")
	}
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from enforcement where error is not null`),
		"a ciphertext put together from parts is refused")
}

// sealed are the secrets of an enforcement.
func (b *bundle) sealed(enforcement int64) []secret.Sealed {
	b.t.Helper()
	rows, err := b.store.ReadSecretValues(testkit.Context(b.t), []int64{enforcement}, secret.OfEnforcement)
	require.NoError(b.t, err)
	var all []secret.Sealed
	for _, row := range rows {
		all = append(all, secret.Sealed{
			Path: row.JsonPath, Kind: row.SourceKind, Value: row.EncryptedValue,
			KeyHash: row.EncryptionKeyHash,
		})
	}
	return all
}
