package catalog_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// All rules that name an action or a trigger are linked again when it is applied again, also alone.
func TestRulesAreLinkedAgain(t *testing.T) {
	b := setup(t)
	root := folder(t, shop)
	b.must(t, order(t, root))
	testkit.Exec(t, b.store, `insert into rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, enabled, is_adhoc)
		select 'deploy.mine', p.id, p.ref, 'Of another pack', a.id, a.ref, t.id, t.ref, true, true
		from pack p, action a, trigger t where p.ref = 'deploy' and a.ref = 'shop.order' and t.ref = 'shop.ordered'`)
	testkit.Exec(t, b.store, "insert into rule (ref, pack, pack_ref, label, action_ref, trigger_ref, enabled) "+
		"select 'deploy.other', id, ref, 'Of what is not there', 'x.y', 'x.z', true from pack where ref = 'deploy'")
	other := b.doc(t, "rule", "deploy.other")
	both := []string{"changed rule deploy.mine", "changed rule shop.on_order"}
	for _, tc := range []struct{ table, ref, file string }{
		{"trigger", "shop.ordered", "triggers/ordered.yaml"}, {"action", "shop.order", "actions/order.yaml"},
	} {
		testkit.Exec(t, b.store, "delete from "+tc.table+" where ref = $1", tc.ref)
		require.Nil(t, b.doc(t, "rule", "deploy.mine")[tc.table])
		alone := order(t, filepath.Join(root, tc.file))
		b.relay.messages = nil
		dry := alone
		dry.DryRun = true
		require.Equal(t, append([]string{"new " + tc.table + " " + tc.ref}, both...), happened(b.must(t, dry)))
		require.Nil(t, b.doc(t, "rule", "deploy.mine")[tc.table])
		result := b.must(t, alone)
		require.Equal(t, append([]string{"new " + tc.table + " " + tc.ref}, both...), happened(result))
		for _, ref := range []string{"deploy.mine", "shop.on_order"} {
			require.Equal(t, tc.ref+" (linked again)", field(t, result, ref, tc.table).New)
			require.Equal(t, b.doc(t, tc.table, tc.ref)["id"], b.doc(t, "rule", ref)[tc.table])
		}
		if tc.table == "trigger" {
			require.Equal(t, []string{
				message.TypePackRegistered, message.TypePackRegistered, message.TypeRuleEnabled,
				message.TypeRuleEnabled,
			}, b.types(), "sensors begin again")
		}

		testkit.Exec(t, b.store, "update rule set "+tc.table+" = null where ref = 'shop.on_order'")
		require.Equal(t, both[1:], happened(b.must(t, alone)), "the %s is there, and the rule without it", tc.table)
		testkit.Exec(t, b.store, "update rule set "+tc.table+" = null where ref = 'shop.on_order'")
		rule := order(t, filepath.Join(root, "rules", "on_order.yaml"))
		require.Equal(t, both[1:], happened(b.must(t, rule)), "the rule alone")
		require.Equal(t, b.doc(t, tc.table, tc.ref)["id"], b.doc(t, "rule", "shop.on_order")[tc.table])
		require.Empty(t, happened(b.must(t, rule)))
		require.Empty(t, happened(b.must(t, alone)))
	}
	require.Equal(t, other, b.doc(t, "rule", "deploy.other"))
}
