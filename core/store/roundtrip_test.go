package store_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// turns counts how often a connection turns from waiting to sending: its
// network round trips.
type turns struct {
	net.Conn
	sending *atomic.Bool
	count   *atomic.Int64
}

func (c turns) Write(b []byte) (int, error) {
	if c.sending.CompareAndSwap(false, true) {
		c.count.Add(1)
	}
	return c.Conn.Write(b)
}

func (c turns) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 { // a deadline that strikes is not an answer
		c.sending.Store(false)
	}
	return n, err
}

func TestBatchTakesTwoRoundTripsBeginAndCommitIncluded(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	var count atomic.Int64
	cfg := store.Config{URL: testkit.Database(t), MaxConnections: 1, HotPath: true}
	s, err := store.OpenAdjusted(ctx, cfg, testkit.Logger(t), func(pool *pgxpool.Config) {
		dialer := net.Dialer{}
		pool.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			return turns{Conn: conn, sending: &atomic.Bool{}, count: &count}, err
		}
	})
	require.NoError(t, err)
	t.Cleanup(s.Close)

	batch := func(ctx context.Context, tx *store.Tx) error {
		p := tx.Pipeline()
		store.Many[store.Execution](p, store.GetExecutions, []int64{1, 2, 3})
		store.Many[int64](p, "SELECT 1::bigint")
		if err := p.Send(ctx); err != nil {
			return err
		}
		p.Exec("UPDATE execution SET attempt = attempt + 1 WHERE id = ANY ($1)", []int64{1, 2, 3})
		p.Exec(store.DeleteOutbox, []int64{1})
		return p.Commit(ctx)
	}
	require.NoError(t, s.Tx(ctx, "prepare the statements", batch))
	before := count.Load()
	require.NoError(t, s.Tx(ctx, "measure", batch))
	require.Equal(t, int64(2), count.Load()-before)
}
