package engine_test

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
	"github.com/attune-go/attune/lab/testkit"
)

// docs/sizing.md has the figures that this test logs. The bounds are 1.5 times as high.
func TestCostsOfExecutionsByKind(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "count what executions of each kind cost; another test has the budget of a single one")
	a := &idleAccount{account: newAccount(t)}
	a.inspects = a.inspectsWAL(t)
	limits := map[string]int{"cost.one": 1, "cost.ten": 10}
	for ref, limit := range limits {
		action := testkit.Action(t, a.store, ref, func(row *testkit.ActionRow) { row.Entrypoint = "core.noop" })
		testkit.Policy(t, a.store, action, limit)
	}
	for ref := range bigResults {
		testkit.Action(t, a.store, ref, func(row *testkit.ActionRow) { row.Entrypoint = ref })
	}
	packs := pagePacks{}
	packs.add("list.ten", "workflows/", ".workflow.yaml", `
ref: list.ten
version: 1.0.0
tasks:
  - name: each
    action: core.noop
    with_items: "{{ range(10) }}"
    concurrency: 10
`)
	packs.write(t, a.bundle)
	a.engine(t, func(c *config.Config) { c.Executor.HealthCheckInterval = 24 * time.Hour })
	a.bigWorker(t)
	a.warmUp(t)
	loops := a.loops(t)
	for _, kind := range []struct {
		name, ref       string
		times, together int // requests one after the other, and how many each holds
		executions      int // of a request
		wal             float64
	}{
		{"no limit, one at a time", "core.noop", 20, 1, 1, 9_000},
		{"no limit, 2,000 at once", "core.noop", 1, 2_000, 1, 6_000},
		{"limit 1, 20 at once", "cost.one", 1, 20, 1, 11_000},
		{"limit 10, 1,000 at once", "cost.ten", 1, 1_000, 1, 8_000},
		{"task of a list of 10", "list.ten", 5, 1, 10, 12_000},
		{"result of 64 KiB, one at a time", "big.r64k", 20, 1, 1, 120_000},
		{"result of 1 MiB, one at a time", "big.r1m", 5, 1, 1, 1_800_000},
	} {
		n := float64(kind.times * kind.together * kind.executions)
		before, disk, from := a.meter.read(), a.disk(t), a.position(t)
		a.meter.forget()
		for range kind.times {
			a.request(t, kind.ref, kind.together, `{}`)
			a.released(t)
		}
		a.published(t)
		e := expense{}
		for name, count := range a.meter.names() {
			if !loops[name] {
				e.statements += float64(count) / n
			}
		}
		commits := a.meter.read().minus(before).times(1 / n)
		if a.inspects {
			e.rows, e.wal = a.written(t, from, n)
		}
		t.Logf("%s: %s, %.2f commits, %.2f round trips, %.0f bytes on the disk", kind.name, e,
			commits.commits, commits.trips, (a.disk(t)-disk)/n)
		require.LessOrEqual(t, e.wal, kind.wal, kind.name)
	}
}

// loops are the statements that are made while nothing is to be done.
func (a *idleAccount) loops(t *testing.T) map[string]bool {
	t.Helper()
	a.meter.forget()
	time.Sleep(time.Second)
	names := map[string]bool{}
	for name := range a.meter.names() {
		names[name] = true
	}
	return names
}

// disk is how many bytes all tables have, with their indexes.
func (a *idleAccount) disk(t *testing.T) float64 {
	t.Helper()
	return float64(testkit.Count(t, a.direct, `SELECT sum(pg_total_relation_size(c.oid))::bigint
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`, testkit.Schema))
}

// bigResults are actions with large results, which do not compress well: hexadecimal digits.
var bigResults = map[string]int{"big.r64k": 64 << 10, "big.r1m": 1 << 20}

// bigWorker starts a worker that also has the actions with large results.
func (a *idleAccount) bigWorker(t *testing.T) {
	t.Helper()
	actions := builtin.Actions()
	for ref, size := range bigResults {
		actions[ref] = func(context.Context, worker.Task) (any, error) {
			raw := make([]byte, size/2)
			for i := range raw {
				raw[i] = byte(rand.IntN(256))
			}
			return map[string]any{"text": hex.EncodeToString(raw)}, nil
		}
	}
	w, err := worker.New(worker.Config{
		Name: "w1", MaxConcurrent: 50, HeartbeatInterval: 500 * time.Millisecond,
		Actions: actions,
	},
		worker.Deps{Store: a.store, Broker: a.connect(t, "w1"), Logger: testkit.Logger(t)})
	require.NoError(t, err)
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
}
