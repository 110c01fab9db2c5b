package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// samplePast is an hour in which more and more was done.
func samplePast(at time.Time) *monitor.Past {
	p := &monitor.Past{Reading: monitor.Reading{At: at}, Letters: true}
	for i := range 60 {
		p.Minutes = append(p.Minutes, monitor.PastMinute{At: at.Add(-time.Duration(59-i) * time.Minute), Done: float64(10 * i), Failed: float64(i % 4), Letters: 1})
		p.Depth = append(p.Depth, monitor.PastDepth{At: at.Add(-time.Duration(59-i) * time.Minute), Ready: int64(i)})
	}
	return p
}

// TestAFreshStartShowsTheLastHour: the trends begin with what is recorded, and the
// polls extend them.
func TestAFreshStartShowsTheLastHour(t *testing.T) {
	t.Parallel()
	source := sample()
	source.past = samplePast(frozen)
	b := started(t, source, 140, 40)
	rates := b.env.Data.History.Rates(screen.SeriesDone, time.Hour, 60)
	require.InDelta(t, 590, rates[59], 0.5)
	require.InDelta(t, 300, rates[30], 0.5)
	change, known := b.env.Data.History.Change(screen.SeriesDead, 5*time.Minute)
	require.True(t, known)
	require.EqualValues(t, 37-54, change, "what waits now against what waited five minutes ago")
	frame := b.View()
	require.Contains(t, frame, "01:19")
	require.Contains(t, frame, "02:19")
	require.Contains(t, frame, "failed 60m")
	require.Contains(t, frame, "█")

	b.later(time.Minute)
	require.Equal(t, 1, source.count(screen.FeedPast), "it is read once")
	rates = b.env.Data.History.Rates(screen.SeriesDone, time.Hour, 60)
	require.InDelta(t, 412, rates[59], 0.5, "the polls go on from there")

	b = started(t, source, 80, 24)
	require.Contains(t, strings.Split(b.View(), "\n")[3], "▅")
}

// TestWhatPassedWhileTheDatabaseWasAwayIsReadAgain, so that no gap stays.
func TestWhatPassedWhileTheDatabaseWasAwayIsReadAgain(t *testing.T) {
	t.Parallel()
	source := sample()
	source.past = samplePast(frozen)
	b := started(t, source, 140, 40)
	b.source.fail = map[screen.Feed]error{screen.FeedOverview: errors.New("down")}
	b.run(b.refresh())
	require.Equal(t, 1, source.count(screen.FeedPast))
	b.source.fail = nil
	b.now = b.now.Add(10 * time.Minute)
	later := samplePast(b.now)
	source.past = later
	b.dates()
	b.run(b.refresh())
	require.Equal(t, 2, source.count(screen.FeedPast))
	require.Same(t, later, b.env.Data.Past)
	rates := b.env.Data.History.Rates(screen.SeriesDone, time.Hour, 60)
	require.InDelta(t, 550, rates[55], 0.5, "the minutes that nobody watched")
}

// TestWithoutARecordNothingIsInvented: what nobody wrote down is no zero.
func TestWithoutARecordNothingIsInvented(t *testing.T) {
	t.Parallel()
	source := sample()
	source.past = &monitor.Past{Reading: monitor.Reading{At: frozen}}
	b := started(t, source, 140, 40)
	require.NotContains(t, b.View(), "failed 60m")
	_, known := b.env.Data.History.PerMinute(screen.SeriesDone)
	require.False(t, known)
}
