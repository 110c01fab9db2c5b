package settings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/settings"
)

func TestKeysCommandsAndBookmarksAreRead(t *testing.T) {
	t.Parallel()
	s := load(t, `
keys:
  pause: [f5, ctrl+p]
  slower: p
commands:
  logs:
    key: f2
    scope: [workers, queues]
    run: [ssh, "ops@{name}", tail, -f, "/var/log/{action}.log"]
    help: follow its log
    background: true
    confirm: true
  plain:
    key: f3
    shell: echo "$ATTUNE_ID"
bookmarks:
  failed: { key: f, view: executions, filter: "status:failed", sort: oldest, columns: [id, action] }
`)
	for key, want := range map[string]keymap.Action{"f5": keymap.Freeze, "p": keymap.Slower, "f2": "command:logs", "f3": "command:plain"} {
		action, _ := s.Keymap.Lookup(keymap.InWorkers, key)
		require.Equal(t, want, action, key)
	}
	action, _ := s.Keymap.Lookup(keymap.InExecutions, "f2")
	require.Equal(t, keymap.None, action, "it works in its views only")
	logs := s.Commands[0]
	require.True(t, logs.Background)
	require.True(t, logs.Confirm)
	require.Equal(t, []string{"name", "action"}, logs.Needs())
	require.Equal(t, []string{"id"}, s.Commands[1].Needs())
	require.Equal(t, settings.Bookmark{
		Name: "failed", Key: "f", View: keymap.InExecutions, Filter: "status:failed", Sort: "oldest", Columns: []string{"id", "action"},
		At: s.Bookmarks[0].At,
	}, s.Bookmarks[0])
	require.Nil(t, load(t, "theme: dark").Keymap)
}

func TestAValueIsOneArgumentAndIsNeverReadAgain(t *testing.T) {
	t.Parallel()
	c := settings.Command{Args: []string{"say", "{name}:{id}", "{id}", "{json: 1}"}}
	require.Equal(t, []string{"say", "$(rm -rf /); {id} x:7", "7", "{json: 1}"},
		c.Argv(map[string]string{"name": "$(rm -rf /); {id} x", "id": "7"}))
	c = settings.Command{Shell: `echo "$ATTUNE_NAME"`}
	require.Equal(t, []string{"sh", "-c", `echo "$ATTUNE_NAME"`}, c.Argv(map[string]string{"name": "$(x)"}))
}

func TestMistakesInKeysCommandsAndBookmarks(t *testing.T) {
	t.Parallel()
	command := func(rest string) string { return "commands:\n  logs:\n    key: f2\n    " + rest }
	for text, want := range map[string]string{
		"keys:\n  freez: x":                          "tui.yaml:2: freez is not an action; did you mean freeze?",
		"keys:\n  pause: ctrl+i":                     "tui.yaml:2: the key ctrl+i cannot be used: the terminal sends it as tab",
		"keys:\n  pause: []":                         "tui.yaml:2: pause is an empty list",
		"keys:\n  pause: {a: b}":                     "tui.yaml:2: pause must be a text or a list",
		"theme: dark\nkeys:\n  pause: r":             "tui.yaml:3: the key r would mean both freeze and refresh",
		"keys:\n  act: y":                            "tui.yaml:2: act cannot be on y",
		"keys:\n  back: f2":                          "tui.yaml:2: back keeps its keys",
		command("run: [a]\n    shell: b"):            "tui.yaml:2: command logs: it needs either run, a list, or shell, a text",
		command("help: x"):                           "command logs: it needs either run",
		"commands:\n  logs: {run: [a]}":              "tui.yaml:2: command logs: it has no key",
		command("shell: echo {id}"):                  `command logs: in shell write "$ATTUNE_ID" for {id}`,
		command("run: ['{name}', x]"):                "the program itself cannot be a value of a row",
		command("run: [/bin/bash, -c, 'x {name}']"):  "command logs: /bin/bash would run a value of a row: use shell",
		command("run: [a, '{nam}']"):                 "{nam} is not known; did you mean name?",
		command("run: [a]\n    scope: workres"):      "tui.yaml:5: workres is not a view; did you mean workers?",
		command("run: [a]\n    confirm: yes please"): "tui.yaml:5: confirm must be true or false",
		command("run: [a]\n    acts: true") + "\n  other: {key: r, run: [b]}":  "tui.yaml:6: the key r would mean both refresh and command:other",
		"commands:\n  a: {key: ctrl+k, run: [a], acts: true}":                  "command:a cannot be on ^k",
		"commands:\n  a b: {key: f2, run: [a]}":                                "tui.yaml:2: the name of a command must not",
		"bookmarks:\n  a: {key: ab, view: queues}":                             "tui.yaml:2: the key of a bookmark must be one character",
		"bookmarks:\n  a: {key: a}":                                            "tui.yaml:2: bookmark a has no view",
		"bookmarks:\n  a: {view: execution}":                                   "execution is not a view; did you mean executions?",
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
	require.NoError(t, settings.Save(path, settings.Bookmark{Name: "two", View: keymap.InQueues, Sort: "queued reversed", Columns: []string{"a", "b"}}))
	one.Filter = "\"quoted\" \x1b[2J"
	require.NoError(t, settings.Save(path, one), "a saved one can be saved anew")
	require.ErrorContains(t, settings.Save(path, settings.Bookmark{Name: "own", View: keymap.InQueues}), "only its writer changes")
	require.ErrorContains(t, settings.Save(path, settings.Bookmark{Name: "x", Key: "o", View: keymap.InQueues}), "the key o opens own already")

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
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "bookmarks.yaml"), []byte("one: {vew: x}"), 0o600))
	_, err = settings.Load(path)
	require.ErrorContains(t, err, "bookmarks.yaml:1: vew is not a known key; did you mean view?")
}
