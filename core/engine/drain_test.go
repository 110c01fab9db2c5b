package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/lab/testkit"
)

// Beside 1,000,000 waiting executions, a sweep moves the unstarted executions of a draining worker to another worker
// within two seconds. It runs every five seconds.
func TestADrainingWorkerHandsItsWorkBackWithAMillionWaiting(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "hand work back with 1,000,000 waiting executions; another test counts the rows that are read")
	const (
		waiting, workers, each = 1_000_000, 3, 100
		allowed                = 2 * time.Second
	)
	b := setup(t)
	action := testkit.Action(t, b.store, "pack.busy")
	testkit.Policy(t, b.store, action, workers*each)
	never := func(c *testkit.FakeWorkerConfig) {
		fence(c)
		c.Capabilities["max_concurrent_executions"], c.Concurrency = workers*each, workers*each
		c.Behave = func(ctx context.Context, _ testkit.Job) testkit.Answer {
			<-ctx.Done()
			return testkit.Answer{Never: true}
		}
	}
	var draining []int64
	for range workers {
		draining = append(draining, b.fake(t, never).ID)
	}
	// No draining worker takes returned executions of another one.
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true WHERE id = ANY ($1)`, draining)
	b.fillQueue(t, action, draining, each, waiting)
	other := b.fake(t, never).ID
	e := b.engine(t, func(c *config.Config) { c.Executor.Queue.MaxQueueLength = 10 * waiting })
	testkit.Eventually(t, func() bool {
		return !slices.ContainsFunc(e.Ready(testkit.Context(t)), func(c api.Check) bool { return !c.OK })
	}, testkit.TestTimeout)

	var took []time.Duration
	for i, id := range draining {
		began := time.Now()
		testkit.Exec(t, b.store, `UPDATE worker SET draining = true WHERE id = $1`, id)
		e.WakeSweep()
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, b.store, `SELECT count(*) FROM execution_holder WHERE worker = $1`, id) == 0
		}, testkit.TestTimeout)
		took = append(took, time.Since(began))
		require.Equal(t, workers*each, testkit.Count(t, b.store, `SELECT count(*) FROM execution_holder`),
			"slots are kept")
		require.Equal(t, (i+1)*each,
			testkit.Count(t, b.store, `SELECT count(*) FROM execution_holder WHERE worker = $1 AND attempt = 2`, other))
	}
	t.Logf("%d executions were handed back after %v with %d waiting", each, took, waiting)
	// Other programs may have had the processors: the quickest of three counts.
	require.LessOrEqual(t, slices.Min(took), allowed)
	require.Equal(t, waiting,
		testkit.Count(t, b.store, `SELECT queued_count FROM execution_admission_state WHERE action_id = $1`, action.ID))
}

// fillQueue makes an action's queue: each worker has been handed some executions that it has not
// started, which hold all slots, and others wait.
func (b *bundle) fillQueue(t *testing.T, action testkit.ActionRow, workers []int64, each, waiting int) {
	t.Helper()
	ctx := testkit.Context(t)
	slots := each * len(workers)
	state := testkit.State(t, b.store, action, slots, func(s *testkit.StateRow) {
		s.Active, s.Queued = int32(slots), int32(waiting)
	})
	tx, err := b.store.Pool().Begin(ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // committed below
	exec := func(sql string, args ...any) {
		_, err := tx.Exec(ctx, sql, args...)
		require.NoError(t, err, sql)
	}
	exec(`SET LOCAL session_replication_role = replica`) // no history, and no keys to check
	exec(`
		WITH e AS (
			INSERT INTO execution (action, action_ref, config, status, worker, attempt)
			SELECT $1::bigint, $2::text, '{}', 'scheduled', w, 1
			FROM unnest($3::bigint[]) w, generate_series(1, $4::int) RETURNING id, worker
		)
		INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at)
		SELECT e.id, $5::bigint, e.worker, 1, now() FROM e`, action.ID, action.Ref, workers, each, state.ID)
	exec(`UPDATE worker_load SET assigned = $2::int WHERE worker = ANY ($1::bigint[])`, workers, each)
	exec(`
		INSERT INTO execution (action, action_ref, config)
		SELECT $1::bigint, $2::text, '{}' FROM generate_series(1, $3::int)`, action.ID, action.Ref, waiting)
	exec(`
		INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
		SELECT $1::bigint, e.id, 'queued', row_number() OVER (ORDER BY e.id)
		FROM execution e WHERE e.status = 'requested'`, state.ID)
	exec(`
		UPDATE execution_admission_state SET next_queue_order = $2::bigint + 1, total_enqueued = $2::bigint
		WHERE id = $1::bigint`, state.ID, waiting)
	exec(`
		INSERT INTO queue_stats (action_id, queue_length, active_count, max_concurrent, total_enqueued,
			oldest_enqueued_at, last_updated)
		VALUES ($1::bigint, $2::int, $3::int, $3::int, $2::int, now(), now())`, action.ID, waiting, slots)
	require.NoError(t, tx.Commit(ctx))
	testkit.Exec(t, b.store, `VACUUM (ANALYZE) execution, execution_admission_entry, execution_admission_state`)
}
