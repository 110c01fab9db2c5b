package app

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// quits reports whether a key asks the program to end.
func quits(t *testing.T, b *bundle, key string) bool {
	t.Helper()
	_, cmd := b.Update(keyMsg(key))
	if cmd == nil {
		return false
	}
	_, ok := cmd().(tea.QuitMsg)
	return ok
}

func TestEveryBindingDoesSomethingWithoutHarm(t *testing.T) {
	t.Parallel()
	for _, view := range keymap.Scopes {
		for _, binding := range keymap.BuiltIn.For(view) {
			for _, key := range binding.Keys {
				b := started(t, sample(), 100, 30)
				b.open(view)
				for _, part := range parts(key) {
					b.press(part)
				}
				requireFits(t, b, 100, 30)
			}
		}
	}
}

// parts splits a key that is typed as two letters.
func parts(key string) []string {
	if len(key) == 2 && key[0] == key[1] {
		return []string{key[:1], key[1:]}
	}
	return []string{key}
}

func TestViewsOpenByTheirNumbersAndTabs(t *testing.T) {
	b := started(t, sample(), 80, 24)
	for i, key := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		b.press(key)
		require.Equal(t, Views[i], b.view)
	}
	b.press("1")
	b.send(tea.MouseMsg{X: 10, Y: tabLine, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
	require.Equal(t, keymap.InQueues, b.view)
}

func TestOpenAndBackFollowTheTrail(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("3", "j", "enter")
	require.Equal(t, keymap.InExecution, b.view)
	require.Equal(t, int64(884300), b.execution.ID())
	require.Contains(t, b.View(), "Executions › 884300")
	b.press("esc")
	require.Equal(t, keymap.InExecutions, b.view)
	require.True(t, quits(t, b, "q"), "q quits at a numbered view")
}

func TestEnterOnAQueueShowsItAndThenItsExecutions(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", "j", "enter")
	require.Equal(t, keymap.InQueue, b.view)
	require.Equal(t, int64(42), b.queue.ID())
	require.Contains(t, b.View(), "Queues › core.http_request")
	require.Equal(t, 1, b.source.count(screen.FeedQueue))
	b.press("shift+tab", "enter")
	require.Equal(t, keymap.InExecutions, b.view)
	require.Equal(t, "action:core.http_request", b.executions.Filter())
	b.press("esc")
	require.Equal(t, keymap.InQueue, b.view)
	b.press("G")
	require.Contains(t, b.View(), "{\"tenant\":\"acme\"}", "the end can be reached")
	b.press("esc")
	require.Equal(t, keymap.InQueues, b.view)

	b.source.queues.List[0].LimitFrom = monitor.LimitSource{}
	b.run(b.refresh())
	b.press("gg", "g", "g", "j", "enter")
	require.Equal(t, keymap.InExecutions, b.view, "where queues are not recorded there is nothing to show")
}

func TestEnterOnAFindingOpensItsView(t *testing.T) {
	b := started(t, sample(), 80, 24)
	found := b.env.Findings()
	require.NotEmpty(t, found)
	for i, f := range found {
		if f.Target == "queues" {
			b.press("G")
			for range len(found) - 1 - i {
				b.press("k")
			}
			b.press("enter")
			require.Equal(t, keymap.InQueues, b.view)
			require.Equal(t, f.Filter, b.queues.Filter())
			return
		}
	}
	require.Fail(t, "the sample has a finding about a queue")
}

// A finding without a view says so.
func TestEnterOnAFindingWithoutAViewSaysSo(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.env.Data.Fresh(screen.FeedOverview).Err = errors.New("refused")
	b.press("gg")
	for range b.env.Findings() {
		b.press("k")
	}
	require.Equal(t, "overview", b.env.Findings()[0].Target)
	b.press("enter")
	require.Equal(t, keymap.InOverview, b.view)
	require.Contains(t, b.View(), "No other view shows more")
}

func TestQDoesNotQuitWhileTyping(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", "/")
	require.False(t, quits(t, b, "q"))
	b.press("x")
	require.Contains(t, b.View(), "/qx")
	b.press("esc")
	require.Empty(t, b.queues.Filter())
	require.True(t, quits(t, b, "ctrl+c"))
}

func TestFilterNarrowsAndEscClears(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", "/", "e", "t", "l", "enter")
	require.Equal(t, 2, b.queues.Len())
	require.Contains(t, b.View(), "/etl")
	b.press("/", "z", "z", "enter")
	require.Contains(t, b.View(), "No queue matches /etl zz")
	b.parents = nil
	b.press("esc")
	require.Equal(t, 7, b.queues.Len())
}

func TestABadFilterIsNotApplied(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("3", "/")
	for _, r := range "statsu:failed" {
		b.press(string(r))
	}
	b.press("enter")
	require.Contains(t, b.View(), "✗ there is no field")
	require.Empty(t, b.executions.Filter())
	b.press("esc", "/")
	for _, r := range "status:failed" {
		b.press(string(r))
	}
	b.press("enter")
	last := b.source.filters[len(b.source.filters)-1]
	require.Equal(t, []lifecycle.Status{lifecycle.StatusFailed}, last.Statuses, "the database filters")
	b.press("/")
	for _, r := range "worker:7" {
		b.press(string(r))
	}
	b.press("enter")
	require.Equal(t, "status:failed worker:7", b.executions.Filter(), "a later text is a further term")
}

func TestPastedTextPressesNoKeys(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("2"), Paste: true})
	require.Equal(t, keymap.InOverview, b.view)
}

