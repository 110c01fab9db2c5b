package eventing_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// node is a node of a plan.
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Plans    []node  `json:"Plans"`
}

func (n node) each(visit func(node)) {
	visit(n)
	for _, child := range n.Plans {
		child.each(visit)
	}
}

// explain runs a statement with the generic plan that a long-lived connection
// keeps, and returns it.
func explain(t *testing.T, st *store.Store, sql string, args ...any) node {
	t.Helper()
	var plans []struct {
		Plan node `json:"Plan"`
	}
	require.NoError(t, json.Unmarshal(testkit.GenericPlan(t, st, "ANALYZE, ", sql, args...), &plans))
	return plans[0].Plan
}

// Upstream 54: of 10,000 rules only those of the trigger are read, by index, and of other tables only rows of the
// batch.
func TestNoStatementReadsMoreThanItIsAbout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.rule("demo.one", `[]`, `{}`)
	testkit.Exec(t, b.store,
		`insert into trigger (ref, label) select 'demo.t' || i, 'x' from generate_series(1, 2000) i`)
	testkit.Exec(t, b.store, `insert into action (ref, pack, pack_ref, label, entrypoint) select 'demo.a' || i, $1, 'demo', 'x', 'x' from generate_series(1, 2000) i`, b.action.PackID)
	testkit.Exec(t, b.store, `insert into rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, enabled)
		select 'demo.other' || i, $1, 'demo', 'x', $2, 'demo.act', null, 'demo.t' || (i % 2000), true from generate_series(1, 10000) i`, b.action.PackID, b.action.ID)
	// All of them are of today, whatever the time is: a partition with a few rows would
	// be read whole.
	testkit.Exec(t, b.store, `insert into event (trigger_ref, created)
		select 'demo.t1', date_trunc('day', now(), 'UTC') + i * interval '4 s' from generate_series(1, 20000) i`)
	testkit.Exec(t, b.store, `insert into event_matched (event) select id from event`)
	testkit.Exec(t, b.store, `insert into enforcement (rule_ref, trigger_ref, event, payload, status) select 'demo.x', 'demo.t1', id, '{}', 'processed' from event`)
	testkit.Exec(t, b.store, `insert into execution (action_ref, enforcement) select 'demo.act', id from enforcement`)
	event := b.event(`{}`)
	b.match(event)
	testkit.Exec(t, b.store, `analyze`)

	ids := []int64{event}
	for name, c := range map[string]struct {
		sql  string
		args []any
		most float64 // rows that may be read of a table
	}{
		"ReadEvents":                {store.ReadEvents, []any{ids, 2 * 24 * 3600.0}, 1},
		"FindRules":                 {store.FindRules, []any{[]string{"demo.door"}, []int64{}, []string{}}, 1},
		"RuleActions":               {store.RuleActions, []any{[]int64{b.action.ID}, []string{}}, 1},
		"CreatedEnforcements":       {store.CreatedEnforcements, []any{ids}, 1},
		"FindForgottenEnforcements": {store.FindForgottenEnforcements, []any{int64(0), 30.0, int32(500)}, 1},
		"FindForgottenEvents": {
			store.FindForgottenEvents,
			[]any{int64(0), 86400.0, 30.0, int32(100), 600.0},
			120,
		},
		"ReadEnforcements": {
			store.ReadEnforcements,
			[]any{[]int64{b.id(`select id from enforcement where event = $1`, event)}},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explain(t, b.store, c.sql, c.args...).each(func(n node) {
				if !slices.Contains([]string{"", "event_matching", "identity"}, n.Relation) {
					require.LessOrEqual(t, n.Rows+n.Removed, c.most, "rows of %s by %s", n.Relation, n.Type)
				}
			})
		})
	}
}
