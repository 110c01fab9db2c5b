package catalog_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// shop is a pack with one of everything.
var shop = map[string]string{
	"pack.yaml": "ref: shop\nversion: 1.0.0\nconfig: {currency: EUR}\n",
	"actions/charge.yaml": "ref: shop.charge\nentry_point: charge.py\nrunner_type: python\nmax_retries: 2\n" +
		"parameters: {amount: {type: number, default: 1.0}, card: {type: string, secret: true}}\n",
	"actions/order.yaml":                    "ref: shop.order\nworkflow_file: workflows/order.workflow.yaml\nparameters: {amount: {type: number}}\n",
	"actions/workflows/order.workflow.yaml": "version: 1.0.0\ntasks:\n  - name: charge\n    action: shop.charge\n    input: {amount: '{{ parameters.amount }}'}\n",
	"triggers/ordered.yaml":                 "ref: shop.ordered\noutput: {amount: {type: number}}\n",
	"rules/on_order.yaml": "ref: on_order\ntrigger: ordered\naction: order\n" +
		"conditions: {expression: 'event.payload.amount > 0'}\naction_params: {amount: '{{ event.payload.amount }}'}\n",
	"policies/limit.yaml": "ref: shop.limit\naction: shop.charge\nthreshold: 3\nparameters: [card]\n",
}

// folder writes a pack with changes; an empty text leaves a file out.
func folder(t *testing.T, files map[string]string, changes ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "shop")
	changed := map[string]string{}
	for i := 0; i+1 < len(changes); i += 2 {
		changed[changes[i]] = changes[i+1]
	}
	for name, content := range files {
		if other, ok := changed[name]; ok {
			content = other
			delete(changed, name)
		}
		put(t, root, name, content)
	}
	for name, content := range changed {
		put(t, root, name, content)
	}
	return root
}

func put(t *testing.T, root, name, content string) {
	t.Helper()
	if content == "" {
		return
	}
	path := filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	if found := scriptName.FindStringSubmatch(content); found != nil { // apply refuses an action without its script
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), found[1]), nil, 0o600))
	}
}

var scriptName = regexp.MustCompile(`entry_point: (\w+\.(?:sh|py))\b`)

// order reads paths as an application.
func order(t *testing.T, paths ...string) catalog.Request {
	t.Helper()
	files, err := catalog.Read(paths, nil)
	require.NoError(t, err)
	return catalog.Request{
		Set: files.Set, Mistakes: files.Mistakes, Actor: "ada",
		Source: "test",
	}
}

// must applies a request without mistakes.
func (b *bundle) must(t *testing.T, request catalog.Request) catalog.Result {
	t.Helper()
	result, err := b.catalog.Apply(t.Context(), request)
	require.NoError(t, err)
	return result
}

// happened lists the changes as their kind, the kind of the item and its ref, without unchanged items.
func happened(result catalog.Result) []string {
	list := []string{}
	for _, change := range result.Changes {
		if change.How != catalog.Unchanged {
			list = append(list, string(change.How)+" "+string(change.Kind)+" "+change.Ref)
		}
	}
	return list
}

// doc is a row of a table but for its clocks.
func (b *bundle) doc(t *testing.T, table, ref string) map[string]any {
	t.Helper()
	var text string
	require.NoError(t, b.store.Pool().QueryRow(t.Context(),
		"select to_jsonb(x) - 'created' - 'updated' from "+table+" x where ref = $1", ref).Scan(&text))
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	return doc
}

// everything is a fingerprint of all tables that applications write.
func (b *bundle) everything(t *testing.T) string {
	t.Helper()
	var text string
	require.NoError(t, b.store.Pool().QueryRow(t.Context(), `
		select md5(coalesce(string_agg(x::text, ',' order by x::text), '')) from (
			select to_jsonb(p) from pack p union all select to_jsonb(r) from runtime r union all select to_jsonb(w) from workflow_definition w
			union all select to_jsonb(a) from action a union all select to_jsonb(t) from trigger t union all select to_jsonb(r) from rule r
			union all select to_jsonb(p) from policy p union all select to_jsonb(o) from operator_audit o
			union all select to_jsonb(o) from outbox o) as all_rows (x)`).Scan(&text))
	return text
}

