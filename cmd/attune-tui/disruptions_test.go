package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// TestAQueueIsPausedWhileTheWindowChanges resizes the terminal below an open dialog. The action runs once.
func TestAQueueIsPausedWhileTheWindowChanges(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	testkit.State(t, st, testkit.Action(t, st, "demo.sleep"), 4, func(r *testkit.StateRow) { r.Active = 1 })
	x := openTerminal(t, url, "--view", "queues")
	x.shows("demo.sleep")
	x.shows(" RW ")
	x.press("A", "p")
	x.shows("Pause demo.sleep")
	for _, size := range [][2]string{{"40", "10"}, {"200", "60"}, {"80", "24"}} {
		x.call("resize-window", "-x", size[0], "-y", size[1])
	}
	x.shows("Pause demo.sleep")
	x.shows(buttons)
	require.Zero(t, testkit.Count(t, st, `select count(*) from execution_admission_state where paused`))
	x.press("y")
	x.shows("✓ Pause demo.sleep")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from execution_admission_state where paused`))
	require.Equal(t, 1, testkit.Count(t, st,
		`select count(*) from operator_audit where action = 'queue.pause' and source = 'attune-tui'`))
}

// A killed dashboard has not run the open plan, leaves no session, and the next one works in its terminal.
func TestAKilledDashboardLeavesNothingBehind(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	testkit.Worker(t, st, "worker-b", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	x := openTerminal(t, url, "--view", "workers")
	x.call("set-option", "remain-on-exit", "on")
	x.shows("worker-a")
	x.shows(" RW ")
	x.press("A", "c")
	x.shows("Cordon worker worker-a")
	pid := strings.TrimSpace(x.call("display-message", "-p", "#{pane_pid}"))
	x.call("run-shell", "kill -9 "+pid)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, `select count(*) from pg_stat_activity where datname = current_database() and application_name like 'attune-tui%'`) == 0
	}, 30*time.Second, "a session of the killed dashboard goes on")
	require.Zero(t, testkit.Count(t, st, `select count(*) from worker where cordoned`))
	x.call("respawn-pane", "-k")
	x.shows("worker-a")
	x.shows(" RW ")
	x.press("A", "c")
	x.shows(buttons)
	x.press("y")
	x.shows("✓ Cordon worker worker-a")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from worker where cordoned`))
}

// TestTwoDashboardsActOnOneWorker runs the same action from both: the second changes nothing and sees the first.
func TestTwoDashboardsActOnOneWorker(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "watch one dashboard from another")
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	testkit.Worker(t, st, "worker-b", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	one, other := openTerminal(t, url, "--view", "workers"), openTerminal(t, url, "--view", "workers")
	for _, x := range []*terminal{one, other} {
		x.shows("worker-a")
		x.shows(" RW ")
		x.press("A", "c")
		x.shows(buttons)
	}
	one.press("y")
	one.shows("✓ Cordon worker worker-a")
	other.press("y", "Escape") // closes its receipt
	other.shows("cordoned")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from worker where cordoned`))
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from worker where name = 'worker-a' and cordoned`))
}
