package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/store"
)

// Usage is the usage of a database's tables.
type Usage struct {
	// Scans is the number of sequential scans of each table.
	Scans map[string]int64
	// Rows is the number of rows read, in tables and through indexes.
	Rows int64
	// Blocks is the number of blocks read of tables and indexes, in memory or not. It shows index scans
	// without a result.
	Blocks int64
}

const usageSQL = `SELECT t.relname::text, t.seq_scan, t.seq_tup_read + coalesce(t.idx_tup_fetch, 0),
       coalesce(b.heap_blks_read, 0) + coalesce(b.heap_blks_hit, 0) + coalesce(b.idx_blks_read, 0) + coalesce(b.idx_blks_hit, 0)
         + coalesce(b.toast_blks_read, 0) + coalesce(b.toast_blks_hit, 0)
FROM pg_stat_user_tables t JOIN pg_statio_user_tables b USING (relid) WHERE t.schemaname = $1`

// usage reads the server's counters on a connection of its own.
func usage(ctx context.Context, observer *store.Store) (Usage, error) {
	rows, err := observer.Pool().Query(ctx, usageSQL, observer.Schema())
	if err != nil {
		return Usage{}, fmt.Errorf("read the statistics of tables: %w", err)
	}
	u := Usage{Scans: map[string]int64{}}
	var table string
	var scans, seen, blocks int64
	_, err = pgx.ForEachRow(rows, []any{&table, &scans, &seen, &blocks}, func() error {
		u.Scans[table] = scans
		u.Rows += seen
		u.Blocks += blocks
		return nil
	})
	if err != nil {
		return Usage{}, fmt.Errorf("read the statistics of tables: %w", err)
	}
	return u, nil
}

// Scanned returns the tables with sequential scans.
func (u Usage) Scanned() []string { return slices.Sorted(maps.Keys(u.Scans)) }

// Spend measures the usage of do. The store must have one connection, and no other program may use the
// database.
func Spend(ctx context.Context, observer, st *store.Store, do func(context.Context) error) (Usage, error) {
	before, err := usage(ctx, observer)
	if err != nil {
		return Usage{}, err
	}
	if err := do(ctx); err != nil {
		return Usage{}, err
	}
	if _, err := st.Pool().Exec(ctx, "SELECT pg_stat_force_next_flush()"); err != nil {
		return Usage{}, fmt.Errorf("flush the statistics of the session: %w", err)
	}
	after, err := usage(ctx, observer)
	if err != nil {
		return Usage{}, err
	}
	spent := Usage{Scans: map[string]int64{}, Rows: after.Rows - before.Rows, Blocks: after.Blocks - before.Blocks}
	for table, n := range after.Scans {
		if n > before.Scans[table] {
			spent.Scans[table] = n - before.Scans[table]
		}
	}
	return spent, nil
}
