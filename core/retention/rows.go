package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// RowsConfig configures the retention of rows for users.
type RowsConfig struct {
	// Interval is the pause between ticks. Default 1 h.
	Interval time.Duration
	// History is the retention of lost work, refused late writes, and cleared alerts. Default 30 days.
	History time.Duration
	// DeadLetters is the retention of decided dead letters. Default 1 day. Undecided ones are never deleted.
	DeadLetters time.Duration
}

// sourcesKept is the retention of unused definitions: far longer than the engine caches them.
const sourcesKept = 24 * time.Hour

// activityKept is the retention of the counts of each minute.
const activityKept = 48 * time.Hour

// pendingTraces is the retention of the names of spans that were not sent: longer than replicas try.
const pendingTraces = time.Hour

// Rows deletes expired decided dead letters, lost work, refused late writes, cleared alerts, and unused
// workflow definitions. It never deletes operators' actions (operator_audit).
type Rows struct {
	*supervise.Loop

	cfg     RowsConfig
	store   *store.Store
	logger  *slog.Logger
	metrics *Metrics
}

// NewRows builds the loop.
func NewRows(cfg RowsConfig, st *store.Store, logger *slog.Logger, metrics *Metrics, loops *supervise.Metrics) *Rows {
	cfg.Interval = orDefault(cfg.Interval, time.Hour)
	cfg.History = orDefault(cfg.History, 30*24*time.Hour)
	cfg.DeadLetters = orDefault(cfg.DeadLetters, 24*time.Hour)
	r := &Rows{cfg: cfg, store: st, logger: logger, metrics: metrics}
	r.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "retention rows", Interval: r.cfg.Interval, Timeout: 10 * time.Minute, Jitter: 0.2,
		Tick: r.tick, Logger: logger, Metrics: loops,
	})
	return r
}

// tick handles one kind after the other; an error of one does not stop the others.
func (r *Rows) tick(ctx context.Context) error {
	history := r.cfg.History.Seconds()
	var errs []error
	for _, kind := range []removal{
		{"dead letters", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneDeadLetters(ctx, r.cfg.DeadLetters.Seconds(), pageRows)
		}},
		{"lost work", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneLostWork(ctx, history, pageRows)
		}},
		{"late writes", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneLateWrites(ctx, history, pageRows)
		}},
		{"minutes of activity", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneActivity(ctx, activityKept.Seconds(), pageRows)
		}},
		{"alerts", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneAlerts(ctx, history, pageRows)
		}},
		{"trace origins", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneTraceOrigins(ctx, history, pageRows)
		}},
		// Replicas that have tracing off now have left them.
		{"pending traces", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneTracePending(ctx, pendingTraces.Seconds(), pageRows)
		}},
		{"keys of requests", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneRequestKeys(ctx, pageRows)
		}},
		{"workflow definitions", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneWorkflowSources(ctx, sourcesKept.Seconds(), pageRows)
		}},
	} {
		errs = append(errs, prune(ctx, r.store, "retention rows", kind, r.logger, r.metrics))
	}
	return errors.Join(errs...)
}

// removal is a kind of rows and the function that deletes a page of them.
type removal struct {
	what   string
	remove func(context.Context, *store.Tx) (int64, error)
}

// prune deletes pages until one is not full, unless another replica does.
func prune(ctx context.Context, st *store.Store, lock string, kind removal, logger *slog.Logger,
	metrics *Metrics,
) error {
	total, logged := int64(0), time.Now()
	defer func() {
		if total > 0 {
			logger.InfoContext(ctx, "Expired rows deleted", "what", kind.what, "rows", total)
		}
	}()
	for {
		var removed int64
		err := page(ctx, st, lock, func(ctx context.Context, tx *store.Tx) error {
			removed = 0
			won, err := tx.TryLoopLock(ctx, lock)
			if err != nil || !won {
				return err
			}
			removed, err = kind.remove(ctx, tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("delete %s after %d rows: %w", kind.what, total, err)
		}
		total += removed
		metrics.removedOne(kind.what, removed)
		if removed < pageRows {
			return nil
		}
		if time.Since(logged) > logEvery {
			logged = time.Now()
			logger.InfoContext(ctx, "Deleting expired rows", "what", kind.what, "rows_so_far", total)
		}
	}
}
