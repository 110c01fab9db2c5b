package app

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/settings"
)

func TestBookmarksOpenAViewAsItWasArranged(t *testing.T) {
	b := started(t, sample(), 100, 30, func(o *Options) {
		o.Bookmarks = []settings.Bookmark{
			{
				Name: "etl", Key: "e", View: keymap.InQueues, Filter: "etl", Sort: "queued reversed",
				Columns: []string{"queued"},
			},
			{Name: "broken", Key: "b", View: keymap.InExecutions, Filter: "statsu:failed"},
			{Name: "order", Key: "o", View: keymap.InWorkers, Sort: "depth"},
			{Name: "none", Key: "n", View: keymap.InOverview, Sort: "depth"},
		}
	})
	b.press("'")
	require.Contains(t, b.View(), "open  e etl  b broken  o order  n none  esc stays")
	b.press("e")
	require.Equal(t, keymap.InQueues, b.view)
	require.Equal(t, "etl", b.queues.Filter())
	require.Contains(t, b.View(), "QUEUED")
	require.NotContains(t, b.View(), "RUN/MAX")
	require.Equal(t, screen.Order{Column: 1, Reverse: true}, b.queues.Order())
	require.Contains(t, b.View(), "sort queued↑")
	b.press("'", "o")
	require.Contains(t, b.View(), "workers is sorted by one of problem, name, slots, heartbeat, not by depth")
	b.press("'", "n")
	require.Contains(t, b.View(), "the order of overview cannot be chosen")
	b.press("'", "b")
	require.Equal(t, keymap.InExecutions, b.view)
	require.Contains(t, b.View(), "Bookmark broken:")
	b.press("'", "x")
	require.Contains(t, b.View(), "No bookmark has the letter x.")
	b.press("'", "esc")
	require.NotContains(t, b.View(), "esc stays")
}

func TestABookmarkIsSavedFromTheOpenView(t *testing.T) {
	var saved []settings.Bookmark
	b := started(t, sample(), 100, 30, func(o *Options) {
		o.SaveBookmark = func(b settings.Bookmark) error {
			if b.Name == "full" {
				return errors.New("no space left on device")
			}
			saved = append(saved, b)
			return nil
		}
	})
	b.press("'")
	require.Contains(t, b.View(), "There are no bookmarks")
	b.press("2", "/", "e", "t", "l", "enter", "s", "4", "s", "4", "z")
	b.press(":")
	b.run(b.command("bookmark mine m"))
	require.Equal(t,
		[]settings.Bookmark{{
			Name: "mine", Key: "m", View: keymap.InQueues, Filter: "etl", Sort: "done reversed",
			Problems: true,
		}}, saved)
	require.Contains(t, b.View(), "Saved as mine; ' and m opens it")
	for _, open := range []func(){
		func() { b.press("'", "m") },
		func() { b.press(":"); b.run(b.command("open mine")) },
	} {
		b.press("2")
		b.filter("")
		b.press("s", "1", "1")
		if b.queues.Problems() {
			b.press("z")
		}
		open()
		require.True(t, b.queues.Problems(), "problems only, as stored")
		require.Equal(t, screen.Order{Column: 3, Reverse: true}, b.queues.Order())
		require.Equal(t, "etl", b.queues.Filter())
	}
	b.press(":")
	b.run(b.command("bookmark full"))
	require.Contains(t, b.View(), "Not saved: no space left on device")
	for line, want := range map[string]string{
		"bookmark a\x1bb": "must not hold spaces or control", "bookmark a bc": "is one character",
		"open nothing": "no bookmark",
	} {
		b.press(":")
		require.Nil(t, b.command(line))
		require.Contains(t, b.wrong(), want)
		b.press("esc")
	}
	b.press("3", "enter", ":")
	require.Nil(t, b.command("bookmark one"))
	require.Contains(t, b.wrong(), "only lists can be kept")
}
