package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// An execution was admitted when its batch had the locks, by which rates are
// assessed, not when the batch began to wait for them.
func TestAdmittedAtIsTheMomentUnderTheLocks(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, 5) // without a limit nothing depends on the moment
	b.dispatch(t, b.request(t, action, 1)...)
	late := b.request(t, action, 1)
	ctx := testkit.Context(t)
	tx := testkit.Begin(t, b.store)
	_, err := tx.Exec(ctx, `SELECT FROM execution_admission_state FOR UPDATE`)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := b.scheduler.Run(ctx, scheduler.FillStep{}, scheduler.NewRequestStep(late))
		done <- err
	}()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	}, 10*time.Second)
	var released time.Time
	require.NoError(t, tx.QueryRow(ctx, `SELECT clock_timestamp() FROM pg_sleep(0.05)`).Scan(&released))
	require.NoError(t, tx.Commit(ctx))
	require.NoError(t, <-done)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = $1 AND admitted_at >= $2`,
		late[0], released))
}
