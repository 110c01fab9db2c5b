package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An acknowledged or muted row says so and stays. Mutes end, and a cleared alert has neither.
func TestAlertsAreAcknowledgedAndMutedHere(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.press("7", "i")
	require.Contains(t, b.View(), "Acknowledged in this session")
	require.Contains(t, b.View(), "■ acked")
	b.press("i")
	require.NotContains(t, b.View(), " acked ")
	b.press("m")
	require.Contains(t, b.View(), "muted 15m")
	b.press("m")
	require.NotContains(t, b.View(), "muted 1")
	b.press("m")
	b.now = b.now.Add(16 * time.Minute)
	b.dates()
	require.NotContains(t, b.View(), "Only open")
	b.press("tab", "i")
	require.Contains(t, b.View(), "Only open alerts can be acknowledged")
	require.NotContains(t, b.View(), "muted 1", "a mute ends by itself")
	require.Contains(t, b.View(), ", lasted ")
	b.press("esc", "G", "k", "m")
	require.Contains(t, b.View(), "Only open alerts", "a check is not muted")
}

// A muted alert is counted as muted, and is no problem.
func TestAMuteQuietsTheHeader(t *testing.T) {
	t.Parallel()
	for _, w := range []int{80, 140} {
		source := sample()
		overview := *source.overview
		overview.Alerts = sampleAlerts(source.overview.Reading)
		source.overview = &overview
		b := started(t, source, w, 40)
		b.press("7")
		loud, quiet := "■1 ▲3", "■0 ▲3 ‖1"
		if w > 100 {
			loud, quiet = "■ 1 crit ▲ 3 warn", "■ 0 crit ▲ 3 warn ‖ 1 muted"
		}
		require.Contains(t, b.header(false), loud)
		b.press("m")
		require.Contains(t, b.header(false), quiet)
		b.press("z")
		require.NotContains(t, b.View(), "dead letters growing: +3 in 5m")
		require.Contains(t, b.View(), "core.http_request head waits")
		b.press("1")
		require.Contains(t, b.View(), "dead letters growing", "the overview still has it")
		b.now = b.now.Add(16 * time.Minute)
		b.dates()
		b.tick()
		require.Contains(t, b.header(false), loud)
	}
}
