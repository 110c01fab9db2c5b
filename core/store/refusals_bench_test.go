package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// BenchmarkRefusals measures the cost of checking the outcome of every statement: two pipelines of ten statements in
// one transaction, as a batch sends them, alternately with and without the check. The ratio of the medians cancels
// out other load on the machine.
func BenchmarkRefusals(b *testing.B) {
	ctx := b.Context()
	cfg := store.Config{URL: testkit.Database(b), MaxConnections: 1, HotPath: true}
	seen, err := store.Open(ctx, cfg, nil)
	require.NoError(b, err)
	b.Cleanup(seen.Close)
	unseen, err := store.OpenAdjusted(ctx, cfg, nil, func(pool *pgxpool.Config) {
		pool.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
			conn.Tracer = nil
			return nil
		}
	})
	require.NoError(b, err)
	b.Cleanup(unseen.Close)

	for st, sees := range map[*store.Store]bool{seen: true, unseen: false} {
		_, err := st.Pool().Exec(ctx, "SELECT missing FROM execution")
		require.Equal(b, sees, st.Refuses(ctx, err) != nil)
	}

	const statements = 10
	once := func(st *store.Store) time.Duration {
		begin := time.Now()
		err := st.Tx(ctx, "bench", func(ctx context.Context, tx *store.Tx) error {
			p := tx.Pipeline()
			for range statements {
				store.Many[store.Execution](p, store.GetExecutions, []int64{1, 2, 3})
			}
			if err := p.Send(ctx); err != nil {
				return err
			}
			for range statements {
				store.Many[int64](p, "SELECT 1::bigint")
			}
			return p.Commit(ctx)
		})
		require.NoError(b, err)
		return time.Since(begin)
	}
	for range 50 { // statements are prepared, caches are warm
		once(seen)
		once(unseen)
	}
	var with, without []time.Duration
	for b.Loop() {
		with, without = append(with, once(seen)), append(without, once(unseen))
		without, with = append(without, once(unseen)), append(with, once(seen))
	}
	slices.Sort(with)
	slices.Sort(without)
	a, z := with[len(with)/2], without[len(without)/2]
	b.ReportMetric(float64(a.Nanoseconds()), "ns/with")
	b.ReportMetric(float64(z.Nanoseconds()), "ns/without")
	b.ReportMetric(float64(a)/float64(z), "ratio")
}
