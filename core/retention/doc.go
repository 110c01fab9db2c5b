// Package retention removes what is kept for no reader any more, and makes the
// partitions into which the next days will be written. What it deletes, a later
// use makes again; nothing that runs or waits, and nothing that waits for a
// person, is touched.
//
// Every loop runs on each replica and works on one at a time, in pages, each a
// transaction of its own with a deadline and a short patience for locks. It holds
// up nobody for longer than about a second: a lock that is not to be had in that
// time is left to the next tick, and so is a page that fails. What was committed is
// done, and the same again goes on where it stopped.
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
	// lockPatience is how long a page waits for a lock; while it does, those who
	// come after it wait too. It is shorter than the database takes to find a
	// deadlock, so that others never lose by one.
	lockPatience = 900 * time.Millisecond
	// pagePatience is how long one page may take.
	pagePatience = 30 * time.Second
	// tellEvery is how often a long removal says how far it is.
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

// bound limits what the transaction waits and works for on the server too.
func bound(ctx context.Context, tx *store.Tx, patience time.Duration) error {
	_, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)`,
		strconv.FormatInt(lockPatience.Milliseconds(), 10), strconv.FormatInt(patience.Milliseconds(), 10))
	if err != nil {
		return fmt.Errorf("bound the transaction: %w", err)
	}
	return nil
}
