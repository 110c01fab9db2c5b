package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// reopen is a started dashboard in a view, with every reading of the view answered at least once.
func reopen(t *testing.T, view screen.View, w, h int) *bundle {
	t.Helper()
	b := started(t, sample(), w, h)
	b.open(view)
	b.run(b.follow(nil))
	b.run(b.refresh())
	require.Equal(t, view, b.view)
	require.NotContains(t, b.frame()[2], "old")
	return b
}

// TestNoScreenShowsAnOldReadingAsPresent: of every screen each reading fails alone, and hangs alone while the clock
// goes on. The title says of which reading, and how old it is; a failure stands in the message line too.
func TestNoScreenShowsAnOldReadingAsPresent(t *testing.T) {
	t.Parallel()
	require.Len(t, setup(t, sample()).screens, len(keymap.Scopes), "every screen is tried")
	for _, view := range keymap.Scopes {
		for _, size := range [][2]int{{80, 24}, {140, 40}} {
			t.Run(fmt.Sprint(view, size[0]), func(t *testing.T) {
				t.Parallel()
				feeds := reopen(t, view, size[0], size[1]).screen().Feeds()
				require.NotEmpty(t, feeds)
				for i, feed := range feeds {
					name := ""
					if i > 0 {
						name = feedWord(feed) + " "
					}
					b := reopen(t, view, size[0], size[1])
					b.source.fail = map[screen.Feed]error{feed: errors.New("canceling statement due to timeout")}
					if feed == screen.FeedGlance { // the preview reads one execution
						b.source.fail[screen.FeedExecution] = b.source.fail[feed]
					}
					for range 3 {
						b.now = b.now.Add(15 * time.Second)
						b.dates()
						for _, one := range feeds {
							b.run(b.restart(one))
						}
					}
					if feed != screen.FeedLedger { // it reads only the older entries
						require.Contains(t, b.frame()[2], "? "+name+"last read 45s ago", feed)
						require.Contains(t, b.frame()[size[1]-2], "canceling statement", feed)
					}

					b = reopen(t, view, size[0], size[1])
					b.now = b.now.Add(10 * time.Minute)
					if feedNamed[feed].once(b.Model) {
						continue // other readings extend the past
					}
					for _, one := range feeds {
						if one != feed {
							b.env.Data.Fresh(one).At = b.now
						}
					}
					b.send(clockMsg{})
					require.Contains(t, b.frame()[2], name+widget.Age(10*time.Minute)+" old", feed)
					b.send(snapMsg{
						feed: feed, gen: b.chain(feed).gen, result: nil, took: 12 * time.Second,
						err: errors.New("deadline"),
					})
					require.Contains(t, b.frame()[2], "? "+name+"last read "+widget.Age(10*time.Minute)+" ago", feed)
				}
			})
		}
	}
}

// TestASlowReadingIsOldFromItsBegin: a read of twelve seconds says nothing about the last twelve, and the longer
// interval of a slow source is no excuse.
func TestASlowReadingIsOldFromItsBegin(t *testing.T) {
	b := reopen(t, keymap.InQueues, 80, 24)
	b.send(snapMsg{
		feed: screen.FeedQueues, gen: b.chain(screen.FeedQueues).gen, result: b.source.queues, took: 12 * time.Second,
	})
	require.Contains(t, b.frame()[2], "12s old")
	b.now = b.now.Add(8 * time.Second)
	b.send(clockMsg{})
	require.Contains(t, b.frame()[2], "20s old")
}

// TestAnEmptyScreenSaysWhenItWasRead, also in 80 columns.
func TestAnEmptyScreenSaysWhenItWasRead(t *testing.T) {
	t.Parallel()
	for _, view := range Views {
		b := started(t, empty(), 80, 24)
		b.open(view)
		b.now = b.now.Add(2 * time.Second)
		b.send(clockMsg{})
		if list, ok := b.screen().(screen.Listed); ok && list.Len() == 0 {
			require.Contains(t, b.frame()[2], "read 2s ago", view)
		}
	}
}