func TestApplyPack(t *testing.T) {
	b := setup(t)
	root := folder(t, shop)
	result := b.must(t, order(t, root))
	require.Equal(t, []string{
		"new pack shop", "new runtime core.python", "new workflow shop.order", "new action shop.charge",
		"new action shop.order",
		"new trigger shop.ordered", "new rule shop.on_order", "new policy shop.limit",
	}, happened(result))

	owner := b.doc(t, "pack", "shop")
	charge := b.doc(t, "action", "shop.charge")
	require.Equal(t, owner["id"], charge["pack"])
	require.Equal(t, b.doc(t, "runtime", "core.python")["id"], charge["runtime"])
	require.InDelta(t, 2, charge["max_retries"], 0)
	placed := b.doc(t, "action", "shop.order")
	definition := b.doc(t, "workflow_definition", "shop.order")
	require.Equal(t, definition["id"], placed["workflow_def"])
	require.Nil(t, placed["runtime"])
	require.Equal(t, "workflows/order.workflow.yaml", placed["entrypoint"])
	require.Equal(t, "1.0.0", definition["version"])
	rule := b.doc(t, "rule", "shop.on_order")
	require.Equal(t, placed["id"], rule["action"])
	require.Equal(t, b.doc(t, "trigger", "shop.ordered")["id"], rule["trigger"])
	require.Equal(t, true, rule["enabled"])
	require.Equal(t, charge["id"], b.doc(t, "policy", "shop.limit")["action"])
	require.Equal(t, 8,
		testkit.Count(t, b.store, "select count(*) from operator_audit where actor = 'ada' and outcome = 'done'"))

	require.Equal(t, []string{message.TypePackRegistered, message.TypeRuleCreated}, b.types())
	registered, err := message.Decode[message.PackRegistered](b.relay.messages[0].Body)
	require.NoError(t, err)
	require.Equal(t, "1.0.0", registered.Payload.Version)
	require.Equal(t, []string{"python"}, registered.Payload.RuntimeNames)
	created, err := message.Decode[message.RuleCreated](b.relay.messages[1].Body)
	require.NoError(t, err)
	require.InDelta(t, rule["action"], *created.Payload.ActionID, 0)
	require.True(t, created.Payload.Enabled)
}

// types are those of the messages that were committed.
func (b *bundle) types() []string {
	var types []string
	for _, one := range b.relay.messages {
		types = append(types, one.Type)
	}
	return types
}

// A repeated application writes no row, no audit row and no message, and neither does a dry run with changes.
func TestApplyPackAgainTouchesNothing(t *testing.T) {
	b := setup(t)
	root := folder(t, shop)
	dry := order(t, root)
	dry.DryRun = true
	before := b.everything(t)
	require.Len(t, happened(b.must(t, dry)), 8)
	require.Equal(t, before, b.everything(t))
	require.Empty(t, b.relay.messages)

	b.must(t, order(t, root))
	before = b.everything(t)
	require.Empty(t, happened(b.must(t, order(t, root))))
	require.Equal(t, before, b.everything(t))
	changed := order(t, folder(t, shop, "pack.yaml", "ref: shop\nversion: 2.0.0\n"))
	changed.DryRun = true
	require.Equal(t, []string{"changed pack shop"}, happened(b.must(t, changed)))
	require.Equal(t, before, b.everything(t))
}

// An application keeps the configuration of a pack in the database, and the state of a rule without `enabled` in its
// file.
func TestOperatorsSettingsStay(t *testing.T) {
	b := setup(t)
	b.must(t, order(t, folder(t, shop)))
	testkit.Exec(t, b.store, `update pack set config = '{"currency": "USD"}' where ref = 'shop'`)
	testkit.Exec(t, b.store, "update rule set enabled = false")
	testkit.Exec(t, b.store, "update trigger set enabled = false")
	require.Empty(t, happened(b.must(t, order(t, folder(t, shop)))))

	b.relay.messages = nil
	enabled := shop["rules/on_order.yaml"] + "enabled: true\n"
	require.Equal(t, []string{"changed rule shop.on_order"},
		happened(b.must(t, order(t, folder(t, shop, "rules/on_order.yaml", enabled)))))
	require.Equal(t, []string{message.TypePackRegistered, message.TypeRuleEnabled}, b.types())
	b.relay.messages = nil
	b.must(t, order(t, folder(t, shop, "rules/on_order.yaml", strings.Replace(enabled, "true", "false", 1))))
	require.Equal(t, []string{message.TypePackRegistered, message.TypeRuleDisabled}, b.types())
}

