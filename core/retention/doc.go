// Package retention deletes expired data, and creates the partitions of the next days. It deletes
// nothing that a later use cannot recreate. It never deletes running or waiting work, or anything
// that waits for an operator.
//
// Every loop runs on each replica and works on one at a time, in pages. Each page is a transaction
// of its own with a deadline and a short lock timeout. It blocks no other transaction for longer
// than about a second: a lock that is not available in that time, and a failing page, are left to
// the next tick. Committed pages are done, and the next tick continues.
package retention

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

const (
	// pageRows is how many rows one transaction removes.
	pageRows = 500
	// lockPatience is the lock timeout of a page; while it waits, later lock requests wait too. It
	// is shorter than the database's deadlock timeout, so that no other transaction becomes a
	// deadlock victim.
	lockPatience = 900 * time.Millisecond
	// pagePatience is the timeout of one page.
	pagePatience = 30 * time.Second
	// tellEvery is the interval of progress logs in a long removal.
	tellEvery = 10 * time.Second
)

// page runs one short transaction.
func page(ctx context.Context, st *store.Store, name string, fn func(ctx context.Context, tx *store.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	return st.Tx(ctx, name, func(ctx context.Context, tx *store.Tx) error {
		if err := bound(ctx, tx, pagePatience); err != nil {
			return err
		}
		return busy(fn(ctx, tx))
	})
}

// bound also sets the timeouts on the server.
func bound(ctx context.Context, tx *store.Tx, patience time.Duration) error {
	_, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)`,
		strconv.FormatInt(lockPatience.Milliseconds(), 10), strconv.FormatInt(patience.Milliseconds(), 10))
	if err != nil {
		return fmt.Errorf("bound the transaction: %w", err)
	}
	return nil
}
