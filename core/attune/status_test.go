package attune_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/attune"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseStatusReadsEverySpellingThatWorkersSend(t *testing.T) {
	t.Parallel()
	for _, s := range attune.Statuses {
		got, err := attune.ParseStatus(string(s))
		require.NoError(t, err)
		require.Equal(t, s, got)
		require.True(t, s.Valid())
	}
	got, err := attune.ParseStatus("Completed")
	require.NoError(t, err)
	require.Equal(t, attune.StatusCompleted, got)
	_, err = attune.ParseStatus("canceled") // one l is the transitional status only
	require.ErrorContains(t, err, `"canceled"`)
	require.False(t, attune.Status("unknown").Valid())
}

// S8: terminal statuses are final, and from every other one an end can be
// reached.
func TestTransitionTable(t *testing.T) {
	t.Parallel()
	for _, s := range attune.Statuses {
		require.Equal(t, s.Terminal(), len(attune.Successors(s)) == 0, "%s", s)
	}
	seen := map[attune.Transition]bool{}
	for _, tr := range attune.Transitions {
		require.True(t, tr.From.Valid() && tr.To.Valid(), "%v", tr)
		require.NotEmpty(t, tr.Why)
		key := attune.Transition{From: tr.From, To: tr.To}
		require.False(t, seen[key], "%s → %s is listed twice", tr.From, tr.To)
		seen[key] = true
		require.True(t, attune.CanMove(tr.From, tr.To))
	}
	require.False(t, attune.CanMove(attune.StatusCompleted, attune.StatusRunning))
	require.False(t, attune.CanMove(attune.StatusRequested, attune.StatusCompleted))
	for _, s := range attune.Statuses {
		require.False(t, s.Terminal() && s.HoldsSlot(), "%s", s)
		require.True(t, s.Terminal() || reachesAnEnd(s, map[attune.Status]bool{}), "%s never ends", s)
	}
	require.True(t, attune.StatusCompleted.Succeeded())
	require.False(t, attune.StatusFailed.Succeeded())
}

func reachesAnEnd(s attune.Status, seen map[attune.Status]bool) bool {
	if s.Terminal() {
		return true
	}
	if seen[s] {
		return false
	}
	seen[s] = true
	for _, next := range attune.Successors(s) {
		if reachesAnEnd(next, seen) {
			return true
		}
	}
	return false
}