func TestSortPickerAndReverse(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", "s")
	require.Contains(t, b.View(), "sort by  1 head  2 queued")
	b.press("2")
	require.Contains(t, b.View(), "sort queued↓")
	require.Equal(t, "42", b.queues.Key(0))
	b.press("s", "2")
	require.Contains(t, b.View(), "sort queued↑")
	require.Equal(t, "48", b.queues.Key(0))
}

func TestRowsDoNotMoveUnderTheCursor(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", "s", "2", "j")
	require.Equal(t, "43", b.queues.Key(1))
	b.unshare()
	b.source.queues.List[1].Queued = 99_999
	q := *b.source.queues
	b.source.queues = &q
	b.press("r")
	require.Equal(t, "43", b.queues.Key(1), "the operator reads: the order stays")
	b.now = b.now.Add(10 * time.Second)
	b.run(b.refresh())
	require.Equal(t, "43", b.queues.Key(0), "the operator is idle: the list is sorted")
}

func TestProblemsOnly(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", "z")
	for i := range b.queues.Len() {
		require.NotContains(t, []string{"45", "46", "48"}, b.queues.Key(i))
	}
	require.Equal(t, 3, b.queues.Len())
	b.press("3", "z")
	last := b.source.filters[len(b.source.filters)-1]
	require.Contains(t, last.Statuses, lifecycle.StatusFailed)
}

func TestExecutionsFollowTheTopAndFreezeBelow(t *testing.T) {
	b := started(t, huge(1000), 80, 24)
	b.press("3")
	require.Equal(t, 200, b.executions.Len())
	require.Zero(t, b.executions.Cursor())
	for range 3 {
		b.press("G")
	}
	require.Equal(t, 800, b.executions.Len(), "the list grows by pages as the operator goes down")
	anchor := b.executions.Cursor()
	require.Positive(t, anchor)
	first := b.executions.Key(0)
	b.source.list = append([]monitor.Execution{{ID: 5000, Status: "running", ActionRef: "new.one"}}, b.source.list...)
	b.press("r")
	require.Equal(t, first, b.executions.Key(0), "no row is inserted above the cursor")
	b.press("gg"[:1], "g")
	b.press("r")
	require.Equal(t, "5000", b.executions.Key(0), "at the top the list follows")
}

func TestTooSmallSaysTheMinimum(t *testing.T) {
	b := started(t, sample(), 59, 14)
	require.Contains(t, b.View(), "needs 60×15")
	b.send(sized(20, 5))
	require.Contains(t, b.View(), "60×15", "also where the sentence does not fit")
	require.True(t, quits(t, b, "q"))
}

