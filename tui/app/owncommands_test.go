package app

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/settings"
)

// terminalOf is a terminal that a command of the operator gets to itself.
type terminalOf struct {
	out     bytes.Buffer
	in      string
	entered int
}

func (x *terminalOf) exec(c tea.ExecCommand, done tea.ExecCallback) tea.Cmd {
	return func() tea.Msg {
		x.entered++
		c.SetStdin(strings.NewReader(x.in))
		c.SetStdout(&x.out)
		c.SetStderr(&x.out)
		return done(c.Run())
	}
}

// withCommands is a dashboard whose operator has put commands on keys.
func withCommands(t *testing.T, change func(*Options), commands ...settings.Command) (*bundle, *terminalOf) {
	t.Helper()
	x := &terminalOf{in: "\n"}
	b := started(t, sample(), 120, 34, func(o *Options) {
		o.Commands, o.Exec, o.Environ = commands, x.exec, []string{"PATH=/usr/bin:/bin", "KEPT=yes"}
		var added []keymap.Binding
		for i := range commands {
			c := &commands[i]
			if len(c.Scopes) == 0 {
				c.Scopes = []keymap.Scope{keymap.Everywhere}
			}
			added = append(added, keymap.Binding{
				Action: c.Action(), Keys: []string{c.Key}, Show: c.Key, Help: c.Name, Group: keymap.GroupOwn, Scopes: c.Scopes, Acts: c.Acts,
			})
		}
		var err error
		o.Keys, err = keymap.New(nil, added)
		require.NoError(t, err)
		if change != nil {
			change(o)
		}
	})
	return b, x
}

func TestACommandGetsTheRowInItsEnvironmentAndNowhereElse(t *testing.T) {
	t.Parallel()
	b, x := withCommands(t, nil, settings.Command{Name: "say", Key: "F", Shell: `printf '<%s|%s|%s|%s|%s>' "$ATTUNE_NAME" "$ATTUNE_VIEW" "$ATTUNE_CONTEXT" "$ATTUNE_FILTER" "$KEPT"`})
	b.source.workers.List[0].Name = "$(touch /tmp/x) `id` \"; --rm"
	b.press("4", "/", "r", "m", "enter", "F")
	require.Contains(t, x.out.String(), "<$(touch /tmp/x) `id` \"; --rm|workers|prod-eu|rm|yes>")
	require.Contains(t, x.out.String(), "say: ended. Enter goes back")
	require.Equal(t, 1, x.entered)
	require.Len(t, b.env.Session, 1)
	require.Equal(t, act.Done, b.env.Session[0].State)
}

func TestACommandThatFailsIsSaid(t *testing.T) {
	t.Parallel()
	b, x := withCommands(t, nil,
		settings.Command{Name: "fail", Key: "F", Shell: "exit 3"},
		settings.Command{Name: "gone", Key: "f3", Args: []string{"/no/such/program"}},
	)
	b.press("F")
	require.Contains(t, x.out.String(), "fail: it ended with exit status 3. Enter goes back")
	require.Contains(t, b.View(), "it ended with exit status 3")
	b.press("esc")
	b.send(tea.KeyMsg{Type: tea.KeyF3})
	require.Contains(t, b.View(), "no such file or directory")
}

func TestACommandAsksFirstWhereThatIsWanted(t *testing.T) {
	t.Parallel()
	b, x := withCommands(t, nil, settings.Command{Name: "say", Key: "F", Args: []string{"echo", "a b", "{id}"}, Confirm: true})
	b.press("4", "j", "F")
	require.Contains(t, b.View(), `Run say?  echo "a b" 7   y runs it, any other key does not`)
	b.press("enter")
	require.Contains(t, b.View(), "Not run.")
	require.Zero(t, x.entered)
	b.press("F", "y")
	require.Equal(t, 1, x.entered)
	require.Contains(t, x.out.String(), "a b 7\n")
}

func TestACommandIsRefusedWhereItCannotBeRun(t *testing.T) {
	t.Parallel()
	b, x := withCommands(t, func(o *Options) { o.ReadOnly = "it was started so" },
		settings.Command{Name: "stop", Key: "F", Args: []string{"echo"}, Acts: true},
		settings.Command{Name: "row", Key: "f3", Args: []string{"echo", "{id}"}},
	)
	b.press("4", "F")
	require.Contains(t, b.View(), "Not run: stop acts, and nothing can be acted upon: it was started so")
	b.press("1")
	b.send(tea.KeyMsg{Type: tea.KeyF3})
	require.Contains(t, b.View(), "Not run: row needs the id of a row")
	require.Zero(t, x.entered)
}

