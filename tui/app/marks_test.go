package app

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

func (b *bundle) messages() string {
	frame := b.frame()
	return strings.TrimSpace(frame[len(frame)-2])
}

func TestRowsAreMarkedByKey(t *testing.T) {
	t.Parallel()
	for _, view := range []string{"2", "3", "4", "5", "6", "7", "8", "9", "L"} {
		b := started(t, sample(), 100, 30)
		b.press(view, "gg", " ")
		require.Contains(t, b.messages(), "1 marked", view)
		require.Contains(t, b.View(), " ✓ ", view)
		b.press("\\")
		require.NotContains(t, b.messages(), "marked", view)
		b.press("*")
		require.NotContains(t, b.messages(), "1 marked", view)
		require.Contains(t, b.messages(), "marked", view)
	}
}

func TestMarksStayOnTheirRowsAndNameThoseThatLeft(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.press("2", " ", "j", "j", "V")
	require.Equal(t, "4 marked", b.messages())
	gone := b.queues.Table().Marked()[0]
	b.unshare()
	list := b.source.queues.List[:0:0]
	for _, q := range b.source.queues.List {
		if q.ActionRef != "pack.sync" {
			list = append(list, q)
		}
	}
	b.source.queues.List = list
	b.press("r")
	require.Equal(t, "4 marked, 1 of them not in the list now: pack.sync", b.messages())
	require.Contains(t, b.queues.Table().Marked(), gone)
}

// w shows the full texts of cut cells of the selected row, in every list.
func TestTheFullTextsOfARowAreShown(t *testing.T) {
	t.Parallel()
	for _, view := range []string{"2", "3", "4", "5", "6", "7", "8", "9"} {
		b := started(t, sample(), 80, 30)
		b.press(view)
		before := b.View()
		b.press("w")
		require.NotEqual(t, before, b.View(), view)
		require.Len(t, b.frame(), 30, view)
		b.press("j", "k", "w")
		require.Equal(t, before, b.View(), view)
	}
	b := started(t, sample(), 80, 30)
	b.press("3", "w")
	require.Contains(t, b.View(), "    REASON  Worker queue TTL expired")
}

func TestColumnsAreChosenInADialog(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.press("2", "c", "j", "j")
	require.Equal(t, keymap.InColumns, b.stage())
	require.Contains(t, b.View(), "▶   [x] RUN/MAX")
	b.press(" ")
	require.Contains(t, b.View(), "[ ] RUN/MAX")
	b.press("esc")
	require.NotContains(t, b.View(), "RUN/MAX")
	require.Contains(t, b.View(), "QUEUED")
	b.press("c", "k", " ", "a", "enter")
	require.Contains(t, b.View(), "RUN/MAX", "a shows all columns")
}

func TestColumnsThatDoNotFitAreReached(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("3")
	require.NotContains(t, b.View(), "PARENT")
	b.press("c")
	require.Regexp(t, `PARENT +no room now`, b.View())
	b.press("esc")
	for range 8 {
		b.press("l")
	}
	require.Contains(t, b.View(), "PARENT")
	require.Contains(t, b.messages(), "columns:")
	for range 8 {
		b.press("h")
	}
	require.NotContains(t, b.View(), "PARENT")
	require.Empty(t, b.messages())
}

func TestEveryListWithColumnsHasATable(t *testing.T) {
	t.Parallel()
	b := setup(t, sample())
	for _, scope := range keymap.Scopes {
		for _, key := range []string{"c", " "} {
			if action, _ := keymap.BuiltIn.Lookup(scope, key); action == keymap.Columns || action == keymap.Mark {
				require.Implements(t, (*screen.Tabular)(nil), b.screens[scope], "%s %s", scope, key)
			}
		}
	}
}
