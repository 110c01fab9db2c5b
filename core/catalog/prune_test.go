package catalog_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// Deleting a workflow reads its executions and none of others.
func TestPruningReadsOnlyDeletedItems(t *testing.T) {
	b := setup(t)
	ctx := testkit.Context(t)
	testkit.Exec(t, b.store, `INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
		SELECT 'deploy.w' || i, $1, 'deploy', 'x', '1.0.0', '{}' FROM generate_series(1, 200) i`, b.rollout.PackID)
	testkit.Exec(t, b.store, `INSERT INTO execution (action_ref, status, workflow_def)
		SELECT 'deploy.x', 'completed', d.id FROM generate_series(1, 20) i, workflow_definition d`)
	testkit.Exec(t, b.store,
		`INSERT INTO execution (action_ref, status) SELECT 'deploy.x', 'completed' FROM generate_series(1, 4000) i`)
	testkit.Exec(t, b.store, `INSERT INTO workflow_execution (execution, workflow_def, task_graph, status, open)
		SELECT e.id, e.workflow_def, '{}', 'completed', false FROM execution e WHERE e.workflow_def IS NOT NULL`)
	testkit.Exec(t, b.store, `UPDATE workflow_execution SET status = 'running', open = true WHERE id = (SELECT max(id) FROM workflow_execution)`)
	testkit.Exec(t, b.store, `ANALYZE`)

	// The count may include earlier statements of the connection.
	const scanned = `SELECT coalesce(sum(seq_tup_read), 0)::bigint FROM pg_stat_xact_user_tables
		WHERE schemaname = current_schema() AND relname IN ('execution', 'workflow_execution')`
	var before, after int64
	var busy, idle int
	err := b.store.Tx(ctx, "prune", func(ctx context.Context, tx *store.Tx) error {
		if err := tx.QueryRow(ctx, scanned).Scan(&before); err != nil {
			return err
		}
		rows, err := tx.PrunableRows(ctx, store.PrunableRowsParams{
			Packs: []string{"deploy"}, Rules: []string{}, Triggers: []string{}, Actions: []string{b.rollout.Ref},
			Workflows: []string{},
		})
		if err != nil {
			return err
		}
		var ids []int64
		for _, row := range rows {
			if row.Busy > 0 {
				busy++
				continue
			}
			idle++
			ids = append(ids, row.ID)
		}
		if err := tx.PruneWorkflows(ctx, ids[:3]); err != nil {
			return err
		}
		return tx.QueryRow(ctx, scanned).Scan(&after)
	})
	require.NoError(t, err)
	require.Equal(t, []int{1, 199}, []int{busy, idle})
	require.Equal(t, before, after, "rows that were read one after the other")
}

// A single file, even pack.yaml, does not describe the rest of its pack. Nothing is pruned
// then, with a warning.
func TestPruneWantsTheFolder(t *testing.T) {
	b := setup(t)
	root := folder(t, shop)
	b.must(t, order(t, root))
	before := b.everything(t)
	for _, tc := range []struct {
		paths []string
		want  string
	}{
		{
			[]string{"pack.yaml"},
			"pack.yaml:1:1: nothing of the pack shop is pruned: its folder was not read as a whole",
		},
		{
			[]string{"actions/charge.yaml"},
			"actions/charge.yaml:1:1: nothing of the pack shop is pruned: its folder was not read as a whole",
		},
		{
			[]string{"pack.yaml", "rules"},
			"pack.yaml:1:1: nothing of the pack shop is pruned: its folder was not read as a whole",
		},
		{[]string{"policies/limit.yaml"}, "policies/limit.yaml:1:1: nothing is pruned for policies"},
	} {
		paths := make([]string, len(tc.paths))
		for i, path := range tc.paths {
			paths[i] = filepath.Join(root, path)
		}
		request := order(t, paths...)
		require.Empty(t, b.must(t, request).Warnings)
		request.Prune = true
		result := b.must(t, request)
		require.Equal(t, []string{root + "/" + tc.want}, texts(result.Warnings))
		require.Zero(t, result.Count(catalog.Deleted), tc.paths)
		require.Equal(t, before, b.everything(t))
	}
	request := order(t, root, filepath.Join(root, "pack.yaml"), filepath.Join(root, "policies", "limit.yaml"))
	request.Prune = true
	require.Empty(t, b.must(t, request).Warnings)
}

