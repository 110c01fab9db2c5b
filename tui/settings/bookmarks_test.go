package settings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/settings"
)

func TestKeysAndBookmarksAreRead(t *testing.T) {
	t.Parallel()
	s := load(t, `
keys:
  pause: [f5, ctrl+p]
  slower: p
bookmarks:
  failed: { key: f, view: executions, filter: "status:failed", sort: oldest, columns: [id, action] }
`)
	for key, want := range map[string]keymap.Action{"f5": keymap.Freeze, "p": keymap.Slower} {
		action, _ := s.Keymap.Lookup(keymap.InWorkers, key)
		require.Equal(t, want, action, key)
	}
	require.Equal(t, settings.Bookmark{
		Name: "failed", Key: "f", View: keymap.InExecutions, Filter: "status:failed", Sort: "oldest",
		Columns: []string{"id", "action"},
		At:      s.Bookmarks[0].At,
	}, s.Bookmarks[0])
	require.Nil(t, load(t, "theme: dark").Keymap)
}

func TestMistakesInKeysAndBookmarks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"keys:\n  freez: x":                                   "tui.yaml:2: freez is not an action; did you mean freeze?",
		"keys:\n  pause: ctrl+i":                              "tui.yaml:2: the key ctrl+i cannot be used: the terminal sends it as tab",
		"keys:\n  pause: []":                                  "tui.yaml:2: pause is an empty list",
		"keys:\n  pause: {a: b}":                              "tui.yaml:2: pause must be a text or a list",
		"theme: dark\nkeys:\n  pause: r":                      "tui.yaml:3: the key r would mean both freeze and refresh",
		"keys:\n  act: y":                                     "tui.yaml:2: act cannot be on y",
		"keys:\n  back: f2":                                   "tui.yaml:2: back keeps its keys",
		"theme: dark\ncommands:\n  logs: {key: f2, run: [a]}": "tui.yaml:2: commands is not a known key; known are ascii",
		"bookmarks:\n  a: {key: ab, view: queues}":            "tui.yaml:2: the key of a bookmark must be one character",
		"bookmarks:\n  a: {key: a}":                           "tui.yaml:2: bookmark a has no view",
		"bookmarks:\n  a: {view: execution}":                  "execution is not a view; did you mean executions?",
		"bookmarks:\n  a: {view: queues, key: a}\n  b: {view: queues, key: a}": "tui.yaml:3: the key a opens also bookmark a at",
	} {
		_, err := settings.Load(write(t, text))
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "\n", text)
	}
}

func TestBookmarksAreSavedBesideTheFile(t *testing.T) {
	t.Parallel()
	text := "# mine\nbookmarks:\n  own: {view: queues, key: o}\n"
	path := write(t, text)
	one := settings.Bookmark{Name: "one", Key: "1", View: keymap.InWorkers, Filter: "a: b #c"}
	require.NoError(t, settings.Save(path, one))
	require.NoError(t, settings.Save(path,
		settings.Bookmark{Name: "two", View: keymap.InQueues, Sort: "queued reversed", Columns: []string{"a", "b"}}))
	one.Filter = "\"quoted\" \x1b[2J"
	require.NoError(t, settings.Save(path, one), "a saved one can be saved anew")
	require.ErrorContains(t, settings.Save(path, settings.Bookmark{Name: "own", View: keymap.InQueues}),
		"only its writer changes")
	require.ErrorContains(t, settings.Save(path, settings.Bookmark{Name: "x", Key: "o", View: keymap.InQueues}),
		"the key o opens own already")

	s, err := settings.Load(path)
	require.NoError(t, err)
	require.Len(t, s.Bookmarks, 3)
	byName := map[string]settings.Bookmark{}
	for _, b := range s.Bookmarks {
		byName[b.Name] = b
	}
	require.Equal(t, one.Filter, byName["one"].Filter)
	require.Equal(t, []string{"a", "b"}, byName["two"].Columns)
	require.Equal(t, "queued reversed", byName["two"].Sort)
	own, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, string(own), "what a person wrote is as it was")
	info, err := os.Stat(filepath.Join(filepath.Dir(path), "bookmarks.yaml"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	rest, err := filepath.Glob(filepath.Join(filepath.Dir(path), "bookmarks.yaml.*"))
	require.NoError(t, err)
	require.Empty(t, rest)
}

func TestABookmarkIsSavedWhereThereIsNoFileYet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "attune", "tui.yaml")
	require.NoError(t, settings.Save(path, settings.Bookmark{Name: "one", View: keymap.InWorkers}))
	s, err := settings.Load(path)
	require.NoError(t, err)
	require.False(t, s.Found)
	require.Len(t, s.Bookmarks, 1)
	require.ErrorContains(t, settings.Save("", settings.Bookmark{}), "where to save it")
	require.NoError(t,
		os.WriteFile(filepath.Join(filepath.Dir(path), "bookmarks.yaml"), []byte("one: {vew: x}"), 0o600))
	_, err = settings.Load(path)
	require.ErrorContains(t, err, "bookmarks.yaml:1: vew is not a known key; did you mean view?")
}
