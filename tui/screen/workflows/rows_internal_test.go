package workflows

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

func TestHowFarAWorkflowIs(t *testing.T) {
	t.Parallel()
	th, err := theme.New(theme.Options{Plain: true})
	require.NoError(t, err)
	v := &Workflows{env: &screen.Env{Theme: th}}
	for want, w := range map[string]monitor.Workflow{
		"--":       {Status: "running"},
		"░░░░░░░░": {Status: "running", Tasks: monitor.WorkflowCounts{Total: 6}},
		"████░░░░": {Status: "running", Tasks: monitor.WorkflowCounts{Total: 6, Completed: 2, Skipped: 1}},
		"█████✗░░": {Status: "failed", Tasks: monitor.WorkflowCounts{Total: 10, Completed: 7, Failed: 1}},
		"██████░░": {Status: "cancelled", Tasks: monitor.WorkflowCounts{Total: 4, Completed: 3}},
		// The branch for failures was never taken.
		"████████": {Status: "completed", Tasks: monitor.WorkflowCounts{Total: 6, Completed: 3, Skipped: 1}},
	} {
		require.Equal(t, want, progress(v.env, &w).Text)
	}
}

// A search that has found nothing yet says so. G searches its next page, also behind an empty one.
func TestASearchThatFindsNothingGoesOn(t *testing.T) {
	t.Parallel()
	th, err := theme.New(theme.Options{Plain: true})
	require.NoError(t, err)
	env := &screen.Env{Data: screen.NewData(), Theme: th, Width: 100, Height: 30}
	v := New(env)
	require.NoError(t, v.SetFilter("error:none"))
	answer := func(from, next int64, ids ...int64) {
		board := &monitor.WorkflowBoard{From: from, Next: next, Bounded: next != 0}
		for _, id := range ids {
			board.List = append(board.List, monitor.Workflow{Execution: id, Status: "failed"})
		}
		env.Data.Workflows = board
		v.Changed(screen.FeedWorkflows)
	}
	answer(0, 900)
	require.Contains(t, strings.Join(v.Render(100, 30), "\n"), "No match yet, and only a part was searched: G goes on.")
	require.Zero(t, v.Below(), "it does not go on by itself")
	require.Equal(t, screen.FeedWorkflows, v.Do(keymap.Bottom).Refetch)
	require.EqualValues(t, 900, v.Below())
	answer(900, 500)
	require.Zero(t, v.Below())
	answer(0, 910) // a poll of the newest
	v.Do(keymap.Bottom)
	require.EqualValues(t, 500, v.Below(), "it goes on where it stopped")
	answer(500, 0, 77)
	answer(0, 920)
	require.Equal(t, 1, v.Len(), "what was found stays")
}
