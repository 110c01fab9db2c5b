package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/store"
)

// Usage is what sessions of one database have done to its tables.
type Usage struct {
	// Scans is how often each table was read from one end to the other.
	Scans map[string]int64
	// Rows is how many rows were looked at, in tables and through indexes.
	Rows int64
	// Blocks is how many blocks of tables and of indexes were looked at, in memory
	// or not. It tells of walks through an index that find nothing.
	Blocks int64
}

const usageSQL = `SELECT t.relname::text, t.seq_scan, t.seq_tup_read + coalesce(t.idx_tup_fetch, 0),
       coalesce(b.heap_blks_read, 0) + coalesce(b.heap_blks_hit, 0) + coalesce(b.idx_blks_read, 0) + coalesce(b.idx_blks_hit, 0)
         + coalesce(b.toast_blks_read, 0) + coalesce(b.toast_blks_hit, 0)
FROM pg_stat_user_tables t JOIN pg_statio_user_tables b USING (relid) WHERE t.schemaname = $1`

// usage reads the server's counters on a connection of its own, which nothing
// else is counted for.
func usage(ctx context.Context, looker *store.Store) (Usage, error) {
	rows, err := looker.Pool().Query(ctx, usageSQL, looker.Schema())
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

// since is what was done after an earlier look.
func (u Usage) since(before Usage) Usage {
	done := Usage{Scans: map[string]int64{}, Rows: u.Rows - before.Rows, Blocks: u.Blocks - before.Blocks}
	for table, n := range u.Scans {
		if n > before.Scans[table] {
			done.Scans[table] = n - before.Scans[table]
		}
	}
	return done
}

// Scanned lists the tables that were read from one end to the other.
func (u Usage) Scanned() []string { return slices.Sorted(maps.Keys(u.Scans)) }

// Spend does something on a store and says what its sessions did to the tables.
// The store must have one connection, and nobody else may use the database.
func Spend(ctx context.Context, looker, st *store.Store, do func(context.Context) error) (Usage, error) {
	before, err := usage(ctx, looker)
	if err != nil {
		return Usage{}, err
	}
	if err := do(ctx); err != nil {
		return Usage{}, err
	}
	// A session reports its counters now and then; this one does so before it answers.
	if _, err := st.Pool().Exec(ctx, "SELECT pg_stat_force_next_flush()"); err != nil {
		return Usage{}, fmt.Errorf("have the session report: %w", err)
	}
	after, err := usage(ctx, looker)
	if err != nil {
		return Usage{}, err
	}
	return after.since(before), nil
}
