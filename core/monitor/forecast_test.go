package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// Empty queues and limits without a policy are shown only on request.
func TestLeftOverQueuesAndLimitsAreNotShown(t *testing.T) {
	b := setup(t, nil)
	action, other := testkit.Action(t, b.Store, "demo.sleep"), testkit.Action(t, b.Store, "demo.plain")
	testkit.Policy(t, b.Store, action, 3, func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant", "region"} })
	mine := testkit.Policy(t, b.Store, action, 3,
		func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "rate", new(int32(60)) })
	group := func(key string, active int32) func(*testkit.StateRow) {
		return func(r *testkit.StateRow) { r.GroupKey, r.Active = &key, active }
	}
	testkit.State(t, b.Store, action, 3) // the plain one
	fits := testkit.State(t, b.Store, action, 3, group(`{"region":"eu","tenant":"a"}`, 0))
	busy := testkit.State(t, b.Store, action, 3, group(`{"zone":"x"}`, 1))
	testkit.State(t, b.Store, action, 3, group(`{"zone":"y"}`, 0))
	plain := testkit.State(t, b.Store, other, 90)
	testkit.Exec(t, b.Store, `insert into admission_scope (kind, scope_key, max_concurrent, active_count, policy, policy_ref)
		values ('global', '', 5, 0, NULL, 'gone'), ('global', ' {"a":1}', 5, 1, NULL, 'gone'), ('rate', $1::bigint::text, 3, 0, $1, 'mine')`, mine.ID)

	q, err := b.Queues(t.Context(), QueueFilter{})
	require.NoError(t, err)
	var ids []int64
	for _, one := range q.List {
		ids = append(ids, one.ID)
	}
	require.ElementsMatch(t, []int64{fits.ID, busy.ID, plain.ID}, ids)
	require.Equal(t, int64(3), q.Totals.Queues)
	require.Equal(t, int64(3), q.Totals.Slots, "only of busy queues")
	q, err = b.Queues(t.Context(), QueueFilter{All: true})
	require.NoError(t, err)
	require.Len(t, q.List, 5)

	for text, want := range map[string]int{"": 2, "demo.sleep": 2, "demo.plain": 1, "nothing": 0} {
		s, err := b.Scopes(t.Context(), text)
		require.NoError(t, err)
		require.Len(t, s.List, want, text)
	}
}
