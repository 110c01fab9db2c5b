package scheduler

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// A batch under way keeps the book it planned by, whatever becomes of the
// cache: an action that vanished from it would count as deleted.
func TestABookOutlivesTheChangesOfTheRules(t *testing.T) {
	t.Parallel()
	r := &ruleCache{}
	planned := r.ruleSet()
	for id := range int64(maxCachedRules + 1) {
		planned.byID[id] = Rule{ActionID: id}
	}
	require.NotSame(t, planned, r.ruleSet(), "a full book is closed")
	r.invalidate(7)
	now := r.ruleSet()
	require.Equal(t, int64(7), now.epoch)
	r.invalidate(7)
	require.Same(t, now, r.ruleSet(), "the same count does not begin a new one")
	id := int64(3)
	_, ok := planned.find(&id, "")
	require.True(t, ok)
	_, ok = now.find(&id, "")
	require.False(t, ok)
}

// SQL and code agree on the parameters by which policies divide executions into groups.
func TestTheShapeOfQueuesIsTheSameInSQLAndCode(t *testing.T) {
	st := testkit.Store(t)
	action, other := testkit.Action(t, st, "pk.a"), testkit.Action(t, st, "elsewhere.a")
	minute, dice := int32(60), rand.New(rand.NewPCG(7, 7))
	for range 40 {
		testkit.Exec(t, st, `DELETE FROM policy`)
		for range dice.IntN(6) {
			of := []testkit.ActionRow{action, action, other}[dice.IntN(3)]
			testkit.Policy(t, st, of, 1+dice.IntN(5), func(p *testkit.PolicyRow) {
				for _, path := range []string{"tenant", "region", "a.b", "Z"} {
					if dice.IntN(3) == 0 {
						p.Parameters = append(p.Parameters, path)
					}
				}
				if kind := dice.IntN(3); kind > 0 {
					p.Kind, p.WindowSeconds = []string{"", "rate", "quota"}[kind], &minute
				}
				switch dice.IntN(4) {
				case 0:
					testkit.OfPack(of)(p)
				case 1:
					testkit.Global(p)
				}
			})
		}
		set := newRuleSet(0)
		require.NoError(t, set.load(testkit.Context(t), st.Queries, []int64{action.ID}, nil))
		rule, ok := set.find(&action.ID, "")
		require.True(t, ok)
		var shape []string
		require.NoError(t,
			st.Pool().QueryRow(testkit.Context(t), `SELECT attune_queue_shape($1)`, action.ID).Scan(&shape))
		want := slices.Sorted(slices.Values(rule.Limits.Queue.Parameters))
		require.ElementsMatch(t, want, shape)
	}
}
