package retention_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// plan is the database's plan of a query.
func plan(t *testing.T, st *store.Store, sql string, args ...any) string {
	t.Helper()
	return strings.Join(testkit.Column[string](t, st.Pool(), "EXPLAIN "+sql, args...), "\n")
}

// query drops the first line of a generated query, its name.
func query(sql string) string {
	_, rest, _ := strings.Cut(sql, "\n")
	return rest
}

func TestUnreadRowsAreDeleted(t *testing.T) {
	st := testkit.Store(t)
	testkit.Exec(t, st, `INSERT INTO dead_letter (fingerprint, decision, decided_at, created, updated) VALUES
		('old', 'failed', now() - interval '25 hours', now() - interval '26 hours', now()),
		('old, just decided', 'discarded', now() - interval '1 hour', now() - interval '26 hours', now()),
		('waits for a person', NULL, NULL, now() - interval '1 year', now() - interval '1 year'),
		('at the edge', 'stale', now() - interval '23 hours 59 minutes', now() - interval '24 hours 1 minute', now())`)
	testkit.Exec(t, st, `INSERT INTO lost_work (at, cause, outcome, execution, attempt, action_ref) VALUES
		(now() - interval '31 days', 'worker_gone', 'moved', 1, 1, 'a.b'), (now() - interval '29 days', 'worker_gone', 'moved', 2, 1, 'a.b')`)
	testkit.Exec(t, st, `INSERT INTO alert (rule, target, severity, summary, value, since, cleared) VALUES
		('cleared', '', 'warning', '', 1, now() - interval '40 days', now() - interval '31 days'),
		('cleared late', '', 'warning', '', 1, now() - interval '40 days', now() - interval '1 day'),
		('open', '', 'warning', '', 1, now() - interval '40 days', NULL)`)
	testkit.Exec(t, st, `INSERT INTO late_write (execution, old_status, refused_status, at) VALUES
		(1, 'completed', 'running', now() - interval '31 days'), (2, 'completed', 'running', now() - interval '29 days')`)
	testkit.Exec(t, st, `INSERT INTO workflow_source (digest, definition, used) VALUES
		('nobody', '{}', now() - interval '25 hours'), ('just used', '{}', now() - interval '1 hour'), ('referred to', '{}', now() - interval '1 year')`)
	flow := testkit.Execution(t, st, testkit.Action(t, st, "pk.flow"))
	testkit.Exec(t, st, `WITH d AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition) SELECT 'pk.flow', id, ref, 'x', '1', '{}' FROM pack WHERE ref = 'pk' RETURNING id)
		INSERT INTO workflow_execution (execution, workflow_def, task_graph, source, open)
		SELECT $1, d.id, '{}', s.id, false FROM d, workflow_source s WHERE s.digest = 'referred to'`, flow.ID)
	testkit.Exec(t, st,
		`INSERT INTO operator_audit (actor, action, at) VALUES ('ann', 'queue.pause', now() - interval '10 years')`)

	registry := prometheus.NewRegistry()
	rows := retention.NewRows(retention.RowsConfig{}, st, testkit.Logger(t), retention.NewMetrics(registry), nil)
	require.NoError(t, tick(t, rows.Loop))
	left := func(table, column string) (all []string) {
		found, err := st.Pool().Query(t.Context(), `SELECT `+column+`::text FROM `+table+` ORDER BY 1`)
		require.NoError(t, err)
		defer found.Close()
		for found.Next() {
			var one string
			require.NoError(t, found.Scan(&one))
			all = append(all, one)
		}
		return all
	}
	require.Equal(t, []string{"at the edge", "old, just decided", "waits for a person"},
		left("dead_letter", "fingerprint"))
	require.Equal(t, []string{"2"}, left("lost_work", "execution"))
	require.Equal(t, []string{"cleared late", "open"}, left("alert", "rule"))
	require.Equal(t, []string{"2"}, left("late_write", "execution"))
	require.Equal(t, []string{"just used", "referred to"}, left("workflow_source", "digest"))
	require.Equal(t, []string{"ann"}, left("operator_audit", "actor"))
	for _, what := range []string{"dead letters", "lost work", "alerts", "late writes", "workflow definitions"} {
		require.Equal(t, 1, metric(t, registry, "attune_retention_removed_total", what))
	}
}

// Very many rows are many transactions, shared by all replicas; the others and the next tick finish an interrupted
// one.
func TestManyRowsGoInPages(t *testing.T) {
	databaseURL := testkit.Database(t)
	st := testkit.OpenStore(t, databaseURL)
	testkit.Exec(t, st, `CREATE TABLE pages (tx text, rows int);
		CREATE FUNCTION note_page() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS
		$$ BEGIN INSERT INTO pages SELECT pg_current_xact_id()::text, count(*) FROM gone; RETURN NULL; END $$;
		CREATE TRIGGER note AFTER DELETE ON lost_work REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_page()`)
	testkit.Exec(t, st, `INSERT INTO lost_work (at, cause, outcome, execution, attempt, action_ref)
		SELECT now() - interval '31 days', 'worker_gone', 'moved', n, 1, 'a.b' FROM generate_series(1, 6000) n`)
	for i := range 3 {
		other := testkit.OpenStore(t, databaseURL)
		rows := retention.NewRows(retention.RowsConfig{Interval: 10 * time.Millisecond}, other, testkit.Logger(t), nil,
			nil)
		require.NoError(t, rows.Start(testkit.Context(t)))
		t.Cleanup(rows.Stop)
		if i == 0 { // it is stopped in the middle
			testkit.Eventually(t, func() bool { return testkit.Count(t, st, `SELECT count(*) FROM pages`) > 0 },
				20*time.Second)
			rows.Stop()
		}
	}
	testkit.Eventually(t, func() bool { return testkit.Count(t, st, `SELECT count(*) FROM lost_work`) == 0 },
		20*time.Second)
	require.LessOrEqual(t, testkit.Count(t, st, `SELECT max(sum) FROM (SELECT sum(rows) FROM pages GROUP BY tx) s`),
		500)
	require.Equal(t, 6000, testkit.Count(t, st, `SELECT sum(rows) FROM pages`))
}

