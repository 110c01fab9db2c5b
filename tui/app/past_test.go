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
	p := pastOf(at, nil)
	for i := range p.Minutes {
		p.Minutes[i].Done, p.Minutes[i].Failed, p.Minutes[i].Waiting = float64(10*i), float64(i%4), float64(i/10)
		p.Minutes[i].Queued = float64(1204 - 10*(59-i))
		p.Depth = append(p.Depth, monitor.PastDepth{At: p.Minutes[i].At, Ready: int64(i)})
	}
	return p
}

// pastOf is an hour in which as many failed as said, so many minutes ago, and nothing
// else happened.
func pastOf(at time.Time, failed map[int]float64) *monitor.Past {
	p := &monitor.Past{Reading: monitor.Reading{At: at}, DeadLetters: true}
	for i := range 60 {
		n := failed[59-i]
		p.Minutes = append(p.Minutes,
			monitor.PastMinute{At: at.Add(-time.Duration(59-i) * time.Minute), Done: n, Failed: n})
	}
	return p
}

// charts are the bars of the overview's charts of completed and failed executions.
func (b *bundle) charts() []string {
	b.t.Helper()
	var lines []string
	for _, line := range b.frame()[3:] {
		line, _, _ = strings.Cut(line, "│")
		if strings.Contains(line, "┤") {
			lines = append(lines, line)
		}
		if failed, _, found := strings.Cut(line, "dlq waiting"); found {
			return append(lines, failed)
		}
	}
	b.t.Fatal("there are no charts")
	return nil
}

// TestAFreshStartShowsTheLastHour: as the database recorded it, with the number of this
// minute from the polls as soon as they cover one.
func TestAFreshStartShowsTheLastHour(t *testing.T) {
	source := sample()
	source.past = samplePast(frozen)
	b := started(t, source, 140, 40)
	change, known := b.env.Data.History.Change(screen.SeriesDead, 5*time.Minute)
	require.True(t, known)
	require.EqualValues(t, 37-54, change, "the present depth against that of five minutes ago")
	frame := b.View()
	require.Contains(t, frame, "01:19")
	require.Contains(t, frame, "02:19")
	require.Contains(t, frame, "failed 60m")
	require.Contains(t, frame, "█")
	require.Contains(t, frame, "done 590/m")
	b.later(10 * time.Second)
	require.Contains(t, b.View(), "done 590/m", "ten seconds are no minute")
	b.later(50 * time.Second)
	require.Contains(t, b.View(), "done 824/m")

	b = started(t, source, 80, 24)
	require.Contains(t, strings.Split(b.View(), "\n")[3], "▅")
	require.Contains(t, strings.Split(b.View(), "\n")[3], "done 590/m")
}

// The chart has the waiting dead letters of the last hour from the first frame on. Its last bar is the present number.
func TestTheChartOfDeadLettersShowsTheLastHour(t *testing.T) {
	source := sample()
	source.past = pastOf(frozen, nil)
	for i := 20; i < 40; i++ {
		source.past.Minutes[i].Waiting = 8
	}
	source.dead.Ledger.Open.Value = 40
	b := started(t, source, 140, 40)
	require.Regexp(t, `dlq waiting +█+ +0 `, b.View())
	b.press("5")
	_, chart, found := strings.Cut(b.View(), "─ waiting for a person, 60 min ─")
	require.True(t, found, b.View())
	bars := strings.Split(chart, "\n")[1:5]
	require.Regexp(t, `^ +40 ┤ +█$`, strings.TrimRight(bars[0], " "), "the present depth")
	require.Regexp(t, `^ +10 ┤ +[▆▇]{39,41} +█$`, strings.TrimRight(bars[3], " "), "the depth of the last twenty minutes")
	due := b.timers.due(screen.FeedPast)
	require.Equal(t, pastEvery, due[len(due)-1].after, "it is read again while it is shown")

	source = sample()
	source.past, source.dead.Ledger = &monitor.Past{Reading: monitor.Reading{At: frozen}}, nil
	b = started(t, source, 140, 40)
	b.press("5")
	require.NotContains(t, b.View(), "waiting for a person, 60 min", "without a ledger only the broker knows")
}

