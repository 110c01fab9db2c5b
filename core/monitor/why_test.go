package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

func TestQueuesTellWhereTheirLimitsComeFrom(t *testing.T) {
	b := setup(t, nil)
	sources := map[string]struct {
		set  string
		want LimitKind
	}{
		"demo.a": {"limit_override = 9, max_concurrent = 9", LimitOverride},
		"demo.b": {"adaptive_limit = 2.5, max_concurrent = 2", LimitAdaptive},
		"demo.c": {"max_concurrent = 5", LimitPolicy},
		"demo.d": {"unlimited = true", LimitNone},
		"demo.e": {"adaptive_limit = 5, max_concurrent = 5", LimitPolicy},
	}
	for ref, source := range sources {
		action := testkit.Action(t, b.Store, ref)
		testkit.Policy(t, b.Store, action, 5)
		state := testkit.State(t, b.Store, action, 5)
		testkit.Exec(t, b.Store, `update execution_admission_state set `+source.set+` where id = $1`, state.ID)
	}
	q, err := b.Queues(t.Context(), QueueFilter{})
	require.NoError(t, err)
	require.Len(t, q.List, len(sources))
	for _, one := range q.List {
		require.Equal(t, sources[one.ActionRef].want, one.LimitFrom.Kind, one.ActionRef)
		require.Equal(t, int64(5), *one.LimitFrom.Threshold)
	}
	testkit.Exec(t, b.Store, `update execution_admission_state set paused = true where limit_override is not null`)
	testkit.Exec(t, b.Store,
		`insert into admission_blocked (state_id, ticket) select id, 1 from execution_admission_state where unlimited`)
	q, err = b.Queues(t.Context(), QueueFilter{Paused: true})
	require.NoError(t, err)
	require.Len(t, q.List, 1)
	require.Equal(t, "demo.a", q.List[0].ActionRef)
	q, err = b.Queues(t.Context(), QueueFilter{Blocked: true})
	require.NoError(t, err)
	require.Len(t, q.List, 1)
	require.Equal(t, "demo.d", q.List[0].ActionRef)
}
