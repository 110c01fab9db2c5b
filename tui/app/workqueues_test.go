package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
)

// TestTheOverviewSaysThatItemsOfWorkQueuesWait: the engine does not dispatch the work
// queues of an existing installation, and every size of the overview says so.
func TestTheOverviewSaysThatItemsOfWorkQueuesWait(t *testing.T) {
	t.Parallel()
	source := sample()
	overview := *source.overview
	overview.WorkQueues = []monitor.WorkQueue{
		{
			Ref: "jobs.import", Waiting: monitor.Count{Value: 10_000, AtLeast: true}, Leased: monitor.Count{Value: 2},
			Oldest: frozen.Add(-26 * time.Hour),
		},
		{Ref: "jobs.mail", Waiting: monitor.Count{Value: 3}, Oldest: frozen.Add(-time.Hour)},
	}
	overview.Alerts = storedAlerts(overview.Reading)
	overview.Alerts.Open = append(overview.Alerts.Open, alerting.Alert{
		Rule: "work_queue_waits", Target: "jobs.import", Severity: alerting.LevelWarning, State: alerting.AlertFiring,
		Summary: "10002 items of work queue jobs.import wait, for an engine that dispatches them",
		Hint:    "at least 10000 items wait, 2 are leased, the oldest for 1d02h", Since: frozen.Add(-26 * time.Hour),
		View: "overview",
	})
	source.overview = &overview
	for _, size := range [][2]int{{80, 24}, {140, 40}} {
		b := started(t, source, size[0], size[1])
		requireGolden(t, fmt.Sprintf("overview_work_queues_%dx%d", size[0], size[1]), b.View())
		require.Contains(t, b.View(), "005+ items wait in 2 queues, not dispatched, oldest 1d02h")
		require.Contains(t, b.View(), "10002 items of work queue jobs.import wait")
	}
	small := started(t, source, 60, 16)
	require.Contains(t, small.View(), "10002 items of work queue jobs.import wait")

	one := overview
	one.WorkQueues = overview.WorkQueues[1:]
	source.overview = &one
	require.Contains(t, started(t, source, 80, 24).View(), "3 items wait in jobs.mail, not dispatched, oldest 1h00m")
}
