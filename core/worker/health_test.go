package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/liveness"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// Upstream 31: published workers never write capabilities.health, so all are healthy. Our worker writes it in the
// documented form, and rarely.
func TestUpstream31WorkersReportTheirHealth(t *testing.T) {
	b := setup(t)
	actions := worker.Actions{}
	for _, ref := range []string{"ill.a", "ill.b"} {
		actions[ref] = func(context.Context, worker.Task) (any, error) { return nil, errors.New("because") }
	}
	w := b.worker(t, func(c *worker.Config) {
		c.Actions, c.HeartbeatInterval = actions, 30*time.Millisecond
		c.HealthURL = func() string { return "http://127.0.0.1:1/healthz" }
		c.Capabilities = map[string]any{"health": map[string]any{"status": "splendid"}}
	})
	capabilities := func() (health placement.Report, rest map[string]any) {
		var raw []byte
		require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `SELECT capabilities FROM worker WHERE id = $1`,
			w.ID()).Scan(&raw))
		require.NoError(t, json.Unmarshal(raw, &rest))
		text, err := json.Marshal(rest["health"])
		require.NoError(t, err)
		health, _ = placement.ParseReport(text)
		return health, rest
	}
	begin := time.Now()
	health, rest := capabilities()
	require.Empty(t, health.Status, "this process has ended nothing yet")
	require.Equal(t, "http://127.0.0.1:1/healthz", rest["health_url"])
	for i := range 12 {
		b.run(t, w, testkit.Action(t, b.store, fmt.Sprintf("ill.%d", i), func(row *testkit.ActionRow) {
			row.Entrypoint = []string{"ill.a", "ill.b"}[i%2]
		}), nil)
	}
	testkit.Eventually(t, func() bool { health, _ = capabilities(); return health.Status == placement.Unhealthy },
		waitTimeout)
	require.GreaterOrEqual(t, health.InARow, 10)
	require.Equal(t, health.Total, health.Failed)
	require.GreaterOrEqual(t, health.Actions, 2)
	require.NotEmpty(t, health.LastCheck)
	require.LessOrEqual(t, testkit.Count(t, b.store,
		`SELECT count(*) FROM worker_history WHERE entity_id = $1 AND changed_fields = '{capabilities}'`, w.ID()),
		3+int(time.Since(begin)/time.Minute), "a row for each change of the status, and one each minute")
	require.Equal(t, 12, w.Health().InARow)
}

// A frozen worker process is marked inactive, and active again when it continues.
func TestAFrozenProcessComesBack(t *testing.T) {
	b := setup(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1", "CHILD_DATABASE="+b.databaseURL, "CHILD_BROKER="+b.brokerURL)
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	status := func(want string, deactivated bool) func() bool {
		return func() bool {
			return testkit.Count(t, b.store,
				`SELECT count(*) FROM worker WHERE status::text = $1 AND (deactivated_at IS NOT NULL) = $2`,
				want, deactivated) == 1
		}
	}
	testkit.Eventually(t, status("active", false), waitTimeout, "the child did not register")
	monitor := liveness.NewHeartbeats(liveness.HeartbeatsConfig{
		Interval:   50 * time.Millisecond,
		StaleAfter: 2 * time.Second,
	},
		b.store, testkit.Logger(t), nil, nil)
	require.NoError(t, monitor.Start(testkit.Context(t)))
	t.Cleanup(monitor.Stop)
	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	testkit.Eventually(t, status("inactive", true), waitTimeout)
	require.NoError(t, child.Process.Signal(syscall.SIGCONT))
	testkit.Eventually(t, status("active", false), waitTimeout)
	require.NoError(t, child.Process.Kill())
	testkit.Eventually(t, status("inactive", true), waitTimeout, "a killed process stays inactive")
}
