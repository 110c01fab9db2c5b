package retention

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

const (
	// pageRows bounds the rows that one transaction deletes.
	pageRows = 500
	// lockTimeout bounds each wait for a lock, because later lock requests wait too. It is shorter than the
	// database's deadlock timeout, so that no other transaction becomes a deadlock victim.
	lockTimeout = 900 * time.Millisecond
	pageTimeout = 30 * time.Second
	// logEvery is the interval of progress logs in a long deletion.
	logEvery = 10 * time.Second
)

// page runs one short transaction.
func page(ctx context.Context, st *store.Store, name string, fn func(ctx context.Context, tx *store.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	return st.Tx(ctx, name, func(ctx context.Context, tx *store.Tx) error {
		if err := bound(ctx, tx, pageTimeout); err != nil {
			return err
		}
		return busy(fn(ctx, tx))
	})
}

// bound sets the timeouts on the server.
func bound(ctx context.Context, tx *store.Tx, timeout time.Duration) error {
	_, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)`,
		strconv.FormatInt(lockTimeout.Milliseconds(), 10), strconv.FormatInt(timeout.Milliseconds(), 10))
	if err != nil {
		return fmt.Errorf("bound the transaction: %w", err)
	}
	return nil
}

// errBusy reports that a lock was not available in time.
var errBusy = errors.New("another transaction holds a lock for too long")

// busy turns a lock timeout into an error that is not retried at once: every wait blocks later lock
// requests.
func busy(err error) error {
	if store.IsLockTimeout(err) {
		return fmt.Errorf("%w: %s", errBusy, err.Error())
	}
	return err
}

func wrapped(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// queryRows reads all rows. fields returns the destinations of a row.
func queryRows[T any](ctx context.Context, st *store.Store, what, sql string, args []any,
	fields func(*T) []any,
) ([]T, error) {
	rows, err := st.Pool().Query(ctx, sql, args...)
	if err != nil {
		return nil, wrapped(err, what)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var one T
		if err := rows.Scan(fields(&one)...); err != nil {
			return nil, wrapped(err, what)
		}
		all = append(all, one)
	}
	return all, wrapped(rows.Err(), what)
}

// orDefault returns d, or the default unless d is positive.
func orDefault(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