// A session of any age draws the same charts as a new one, also of bursts within a minute.
func TestARunningAndAFreshSessionDrawTheSame(t *testing.T) {
	source := sample()
	source.past = pastOf(frozen, map[int]float64{31: 200, 30: 12, 2: 40})
	b := started(t, source, 140, 40)
	require.Regexp(t, `failed 60m .*█.* 252 `, b.View())
	empty := b.charts()
	for i := range 8 {
		b.now = b.now.Add(30 * time.Second)
		b.dates()
		b.source.overview.Queues.Completed += 125 // as much as the slots that were released
		source.past = pastOf(b.now,
			map[int]float64{31 + (i+1)/2: 200, 30 + (i+1)/2: 12, 2 + (i+1)/2: 40, (i + 1) / 4: 500})
		b.run(b.fetch(screen.FeedOverview, false))
		due := b.timers.due(screen.FeedPast)
		require.Equal(t, pastEvery, due[len(due)-1].after)
		b.send(due[len(due)-1].msg)
		fresh := setup(t, source)
		fresh.now = b.now
		fresh.send(sized(140, 40))
		fresh.run(fresh.Init())
		require.Equal(t, fresh.charts(), b.charts(), "after %d readings", i+1)
		require.NotEqual(t, empty, b.charts())
	}
	require.Contains(t, strings.Join(b.charts(), "\n"), "752", "the failures of the hour")
	b.press("2")
	calls := source.count(screen.FeedPast)
	due := b.timers.due(screen.FeedPast)
	b.send(due[len(due)-1].msg)
	require.Equal(t, calls+1, source.count(screen.FeedPast))
	require.Len(t, b.timers.due(screen.FeedPast), len(due), "no view that is open draws it")
	b.press("1")
	require.Equal(t, calls+2, source.count(screen.FeedPast))
}

// The minutes of an outage of the database are blank until it is back, and are read then.
func TestTheTimeOfAnOutageIsReadAfterwards(t *testing.T) {
	source := sample()
	source.past = pastOf(frozen, map[int]float64{3: 100})
	b := started(t, source, 140, 40)
	before := b.charts()
	b.now = b.now.Add(10 * time.Minute)
	b.dates()
	b.source.fail = map[screen.Feed]error{}
	for _, feed := range feedNames() {
		if feed != screen.FeedBroker && feed != screen.FeedPast {
			b.source.fail[feed] = errors.New("down")
		}
	}
	source.past = &monitor.Past{Depth: []monitor.PastDepth{{At: b.now}}} // the broker's half
	b.run(b.refresh())
	away := b.charts()
	require.Contains(t, away[len(away)-1], "█", "old data stays")
	require.NotEqual(t, before, away, "at its time")
	b.source.fail = nil
	b.now = b.now.Add(30 * time.Second)
	b.dates()
	b.source.overview.Queues.Completed += 100_000 // a counter that grew while no dashboard ran
	source.past = pastOf(b.now, map[int]float64{13: 100})
	b.run(b.restart(screen.FeedOverview))
	require.Same(t, source.past, b.env.Data.Past, "it is read as soon as the database is back")
	fresh := setup(t, source)
	fresh.now = b.now
	fresh.send(sized(140, 40))
	fresh.run(fresh.Init())
	require.Equal(t, fresh.charts(), b.charts())
	for _, bars := range b.charts()[:4] {
		require.Regexp(t, `^ +\d+ ┤ *█{1,2} *$`, bars, "one minute was busy")
	}
}

// TestWithoutARecordNothingIsInvented: an unrecorded value is no zero.
func TestWithoutARecordNothingIsInvented(t *testing.T) {
	source := sample()
	source.past = &monitor.Past{Reading: monitor.Reading{At: frozen}}
	b := started(t, source, 140, 40)
	require.NotContains(t, b.View(), "failed 60m")
	_, known := b.env.Data.History.PerMinute(screen.SeriesDone)
	require.False(t, known)
	b.later(30 * time.Second)
	require.Contains(t, b.View(), "done 824/m", "then the polls are all there is")
}
