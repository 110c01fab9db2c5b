package testkit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestTwoStoresShareADatabase(t *testing.T) {
	url := testkit.Database(t)
	one := testkit.OpenStore(t, url)
	two := testkit.OpenStore(t, url, func(c *store.Config) { c.HotPath = true })

	execution := testkit.Execution(t, one, testkit.Action(t, one, "demo.act"))
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, two, execution.ID))
	testkit.Invariants(t, two)
}

func TestFactoriesApplyTheirOptions(t *testing.T) {
	st := testkit.Store(t)

	action := testkit.Action(t, st, "demo.act", func(a *testkit.ActionRow) { a.MaxRetries = 3 })
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from action where id = $1 and max_retries = 3
		and pack_ref = 'demo' and param_schema is null and worker_selector = '{}'`, action.ID))

	testkit.Policy(t, st, action, 4, func(p *testkit.PolicyRow) { p.Method, p.Parameters = "cancel", []string{"env"} })
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from policy where action = $1 and threshold = 4
		and method = 'cancel' and parameters = '{env}'`, action.ID))

	testkit.Worker(t, st, "fresh")
	testkit.Worker(t, st, "stale", func(w *testkit.WorkerRow) { w.HeartbeatAge = 3600e9 })
	testkit.Worker(t, st, "mute", func(w *testkit.WorkerRow) { w.NoHeartbeat = true })
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from healthy_workers`))

	finished := testkit.Execution(t, st, action,
		func(e *testkit.ExecutionRow) { e.Status, e.Age = lifecycle.StatusFailed, 3600e9 })
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from execution where id = $1 and config is null
		and finished_at < now() - interval '59 minutes' and updated < now() - interval '59 minutes'`, finished.ID))
}
