package app

import (
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/widget"
)

func TestHelpNamesEveryKeyThatWorksHere(t *testing.T) {
	t.Parallel()
	for _, view := range keymap.Scopes {
		for _, w := range []int{60, 80, 100, 140} {
			b := started(t, sample(), w, 250, func(o *Options) { o.Acts = &fakeActs{} })
			b.open(view)
			b.press("?")
			shown := b.View()
			for _, binding := range keymap.BuiltIn.For(view) {
				require.Contains(t, shown, binding.Help[:min(len(binding.Help), 14)], "%s at %d", view, w)
			}
		}
	}
}

func TestHelpIsSearched(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", "?", "/")
	b.press("r", "e", "q", "u")
	require.Contains(t, b.View(), "requeue the dead letter", "a key of another view")
	require.Contains(t, b.frame()[4], "dlq", "and where it works")
	require.NotContains(t, b.View(), "row down")
	b.press("enter", "j", "k", "q")
	require.NotNil(t, b.help(), "first the search is left")
	require.Contains(t, b.View(), "row down")
	b.press("/", "n", "o", "s", "u", "c", "h")
	require.Contains(t, b.View(), "No key matches")
	b.press("esc", "esc")
	require.Nil(t, b.help())
	require.Equal(t, keymap.InQueues, b.view)
}

func TestHelpIsOpenedAtATopic(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("3")
	b.enter("help filter")
	require.Contains(t, b.frame()[3], "FILTER")
	require.Contains(t, b.frame()[4], "status:requested")
	b.press("esc")
	require.NotNil(t, b.help(), "all of the help")
	b.press("esc")
	b.enter("help commands")
	require.Contains(t, b.View(), ":help [TOPIC]")
	require.NotContains(t, b.View(), "Every change first shows a plan")
	b.press("esc", "esc")
	b.enter("help dlq")
	require.Contains(t, b.View(), "requeue the dead letter")
	require.NotContains(t, b.View(), "acknowledge in this session")
	b.press("esc", "esc")
	b.enter("help nonsense")
	require.Contains(t, b.View(), "No key matches")
}

// Where nothing can be acted upon the keys that act are hidden, and the help says why.
func TestKeysThatActAreHiddenWhereNothingCanBeActedUpon(t *testing.T) {
	source := sample()
	audit := *source.audit
	audit.ReadOnly = "the login viewer may not write here"
	source.audit = &audit
	b := started(t, source, 140, 200, func(o *Options) { o.Acts = &fakeActs{} })
	for _, view := range keymap.Scopes {
		b.open(view)
		require.NotContains(t, b.frame()[0], "RW")
		require.Contains(t, b.frame()[0], " RO ")
		b.press("?")
		for _, binding := range keymap.BuiltIn.For(view) {
			if binding.Acts {
				require.NotContains(t, b.View(), binding.Help, "%s", view)
			}
		}
		require.Contains(t, b.View(), "the login viewer may not write here")
		b.press("esc")
	}
	b.press("5", "R")
	require.Empty(t, b.stage())
	require.Contains(t, b.messages(), "the login viewer may not write here")
}

func TestHelpAndHintsShowTheKeysOfTheOperator(t *testing.T) {
	t.Parallel()
	keys, err := keymap.New([]keymap.Change{
		{Action: keymap.Filter, Keys: []string{"f4"}},
		{Action: keymap.Help, Keys: []string{"f1"}},
	})
	require.NoError(t, err)
	b := started(t, sample(), 120, 34, func(o *Options) { o.Keys = keys })
	b.press("4")
	last := b.frame()[33]
	require.Contains(t, last, "f4 filter")
	require.Contains(t, last, "f1 help")
	b.send(tea.KeyMsg{Type: tea.KeyF1})
	require.Contains(t, b.View(), " f4        filter")
	require.NotContains(t, b.View(), " /         filter")
}

// The line of keys names the way to all other keys in every view at every width,
// whether acting is allowed or not.
func TestTheLineOfKeysAlwaysEndsWithHelp(t *testing.T) {
	t.Parallel()
	for _, locked := range []string{"", "read-only"} {
		b := started(t, sample(), 140, 40, func(o *Options) { o.ReadOnly = locked })
		for _, view := range keymap.Scopes {
			b.open(view)
			for _, width := range []int{60, 80, 100, 120, 140, 200} {
				b.send(tea.WindowSizeMsg{Width: width, Height: 30})
				frame := b.frame()
				line := frame[len(frame)-1]
				require.True(t, strings.HasSuffix(strings.TrimRight(line, " "), "? help"), "%s at %d: %q", view, width,
					line)
				require.LessOrEqual(t, widget.Width(line), width, view)
			}
		}
	}
}
