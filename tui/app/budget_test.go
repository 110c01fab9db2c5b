package app

import (
	"errors"
	"slices"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// listed are the views whose rows may be many.
var listed = []screen.View{keymap.InQueues, keymap.InWorkers}

// crowded is a model at 140×40 with many rows, in colour.
func crowded(t *testing.T, source *fakeSource, view screen.View) *bundle {
	t.Helper()
	b := started(t, source, 140, 40, func(o *Options) { o.Theme = theme.Options{Name: "dark"} })
	b.open(view)
	return b
}

// frameTime is the fastest of some frames, each after a key that moves the cursor.
func (b *bundle) frameTime() time.Duration {
	b.t.Helper()
	fastest := time.Hour
	for i := range 60 {
		key := keyMsg([]string{"j", "k", "ctrl+d", "ctrl+u", "end", "gg"}[i%6])
		begun := time.Now()
		b.Update(key)
		_ = b.View()
		fastest = min(fastest, time.Since(begun))
	}
	return fastest
}

// TestAFrameCostsTheSameForManyRows compares frames within one run. With a hundred times as many rows one may take four
// times as long. package widget tests that a table reads visible rows only.
func TestAFrameCostsTheSameForManyRows(t *testing.T) {
	t.Parallel()
	few, many := huge(100), huge(10_000)
	for _, view := range listed {
		small, large := crowded(t, few, view).frameTime(), crowded(t, many, view).frameTime()
		t.Logf("%s: %s with 100 rows, %s with 10,000", view, small, large)
		require.Less(t, large, 4*small, "%s: drawing reads hidden rows", view)
	}
}

// TestAKeyIsAnsweredWhileEveryPollIsStuck runs no command: every key changes the frame without a read.
func TestAKeyIsAnsweredWhileEveryPollIsStuck(t *testing.T) {
	b := started(t, sample(), 140, 40)
	for _, step := range []struct{ key, shows string }{
		{"2", "[2 Queues]"},
		{"?", "keys that work here"},
		{"esc", "[2 Queues]"},
		{"4", "[4 Workers]"},
		{"p", "FROZEN"},
		{"p", "poll 2s"},
		{"/", "/"},
		{"w", "/w"},
		{"esc", "[4 Workers]"},
		{"1", "[1 Overview]"},
		{"j", "▶"},
	} {
		calls := b.allCalls()
		before := b.View()
		_, _ = b.Update(keyMsg(step.key)) // its reads never run
		require.NotEqual(t, before, b.View(), "%q changed nothing", step.key)
		require.Contains(t, b.View(), step.shows)
		require.Equal(t, calls, b.allCalls(), "%q read something on the way", step.key)
	}
	require.True(t, b.quits("ctrl+c"))
}

// allCalls is how often the source was asked for anything.
func (b *bundle) allCalls() (n int) {
	b.source.mu.Lock()
	defer b.source.mu.Unlock()
	for _, calls := range b.source.calls {
		n += calls
	}
	return n
}

// The first frame is drawn before the first reading, and again after each answer or failure.
func TestTheFirstFrameWaitsForNoServer(t *testing.T) {
	t.Parallel()
	for _, view := range Views {
		b := setup(t, sample(), func(o *Options) { o.View = view })
		cmd := b.Init()
		b.Update(tea.WindowSizeMsg{Width: 140, Height: 40})
		requireFits(t, b, 140, 40)
		require.Contains(t, b.View(), "PG ◌ --", "unknown is not zero")
		require.Zero(t, b.allCalls(), "%s reads before it has drawn", view)
		require.NotNil(t, cmd)
	}
}

func TestTheFirstFrameShowsThatBothServersAreDown(t *testing.T) {
	t.Parallel()
	source := sample()
	source.fail = map[screen.Feed]error{}
	for _, feed := range feedNames() {
		source.fail[feed] = errors.New("connection refused")
	}
	for _, view := range Views {
		b := started(t, source, 140, 40, func(o *Options) { o.View = view })
		require.Contains(t, b.View(), "PG ✗ down", view)
		require.Contains(t, b.View(), "MQ ✗ down", view)
		requireFits(t, b, 140, 40)
	}
}

// TestTwoDashboardsShareNothing sorts and filters the answers of one; another with the same answers does not change.
func TestTwoDashboardsShareNothing(t *testing.T) {
	source := sample()
	one, other := started(t, source, 140, 40), started(t, source, 140, 40)
	one.press("2")
	other.press("2")
	before := other.View()
	one.press("s", "1", "j", "j", "/")
	for _, r := range "etl" {
		one.press(string(r))
	}
	one.press("enter")
	require.Equal(t, before, other.View())
	require.True(t, slices.IsSortedFunc(source.queues.List, func(a, b2 monitor.Queue) int { return int(a.ID - b2.ID) }),
		"the answer itself was sorted")
}

func BenchmarkFirstFrame(b *testing.B) {
	t := &testing.T{}
	down := sample()
	down.fail = map[screen.Feed]error{}
	for _, feed := range feedNames() {
		down.fail[feed] = errors.New("connection refused")
	}
	for name, source := range map[string]*fakeSource{"up": sample(), "down": down} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = polled(t, source, 140, 40).View()
			}
		})
	}
}
