package app

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// types presses the keys of a text.
func (b *bundle) types(text string) {
	b.t.Helper()
	for _, r := range text {
		b.press(string(r))
	}
}

func TestAFilterIsTriedWhileItIsTyped(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.press("2", "/")
	b.types("group:tenant=acme")
	require.Equal(t, 1, b.queues.Len(), "before enter")
	b.types(" !x:")
	require.Contains(t, b.messages(), "✗ there is no field")
	require.Equal(t, 1, b.queues.Len(), "a wrong filter is not applied")
	b.press("esc")
	require.Equal(t, 7, b.queues.Len(), "esc restores the filter before")
	require.Empty(t, b.queues.Filter())
	b.press("/")
	b.types("state:paused | head>10m")
	b.press("enter")
	require.Equal(t, 2, b.queues.Len())
}

// While a filter is typed, the line of keys has those of the input line.
func TestTheKeysOfAnInputLineAreShown(t *testing.T) {
	b := started(t, sample(), 80, 24)
	keys := func() string {
		lines := strings.Split(strings.TrimRight(b.View(), "\n"), "\n")
		return strings.TrimSpace(lines[len(lines)-1])
	}
	b.press("2")
	before := keys()
	b.press("/")
	require.Equal(t, "tab complete  enter apply it  esc the filter before", keys())
	b.press("esc")
	require.Equal(t, before, keys())
	b.open(keymap.InExecution)
	b.press("/")
	require.Equal(t, "enter search  esc close", keys())
}

func TestABadTermIsPaintedWhereItIs(t *testing.T) {
	b := started(t, sample(), 100, 30, func(o *Options) { o.Theme = theme.Options{Name: "dark"} })
	b.press("3", "/")
	b.types("http status:broken x")
	require.Contains(t, b.View(), "http status:\x1b[91mbroken\x1b[0m x")
	polls := len(b.source.filters)
	b.press("enter")
	require.Len(t, b.source.filters, polls, "the database is not asked")
	for range " x" {
		b.press("backspace")
	}
	for range "broken" {
		b.press("backspace")
	}
	b.types("failed")
	b.press("enter")
	require.Equal(t, "http status:failed", b.executions.Filter())
}

func TestTabCompletes(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.press("3", "/")
	b.types("st")
	b.press("tab")
	require.Equal(t, "status:", b.line().Value())
	b.types("f")
	b.press("tab")
	require.Equal(t, "status:failed ", b.line().Value())
	b.types("a")
	b.press("tab")
	require.Equal(t, "status:failed action:", b.line().Value())
	require.Contains(t, b.messages(), "action:  age>")
	b.press("tab")
	require.Equal(t, "status:failed age>", b.line().Value(), "again is the next")
	b.press("shift+tab")
	require.Equal(t, "status:failed action:", b.line().Value())
	b.types("core.h")
	b.press("tab", "enter")
	require.Equal(t, "status:failed action:core.http_request", b.executions.Filter(), "values that were read are known")
	b.press("4", "/")
	b.types("worker:worker-n")
	b.press("tab", "enter")
	workers, ok := b.screen().(screen.Filterable)
	require.True(t, ok)
	require.Equal(t, "worker:worker-node-02", workers.Filter())
}

func TestTheInputLineFitsWhateverIsTyped(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	keys := []string{
		"a", "世", ":", " ", "\"", "|", "!", "status:", "tab", "shift+tab", "left", "right", "backspace",
		"/", ",",
	}
	for _, view := range []string{"2", "3", "4"} {
		b := started(t, sample(), 61, 16)
		b.press(view, "/")
		for range 150 {
			b.press(keys[random.IntN(len(keys))])
			requireFits(t, b, 61, 16)
		}
	}
}

// Names are completed from the database: they are read once when an input line opens, not for every key, and again
// after a minute.
func TestCompletionKnowsNamesThatNoRowHas(t *testing.T) {
	source := sample()
	source.queues.List[0].ActionRef = "pack.rarely_run"
	b := started(t, source, 140, 40)
	b.press("3")
	require.Zero(t, source.count(screen.FeedQueues))
	b.press("/")
	b.types("action:pack.rare")
	b.press("tab")
	require.Contains(t, b.messages(), "action:pack.rarely_run")
	require.Equal(t, 1, source.count(screen.FeedQueues))
	require.Equal(t, 1, source.count(screen.FeedWorkers))
	b.press("esc", ":")
	b.types("q rarely")
	require.Contains(t, b.View(), ":q pack.rarely_run", "commands too")
	require.Equal(t, 1, source.count(screen.FeedQueues), "it was read lately")
	b.press("esc")
	b.now = b.now.Add(time.Minute)
	b.press("/")
	require.Equal(t, 2, source.count(screen.FeedQueues))
}
