package app

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
)

func TestNumberKeysReplaceTheViewAndQuitEndsAtAnyOfThem(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", "j", "enter", "4", "3", "2")
	b.press("esc")
	require.Equal(t, keymap.InQueues, b.view, "esc leads to no view that was visited before")
	require.True(t, quits(t, b, "q"))
	b.press("[")
	require.Equal(t, keymap.InExecutions, b.view, "the history is behind [")
	b.press("[", "[")
	require.Equal(t, keymap.InQueue, b.view)
	b.press("q")
	require.Equal(t, keymap.InQueues, b.view, "q goes up where something is opened")
}

func TestANumberKeyLeavesTheWayUp(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("4", "j", "o", "x")
	require.Equal(t, keymap.InExecutions, b.view)
	b.press("3")
	require.True(t, quits(t, b, "q"))
}

func TestActionsAreAboutTheSelectedRowNotItsParent(t *testing.T) {
	b := acting(t, &fakeActs{}, 80, 24)
	b.press("j", "enter")
	require.Equal(t, keymap.InQueue, b.view)
	id := b.queue.SelectedID()
	require.NotZero(t, id)
	b.press("A")
	require.Equal(t, id, onTop[*actMenu](b).acts.Target.ID)
	require.Contains(t, b.View(), "cancel tree")
	b.press("esc", "shift+tab", "A")
	require.Contains(t, b.View(), "reset limit", "beside its limits and times A acts on the queue")
	b.press("esc", "4", "j", "j", "enter")
	require.Equal(t, keymap.InWorker, b.view)
	b.press("A")
	require.Equal(t, b.worker.Key(0), strconv.FormatInt(onTop[*actMenu](b).acts.Target.ID, 10))
	b.press("esc", "tab", "A")
	require.Contains(t, b.View(), "drain")
}

func TestTheTitleOfAFormNamesAllThatIsTouched(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A")
	held := b.hold("f")
	require.Contains(t, b.View(), "repair all queues of core.http_request")
	b.answers(held)
}