func TestACommandInTheBackgroundWritesToTheLog(t *testing.T) {
	t.Parallel()
	b, x := withCommands(t, nil, settings.Command{Name: "count", Key: "F", Shell: "echo one; echo 'two\x1b[2J' >&2", Background: true})
	b.press("4", "F")
	require.Zero(t, x.entered, "the terminal stays the dashboard's")
	require.Empty(t, b.underWay)
	receipt := b.env.Session[0].Receipt
	require.Equal(t, []act.Line{{Text: "one"}, {Text: "two"}}, receipt.Lines, "what it writes is clean")
	b.press("L", "enter")
	require.Contains(t, b.View(), "two")
}

func TestACommandInTheBackgroundIsAskedAboutAndStopped(t *testing.T) {
	t.Parallel()
	b, _ := withCommands(t, nil, settings.Command{Name: "wait", Key: "F", Args: []string{"sleep", "600"}, Background: true})
	held := b.hold("F")
	require.False(t, quits(t, b, "q"))
	require.Contains(t, b.View(), "Still running: wait")
	for _, stop := range b.underWay {
		stop()
	}
	for _, run := range held {
		b.run(run)
	}
	require.Equal(t, act.Failed, b.env.Session[0].State)
	require.Empty(t, b.underWay)
}

func TestOnlyTheEndOfWhatACommandWritesIsKept(t *testing.T) {
	t.Parallel()
	out := &tail{}
	for range 3 {
		_, err := out.Write([]byte(strings.Repeat("a\n", commandOutput/3)))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(out.text), commandOutput)
	require.Equal(t, "… the beginning is not kept", out.lines()[0])
	require.Nil(t, (&tail{}).lines())
}

func TestACommandThatLastedComesBackByItself(t *testing.T) {
	t.Parallel()
	now := frozen
	b, x := withCommands(t, func(o *Options) {
		o.Clock = func() time.Time { now = now.Add(brief); return now }
	}, settings.Command{Name: "say", Key: "F", Args: []string{"echo", "hello"}})
	b.press("F")
	require.Contains(t, x.out.String(), "hello")
	require.NotContains(t, x.out.String(), "Enter goes back")
}

func TestBookmarksOpenAViewAsItWasArranged(t *testing.T) {
	t.Parallel()
	b := started(t, sample(), 100, 30, func(o *Options) {
		o.Bookmarks = []settings.Bookmark{
			{Name: "etl", Key: "e", View: keymap.InQueues, Filter: "etl", Sort: "queued reversed", Columns: []string{"queued"}},
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
	t.Parallel()
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
	require.Equal(t, []settings.Bookmark{{Name: "mine", Key: "m", View: keymap.InQueues, Filter: "etl", Sort: "done reversed", Problems: true}}, saved)
	require.Contains(t, b.View(), "Saved as mine; ' and m opens it")
	for _, open := range []func(){func() { b.press("'", "m") }, func() { b.press(":"); b.run(b.command("open mine")) }} {
		b.press("2")
		b.run(b.applyFilter(""))
		b.press("s", "1", "1")
		if b.queues.Problems() {
			b.press("z")
		}
		open()
		require.True(t, b.queues.Problems(), "problems only, as it was kept")
		require.Equal(t, screen.Order{Column: 3, Reverse: true}, b.queues.Order())
		require.Equal(t, "etl", b.queues.Filter())
	}
	b.press(":")
	b.run(b.command("bookmark full"))
	require.Contains(t, b.View(), "Not saved: no space left on device")
	for line, want := range map[string]string{
		"bookmark a\x1bb": "must not hold spaces or control", "bookmark a bc": "is one character", "open nothing": "no bookmark",
	} {
		b.press(":")
		require.Nil(t, b.command(line))
		require.Contains(t, b.inputErr, want)
		b.press("esc")
	}
	b.press("3", "enter", ":")
	require.Nil(t, b.command("bookmark one"))
	require.Contains(t, b.inputErr, "only lists can be kept")
}