// An error in the last file, or of the database at the end, prevents all changes.
func TestAnErrorInTheLastFilePreventsAllChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.everything(t)
	for name, tc := range map[string]struct {
		change []string
		want   string
	}{
		"File": {
			[]string{"triggers/zz.yaml", "ref: [\n"},
			"triggers/zz.yaml:1: this is not YAML: did not find expected node content",
		},
		"Action": {
			[]string{"rules/zz.yaml", "ref: zz\ntrigger: ordered\naction: ordr\n"},
			"rules/zz.yaml:3:1: there is no action shop.ordr; the nearest is shop.order",
		},
		"Trigger": {
			[]string{"rules/zz.yaml", "ref: zz\ntrigger: orderd\naction: order\n"},
			"rules/zz.yaml:2:1: there is no trigger shop.orderd; the nearest is shop.ordered",
		},
		"Task": {
			[]string{
				"actions/workflows/order.workflow.yaml",
				"version: 1.0.0\ntasks:\n  - name: a\n    action: shop.chrge\n",
			},
			"actions/workflows/order.workflow.yaml:3:11: there is no action shop.chrge; the nearest is shop.charge",
		},
		"Policy": {
			[]string{
				"policies/zz.yaml",
				"ref: shop.zz\naction: shop.charge\nthreshold: 1\nparameters: [amont]\n",
			},
			"policies/zz.yaml:4:1: the path amont is no parameter of the action shop.charge; the nearest is amount",
		},
		"Workflow": {
			[]string{"actions/order.yaml", "ref: shop.order\nworkflow_file: workflows/none.workflow.yaml\n"},
			"actions/order.yaml:2:1: there is no file actions/workflows/none.workflow.yaml in the pack",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := folder(t, shop, tc.change...)
			_, err := b.catalog.Apply(t.Context(), order(t, root))
			var wrong *pack.MistakesError
			require.ErrorAs(t, err, &wrong)
			require.Contains(t, texts(wrong.Mistakes), root+"/"+tc.want)
			require.Equal(t, before, b.everything(t))
		})
	}
}

func texts(mistakes []pack.Mistake) []string {
	list := make([]string, len(mistakes))
	for i, mistake := range mistakes {
		list[i] = mistake.String()
	}
	return list
}

func TestTheDatabaseRefusesAtTheLastMoment(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, "alter table rule add constraint none check (false)")
	before := b.everything(t)
	_, err := b.catalog.Apply(t.Context(), order(t, folder(t, shop)))
	require.ErrorContains(t, err, "write the rule shop.on_order")
	require.Equal(t, store.ClassRefused, store.ClassOf(err))
	require.Equal(t, before, b.everything(t))
	require.Empty(t, b.relay.messages)
}

