package dashboard

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/store"
)

// Size is the size of an installation.
type Size struct {
	Executions int
	Queued     int // of the executions, at most half
}

// Full is the size of the dashboard's budget.
var Full = Size{Executions: 1_000_000, Queued: 100_000}

//go:embed fill.sql
var fill string

// Fill fills a migrated, empty database. The session must be a superuser's, to disable triggers.
func Fill(ctx context.Context, st *store.Store, size Size) error {
	if size.Queued < 0 || 2*size.Queued+400 > size.Executions {
		return fmt.Errorf("%d executions are too few for %d queued ones", size.Executions, size.Queued)
	}
	conn, err := st.Pool().Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect to fill the database: %w", err)
	}
	defer conn.Release()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx,
			`SELECT set_config('bench.executions', $1, true), set_config('bench.queued', $2, true)`,
			strconv.Itoa(size.Executions), strconv.Itoa(size.Queued)); err != nil {
			return fmt.Errorf("set the size: %w", err)
		}
		if _, err := tx.Exec(ctx, fill); err != nil {
			return fmt.Errorf("insert %d executions: %w", size.Executions, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return fmt.Errorf("analyse the tables: %w", err)
	}
	// Without a flush the session may report its counters up to ten seconds later, during a measurement.
	if _, err := conn.Exec(ctx, "SELECT pg_stat_force_next_flush()"); err != nil {
		return fmt.Errorf("flush the statistics of the session: %w", err)
	}
	return nil
}
