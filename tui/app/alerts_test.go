package app

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// TestAlertsLeadToWhatTheyAreAbout: enter goes to the view, narrowed to the target.
func TestAlertsLeadToWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	b := started(t, sample(), 100, 30)
	b.press("7")
	require.Equal(t, keymap.InAlerts, b.view)
	require.Contains(t, b.View(), "evaluated 3s ago by the engine")
	require.Contains(t, b.View(), "dead letters growing: +3 in 5m")
	b.press("j", "enter")
	require.Equal(t, keymap.InQueues, b.view)
	require.Equal(t, "core.http_request", b.queues.Filter())
	b.press("q", "G", "enter")
	require.Equal(t, keymap.InWorkers, b.view, "a past one leads there too")
}

// TestAlertsSayWhoWatches: an empty list is no health while nobody evaluates.
func TestAlertsSayWhoWatches(t *testing.T) {
	t.Parallel()
	b := started(t, empty(), 80, 24)
	b.press("7")
	frame := b.View()
	require.Contains(t, frame, "No replica of the engine evaluates the alerts.")
	require.Contains(t, frame, "Nothing that could be looked at needs attention.")
	b.press("enter")
	require.Equal(t, keymap.InAlerts, b.view)

	b.source.fail = map[screen.Feed]error{screen.FeedAlerts: errors.New("cut off")}
	fresh := started(t, empty(), 80, 24)
	fresh.source.fail = b.source.fail
	fresh.press("7")
	require.Contains(t, fresh.View(), "the alerts cannot be read: cut off")
}

// TestTheOverviewShowsTheAlertsOfTheEngine: what a replica evaluates goes before
// what the dashboard would say by itself; what has not lasted yet matters less.
func TestTheOverviewShowsTheAlertsOfTheEngine(t *testing.T) {
	t.Parallel()
	source := sample()
	alerts := sampleAlerts(source.overview.Reading)
	overview := *source.overview
	overview.Alerts = alerts
	source.overview = &overview
	b := started(t, source, 140, 40)
	found := b.env.Findings()
	require.Len(t, found, 3)
	require.Equal(t, monitor.LevelCritical, found[0].Level)
	require.Equal(t, "dead letters growing: +3 in 5m", found[0].Text)
	require.Equal(t, "core.http_request", found[1].Filter)
	require.WithinDuration(t, frozen.Add(-4*time.Minute), *found[1].Since, time.Second)
	require.Equal(t, "22 % of executions are repetitions", found[2].Text)
}