// Of concurrent applications of a pack one writes all changes.
func TestPacksAppliedAtOnce(t *testing.T) {
	b := setup(t)
	root := folder(t, shop)
	results := make([][]string, 4)
	var wg sync.WaitGroup
	for i := range results {
		request := order(t, root)
		wg.Go(func() {
			result, err := catalog.New(b.store, nil).Apply(t.Context(), request)
			if err == nil {
				results[i] = happened(result)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(results, func(x, y []string) int { return len(y) - len(x) })
	require.Len(t, results[0], 8)
	require.Equal(t, [][]string{{}, {}, {}}, results[1:])
	require.Equal(t, 8, testkit.Count(t, b.store, "select count(*) from operator_audit"))
}

// Rows that the existing loader has written from the same files stay unchanged, except columns that it does not know.
func TestPacksOfAnotherLoader(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `insert into pack (ref, label, version, config, meta, installed_at) values ('shop', 'Shop', '1.0.0', '{"currency": "EUR"}', '{}', now())`)
	testkit.Exec(t, b.store, `insert into runtime (ref, name, aliases, distributions) values ('core.python', 'Python', '{python3}', '{"x": 1}')`)
	testkit.Exec(t, b.store, `insert into action (ref, pack, pack_ref, label, entrypoint, runtime, max_retries, param_schema)
		select 'shop.charge', p.id, p.ref, 'Charge', 'charge.py', r.id, 2,
		       '{"amount": {"type": "number", "default": 1}, "card": {"type": "string", "secret": true}}'
		from pack p, runtime r where p.ref = 'shop' and r.ref = 'core.python'`)
	testkit.Exec(t, b.store, `insert into trigger (ref, pack, pack_ref, label, out_schema)
		select 'shop.ordered', id, ref, 'Ordered', '{"amount": {"type": "number"}}' from pack where ref = 'shop'`)
	testkit.Exec(t, b.store, `insert into workflow_definition (ref, pack, pack_ref, label, version, param_schema, definition)
		select 'shop.order', id, ref, 'Order', '1.0.0', '{"amount": {"type": "number"}}',
		       '{"ref": "shop.order", "label": "Order", "description": null, "version": "1.0.0", "parameters": null, "output": null, "vars": {},
		         "tasks": [{"name": "charge", "type": "action", "action": "shop.charge", "input": {"amount": "{{ parameters.amount }}"},
		                    "when": null, "with_items": null, "retry": null, "next": [], "on_success": null, "join": null}],
		         "output_map": null, "tags": []}'
		from pack where ref = 'shop'`)
	result := b.must(t, order(t, folder(t, shop)))
	require.Equal(t, []string{"new action shop.order", "new rule shop.on_order", "new policy shop.limit"},
		happened(result))
}

// Items that were created by hand or belong to another pack are refused.
func TestForeignItemsAreRefused(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `insert into pack (ref, label, version) values ('shop', 'Shop', '1.0.0')`)
	testkit.Exec(t, b.store, `insert into trigger (ref, pack, pack_ref, label, is_adhoc)
		select 'shop.ordered', id, ref, 'By hand', true from pack where ref = 'shop'`)
	root := folder(t, shop)
	_, err := b.catalog.Apply(t.Context(), order(t, root))
	require.ErrorContains(t, err, root+"/triggers/ordered.yaml:1:1: the trigger shop.ordered was made by hand; delete it there, or give this one another ref")
}

// Items that are missing in the folder are deleted on request only, and never while their executions run.
func TestPrune(t *testing.T) {
	b := setup(t)
	b.must(t, order(t, folder(t, shop)))
	testkit.Exec(t, b.store, `insert into rule (ref, pack, pack_ref, label, action_ref, trigger_ref, enabled, is_adhoc)
		select 'shop.mine', id, ref, 'By hand', 'x.y', 'x.z', true, true from pack where ref = 'shop'`)
	less := folder(t, shop, "rules/on_order.yaml", "", "actions/order.yaml", "",
		"actions/workflows/order.workflow.yaml", "")
	require.Empty(t, happened(b.must(t, order(t, less))))
	request := order(t, less)
	request.Prune = true
	one := order(t, filepath.Join(less, "actions", "charge.yaml"))
	one.Prune = true
	require.Empty(t, happened(b.must(t, one)), "a single file does not describe the rest of its pack")

	id := b.doc(t, "action", "shop.order")["id"]
	testkit.Exec(t, b.store, "insert into execution (action, action_ref) values ($1, 'shop.order')", id)
	_, err := b.catalog.Apply(t.Context(), request)
	var busy *catalog.BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, "the action shop.order is not deleted: 1 of its executions have not ended", busy.Error())
	testkit.Exec(t, b.store, "update execution set status = 'completed'")

	b.relay.messages = nil
	some := request
	some.PruneOnly = []catalog.Name{{Kind: pack.KindRule, Ref: "shop.on_order"}}
	require.Equal(t, []string{"deleted rule shop.on_order"}, happened(b.must(t, some)))
	require.Equal(t, []string{message.TypeRuleDisabled}, b.types())
	require.Equal(t, []string{"deleted action shop.order", "deleted workflow shop.order"}, happened(b.must(t, request)))
	require.Equal(t, 1, testkit.Count(t, b.store, "select count(*) from rule"), "that of a person is left")
	require.Equal(t, 1, testkit.Count(t, b.store, "select count(*) from policy"))
}

// A rule runs its action again after the action was deleted and applied again.
func TestReferencesToDeletedItemsAreRestored(t *testing.T) {
	b := setup(t)
	root := folder(t, shop)
	b.must(t, order(t, root))
	testkit.Exec(t, b.store, "delete from action where ref = 'shop.order'")
	require.Nil(t, b.doc(t, "rule", "shop.on_order")["action"])
	require.Equal(t, []string{"new action shop.order", "changed rule shop.on_order"},
		happened(b.must(t, order(t, root))))
	require.Equal(t, b.doc(t, "action", "shop.order")["id"], b.doc(t, "rule", "shop.on_order")["action"])
}

// Numbers are compared by value, however the database writes them.
func TestNumbersOfItemsAreComparedByValue(t *testing.T) {
	b, root := setup(t), t.TempDir()
	apply := func(numbers string) []string {
		put(t, root, "deploy/pack.yaml", "ref: deploy\nversion: 1.0.0\n")
		put(t, root, "deploy/actions/x.yaml", "ref: deploy.x\nentry_point: echo\nparameters: {a: {default: "+numbers+"}}\n")
		return happened(b.must(t, order(t, root)))
	}
	apply("[18446744073709551617, 1e400, -0, -0.0, 1.5e3, 1e-400]")
	require.Empty(t, apply("[18446744073709551617, 1e400, -0, -0.0, 1.5e3, 1e-400]"))
	require.Empty(t, apply("[18446744073709551617, 10e399, 0, 0.0, 1500, 0.1e-399]"))
	for _, other := range []string{"1e-400, 18446744073709551616", "2e-400, 18446744073709551617"} {
		require.Equal(t, []string{"changed action deploy.x"}, apply("["+other+"]"), other)
	}
	require.Equal(t, []string{"changed action deploy.x"}, apply("[1e-400, 18446744073709551617]"), "not 0")
}
