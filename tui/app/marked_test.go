package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/keymap"
)

func TestMarkedRowsAreActedUponTogether(t *testing.T) {
	t.Parallel()
	for view, kind := range map[string]act.Kind{
		"2": act.PauseQueue, "3": act.RetryExecution, "4": act.CordonWorker,
		"6": act.PauseWorkflow,
	} {
		acts := &fakeActs{}
		b := acting(t, acts, 100, 30)
		b.press(view, " ", " ", "A")
		require.Equal(t, keymap.InMenu, b.stage(), view)
		require.Contains(t, b.View(), "2 marked ", view)
		require.Len(t, onTop[*actMenu](b).acts.Targets, 2)
		require.Equal(t, kind, onTop[*actMenu](b).acts.Items[0].Kind)
		require.NotZero(t, onTop[*actMenu](b).acts.Targets[0].ID)
		b.press("esc")
		require.Contains(t, b.messages(), "2 marked", "nothing was done")
	}
}

func TestReachedRowsAreUnmarked(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.press("3", " ", " ", " ")
	menu, ok := b.executions.Acts()
	require.True(t, ok)
	b.unmark(&act.Operation{
		Request: act.Request{Kind: act.RetryExecution, Targets: menu.Targets}, State: act.Partial,
		Receipt: &act.Receipt{Left: []int64{menu.Targets[2].ID}},
	})
	require.Equal(t, []string{menu.Targets[2].Name}, b.executions.Table().Marked())
}

func TestMarkedInquiriesGetOneAnswer(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 100, 30)
	b.press("8", "*", "A")
	require.Contains(t, b.View(), "marked inquir")
	require.NotEmpty(t, onTop[*actMenu](b).acts.Targets)
	require.Equal(t, act.AnswerInquiry, onTop[*actMenu](b).acts.Items[0].Kind)
	require.Equal(t, "answer all alike", onTop[*actMenu](b).acts.Items[0].Label)
	b.press("esc", "\\", "A")
	require.Empty(t, onTop[*actMenu](b).acts.Targets)
}

func TestWorkflowsAreMarkedInTheirListOnly(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.press("6", "tab", " ")
	require.Contains(t, b.messages(), "Workflows are marked in their list")
	require.Zero(t, b.workflows.Table().Marks())
	b.press("shift+tab", " ")
	require.Equal(t, 1, b.workflows.Table().Marks())
	b.press("*")
	require.Equal(t, b.workflows.Len(), b.workflows.Table().Marks())
}
