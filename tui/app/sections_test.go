package app

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

func TestSectionsOfAnExecution(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.open(keymap.InExecution)
	for _, want := range [][]string{
		{"[result]", "TTL expired"},
		{"[env]"},
		{"[history]", "ATTEMPTS", "884309"},
		{"[dead letter]", "nobody took it for 5m"},
		{"[raw]", `"retry_count"`},
		{"[output]", "no output"},
		{"[config]", "authorization"},
	} {
		b.press("tab")
		for _, text := range want {
			require.Contains(t, b.View(), text)
		}
	}
	b.press("shift+tab", "shift+tab")
	require.Contains(t, b.View(), "[raw]")
	require.NotContains(t, b.View(), "Bearer abc", "secrets are masked in the raw document too")
}

func TestSearchFoldAndRevealInAnExecution(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.open(keymap.InExecution)
	b.press("/")
	b.typed("ACCEPT")
	require.Contains(t, b.messages(), "/ACCEPT")
	b.press("enter")
	require.Contains(t, b.View(), "match 1/")
	b.press("n", "N", "h", "h")
	require.Contains(t, b.View(), `"headers": { … 2 keys }`)
	b.press("l", "0")
	require.Contains(t, b.View(), `{ … 2 keys }`)
	b.press("0", "U")
	require.Contains(t, b.View(), "Bearer abc")
	require.Contains(t, b.View(), "secrets shown")
	b.press("3", "[")
	require.NotContains(t, b.View(), "Bearer abc", "leaving the view masks revealed secrets again")
	b.press("/")
	b.typed("nowhere to be found")
	b.press("enter")
	require.Contains(t, b.View(), "Nothing here has")
}

func TestOneLetterOpensARelatedThing(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]func(*bundle){
		"r": func(b *bundle) { require.Equal(t, int64(884309), b.execution.ID()) },
		"c": func(b *bundle) { require.Equal(t, "parent:884301", b.executions.Filter()) },
		"q": func(b *bundle) { require.Equal(t, keymap.InQueues, b.view) },
		"w": func(b *bundle) { require.Equal(t, keymap.InWorker, b.view) },
		"f": func(b *bundle) { require.Equal(t, keymap.InXray, b.view) },
		"d": func(b *bundle) {
			require.Equal(t, keymap.InDeadLetter, b.view)
			require.Equal(t, int64(71), b.deadLetter.ID())
		},
	} {
		b := started(t, sample(), 80, 24)
		b.open(keymap.InExecution)
		b.press("o", key)
		require.Empty(t, b.stage(), key)
		want(b)
		b.press("esc")
		require.Equal(t, keymap.InExecution, b.view, key)
		require.Equal(t, int64(884301), b.execution.ID(), key)
	}
}

// The rule, the event and the enforcement behind an execution have no view: choosing one names the command that shows
// it.
func TestThingsWithoutAViewAreNamedWithTheirCommand(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.open(keymap.InExecution)
	for key, want := range map[string]string{
		"e": "enforcement show 55120", "v": "event show 9007",
		"u": "rule show nightly.start",
	} {
		b.press("o")
		require.Contains(t, b.View(), "nightly.start")
		b.press(key)
		require.Empty(t, b.stage(), key)
		require.Equal(t, keymap.InExecution, b.view, key)
		require.Contains(t, b.View(), "attune-executor "+want+" shows it")
	}
}

func TestTheMenuOfRelatedThingsNamesMissingOnes(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.open(keymap.InExecution)
	b.press("o", "i")
	require.Contains(t, b.View(), "inquiry: there is none")
	require.Equal(t, keymap.InRelated, b.stage())
	b.press("esc")
	require.Empty(t, b.stage())
	require.Equal(t, keymap.InExecution, b.view)
}

func TestOfARowMoreIsReadWhileTheMenuIsOpen(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("3", "gg")
	held := b.hold("o")
	require.Contains(t, b.View(), "it has not been read yet")
	b.answers(held)
	require.Contains(t, b.View(), "nightly.start")
	b.press("u")
	require.Contains(t, b.View(), "rule show nightly.start")

	b.source.fail = map[screen.Feed]error{screen.FeedFamily: errors.New("connection refused")}
	b.press("o")
	require.Contains(t, b.View(), "more cannot be read: connection refused")
	b.press("c")
	require.Equal(t, keymap.InExecutions, b.view, "the row itself is still shown")
	require.True(t, strings.HasPrefix(b.executions.Filter(), "parent:"))
}

