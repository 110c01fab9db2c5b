package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestAwaitLockersWaitsForEarlierTransactions(t *testing.T) {
	database := testkit.Database(t)
	st, other := testkit.OpenStore(t, database), testkit.OpenStore(t, database)
	id := testkit.Worker(t, st, "w").ID
	lock := func() (end func()) {
		locked, over, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- st.Tx(context.Background(), "lock", func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`)
				if err == nil {
					_, err = tx.Exec(ctx, `SELECT FROM worker_load WHERE worker = $1 FOR SHARE`, id)
				}
				close(locked)
				<-over
				return err
			})
		}()
		<-locked
		return func() { close(over); require.NoError(t, <-done) }
	}
	require.NoError(t, st.AwaitLockers(testkit.Context(t), "worker_load"), "no session holds a lock")

	first := lock()
	short, cancel := context.WithTimeout(testkit.Context(t), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, st.AwaitLockers(short, "worker_load"), context.DeadlineExceeded)
	require.NoError(t, st.AwaitLockers(testkit.Context(t), "worker_probe"), "another table")

	waited := make(chan error, 1)
	var began time.Time
	require.NoError(t, other.Pool().QueryRow(testkit.Context(t), `SELECT clock_timestamp()`).Scan(&began))
	go func() { waited <- st.AwaitLockers(testkit.Context(t), "worker_load") }()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, other, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND query LIKE '%virtualtransaction%' AND state = 'idle' AND query_start > $1 AND pid <> pg_backend_pid()`, began) > 0
	}, 20*time.Second, "it has listed the transactions that it waits for")
	second := lock() // came later: it is not waited for
	defer second()
	select {
	case err := <-waited:
		t.Fatalf("did not wait: %v", err)
	default:
	}
	first()
	require.NoError(t, <-waited)
}
