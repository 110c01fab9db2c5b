package app

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// hinted is a first session.
func hinted(t *testing.T, w, h int, ended func() error) *bundle {
	t.Helper()
	return started(t, sample(), w, h, func(o *Options) { o.Hints, o.HintsEnded = true, ended })
}

// TestEveryNumberedViewHasAHintInItsFirstMinute: three keys in one line above the keys,
// in 80 columns, of keys that work there; the line is no line of the view.
func TestEveryNumberedViewHasAHintInItsFirstMinute(t *testing.T) {
	b, without := hinted(t, 80, 24, nil), started(t, sample(), 80, 24)
	for i, view := range Views {
		key := string(rune('1' + i))
		b.press(key)
		without.press(key)
		line := b.hintLine()
		requireFits(t, b, 80, 24)
		require.Contains(t, b.View(), "b hides this", view)
		require.Equal(t, without.frame()[:22], b.frame()[:22], "%s: nothing else changes", view)
		require.LessOrEqual(t, widget.Width(line), 80)
		shown := 0
		for _, h := range keymap.ViewOf(view).Hints {
			require.True(t, works(b, view, h.Action), "%s in %s", h.Action, view)
			if strings.Contains(ansi.Strip(line), h.Text) {
				shown++
			}
		}
		require.Equal(t, hintsShown, shown, "%s: %s", view, line)
	}
	for _, v := range keymap.Views {
		for _, h := range v.Hints {
			require.True(t, works(b, v.Scope, h.Action), "%s in %s", h.Action, v.Scope)
		}
	}
}

func TestAHintNamesNoKeyThatIsLocked(t *testing.T) {
	b := started(t, sample(), 80, 24,
		func(o *Options) { o.Hints, o.ReadOnly = true, "as it was started with --read-only" })
	b.press("8")
	require.NotContains(t, b.hintLine(), "answers")
	require.Contains(t, b.hintLine(), "filters")
}

// TestHintsEndByTheirKeyOrAfterAMinute, which is remembered once; the key brings them back.
func TestHintsEndByTheirKeyOrAfterAMinute(t *testing.T) {
	ended := 0
	remember := func() error { ended++; return nil }
	b := hinted(t, 80, 24, remember)
	b.press("b")
	require.NotContains(t, b.View(), "hides this")
	require.Equal(t, 1, ended)
	b.press("b")
	require.Contains(t, b.View(), "hides this")
	b.now = b.now.Add(hintTime - time.Second)
	b.send(clockMsg{})
	require.Contains(t, b.View(), "hides this")
	b.now = b.now.Add(time.Second)
	b.send(clockMsg{})
	b.send(clockMsg{})
	require.NotContains(t, b.View(), "hides this")
	require.Equal(t, 2, ended)
}

func TestAnUrgentMessageReplacesAHint(t *testing.T) {
	b := hinted(t, 80, 24, func() error { return errors.New("the disk is full") })
	b.press("?")
	require.NotContains(t, b.View(), "hides this")
	b.press("?")
	b.press("2")
	b.press("/")
	require.NotContains(t, b.View(), "hides this")
	b.press("esc")
	b.source.fail = map[screen.Feed]error{screen.FeedBroker: errors.New("connection refused")}
	b.run(b.refresh())
	require.Contains(t, b.View(), "connection refused")
	require.NotContains(t, b.View(), "hides this")
	b.press("b")
	require.Contains(t, b.View(), "could not be remembered: the disk is full")
}

// works reports whether an action has a key in a view.
func works(b *bundle, view keymap.Scope, action keymap.Action) bool {
	return slices.ContainsFunc(b.keymap.For(view), func(x keymap.Binding) bool { return x.Action == action })
}