func TestQueuesAndWorkersLeadToTheirExecutions(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", "o", "f")
	require.Contains(t, b.executions.Filter(), "status:failed,timeout,abandoned")
	b.press("4", "o", "x")
	require.Contains(t, b.executions.Filter(), "worker:")
}

func TestXrayIsATreeThatOpensItsRows(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.open(keymap.InExecution)
	b.press("x")
	require.Equal(t, keymap.InXray, b.view)
	require.Contains(t, b.View(), "884050  etl-nightly")
	require.Contains(t, b.View(), "ATTEMPTS of 884301")
	require.Equal(t, "884301", b.table().Key(), "the cursor is on the one it was opened for")
	b.press("gg", "j", "j", "h")
	require.NotContains(t, b.View(), "884102")
	require.Contains(t, b.View(), "▸ 884101")
	b.press("l")
	require.Contains(t, b.View(), "884102")
	b.press("0")
	require.NotContains(t, b.View(), "884102")
	b.press("0", "j", "enter")
	require.Equal(t, keymap.InExecution, b.view)
	require.Equal(t, int64(884102), b.execution.ID())
	b.press("esc")
	require.Equal(t, keymap.InXray, b.view)
	require.Equal(t, int64(884301), b.xray.ID())
}

func TestTheFamilyIsReadLessOften(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.open(keymap.InExecution)
	require.Equal(t, familyEvery, b.delay(screen.FeedFamily, &screen.Freshness{}))
	require.Positive(t, b.source.count(screen.FeedFamily))
	require.IsType(t, &monitor.Family{}, b.env.Data.Family)
}

func TestHistoryKeepsTheOrderOfEachVisit(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.press("2", "s", "2", "1", "2", "s", "5", "s", "5", "3")
	b.press("[")
	require.Equal(t, screen.Order{Column: 4, Reverse: true}, b.queues.Order())
	b.press("[", "[")
	require.Equal(t, keymap.InQueues, b.view)
	require.Equal(t, screen.Order{Column: 1}, b.queues.Order())
	b.press("]", "]")
	require.Equal(t, screen.Order{Column: 4, Reverse: true}, b.queues.Order())
}

// A failed execution opens at what its program wrote, as text on lines with visible escapes, which w wraps.
func TestAFailedExecutionOpensAtItsOutput(t *testing.T) {
	t.Parallel()
	long := "expected " + strings.Repeat("a very long line ", 12) + "§"
	wrote := func(result string) *bundle {
		source := sample()
		source.detail.Result = result
		b := started(t, source, 140, 40)
		b.open(keymap.InExecution)
		return b
	}
	result, err := json.Marshal(map[string]any{
		"exit_code": 1, "stdout": "{\"step\": 1}\nstep 2\n", "stderr_truncated": true,
		"stderr_log": "Traceback:\n\tline 3 \x1b[31mred\x1b[0m\u202e\npassword=hunter2\n" + long,
	})
	require.NoError(t, err)
	b := wrote(string(result))
	for _, want := range []string{
		"[output]", "── stderr, cut by the worker ──", "Traceback:", `line 3 \x1b[31mred\x1b[0m\u202e`,
		"── stdout ──", `{"step": 1}`, "step 2", "‹redacted›",
	} {
		require.Contains(t, b.View(), want)
	}
	require.NotContains(t, b.View(), "hunter2")
	require.NotContains(t, b.View(), "no JSON")
	require.NotContains(t, b.View(), "§")
	b.press("w")
	require.Contains(t, b.View(), "§")

	b = wrote(string(result[:len(result)-60])) // cut when it was read
	require.Contains(t, b.View(), "[output]")
	b = wrote(`{"exit_code": 1, "stderr_log": "one\ntwo \u00`)
	require.Contains(t, b.View(), "── stderr, its end was not read ──")
	require.Contains(t, b.View(), "two")
	for _, silent := range []string{
		`{"error": "no"}`, `{"stderr_log": ""}`, `[1, 2]`, `"text"`, `{"stdout": {"a": 1}}`, `{`, "",
	} {
		require.Contains(t, wrote(silent).View(), "[config]", silent)
	}

	bare := sample()
	bare.detail.Status, bare.detail.Config, bare.detail.Result = "completed", "", `{"a": 1}`
	b = started(t, bare, 140, 40)
	b.open(keymap.InExecution)
	require.Contains(t, b.View(), "[result]", "it has no parameters")
}
