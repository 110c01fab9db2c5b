package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/testkit"
)

func TestAwaitLockersWaitsForThoseThatWereThere(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t)
	id := testkit.Worker(t, st, "w").ID
	lock := func() (end func()) {
		locked, over, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- st.Tx(context.Background(), "lock", func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `SELECT FROM worker_load WHERE worker = $1 FOR SHARE`, id)
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
	go func() { waited <- st.AwaitLockers(testkit.Context(t), "worker_load") }()
	time.Sleep(300 * time.Millisecond)
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
