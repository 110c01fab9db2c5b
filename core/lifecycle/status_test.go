package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseStatusReadsEverySpellingThatWorkersSend(t *testing.T) {
	t.Parallel()
	for _, s := range lifecycle.Statuses {
		got, err := lifecycle.ParseStatus(string(s))
		require.NoError(t, err)
		require.Equal(t, s, got)
		require.True(t, s.Valid())
	}
	got, err := lifecycle.ParseStatus("Completed")
	require.NoError(t, err)
	require.Equal(t, lifecycle.StatusCompleted, got)
	_, err = lifecycle.ParseStatus("canceled") // one l is the transitional status only
	require.ErrorContains(t, err, `"canceled"`)
	require.False(t, lifecycle.Status("unknown").Valid())
}

// S8: terminal statuses are final, and from every other one an end can be
// reached.
func TestTransitionTable(t *testing.T) {
	t.Parallel()
	for _, s := range lifecycle.Statuses {
		require.Equal(t, s.Terminal(), len(lifecycle.Successors(s)) == 0, "%s", s)
	}
	seen := map[lifecycle.Transition]bool{}
	for _, tr := range lifecycle.Transitions {
		require.True(t, tr.From.Valid() && tr.To.Valid(), "%v", tr)
		require.NotEmpty(t, tr.Why)
		key := lifecycle.Transition{From: tr.From, To: tr.To}
		require.False(t, seen[key], "%s → %s is listed twice", tr.From, tr.To)
		seen[key] = true
		require.True(t, lifecycle.CanMove(tr.From, tr.To))
	}
	require.False(t, lifecycle.CanMove(lifecycle.StatusCompleted, lifecycle.StatusRunning))
	require.False(t, lifecycle.CanMove(lifecycle.StatusRequested, lifecycle.StatusCompleted))
	for _, s := range lifecycle.Statuses {
		require.False(t, s.Terminal() && s.HoldsSlot(), "%s", s)
		require.True(t, s.Terminal() || reachesAnEnd(s, map[lifecycle.Status]bool{}), "%s never ends", s)
	}
	require.True(t, lifecycle.StatusCompleted.Succeeded())
	require.False(t, lifecycle.StatusFailed.Succeeded())
}

func reachesAnEnd(s lifecycle.Status, seen map[lifecycle.Status]bool) bool {
	if s.Terminal() {
		return true
	}
	if seen[s] {
		return false
	}
	seen[s] = true
	for _, next := range lifecycle.Successors(s) {
		if reachesAnEnd(next, seen) {
			return true
		}
	}
	return false
}
