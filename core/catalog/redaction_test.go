package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/lab/testkit"
)

const (
	marker    = `{"$attune_secret":true,"redacted":true}`
	secretive = "ref: shop\nversion: 1.0.0\nconf_schema: {token: {type: string, secret: true}, host: {type: string}}\nconfig: {token: hush, host: here}\n"
	charge    = "ref: on_order\ntrigger: ordered\naction: charge\naction_params: {amount: 2, card: %s}\n"
)

// field returns the shown change of a key of an item.
func field(t *testing.T, result catalog.Result, ref, key string) catalog.FieldChange {
	t.Helper()
	for _, change := range result.Changes {
		for _, one := range change.Fields {
			if change.Ref == ref && one.Key == key {
				return one
			}
		}
	}
	require.Fail(t, "nothing is said", "%s of %s", key, ref)
	return catalog.FieldChange{}
}

// audited counts rows of the audit in which a text stands.
func (b *bundle) audited(t *testing.T, text string) int {
	t.Helper()
	return testkit.Count(t, b.store, `SELECT count(*) FROM operator_audit WHERE request::text LIKE '%' || $1 || '%'`,
		text)
}

// Secrets in the configuration of a pack are stored, and neither shown nor audited.
func TestSecretsOfPacksAreNotShown(t *testing.T) {
	b := setup(t)
	request := order(t, folder(t, shop, "pack.yaml", secretive))
	request.DryRun = true
	hidden := catalog.FieldChange{Key: "config", New: `{"host":"here","token":` + marker + `}`}
	require.Equal(t, hidden, field(t, b.must(t, request), "shop", "config"))
	request.DryRun = false
	require.Equal(t, hidden, field(t, b.must(t, request), "shop", "config"))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM pack WHERE config ->> 'token' = 'hush'`))
	require.Zero(t, b.audited(t, "hush"))
	require.Equal(t, 1, b.audited(t, "redacted"))
}

// A schema that cannot be read may mark anything.
func TestUnreadableSchemasHideEverything(t *testing.T) {
	b := setup(t)
	const rule = "rules/on_order.yaml"
	b.must(t, order(t, folder(t, shop, rule, fmt.Sprintf(charge, "hush"))))
	deep := strings.Repeat(`{"items":`, 70) + `{}` + strings.Repeat(`}`, 70)
	testkit.Exec(t, b.store, `UPDATE action SET param_schema = $1 WHERE ref = 'shop.charge'`,
		`{"type":"array","items":`+deep+`}`)
	result := b.must(t, order(t, folder(t, shop, rule, fmt.Sprintf(charge, "other"))))
	require.Equal(t, catalog.FieldChange{Key: "action_params", Old: marker, New: marker + " (with other secrets)"},
		field(t, result, "shop.on_order", "action_params"))
	require.Zero(t, b.audited(t, "hush"))
}

// Values for secret parameters are not shown, except templates. The schema of the rule's previous action counts too.
func TestSecretsOfRulesAreNotShown(t *testing.T) {
	b := setup(t)
	const rule = "rules/on_order.yaml"
	result := b.must(t, order(t, folder(t, shop, rule, fmt.Sprintf(charge, "hush-one"))))
	hidden := `{"amount":2,"card":` + marker + `}`
	require.Equal(t, catalog.FieldChange{Key: "action_params", New: hidden},
		field(t, result, "shop.on_order", "action_params"))

	result = b.must(t, order(t, folder(t, shop, rule, fmt.Sprintf(charge, "hush-two"))))
	require.Equal(t, catalog.FieldChange{Key: "action_params", Old: hidden, New: hidden + " (with other secrets)"},
		field(t, result, "shop.on_order", "action_params"))

	result = b.must(t, order(t, folder(t, shop, rule, fmt.Sprintf(charge, "'{{ event.payload.card }}'"))))
	template := `{"amount":2,"card":"{{ event.payload.card }}"}`
	require.Equal(t, catalog.FieldChange{Key: "action_params", Old: hidden, New: template},
		field(t, result, "shop.on_order", "action_params"))

	b.must(t, order(t, folder(t, shop, rule, fmt.Sprintf(charge, "'hush-three {{ event.payload.card }}'"))))
	// The file of the rule alone, which names an action of another pack.
	other := folder(t,
		map[string]string{"on_order.yaml": "ref: shop.on_order\npack: shop\ntrigger: shop.ordered\naction: deploy.rollout\naction_params: {region: eu}\n"})
	result = b.must(t, order(t, other+"/on_order.yaml"))
	require.Equal(t, catalog.FieldChange{Key: "action_params", Old: hidden, New: `{"region":"eu"}`},
		field(t, result, "shop.on_order", "action_params"))
	require.Zero(t, b.audited(t, "hush"))
}