// Files that refer to items which would be deleted are refused, at the place of each reference.
func TestPruneSparesReferredItems(t *testing.T) {
	b := setup(t)
	b.must(t, order(t, folder(t, shop)))
	root := folder(t, shop, "actions/charge.yaml", "", "actions/order.yaml", "ref: shop.order\nentry_point: order.sh\n",
		"actions/workflows/order.workflow.yaml", "", "triggers/ordered.yaml", "",
		"workflows/again.workflow.yaml",
		"ref: shop.again\nversion: 1.0.0\ntasks:\n  - name: charge\n    action: shop.charge\n",
		"rules/on_charge.yaml", "ref: on_charge\ntrigger: ordered\naction: charge\n",
		"rules/near.yaml", "ref: near\ntrigger: ordered\naction: chargee\n")
	want := []string{
		root + "/policies/limit.yaml:2:1: there is no action shop.charge: --prune would delete it",
		root + "/rules/near.yaml:2:1: there is no trigger shop.ordered: --prune would delete it",
		root + "/rules/near.yaml:3:1: there is no action shop.chargee",
		root + "/rules/on_charge.yaml:2:1: there is no trigger shop.ordered: --prune would delete it",
		root + "/rules/on_charge.yaml:3:1: there is no action shop.charge: --prune would delete it",
		root + "/rules/on_order.yaml:2:1: there is no trigger shop.ordered: --prune would delete it",
		root + "/workflows/again.workflow.yaml:4:11: there is no action shop.charge: --prune would delete it",
	}
	before := b.everything(t)
	for _, dry := range []bool{true, false} {
		request := order(t, root)
		require.Empty(t, request.Mistakes)
		request.Prune, request.DryRun = true, dry
		_, err := b.catalog.Apply(t.Context(), request)
		var wrong *pack.MistakesError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, want, texts(wrong.Mistakes))
		require.Equal(t, before, b.everything(t))
	}

	require.NoError(t, os.Remove(filepath.Join(root, "rules", "near.yaml")))
	require.Zero(t, b.must(t, order(t, root)).Count(catalog.Deleted))
	require.Equal(t, b.doc(t, "action", "shop.charge")["id"], b.doc(t, "rule", "shop.on_charge")["action"],
		"without pruning it is still there")
}

// Policies of the folder are deleted. Others stay in force and are named, unless their action is deleted.
func TestPruneDeletesThePoliciesOfTheFolder(t *testing.T) {
	b := setup(t)
	root := folder(t, shop, "policies/wide.yaml", "ref: all.wide\nthreshold: 50\n")
	b.must(t, order(t, root))
	b.apply(t, "ref: shop.night\npack: shop\nthreshold: 9\n---\nref: ops.charge\naction: shop.charge\nthreshold: 2\n---\nref: deploy.other\npack: deploy\nthreshold: 1\n")
	require.NoError(t, os.Remove(filepath.Join(root, "policies", "limit.yaml")))
	require.NoError(t, os.Remove(filepath.Join(root, "policies", "wide.yaml")))

	request := order(t, root)
	result := b.must(t, request)
	require.Zero(t, result.Count(catalog.Deleted))
	require.Empty(t, result.Kept, "only pruning names them")

	request.Prune, request.DryRun = true, true
	want := []string{"deleted policy all.wide", "deleted policy shop.limit"}
	require.Equal(t, want, happened(b.must(t, request)))
	require.Equal(t, 5, b.policies(t))
	request.DryRun, request.PruneOnly = false, []catalog.Name{}
	require.Equal(t, []string{"all.wide", "ops.charge", "shop.limit", "shop.night"}, b.must(t, request).Kept,
		"only what was agreed to")
	request.PruneOnly = nil
	result = b.must(t, request)
	require.Equal(t, want, happened(result))
	require.Equal(t, []string{"ops.charge", "shop.night"}, result.Kept)
	require.Equal(t, 3, b.policies(t))
	require.Equal(t, 2, testkit.Count(t, b.store,
		`select count(*) from operator_audit where action = 'policy.apply' and request->>'change' = 'deleted'`))

	// The policy of an action goes with it, and not in silence.
	request = order(t,
		folder(t, shop, "actions/charge.yaml", "", "policies/limit.yaml", "", "actions/workflows/order.workflow.yaml",
			"version: 1.0.0\ntasks:\n  - name: say\n    action: core.noop\n"))
	request.Prune = true
	result = b.must(t, request)
	require.Contains(t, happened(result), "deleted policy ops.charge")
	require.Equal(t, []string{"shop.night"}, result.Kept)
}

// A deletion is audited with the values of the policy, and a second one finds nothing.
func TestDeletePolicy(t *testing.T) {
	b := setup(t)
	b.apply(t, everyKey)
	gone := catalog.PolicyDeletion{Ref: "deploy.limit", Reason: "the move is over", Actor: "ada", Source: "test"}
	receipt, err := b.catalog.DeletePolicy(t.Context(), gone)
	require.NoError(t, err)
	require.Zero(t, b.policies(t))
	var actor, action, reason, request string
	require.NoError(t, b.store.Pool().QueryRow(t.Context(),
		"select actor, action, reason, request::text from operator_audit where id = $1", receipt.Audit).Scan(&actor,
		&action, &reason, &request))
	require.Equal(t, []string{"ada", "policy.delete", "the move is over"}, []string{actor, action, reason})
	require.Contains(t, request, `{"key": "threshold", "new": "", "old": "5"}`)
	_, err = b.catalog.DeletePolicy(t.Context(), gone)
	require.ErrorIs(t, err, catalog.ErrNoPolicy)
}

// A file with a mistake may describe anything, so a reference is not said to be one to an item that would be deleted.
func TestPruneTellsOnlyOfTheMistake(t *testing.T) {
	b := setup(t)
	b.must(t, order(t, folder(t, shop)))
	root := folder(t, shop, "actions/charge.yaml", "ref: [\n")
	request := order(t, root)
	request.Prune = true
	_, err := b.catalog.Apply(t.Context(), request)
	var wrong *pack.MistakesError
	require.ErrorAs(t, err, &wrong)
	require.Len(t, wrong.Mistakes, 1, "%v", wrong.Mistakes)
	require.Contains(t, wrong.Mistakes[0].String(), root+"/actions/charge.yaml:")
}