func TestThemesChangeByKey(t *testing.T) {
	b := started(t, sample(), 80, 24, func(o *Options) { o.Theme = theme.Options{Name: "dark"} })
	b.press("t")
	require.Equal(t, "light", b.env.Theme.Name())
}

func TestUnknownViewAndThemeAreRefused(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), sample(), Options{View: "nowhere"})
	require.ErrorContains(t, err, `unknown view "nowhere": choose one of overview`)
	_, err = New(t.Context(), sample(), Options{Theme: theme.Options{Name: "pink"}})
	require.ErrorContains(t, err, `unknown theme "pink"`)
}

func TestASnapshotEqualsTheLiveView(t *testing.T) {
	t.Parallel()
	for _, view := range Views {
		opts := Options{
			View: view, Context: "prod-eu", Theme: theme.Options{Plain: true},
			Clock: func() time.Time { return frozen },
		}
		shot, err := Take(t.Context(), sample(), opts, "", 80, 24)
		require.NoError(t, err)
		live := started(t, sample(), 80, 24, func(o *Options) { o.View = view })
		var lines []string
		for _, line := range live.frame() {
			lines = append(lines, strings.TrimRight(line, " "))
		}
		require.Equal(t, strings.Join(lines, "\n")+"\n", shot.Text(), view)
		require.False(t, shot.Failed())
		out, err := shot.JSON()
		require.NoError(t, err)
		var doc struct {
			View string         `json:"view"`
			Data map[string]any `json:"data"`
		}
		require.NoError(t, json.Unmarshal(out, &doc))
		require.Equal(t, string(view), doc.View)
		require.Contains(t, doc.Data, string(view))
	}
}

// A snapshot of one thing is its page, by number or name, and secrets are masked in the
// text and in the data.
func TestASnapshotOfOneThing(t *testing.T) {
	t.Parallel()
	take := func(view screen.View, id, filter string) (*Snapshot, error) {
		opts := Options{
			View: view, Filter: filter, Theme: theme.Options{Plain: true},
			Clock: func() time.Time { return frozen },
		}
		return Take(t.Context(), sample(), opts, id, 140, 40)
	}
	for view, id := range map[screen.View]string{
		keymap.InExecution: "884301", keymap.InQueue: "etl.load tenant=acme", keymap.InWorker: "worker-node-02",
		keymap.InDeadLetter: "5",
		keymap.InWorkflows:  "884050", keymap.InXray: "884301", keymap.InLog: "", keymap.InHelp: "",
	} {
		shot, err := take(view, id, "")
		require.NoError(t, err, view)
		require.NotContains(t, shot.Text(), "cannot be read", view)
		require.NotContains(t, shot.Text(), "being read", view)
		out, err := shot.JSON()
		require.NoError(t, err)
		require.True(t, json.Valid(out), view)
		for _, secret := range []string{"Bearer abc", "s3cret"} {
			require.NotContains(t, string(out), secret, view)
			require.NotContains(t, shot.Text(), secret, view)
		}
		if view == keymap.InHelp {
			require.Contains(t, shot.Text(), "keys that work here")
			require.Contains(t, string(out), `"action": "row-down"`)
		}
	}
	shot, err := take(keymap.InExecutions, "", "status:failed")
	require.NoError(t, err)
	require.Contains(t, shot.Text(), "/status:failed")
	for _, c := range []struct{ view, id, filter, want string }{
		{"execution", "", "", "needs --id"},
		{"execution", "first", "", "is no number"},
		{"queue", "nowhere", "", `no queue "nowhere"`},
		{"executions", "7", "", "shows no one thing"},
		{"overview", "", "status:failed", "overview cannot be filtered"},
		{"executions", "", "status:odd", "the filter"},
		{"nowhere", "", "", "choose one of overview"},
	} {
		_, err := take(screen.View(c.view), c.id, c.filter)
		require.ErrorContains(t, err, c.want, c)
	}
}

