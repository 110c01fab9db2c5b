package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// reversed are the parts of a frame in reverse video. Each is a cursor.
func reversed(frame string) []string {
	var cursors []string
	for _, line := range strings.Split(frame, "\n") {
		if _, rest, found := strings.Cut(line, "\x1b[7m"); found {
			text, _, _ := strings.Cut(rest, "\x1b[0m")
			cursors = append(cursors, ansi.Strip(text))
		}
	}
	return cursors
}

// In every view with several lists, one list has a reversed cursor of its whole width. The cursors of the others are
// dim marks.
func TestOneListHasTheFocus(t *testing.T) {
	t.Parallel()
	looks := map[string]theme.Options{
		"dark": {Name: "dark", Profile: termenv.ANSI256}, "mono": {Name: "mono", Profile: termenv.ANSI256},
		"ascii": {Name: "dark", Profile: termenv.ANSI, ASCII: true},
	}
	lists := map[screen.View][]int{ // the widths of their cursors, in the order of tab; 0 is a pane without one
		keymap.InDeadLetters: {140, 140}, keymap.InWorkflows: {81, 81, 0}, keymap.InAlerts: {140, 140},
		keymap.InQueue: {81, 81}, keymap.InWorker: {81, 0},
	}
	for name, look := range looks {
		for view, widths := range lists {
			t.Run(fmt.Sprintf("%s %s", name, view), func(t *testing.T) {
				t.Parallel()
				source := sample()
				b := started(t, source, 140, 40, func(o *Options) { o.Theme = look })
				b.open(view)
				rest, cursor := "▸", "▶"
				if look.ASCII {
					rest, cursor = ".", ">"
				}
				for _, width := range widths {
					cursors, frame := reversed(b.View()), b.View()
					if width == 0 {
						require.Empty(t, cursors)
					} else {
						require.Len(t, cursors, 1)
						require.True(t, strings.HasPrefix(cursors[0], cursor), cursors[0])
						require.Equal(t, width, ansi.StringWidth(cursors[0]), "it covers the whole list")
					}
					if name == "dark" && (view != keymap.InWorker) {
						require.Contains(t, frame, "\x1b[90m"+rest+"\x1b[0m", "the others have a dim mark")
					}
					b.press("tab")
				}
			})
		}
	}
}

// The title rule of the list with the focus has the colour of the accent.
func TestTheTitleRuleShowsTheFocus(t *testing.T) {
	b := started(t, sample(), 140, 40, func(o *Options) {
		o.Theme = theme.Options{Name: "dark", Profile: termenv.ANSI256}
	})
	b.press("5")
	rule := func(title string) string {
		for _, line := range strings.Split(b.View(), "\n") {
			if strings.HasPrefix(ansi.Strip(line), "─ "+title) {
				return line
			}
		}
		t.Fatalf("no rule %s in\n%s", title, b.View())
		return ""
	}
	accent, dim := b.env.Theme.Start(theme.Accent), b.env.Theme.Start(theme.Dim)
	require.True(t, strings.HasPrefix(rule("DLQ"), accent), "%q", rule("DLQ"))
	require.True(t, strings.HasPrefix(rule("groups"), dim))
	b.press("tab")
	require.True(t, strings.HasPrefix(rule("DLQ"), dim))
	require.True(t, strings.HasPrefix(rule("groups"), accent))
	b.press("esc")
	require.True(t, strings.HasPrefix(rule("DLQ"), accent))
}
