package main

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/testkit"
)

// TestAQueueIsPausedWhileTheWindowChanges: a dialog stays what it is when the
// terminal becomes small and large below it, and its act is done once.
func TestAQueueIsPausedWhileTheWindowChanges(t *testing.T) {
	t.Parallel()
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
	require.Zero(t, testkit.Count(t, st, `select count(*) from execution_admission_state where paused`))
	x.press("y")
	x.shows("✓ Pause demo.sleep")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from execution_admission_state where paused`))
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from operator_audit where action = 'queue.pause' and source = 'attune-tui'`))
}

// TestAKilledDashboardLeavesNothingBehind: not the act that was asked about, no
// session that goes on, and a terminal in which the next one works.
func TestAKilledDashboardLeavesNothingBehind(t *testing.T) {
	t.Parallel()
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
	x.shows("Pane is dead")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, `select count(*) from pg_stat_activity where datname = current_database() and application_name like 'attune-tui%'`) == 0
	}, 30*time.Second, "a session of the killed dashboard goes on")
	require.Zero(t, testkit.Count(t, st, `select count(*) from worker where cordoned`))
	x.call("respawn-pane")
	x.shows("worker-a")
	x.shows(" RW ")
	x.press("A", "c")
	x.shows("Cordon worker worker-a")
	x.press("y")
	x.shows("✓ Cordon worker worker-a")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from worker where cordoned`))
}

// TestTwoDashboardsSeeWhatEachDoes: both act on one row, and what the second finds
// done already it says, whatever it had on its screen.
func TestTwoDashboardsSeeWhatEachDoes(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	testkit.Worker(t, st, "worker-b", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	one, other := openTerminal(t, url, "--view", "workers"), openTerminal(t, url, "--view", "workers")
	for _, x := range []*terminal{one, other} {
		x.shows("worker-a")
		x.shows(" RW ")
		x.press("A", "c")
		x.shows("Cordon worker worker-a")
	}
	one.press("y")
	one.shows("✓ Cordon worker worker-a")
	other.press("y", "Escape") // leaves what it said to that
	other.shows("cordoned")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from worker where cordoned`))
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from worker where name = 'worker-a' and cordoned`))
}

// TestADashboardComesBackWithItsServers starts where nobody answers.
func TestADashboardComesBackWithItsServers(t *testing.T) {
	t.Parallel()
	address := testkit.Database(t)
	st := testkit.OpenStore(t, address)
	testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	u, err := url.Parse(address)
	require.NoError(t, err)
	server := u.Host
	u.Host = freeAddress(t)
	x := openTerminal(t, u.String(), "--view", "workers", "--refresh", "500ms")
	x.shows("PG ✗ down")
	x.shows("MQ ✗ down")
	relay(t, u.Host, server)
	x.shows("worker-a")
	x.shows("PG ●")
}

// freeAddress is where nobody listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // Nothing is waited for.
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// relay passes on what comes to an address until the test ends.
func relay(t *testing.T, at, to string) {
	t.Helper()
	l, err := net.Listen("tcp", at) //nolint:noctx // Nothing is waited for.
	require.NoError(t, err)
	var copies sync.WaitGroup
	var open sync.Map
	copies.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to) //nolint:noctx // It is on this machine.
			if err != nil {
				_ = from.Close() // the dashboard tries again
				continue
			}
			open.Store(from, nil)
			open.Store(server, nil)
			for _, pair := range [][2]net.Conn{{from, server}, {server, from}} {
				copies.Go(func() {
					_, _ = io.Copy(pair[0], pair[1]) // ends with either connection
					_, _ = pair[0].Close(), pair[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // ends the loop
		for conn := range open.Range {
			if conn, ok := conn.(net.Conn); ok {
				_ = conn.Close() // the test is over
			}
		}
		copies.Wait()
	})
}