// A snapshot has no second read, so it waits for a slow database.
func TestASnapshotWaitsForASlowDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sample()
		s.takes = map[screen.Feed]time.Duration{}
		for _, feed := range feedNames() {
			s.takes[feed] = LongestRead - time.Second
		}
		opts := Options{View: keymap.InWorkers, Theme: theme.Options{Plain: true}}
		shot, err := Take(t.Context(), s, opts, "", 80, 24)
		require.NoError(t, err)
		require.False(t, shot.Failed())
		require.Contains(t, shot.Text(), "worker-node-02")
		require.NotContains(t, shot.Text(), "no answer")
	})
}

func TestASnapshotWithoutAnswersShowsTheErrors(t *testing.T) {
	t.Parallel()
	s := empty()
	s.fail = map[screen.Feed]error{}
	for _, feed := range feedNames() {
		s.fail[feed] = os.ErrDeadlineExceeded
	}
	shot, err := Take(t.Context(), s, Options{Theme: theme.Options{Plain: true}}, "", 80, 24)
	require.NoError(t, err)
	require.True(t, shot.Failed())
	require.Contains(t, shot.Text(), "cannot be read")
}

// The theme auto follows the answer of the terminal, unless it takes too long.
func TestTheThemeFollowsTheBackgroundOfTheTerminal(t *testing.T) {
	t.Parallel()
	for took, follows := range map[time.Duration]bool{150 * time.Millisecond: true, time.Second: false} {
		asked := 0
		b := started(t, sample(), 80, 24, func(o *Options) {
			o.Theme = theme.Options{Dark: true}
			o.AskBackground = func() error { asked++; return nil }
		})
		require.Equal(t, 1, asked)
		light, err := theme.New(theme.Options{Name: "light"})
		require.NoError(t, err)
		b.now = b.now.Add(took)
		b.send(BackgroundMsg{})
		require.Equal(t, "auto", b.env.Theme.Name())
		require.Equal(t, follows, b.env.Paint(theme.Warn, "x") == light.Paint(theme.Warn, "x"))
	}
}

// TestTheClockIsNotCut: in the smallest window the time loses its seconds, then its place, but is never cut.
func TestTheClockIsNotCut(t *testing.T) {
	b := started(t, sample(), 60, 15)
	b.opts.Context = "127.0.0.1"
	took := func(d time.Duration) {
		for _, feed := range []screen.Feed{screen.FeedOverview, screen.FeedBroker} {
			b.env.Data.Fresh(feed).Took = d
		}
	}
	took(time.Millisecond)
	require.Contains(t, b.frame()[0], "02:19:04Z")
	took(276 * time.Millisecond)
	require.Contains(t, b.frame()[0], "02:19Z")
	require.NotContains(t, b.frame()[0], "…")
	b.opts.Context = "production-europe-west"
	require.NotContains(t, b.frame()[0], "02:19")
	require.Contains(t, b.frame()[0], "▲4")
}

// The line of keys names what the selected row can do: nothing that needs a row in an empty list, no retry of an
// execution that runs.
func TestTheLineOfKeysNamesWhatWorksNow(t *testing.T) {
	acts := func(o *Options) { o.Acts = &fakeActs{} }
	keys := func(b *bundle) string { return b.frame()[len(b.frame())-1] }
	none := empty()
	none.audit = sample().audit
	b := started(t, none, 140, 40, acts)
	for _, view := range []string{"2", "3", "4", "6", "7", "8", "9"} {
		b.press(view)
		for _, key := range []string{
			"enter open", "A act", "R retry", "s sort", "/ filter", "z problems", "v preview", "y yank",
		} {
			require.NotContains(t, keys(b), key, view)
		}
		require.Contains(t, keys(b), "r refresh")
	}
	b.press("2", "z")
	require.Contains(t, keys(b), "z problems", "the way back")

	b = started(t, sample(), 140, 40, acts)
	b.press("3")
	require.Contains(t, keys(b), "R retry", "the first execution has failed")
	require.Contains(t, keys(b), "A act")
	b.executions.Table().Seek("884299")
	require.NotContains(t, keys(b), "R retry", "this one runs")
	require.Contains(t, keys(b), "A act")
}
