package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
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
