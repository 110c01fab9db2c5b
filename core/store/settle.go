package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// settlePause is the pause between two checks of the lock holders.
const settlePause = 20 * time.Millisecond

// lockersSQL lists the other transactions that lock or write rows of a table, or are about to. A
// statement takes this lock before its snapshot.
const lockersSQL = `
SELECT DISTINCT l.virtualtransaction::text
FROM pg_locks l
WHERE l.locktype = 'relation' AND l.relation = $1::text::regclass AND l.mode IN ('RowShareLock', 'RowExclusiveLock') AND l.pid <> pg_backend_pid()
  AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())`

// AwaitLockers waits until all transactions have ended that lock or write rows of the table now.
// Afterwards, every statement that locks or writes its rows sees all commits before the call. It
// blocks no other transaction.
func (s *Store) AwaitLockers(ctx context.Context, table string) error {
	first, err := s.lockers(ctx, table)
	for now := first; err == nil && len(first) > 0; {
		first = slices.DeleteFunc(first, func(one string) bool { return !slices.Contains(now, one) })
		if len(first) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("await %d transactions that lock rows of %s: %w", len(first), table, ctx.Err())
		case <-time.After(settlePause):
		}
		now, err = s.lockers(ctx, table)
	}
	return err
}

func (s *Store) lockers(ctx context.Context, table string) ([]string, error) {
	rows, err := s.pool.Query(ctx, lockersSQL, table)
	if err != nil {
		return nil, fmt.Errorf("list the transactions that lock rows of %s: %w", table, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list the transactions that lock rows of %s: %w", table, err)
	}
	return list, nil
}