// A locked row is left to the next tick, and blocks nothing.
func TestALockedRowIsLeft(t *testing.T) {
	st := testkit.Store(t)
	testkit.Exec(t, st, `INSERT INTO dead_letter (fingerprint, decision, decided_at, created)
		SELECT n::text, 'failed', now() - interval '2 days', now() - interval '2 days' FROM generate_series(1, 3) n`)
	holder := testkit.Begin(t, st)
	defer func() { _ = holder.Rollback(t.Context()) }()
	_, err := holder.Exec(t.Context(), `UPDATE dead_letter SET decision = NULL WHERE fingerprint = '2'`)
	require.NoError(t, err)
	rows := retention.NewRows(retention.RowsConfig{Interval: 10 * time.Millisecond}, st, testkit.Logger(t), nil, nil)
	require.NoError(t, rows.Start(testkit.Context(t)))
	defer rows.Stop()
	testkit.Eventually(t, func() bool { return testkit.Count(t, st, `SELECT count(*) FROM dead_letter`) == 1 },
		20*time.Second)
	require.NoError(t, holder.Commit(t.Context()))
	last := rows.LastTick()
	testkit.Eventually(t, func() bool { return rows.LastTick().After(last.Add(50 * time.Millisecond)) }, 20*time.Second)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM dead_letter`), "it waits for a person again")
}

// An index finds old rows, however many new ones there are.
func TestOldRowsAreFoundByIndex(t *testing.T) {
	st := testkit.Store(t)
	testkit.Exec(t, st, `INSERT INTO dead_letter (fingerprint, decision, decided_at) SELECT n::text, 'failed', now() FROM generate_series(1, 5000) n`)
	testkit.Exec(t, st, `INSERT INTO lost_work (cause, outcome, execution, attempt, action_ref) SELECT 'c', 'o', n, 1, 'a.b' FROM generate_series(1, 5000) n`)
	testkit.Exec(t, st, `INSERT INTO alert (rule, severity, summary, value, cleared) SELECT 'r', 's', '', n, now() FROM generate_series(1, 5000) n`)
	testkit.Exec(t, st, `INSERT INTO late_write (execution, old_status, refused_status) SELECT n, 'completed', 'running' FROM generate_series(1, 5000) n`)
	testkit.Exec(t, st, `ANALYZE dead_letter; ANALYZE lost_work; ANALYZE alert; ANALYZE late_write`)
	require.NotContains(t, plan(t, st, query(store.PruneDeadLetters), 1e6, int32(500)), "Seq Scan on dead_letter")
	require.NotContains(t, plan(t, st, query(store.PruneLostWork), 1e6, int32(500)), "Seq Scan on lost_work")
	require.NotContains(t, plan(t, st, query(store.PruneAlerts), 1e6, int32(500)), "Seq Scan on alert")
	require.NotContains(t, plan(t, st, query(store.PruneLateWrites), 1e6, int32(500)), "Seq Scan on late_write")
}

func TestInactiveWorkersGoAfterAWeek(t *testing.T) {
	databaseURL := testkit.Database(t)
	st := testkit.OpenStore(t, databaseURL)
	action := testkit.Action(t, st, "pk.a")
	q := &queues{}
	runs := silent(t, st, "runs", 2*week)
	testkit.Execution(t, st, action, ran(runs, lifecycle.StatusRunning))
	for _, name := range []string{"one", "two", "three"} {
		testkit.Execution(t, st, action, ran(silent(t, st, name, week+time.Hour), lifecycle.StatusFailed))
	}
	silent(t, st, "young", week-time.Hour)
	silent(t, st, "cordoned", 2*week, func(w *testkit.WorkerRow) { w.Cordoned = true })

	registry := prometheus.NewRegistry()
	metrics := retention.NewMetrics(registry)
	for range 3 { // three replicas delete each worker once
		workers := retention.NewWorkers(retention.WorkersConfig{Interval: 10 * time.Millisecond},
			testkit.OpenStore(t, databaseURL), q, testkit.Logger(t), metrics, nil)
		require.NoError(t, workers.Start(testkit.Context(t)))
		t.Cleanup(workers.Stop)
	}
	testkit.Eventually(t, func() bool { return testkit.Count(t, st, `SELECT count(*) FROM worker`) == 3 },
		20*time.Second)
	testkit.Eventually(t, func() bool { return metric(t, registry, "attune_retention_removed_total", "workers") == 3 },
		20*time.Second)
	require.Equal(t, 3, testkit.Count(t, st, `SELECT count(*) FROM worker WHERE name IN ('runs', 'young', 'cordoned')`))
	require.Equal(t, 3,
		testkit.Count(t, st, `SELECT count(*) FROM execution WHERE worker IS NULL AND status = 'failed'`))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE worker = $1`, runs))
	q.mu.Lock()
	defer q.mu.Unlock()
	require.Len(t, q.deleted, 9)
}
