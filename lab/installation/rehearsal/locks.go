package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Lock is the longest time for which a writer of a table waited while the schema changed.
type Lock struct {
	Table  string `json:"table"`
	Millis int64  `json:"longest_wait_ms"`
}

// watched are the tables with writers in every installation.
var watched = []string{"execution", "worker", "enforcement", "event", "inquiry", "workflow_execution"}

// watchLocks takes the lock of a writer again and again, one connection for each table, until the returned
// function is called.
func watchLocks(ctx context.Context, pool *pgxpool.Pool) (stop func() ([]Lock, error)) {
	ctx, cancel := context.WithCancel(ctx)
	type result struct {
		Lock
		err error
	}
	results := make(chan result, len(watched))
	for _, table := range watched {
		go func() {
			longest, err := longestWait(ctx, pool, table)
			results <- result{Lock{Table: table, Millis: longest.Milliseconds()}, err}
		}()
	}
	return func() ([]Lock, error) {
		cancel()
		byTable := map[string]Lock{}
		var errs []error
		for range watched {
			r := <-results
			byTable[r.Table] = r.Lock
			errs = append(errs, r.err)
		}
		locks := make([]Lock, 0, len(watched))
		for _, table := range watched {
			locks = append(locks, byTable[table])
		}
		return locks, errors.Join(errs...)
	}
}

func longestWait(ctx context.Context, pool *pgxpool.Pool, table string) (longest time.Duration, err error) {
	for ctx.Err() == nil {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			begun := time.Now() // the transaction has its connection
			_, err := tx.Exec(ctx, "LOCK TABLE "+pgx.Identifier{table}.Sanitize()+" IN ROW EXCLUSIVE MODE")
			longest = max(longest, time.Since(begun))
			return err
		})
		refused, ok := errors.AsType[*pgconn.PgError](err)
		deadlocked := ok && refused.Code == "40P01" // the victim of a deadlock has waited too
		if err != nil && ctx.Err() == nil && !deadlocked {
			return longest, fmt.Errorf("lock table %s: %w", table, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
	return longest, nil
}
