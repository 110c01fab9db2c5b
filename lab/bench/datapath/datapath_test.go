package datapath

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// testServer measures on databases that are cloned from the test's own.
func testServer(t *testing.T) *server {
	t.Helper()
	ctx := testkit.Context(t)
	s := &server{url: testkit.Database(t), borrowed: true, logger: testkit.Logger(t)}
	cfg, err := pgx.ParseConfig(s.url)
	require.NoError(t, err)
	s.template, cfg.Database = cfg.Database, "postgres"
	s.admin, err = pgx.ConnectConfig(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { s.close(context.Background()) })
	return s
}

// Every kind of measurement completes without faults, with consistent figures.
func TestASmallMeasurement(t *testing.T) {
	t.Parallel()
	small := func(design Design, change func(*Scenario)) Scenario {
		scenario := Scenario{Design: design, Executions: 150, Keys: 3, Limit: 2, Replicas: 1, Workers: 2, Batch: 20}
		change(&scenario)
		return scenario
	}
	for name, c := range map[string]struct {
		scenario Scenario
		check    func(*testing.T, Result)
	}{
		"limited": {small(DesignEngine, func(*Scenario) {}), func(t *testing.T, r Result) {
			t.Helper()
			require.Positive(t, r.Queued)
			require.LessOrEqual(t, r.MostRunning, 2)
			require.LessOrEqual(t, r.BatchP99, 60, "completions and requests of one batch")
		}},
		"held": {small(DesignEngine, func(s *Scenario) {
			s.Executions, s.Keys, s.Hold = 40, 1, 5*time.Millisecond
		}), func(t *testing.T, r Result) {
			t.Helper()
			require.Greater(t, r.OfIdeal, 0.0)
			require.LessOrEqual(t, r.OfIdeal, 1.0)
		}},
		"paced": {
			small(DesignEngine, func(s *Scenario) { s.Executions, s.Limit, s.Pace = 40, 0, 0.2 }),
			func(t *testing.T, r Result) {
				t.Helper()
				require.Positive(t, r.WaitP50)
				require.GreaterOrEqual(t, r.Seconds, 39.0/200)
			},
		},
		"abused": {small(DesignEngine, func(s *Scenario) {
			s.Replicas, s.Schedulers, s.Duplicates, s.Aborts = 3, 3, 0.2, 0.5
		}), func(t *testing.T, r Result) {
			t.Helper()
			require.Positive(t, r.Failed, "batches were aborted")
		}},
		"under a pack's limit": {
			small(DesignEngine, func(s *Scenario) { s.PackLimit = 3 }),
			func(t *testing.T, r Result) {
				t.Helper()
				require.Positive(t, r.Queued)
			},
		},
		"far away": {small(DesignEngine, func(s *Scenario) {
			s.Executions, s.Schedulers, s.Delay = 60, 3,
				2*time.Millisecond
		}), func(t *testing.T, r Result) {
			t.Helper()
			require.Greater(t, r.RoundP50, 4.0, "a round trip at least")
		}},
		"at a rate": {small(DesignEngine, func(s *Scenario) { s.Limit, s.Rate = 0, 60 }), func(t *testing.T, r Result) {
			t.Helper()
			require.Positive(t, r.Queued, "more requests than permitted starts")
			require.Greater(t, r.Seconds, 2.0)
		}},
		"one at a time":           {small(DesignD1, func(*Scenario) {}), func(*testing.T, Result) {}},
		"one at a time, no limit": {small(DesignD1, func(s *Scenario) { s.Limit = 0 }), func(*testing.T, Result) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testServer(t)
			result, err := s.run(testkit.Context(t), c.scenario, 1000)
			require.NoError(t, err)
			require.Equal(t, Faults{}, result.Faults)
			require.InDelta(t, float64(c.scenario.Executions)/result.Seconds, result.PerSecond, 0.01)
			require.Positive(t, result.Rounds)
			require.Positive(t, result.Commits)
			require.Positive(t, result.WALBytes)
			require.LessOrEqual(t, result.HotRatio, 1.0)
			require.LessOrEqual(t, result.LockWaits, 1.0)
			c.check(t, result)
		})
	}
}

// A batch that waits for a row lock is counted.
func TestWaitsForLocksAreCounted(t *testing.T) {
	s := testServer(t)
	ctx := testkit.Context(t)
	w, err := s.build(ctx, Scenario{Design: DesignEngine, Keys: 1, Replicas: 1, Schedulers: 1, Workers: 1, Batch: 10})
	require.NoError(t, err)
	defer w.close()
	holder := testkit.Begin(t, w.query)
	defer func() { _ = holder.Rollback(context.Background()) }() // before the pool is closed
	const lock = `SELECT FROM action WHERE ref = 'bench.noop_0' FOR UPDATE`
	_, err = holder.Exec(ctx, lock)
	require.NoError(t, err)
	waiter, err := w.connect(ctx)
	require.NoError(t, err)
	defer func() { _ = waiter.Close(context.Background()) }()
	_, err = waiter.Exec(ctx, `SET application_name = '`+applicationBatches+`'`)
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() { _, err := waiter.Exec(ctx, lock); waited <- err }()
	testkit.Eventually(t, func() bool {
		done, err := w.watchLocks(ctx)
		require.NoError(t, err)
		mean, err := done()
		require.NoError(t, err)
		return mean == 1
	}, testkit.TestTimeout)
	require.NoError(t, holder.Rollback(ctx))
	require.NoError(t, <-waited)
	done, err := w.watchLocks(ctx)
	require.NoError(t, err)
	mean, err := done()
	require.NoError(t, err)
	require.Zero(t, mean)
}

