package recovery

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// Queries about slots read rows in proportion to the running executions, although one execution is open since before
// all others, 20,000 have ended and 20,000 are queued.
func TestQueriesAboutSlotsReadInProportionToRunningExecutions(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	state := testkit.State(t, st, action, 50, func(s *testkit.StateRow) { s.Active, s.Queued = running, 20_000 })
	worker := testkit.Worker(t, st, "w",
		func(w *testkit.WorkerRow) { w.Capabilities, w.Draining = map[string]any{"attempt_fence": true}, true })
	incarnation := uuid.New()
	testkit.Exec(t, st, `UPDATE worker SET incarnation = $1`, incarnation)
	for _, sql := range []string{
		"ALTER TABLE execution DISABLE TRIGGER ALL",
		`INSERT INTO execution (action_ref, status) VALUES ('pk.flow', 'running')`,
		`INSERT INTO execution (action, action_ref, status, worker, attempt)
			SELECT a.id, a.ref, 'completed', w.id, 1 FROM action a, worker w, generate_series(1, 20000) WHERE a.ref = 'pk.a'`,
		"INSERT INTO execution (action, action_ref) SELECT id, ref FROM action, generate_series(1, 20000) WHERE ref = 'pk.a'",
		`INSERT INTO execution (action, action_ref, status, worker, attempt)
			SELECT a.id, a.ref, CASE WHEN n % 2 = 0 THEN 'running' ELSE 'scheduled' END::execution_status_enum, w.id, 1
			FROM action a, worker w, generate_series(1, 50) n WHERE a.ref = 'pk.a'`,
		"ALTER TABLE execution ENABLE TRIGGER ALL",
		`INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at)
			SELECT e.id, s.id, e.worker, e.attempt, e.updated FROM execution e, execution_admission_state s WHERE e.status IN ('running', 'scheduled') AND e.worker > 0`,
		"UPDATE worker_load SET assigned = 50",
		"ANALYZE",
	} {
		testkit.Exec(t, st, sql)
	}
	s, _ := sweeper(t, st, Config{})
	for name, ask := range map[string]func(context.Context, *store.Tx) (int, error){
		"leaked slots": func(ctx context.Context, tx *store.Tx) (int, error) {
			ids, err := s.endedHolders(ctx, tx)
			return len(ids) + running, err
		},
		"unstarted executions of a draining worker": func(ctx context.Context, tx *store.Tx) (int, error) {
			unstarted, err := s.leaving(ctx, tx)
			return 2 * len(unstarted), err
		},
		"executions of a dead worker": func(ctx context.Context, tx *store.Tx) (int, error) {
			row, err := tx.FindOrphans(ctx,
				store.FindOrphansParams{Holders: true, WindowSize: rowsPerSweep, StaleAfter: -1, UnfencedTimeout: 300})
			return len(row.Unstarted) + len(row.Ids), err
		},
		"a worker's start": func(ctx context.Context, tx *store.Tx) (int, error) {
			rows, err := tx.SettleOrphans(ctx, store.SettleOrphansParams{
				Result: []byte("{}"), Worker: &worker.ID, Incarnation: incarnation,
			})
			return 2 * len(rows), err
		},
		"the executions of a worker": func(ctx context.Context, tx *store.Tx) (int, error) {
			row, err := tx.CountWorkerWork(ctx, worker.ID)
			return int(row.Running + row.Unstarted), err
		},
		"the page of a worker": func(ctx context.Context, tx *store.Tx) (int, error) {
			rows, err := tx.ViewWorkerRuns(ctx, worker.ID, running)
			return len(rows), err
		},
		"the holders of a queue": func(ctx context.Context, tx *store.Tx) (int, error) {
			rows, err := tx.ViewQueueHolders(ctx, state.ID, running)
			return len(rows), err
		},
		"the check of slots": func(ctx context.Context, tx *store.Tx) (int, error) {
			rows, err := tx.RepairQueues(ctx, nil, 0, false)
			return len(rows) + running, err
		},
		"the alert of leaked slots": func(ctx context.Context, tx *store.Tx) (int, error) {
			rows, err := tx.RepairEnded(ctx, store.RepairEndedParams{OlderThan: 60, Page: 100})
			return len(rows) + running, err
		},
		"the repair of queues": func(ctx context.Context, tx *store.Tx) (int, error) {
			rows, err := tx.RepairLoads(ctx, nil)
			return len(rows) + running, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, found := 0, 0
			err := st.Tx(testkit.Context(t), "count", func(ctx context.Context, tx *store.Tx) (err error) {
				const read = `SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint FROM pg_stat_xact_user_tables
					WHERE relname IN ('execution', 'execution_holder', 'execution_admission_entry')`
				var before, after int64
				if err := tx.QueryRow(ctx, read).Scan(&before); err != nil {
					return err
				}
				if found, err = ask(ctx, tx); err != nil {
					return err
				}
				if err := tx.QueryRow(ctx, read).Scan(&after); err != nil {
					return err
				}
				rows = int(after - before)
				return errCounted
			})
			require.ErrorIs(t, err, errCounted)
			require.Equal(t, running, found, "all that run")
			require.LessOrEqual(t, rows, 6*running)
		})
	}
}

var errCounted = errors.New("rows are counted, and the transaction is rolled back")

// running is how many executions hold slots.
const running = 50
