package migrations_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// beforeHolders is the last version in which a slot is a column of the execution.
const beforeHolders = 71

// While the column becomes a table, a replica of the release before goes on granting and
// releasing slots: when its statements begin to fail, each slot has one row and each row
// a slot. Down puts the same slots back into the column.
func TestSlotsMoveToTheirTableUnderLoadAndBack(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func() string{
		"own":     func() string { return testkit.OwnDatabase(t) },
		"adopted": func() string { return testkit.Installation(t, installation.Newest) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testkit.Context(t)
			opts := migrations.Options{URL: url(), Schema: testkit.Schema}
			_, err := migrations.Up(ctx, opts)
			require.NoError(t, err)
			_, err = migrations.Down(ctx, opts, beforeHolders)
			require.NoError(t, err)
			conn := connect(t, opts)
			worker := insertWorker(t, conn, "w")
			exec(t, conn, "INSERT INTO execution (action_ref, status) SELECT 'core.noop', 'completed' FROM generate_series(1, 2000)")
			exec(t, conn, `INSERT INTO execution (action_ref, status, worker, attempt, admission_state_id)
				SELECT 'core.noop', 'running', $1, 1, 7 FROM generate_series(1, 100)`, worker)

			var group sync.WaitGroup
			for n := range 2 {
				replica := connect(t, opts)
				group.Go(func() {
					for i := n; ; i += 2 { // until the column is gone
						_, err := replica.Exec(ctx, `UPDATE execution SET attempt = attempt + 1,
							admission_state_id = CASE WHEN admission_state_id IS NULL THEN 1 + id % 5 END
							WHERE id = (SELECT min(id) FROM execution) + $1`, i%2100)
						if err != nil {
							return
						}
					}
				})
			}
			_, err = migrations.Up(ctx, opts)
			require.NoError(t, err)
			group.Wait()
			require.Zero(t, one[int64](t, conn, `SELECT count(*) FROM execution_holder h LEFT JOIN execution e ON e.id = h.execution
				WHERE h.attempt IS DISTINCT FROM e.attempt OR h.worker IS DISTINCT FROM e.worker`))
			held := slots(t, conn, "SELECT execution, state_id FROM execution_holder")
			// The replicas have changed each slot an equal number of times, or once more: those
			// of an odd number of attempts are held.
			require.EqualValues(t, len(held),
				one[int64](t, conn, "SELECT count(*) FROM execution WHERE attempt % 2 = 1"))
			require.NotEmpty(t, held)

			updated := one[string](t, conn, "SELECT md5(string_agg(updated::text, '' ORDER BY id)) FROM execution")
			_, err = migrations.Down(ctx, opts, beforeHolders)
			require.NoError(t, err)
			require.Equal(t, held,
				slots(t, conn, "SELECT id, admission_state_id FROM execution WHERE admission_state_id IS NOT NULL"))
			require.Equal(t, updated,
				one[string](t, conn, "SELECT md5(string_agg(updated::text, '' ORDER BY id)) FROM execution"),
				"updated is the fence of dispatches on their way")
			_, err = migrations.Up(ctx, opts)
			require.NoError(t, err)
			require.Equal(t, held, slots(t, conn, "SELECT execution, state_id FROM execution_holder"))
		})
	}
}

func slots(t *testing.T, conn *pgx.Conn, sql string) map[int64]int64 {
	t.Helper()
	rows, err := conn.Query(testkit.Context(t), sql)
	require.NoError(t, err)
	held := map[int64]int64{}
	var execution, state int64
	_, err = pgx.ForEachRow(rows, []any{&execution, &state}, func() error { held[execution] = state; return nil })
	require.NoError(t, err)
	return held
}

// A row that another program deletes releases its slot once: an execution leaves a note with its slots, also if the
// slot was granted while the deletion waited for the row, and a deleted worker is removed from the slots of its
// executions.
func TestDeletedRowsLeaveNoHolder(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	worker := insertWorker(t, conn, "w")
	const grant = "INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at) VALUES ($1, 7, $2, 1, now())"
	held, released, waits := insertExecution(t, conn), insertExecution(t, conn), insertExecution(t, conn)
	exec(t, conn, grant, held, worker)
	exec(t, conn, "UPDATE execution SET status = 'completed', admitted_at = now() WHERE id = ANY ($1)",
		[]int64{held, released})
	exec(t, conn, "DELETE FROM execution WHERE id = ANY ($1)", []int64{held, released})
	const note = "SELECT string_agg(concat_ws(' ', execution, state_id, worker), ', ' ORDER BY id) FROM lost_holder"
	require.Equal(t, fmt.Sprintf("%d 7 %d", held, worker), one[string](t, conn, note))

	sibling := func() *pgx.Conn {
		return connect(t, migrations.Options{URL: conn.Config().ConnString(), Schema: testkit.Schema})
	}
	replica, other := sibling(), sibling()
	exec(t, replica, "BEGIN")
	exec(t, replica, "UPDATE execution SET status = 'scheduled', worker = $2, attempt = 1 WHERE id = $1", waits, worker)
	deleted := make(chan error, 1)
	go func() {
		_, err := other.Exec(testkit.Context(t), "DELETE FROM execution WHERE id = $1", waits)
		deleted <- err
	}()
	testkit.Eventually(t, func() bool {
		return one[int64](t, conn,
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
	}, testkit.TestTimeout)
	exec(t, replica, grant, waits, worker)
	exec(t, replica, "COMMIT")
	require.NoError(t, <-deleted)
	require.Equal(t, fmt.Sprintf("%d 7 %d, %d 7 %d", held, worker, waits, worker), one[string](t, conn, note))
	require.Zero(t, one[int64](t, conn, "SELECT count(*) FROM execution_holder"))

	runs := insertExecution(t, conn)
	exec(t, conn, grant, runs, worker)
	exec(t, conn, "DELETE FROM worker WHERE id = $1", worker)
	require.True(t, one[bool](t, conn, "SELECT worker IS NULL FROM execution_holder WHERE execution = $1", runs))
}
