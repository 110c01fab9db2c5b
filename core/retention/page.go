package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
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
	// lockHolder is the application name of the session that holds the lock of a loop.
	lockHolder = "attune-executor retention"
)

// base is what all loops of this package have.
type base struct {
	*supervise.Loop

	store   *store.Store
	logger  *slog.Logger
	metrics *Metrics
}

// newBase makes a loop with an interval of 1 h by default. metrics may be nil.
func newBase(cfg supervise.LoopConfig, st *store.Store, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics,
) base {
	if metrics == nil {
		metrics = NewMetrics(nil)
	}
	cfg.Interval = supervise.OrDefault(cfg.Interval, time.Hour)
	cfg.Logger, cfg.Metrics = logger, loops
	return base{Loop: supervise.NewLoop(cfg), store: st, logger: logger, metrics: metrics}
}

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
