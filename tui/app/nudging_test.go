package app

import (
	"context"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/screen"
)

// nudge notifies the model of a change.
func (b *bundle) nudge() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	cancel()
	b.conn.listening = ctx
	b.send(nudgeMsg{b.conn})
}

// A change brings the next poll of executions forward, and no poll is doubled by it.
func TestANudgeBringsThePollForward(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("3")
	old := b.chain(screen.FeedExecutions).gen
	calls := b.source.count(screen.FeedExecutions)
	b.now = b.now.Add(time.Second)
	b.nudge()
	require.Equal(t, calls+1, b.source.count(screen.FeedExecutions))
	b.send(dueMsg{feed: screen.FeedExecutions, gen: old})
	require.Equal(t, calls+1, b.source.count(screen.FeedExecutions), "the poll that was armed before is this one")

	b.timers.pending = nil
	b.now = b.now.Add(100 * time.Millisecond)
	b.nudge()
	require.Equal(t, calls+1, b.source.count(screen.FeedExecutions), "it was read just now")
	require.Equal(t, DefaultRefresh/4-100*time.Millisecond, b.timers.due(screen.FeedExecutions)[0].after,
		"so it is read soon")
	b.env.Data.Fresh(screen.FeedExecutions).Took = time.Second
	b.timers.pending = nil
	b.nudge()
	require.Equal(t, 1900*time.Millisecond, b.timers.due(screen.FeedExecutions)[0].after,
		"a slow feed is not read more often")
	require.Empty(t, b.timers.due(screen.FeedOverview), "nothing else is brought forward")
}

func TestNothingIsNudgedThatIsFrozenHiddenFailedOrLeft(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.now = b.now.Add(time.Second)
	b.nudge()
	require.Zero(t, b.source.count(screen.FeedExecutions), "the view is not open")
	b.press("3")
	calls := b.source.count(screen.FeedExecutions)
	quiet := func(why string) {
		t.Helper()
		b.now = b.now.Add(time.Second)
		b.nudge()
		require.Equal(t, calls, b.source.count(screen.FeedExecutions), why)
	}
	b.send(tea.BlurMsg{})
	quiet("the terminal has no focus")
	b.blurred = false
	b.env.Data.Fresh(screen.FeedExecutions).Err = errNoRoute
	quiet("it backs off")
	b.env.Data.Fresh(screen.FeedExecutions).Err = nil
	b.send(nudgeMsg{&connection{}})
	require.Equal(t, calls, b.source.count(screen.FeedExecutions), "another installation")
	b.press("p")
	quiet("frozen")
}

// Many changes at once are one nudge.
func TestNudgesAreCoalesced(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := &connection{nudges: make(chan struct{}, 1)}
	p.nudges <- struct{}{}
	require.Equal(t, nudgeMsg{p}, awaitNudge(ctx, p)())
	require.Empty(t, p.nudges)
	cancel()
	require.Nil(t, awaitNudge(ctx, p)(), "it ends with the installation")
}
