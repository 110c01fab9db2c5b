package migrations_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// A row that another program deletes releases its slot once: an execution leaves a note with its slots, also if the
// slot was granted while the deletion waited for the row, and a deleted worker is removed from the slots of its
// executions.
func TestDeletedRowsLeaveNoHolder(t *testing.T) {
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
