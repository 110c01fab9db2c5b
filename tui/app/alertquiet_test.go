package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAlertsAreAcknowledgedAndMutedHere: the row says so and stays, mutes end by
// themselves, and what is over can be neither.
func TestAlertsAreAcknowledgedAndMutedHere(t *testing.T) {
	t.Parallel()
	b := started(t, sample(), 140, 40)
	b.press("7", "i")
	require.Contains(t, b.View(), "Acknowledged in this session")
	require.Contains(t, b.View(), " seen ")
	b.press("i")
	require.NotContains(t, b.View(), " seen ")
	b.press("m")
	require.Contains(t, b.View(), "muted 15m")
	b.press("m")
	require.NotContains(t, b.View(), "muted 1")
	b.press("m")
	b.now = b.now.Add(16 * time.Minute)
	b.dates()
	require.NotContains(t, b.View(), "Only what")
	b.press("G", "i")
	require.Contains(t, b.View(), "Only what is open can be acknowledged")
	require.NotContains(t, b.View(), "muted 1", "a mute ends by itself")
	require.Contains(t, b.View(), ", lasted ")
}
