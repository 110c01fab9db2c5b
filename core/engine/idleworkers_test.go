package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/lab/testkit"
)

// idleWorkers is how many live workers without work there are beside the busy ones.
const idleWorkers = 1000

// expense is the cost of one execution: statements of the engine's batches, and, if the server reports them, rows
// and bytes of WAL of all transactions that write it.
type expense struct{ statements, rows, wal float64 }

func (e expense) String() string {
	return fmt.Sprintf("%.1f statements, %.1f rows written, %.0f bytes of WAL", e.statements, e.rows, e.wal)
}

// idleAccount is an account with two workers that are given work, and perhaps many without.
type idleAccount struct {
	*account
	inspects bool
}

// expense runs some executions one after the other.
func (a *idleAccount) expense(t *testing.T) (e expense) {
	t.Helper()
	const executions = 10
	from, before := a.position(t), a.meter.ofBatches()
	for range executions {
		a.run(t)
	}
	e.statements = (a.meter.ofBatches() - before) / executions
	if !a.inspects {
		return e
	}
	e.rows, e.wal = a.written(t, from, executions)
	return e
}

// written is how many rows and bytes of WAL each of n executions has cost since a position.
func (a *idleAccount) written(t *testing.T, from string, n float64) (rows, wal float64) {
	t.Helper()
	for _, r := range a.records(t, from, a.position(t)) {
		wal += r.Bytes / n
		switch r.Kind {
		case "Heap INSERT", "Heap INSERT+INIT", "Heap UPDATE", "Heap UPDATE+INIT", "Heap HOT_UPDATE",
			"Heap HOT_UPDATE+INIT", "Heap DELETE":
			rows += r.Count / n
		}
	}
	return rows, wal
}

// appear registers live workers that a taint keeps idle, and remembers their rows to notice writes and locks.
func (a *idleAccount) appear(t *testing.T) {
	t.Helper()
	testkit.Exec(t, a.direct, `
		INSERT INTO worker (name, worker_type, worker_role, status, last_heartbeat, heartbeat_seen, capabilities, incarnation)
		SELECT 'idle-' || n, 'local', 'action', 'active', now(), now() + interval '1 hour', '{
		           "max_concurrent_executions": 10, "attempt_fence": true,
		           "taints": [{"key": "idle", "value": "yes", "effect": "no_schedule"}]
		       }'::jsonb, gen_random_uuid()
		FROM generate_series(1, $1::int) n`, idleWorkers)
	testkit.Exec(t, a.direct, `CREATE TABLE idle_before AS `+idleRows)
}

func (a *idleAccount) leave(t *testing.T) {
	t.Helper()
	testkit.Exec(t, a.direct, `DROP TABLE idle_before`)
	testkit.Exec(t, a.direct, `DELETE FROM worker WHERE name LIKE 'idle-%'`)
}

// idleRows are the rows of idle workers with the transactions that wrote them and that locked
// them last: PostgreSQL keeps both in the row.
const idleRows = `
	SELECT 'worker' AS kind, w.id, w.xmin::text AS written, w.xmax::text AS locked
	FROM worker w WHERE w.name LIKE 'idle-%'
	UNION ALL
	SELECT 'worker_load', l.worker, l.xmin::text, l.xmax::text
	FROM worker_load l JOIN worker w ON w.id = l.worker WHERE w.name LIKE 'idle-%'`

// touched is how many rows of idle workers were written or locked since it appeared.
func (a *idleAccount) touched(t *testing.T) int {
	t.Helper()
	return testkit.Count(t, a.direct, `SELECT count(*) FROM idle_before b FULL JOIN (`+idleRows+`) n USING (kind, id)
		WHERE n.id IS NULL OR b.id IS NULL OR n.written <> b.written OR n.locked NOT IN (b.locked, '0')`)
}

// 1,000 idle workers beside two busy ones, also at the moment of their registration: no batch writes or locks their
// rows. An execution costs as many statements, rows and bytes of WAL as without them, with a margin of 20% for
// loops.
func TestLiveWorkersWithoutWorkCostAnExecutionNothing(t *testing.T) {
	a := &idleAccount{account: newAccount(t)}
	a.inspects = a.inspectsWAL(t)
	// The idle workers have no processes, which a look at their queues would find out.
	a.engine(t, func(c *config.Config) { c.Executor.HealthCheckInterval = 24 * time.Hour })
	a.worker(t, "w1", 5)
	a.worker(t, "w2", 5)
	a.warmUp(t)

	var alone []expense
	for range 3 {
		alone = append(alone, a.expense(t))
		t.Logf("with 2 workers an execution costs %s", alone[len(alone)-1])
	}
	usual := middle(alone)
	a.appear(t)
	for _, appears := range []bool{true, false} {
		// Loops and the server's own work add to some series: the best of three counts.
		for series := 1; ; series++ {
			cost := a.expense(t)
			t.Logf("with %d more, appearing just now: %t, it costs %s", idleWorkers, appears, cost)
			require.Zero(t, a.touched(t), "rows of workers without work that were written or locked")
			if cost.within(usual) {
				break
			}
			require.Less(t, series, 3, "more than 1.2 × %s, appearing just now: %t", usual, appears)
			if appears {
				a.leave(t)
				a.appear(t)
			}
		}
	}
	a.request(t, "core.noop", 100, `{}`) // some batches hold many executions
	a.released(t)
	require.Zero(t, a.touched(t), "rows of workers without work that were written or locked")
	require.Equal(t, idleWorkers, testkit.Count(t, a.direct, `SELECT count(*) FROM worker
		WHERE name LIKE 'idle-%' AND status = 'active' AND suspect_since IS NULL AND heartbeat_seen > now()`), "they live")
	// The check above does notice a lock of one row.
	testkit.Exec(t, a.direct, `SELECT FROM worker_load
		WHERE worker = (SELECT min(id) FROM worker WHERE name LIKE 'idle-%') FOR UPDATE`)
	require.Equal(t, 1, a.touched(t))
}

// within reports whether a cost is at most 1.2 × the usual one.
func (e expense) within(usual expense) bool {
	return e.statements <= 1.2*usual.statements && e.rows <= 1.2*usual.rows && e.wal <= 1.2*usual.wal
}

// middle is the median of three, of each figure by itself.
func middle(list []expense) expense {
	of := func(figure func(expense) float64) float64 {
		var values []float64
		for _, e := range list {
			values = append(values, figure(e))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return expense{
		statements: of(func(e expense) float64 { return e.statements }),
		rows:       of(func(e expense) float64 { return e.rows }),
		wal:        of(func(e expense) float64 { return e.wal }),
	}
}