func TestASmallGrowth(t *testing.T) {
	s := testServer(t)
	results, err := s.grow(testkit.Context(t), GrowthPlan{Levels: []int{150, 300}, Samples: 2, SamplesD1: 1},
		func(string, ...any) {})
	require.NoError(t, err)
	require.Len(t, results, 2*(2*2+2),
		"both levels: the engine with both operations and batches, D1 with both operations")
	for _, g := range results {
		require.Positive(t, g.P50)
		require.LessOrEqual(t, g.P50, g.P99)
	}
}

// A measurement with faults fails.
func TestFaultsAreFound(t *testing.T) {
	s := testServer(t)
	ctx := testkit.Context(t)
	w, err := s.build(ctx,
		Scenario{Design: DesignEngine, Keys: 2, Limit: 2, Replicas: 1, Workers: 1, Batch: 10, Aborts: 1e-9})
	require.NoError(t, err)
	defer w.close()
	pool := w.query.Pool()
	execute := func(sql string) {
		_, err := pool.Exec(ctx, sql)
		require.NoError(t, err)
	}
	// Two waited and were dispatched in the wrong order, and a third overtook one of them.
	execute(`INSERT INTO bench_log (tx, kind, state, execution, place) VALUES
		('1', 'wait', 1, 11, 1), ('1', 'wait', 1, 12, 2), ('2', 'go', 1, 12, NULL), ('3', 'go', 1, 13, NULL), ('4', 'go', 1, 11, NULL),
		('5', 'above', 1, NULL, NULL)`)
	order, above, err := w.orderFaults(ctx, pool, 3)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1}, []int{order, above})
	_, _, err = w.orderFaults(ctx, pool, 4)
	require.ErrorIs(t, err, errUnobserved, "a dispatch without a log entry")

	execute(`DELETE FROM bench_log; UPDATE execution_admission_state SET active_count = 1`)
	execute(`INSERT INTO execution (action, action_ref, status) SELECT id, ref, 'completed' FROM action WHERE pack_ref = 'bench'`)
	w.scenario.Aborts = 0
	w.running.started(1)
	w.running.started(1)
	w.running.started(1)
	faults, err := w.check(ctx, pool, 3)
	require.ErrorIs(t, err, ErrFaulty)
	require.Equal(t, Faults{AboveLimit: 1, Lost: 1, Double: 2}, faults,
		"one is missing, and two were never dispatched")
}

func TestReport(t *testing.T) {
	t.Parallel()
	report := Report{Floor1: []Floor{{PerSecond: 1000}, {PerSecond: 2000}}, Rounds: 2}
	for _, scenario := range Scenarios(false) {
		o := Outcome{Scenario: scenario}
		for k := range 2 {
			perSecond := 4000 * float64(k+1)
			if scenario.Design == DesignD1 {
				perSecond /= 8
			}
			o.Rounds = append(o.Rounds, Result{
				Executions: 10, PerSecond: perSecond, Floor1: perSecond / report.Floor1[k].PerSecond,
				OfIdeal: 0.8, Commits: 0.04, WALBytes: 2000, WaitP50: 1, WaitP99: 20,
			})
		}
		report.Scenarios = append(report.Scenarios, o)
	}
	for _, waiting := range []int{1_000, 1_000_000} {
		for _, operation := range []string{operationAdmit, operationComplete} {
			report.Growth = append(report.Growth,
				Growth{Design: DesignEngine, Waiting: waiting, Operation: operation, Batch: 1, P50: 1, P99: 2},
				Growth{Design: DesignEngine, Waiting: waiting, Operation: operation, Batch: 100, P50: 10, P99: 20},
				Growth{
					Design: DesignD1, Waiting: waiting, Operation: operation, Batch: 1, P50: float64(waiting) / 1000,
					P99: float64(waiting),
				})
		}
	}
	report.Batches = map[string][]float64{operationComplete: {0.5, 0.4, 0.3}}
	report.conclude()
	met := map[string]bool{}
	for _, g := range report.Goals {
		met[g.Number] = g.Met
		require.NotEmpty(t, g.Measured)
	}
	require.Equal(t, map[string]bool{"B3": true, "–": true, "B8": true, "B10": false}, met,
		"nothing else was compared with an earlier program, and three distant replicas do no more than one")
	first, ok := report.find(noLimit)
	require.True(t, ok)
	require.InDelta(t, 8, first.Median.D1, 0.001)
	require.InDelta(t, 6000, first.Median.PerSecond, 0.001)

	dir := filepath.Join(t.TempDir(), "new")
	require.NoError(t, report.Save(dir))
	raw, err := os.ReadFile(filepath.Join(dir, FileReport))
	require.NoError(t, err)
	var again Report
	require.NoError(t, json.Unmarshal(raw, &again))
	require.Equal(t, report, again, "a report can be read again")

	var text bytes.Buffer
	report.Print(&text)
	require.Contains(t, text.String(), "1,000,000")
}

func TestUnknownScenarios(t *testing.T) {
	t.Parallel()
	require.NoError(t, Options{Scenarios: []string{"hot", "d1-", "growth"}}.Check())
	require.ErrorIs(t, Options{Scenarios: []string{"cold"}}.Check(), ErrUnknownScenario)
}