// TestCalmIsGreenOnlyIfAllIsKnown and recent.
func TestCalmIsGreenOnlyIfAllIsKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(b *bundle)
		says   string
	}{
		"unknown checks": {func(b *bundle) {
			b.source.checks = &monitor.Checks{List: []monitor.Check{{Name: "a", Status: monitor.CheckUnknown}}}
			b.run(b.refresh())
		}, "Nothing that could be checked needs attention since 01:55:04Z, 3s ago."},
		"unread checks": {func(b *bundle) {
			b.source.fail = map[screen.Feed]error{screen.FeedChecks: errors.New("canceling statement due to timeout")}
			b.run(b.refresh())
		}, "▲ the checks cannot be read"},
		"old": {func(b *bundle) {
			b.now = b.now.Add(time.Minute)
			b.send(clockMsg{})
		}, "▲ Nothing needed attention since 01:55:04Z, 1m03s ago."},
	} {
		b := started(t, calm(), 80, 24)
		require.Contains(t, b.View(), "✓ Nothing needs attention since 01:55:04Z, 3s ago.")
		c.change(b)
		require.Contains(t, b.View(), c.says, name)
		require.NotContains(t, b.View(), "✓ Nothing", name)
		b.press("3")
		b.run(b.refresh())
		if name == "unread checks" {
			require.Contains(t, b.frame()[0], "▲1", "the header counts them in every view")
		}
	}
}

// TestTheHeaderSaysThatADialogHoldsItBack: the numbers of findings do not change either.
func TestTheHeaderSaysThatADialogHoldsItBack(t *testing.T) {
	t.Parallel()
	for _, w := range []int{60, 80, 140} {
		b := acting(t, &fakeActs{}, w, 24)
		b.press("A")
		require.NotContains(t, b.frame()[0], "held")
		b.now = b.now.Add(34 * time.Second)
		b.dates()
		b.run(b.refresh())
		require.Contains(t, b.frame()[0], "▣ held 34s")
		b.press("esc")
		require.False(t, strings.Contains(b.frame()[0], "held"))
	}
}

// TestAMissingHalfIsNoAnswer: the database's half of a reading failed, and the broker answered. What was read before
// stays, with its age; without that nothing is said to be empty.
func TestAMissingHalfIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {140, 40}} {
		b := reopen(t, keymap.InDeadLetters, size[0], size[1])
		whole := *b.source.dead
		half := &monitor.DeadLetters{Queue: whole.Queue, Reading: monitor.Reading{Sources: []monitor.Source{
			{Name: monitor.SourceDatabase, Error: "locked", Err: errors.New("locked")}, {Name: monitor.SourceBroker},
		}}}
		b.source.dead = half
		b.now = b.now.Add(31 * time.Second)
		b.run(b.refresh())
		require.Contains(t, b.frame()[2], "? last read 31s ago")
		require.Contains(t, b.View(), "this view cannot be read: ")
		require.Same(t, whole.Ledger, b.env.Data.DeadLetters.Ledger)

		source := sample()
		source.dead = half
		first := started(t, source, size[0], size[1])
		first.press("5")
		require.Contains(t, first.View(), "it could not be read")
		require.NotContains(t, first.View(), "migrate up")
	}
}

// TestADeadReplicaIsNeverGreen, however long it is dead; its loops do not tick.
func TestADeadReplicaIsNeverGreen(t *testing.T) {
	source := sample()
	all := *source.overview.Replicas
	all.List, all.Well = slices.Clone(all.List), 1
	all.List[1].Age, all.List[1].Problems = 11*time.Minute, []string{"silent for 11m"}
	source.overview.Replicas = &all
	b := started(t, source, 80, 24)
	require.Contains(t, b.View(), "ENGINE  ▲ 1/2 replicas  oldest tick 12s of 1m57s (timeouts)")
}
