package app

import (
	"fmt"
	"testing"

	"github.com/muesli/termenv"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
)

// Characters that control a terminal, turn the direction of text or are invisible are shown as escapes in lists and
// documents alike.
func TestInvisibleCharactersAreShown(t *testing.T) {
	const foul, shown = "a\x1b[31m\u202eb\u200bc", `a\x1b[31m\u202eb\u200bc`
	source := sample()
	source.workers.List[0].Name = foul
	source.overview.WorkerList = source.workers.List
	source.detail.Config = `{"host": "a` + "\u202eb\u200bc" + `\u001b"}`
	b := started(t, source, 140, 40)
	b.press("4")
	require.Contains(t, b.View(), shown)
	b.open(keymap.InExecution)
	b.execution.Search("host")
	require.Contains(t, b.View(), `"host": "a\u202eb\u200bc\u001b"`)
}

// Colours of the dashboard itself are never taken for text.
func TestNoFrameShowsItsOwnColours(t *testing.T) {
	t.Parallel()
	for _, view := range keymap.Scopes {
		for _, size := range [][2]int{{80, 24}, {140, 40}} {
			t.Run(fmt.Sprint(view, size), func(t *testing.T) {
				t.Parallel()
				b := started(t, sample(), size[0], size[1], func(o *Options) {
					o.Theme = theme.Options{Name: "dark", Profile: termenv.ANSI256}
					o.Acts = &fakeActs{}
				})
				b.open(view)
				for _, key := range []string{
					"r", "tab", "tab", "v", "W", "esc", " ", "w", "z", "?", "esc", "A", "esc", ":",
				} {
					b.press(key)
					require.NotContains(t, b.View(), `\x1b`, "after %s", key)
				}
			})
		}
	}
}
