package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The list of workers notes one that restarts again and again, although it is active.
func TestAWorkerThatRestartsAgainAndAgainIsNoted(t *testing.T) {
	source := sample()
	for i := range source.workers.List {
		source.workers.List[i].Restarts, source.workers.List[i].Abandoned = 2, 1
	}
	b := started(t, source, 160, 40)
	b.press("4")
	require.NotContains(t, b.View(), "restarted")
	source.workers.List[0].Restarts, source.workers.List[0].Abandoned = 5, 7
	b = started(t, source, 160, 40)
	b.press("4")
	require.Contains(t, b.View(), "restarted 5 times in 10 min, abandoned 7")
}
