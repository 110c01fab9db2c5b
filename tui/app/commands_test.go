package app

import (
	"context"
	"strconv"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// enter types a command and enters it.
func (b *bundle) enter(line string) {
	b.t.Helper()
	b.press(":")
	b.typed(line)
	b.press("enter")
}

func TestCommandsOpenViews(t *testing.T) {
	b := started(t, sample(), 80, 24)
	for _, view := range Views {
		b.enter(string(view))
		require.Equal(t, view, b.view)
		require.Nil(t, b.top())
	}
	for line, view := range map[string]screen.View{
		"exec": keymap.InExecutions, "jobs": keymap.InLog,
		"doctor": keymap.InBroker, "queu": keymap.InQueues,
	} {
		b.enter(line)
		require.Equal(t, view, b.view, line)
	}
}

func TestCommandsOpenThings(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2")
	b.enter("q core.http_request")
	require.Equal(t, keymap.InQueue, b.view)
	b.enter("q nowhere")
	require.Contains(t, b.View(), "No such name among the loaded queues; the filter lists names that contain it.")
	require.Contains(t, b.View(), "No queue matches /nowhere")
	require.Equal(t, keymap.InQueues, b.view)
	require.Equal(t, "nowhere", b.queues.Filter())
	b.enter("e 884301")
	require.Equal(t, keymap.InExecution, b.view)
	require.Equal(t, int64(884301), b.execution.ID())
	b.enter("e twelve")
	require.Contains(t, b.View(), `"twelve" is not the number of an execution`)
	require.IsType(t, &paletteLine{}, b.top(), "it can be mended")
	b.press("esc")
	worker := b.source.workers.List[2]
	b.enter("w " + worker.Name)
	require.Equal(t, keymap.InWorker, b.view)
	require.Equal(t, worker.ID, b.worker.ID())
}

func TestCommandsSetTheDashboard(t *testing.T) {
	acts := &fakeActs{}
	b := started(t, sample(), 100, 24, func(o *Options) { o.Acts = acts })
	b.enter("set poll 5s")
	require.Equal(t, 5*time.Second, b.refreshEvery)
	for _, wrong := range []string{"set poll soon", "set poll 1ms", "set sails 5"} {
		b.enter(wrong)
		require.Contains(t, b.View(), "✗", wrong)
		b.press("esc")
	}
	b.enter("theme mono")
	require.Equal(t, "mono", b.env.Theme.Name())
	b.enter("theme pink")
	require.Contains(t, b.View(), "unknown theme")
	b.press("esc")
	require.Empty(t, b.actingLock())
	b.enter("readonly on")
	require.Contains(t, b.env.Locked, ":readonly off")
	b.press("2", "A")
	require.Empty(t, b.stage())
	b.enter("ro off")
	require.Empty(t, b.env.Locked)
	b.enter("help")
	require.NotNil(t, b.help())
	require.Empty(t, b.help().search)
}

func TestSinceIsATermOfTheFilter(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.enter("since 24h")
	require.Equal(t, keymap.InExecutions, b.view)
	require.Equal(t, "age<24h", b.executions.Filter())
	require.NoError(t, b.executions.SetFilter("age<1h status:failed"))
	b.enter("since 15m")
	require.Equal(t, "status:failed age<15m", b.executions.Filter())
	require.Equal(t, 15*time.Minute, b.source.filters[len(b.source.filters)-1].MaxAge, "it is read again")
	b.enter("since off")
	require.Equal(t, "status:failed", b.executions.Filter())
	b.enter("since ever")
	require.Contains(t, b.View(), "is no age")
}

func TestThePaletteListsItsCommands(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", ":")
	require.Contains(t, b.View(), ":overview")
	require.Contains(t, b.View(), "open the view")
	b.typed("q core")
	require.Contains(t, b.View(), ":q core.http_request")
	b.press("enter")
	require.Equal(t, "core", b.queues.Filter(), "enter runs the typed text, not the offered one")
	b.enter("zzz")
	require.Contains(t, b.View(), "no command :zzz")
	require.Len(t, b.frame(), 24)
}

func TestContextsAreTurnedToWhereThereAreSome(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.enter("ctx staging")
	require.Contains(t, b.View(), "no command :ctx")
	b = started(t, sample(), 80, 24, func(o *Options) {
		o.Contexts = []string{"prod-eu", "staging"}
		o.Connect = func(context.Context, string) (*Installation, error) {
			return &Installation{Name: "staging", Source: sample()}, nil
		}
	})
	b.enter("ctx stagin")
	require.Contains(t, b.View(), "did you mean staging")
	b.press("esc")
	b.press("3")
	b.enter("ctx staging")
	require.Equal(t, "staging", b.opts.Context)
	b.press("[")
	require.Contains(t, b.View(), "first view", "the history is that of one installation")
}

func TestHistoryLeadsBackAndForth(t *testing.T) {
	b := started(t, sample(), 100, 24)
	b.press("2", "j", "j")
	row := b.table().Key()
	b.press("enter")
	require.Equal(t, keymap.InQueue, b.view)
	queue := b.queue.ID()
	b.press("3", "/")
	b.typed("status:failed")
	b.press("enter")
	b.enter("e 884301")
	b.enter("e 884300")
	b.press("[")
	require.Equal(t, int64(884301), b.execution.ID())
	b.press("[")
	require.Equal(t, keymap.InExecutions, b.view)
	require.Equal(t, "status:failed", b.executions.Filter())
	b.press("[")
	require.Equal(t, keymap.InQueue, b.view)
	require.Equal(t, queue, b.queue.ID())
	b.press("[")
	require.Equal(t, keymap.InQueues, b.view)
	require.Equal(t, row, b.table().Key())
	b.press("[", "[")
	require.Equal(t, keymap.InOverview, b.view)
	require.Contains(t, b.View(), "first view")
	b.press("]", "]", "]", "]", "]", "]")
	require.Equal(t, int64(884300), b.execution.ID())
	require.Contains(t, b.View(), "nothing ahead")
	b.press("[", "4", "]")
	require.Equal(t, keymap.InWorkers, b.view, "the forward history is dropped")
}

func TestEscReturnsToTheViewBefore(t *testing.T) {
	b := started(t, sample(), 100, 24)
	b.press("3")
	b.enter("e 884301")
	b.enter("e 884300")
	b.press("esc")
	require.Equal(t, int64(884301), b.execution.ID(), "from one execution to another and back")
	b.press("esc")
	require.Equal(t, keymap.InExecutions, b.view)
	b.press("[")
	require.Equal(t, int64(884301), b.execution.ID(), "going up is a step of the history too")
}

func TestTheTitleNamesTheWay(t *testing.T) {
	b := started(t, sample(), 100, 24)
	b.press("2")
	require.Contains(t, b.frame()[2], "─ Queues ")
	b.enter("q core.http_request")
	b.enter("e 884301")
	b.enter("e 884300")
	require.Contains(t, b.frame()[2], "Queues › core.http_request › 884301 › 884300")
	b.press("3")
	require.Contains(t, b.frame()[2], "─ Executions ")
	b.send(tea.WindowSizeMsg{Width: 60, Height: 20})
	for id := range 12 {
		b.enter("e " + strconv.Itoa(884000+id))
	}
	require.Regexp(t, `─ … › .*› 884010 › 884011 `, b.frame()[2])
}
