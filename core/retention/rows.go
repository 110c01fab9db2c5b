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

// QueuesConfig configures the retention of idle queues.
type QueuesConfig struct {
	// Interval is the pause between ticks. Default 1 h.
	Interval time.Duration
	// Groups is the retention of a group's queue after its last execution. Default 30 days.
	Groups time.Duration
	// Scopes is the retention of a shared limit's row after its last use. Default 1 day, and never less than
	// the window of a rate or quota.
	Scopes time.Duration
}

// Rows deletes rows of some kinds after their retention.
type Rows struct {
	base

	kinds []removal
}

// NewRows makes the loop that deletes expired decided dead letters, lost work, refused late writes, cleared alerts,
// and unused workflow definitions. It never deletes operators' actions (operator_audit).
func NewRows(cfg RowsConfig, st *store.Store, logger *slog.Logger, metrics *Metrics, loops *supervise.Metrics) *Rows {
	history := supervise.OrDefault(cfg.History, 30*24*time.Hour)
	r := &Rows{kinds: []removal{
		{"dead letters", supervise.OrDefault(cfg.DeadLetters, 24*time.Hour), (*store.Queries).PruneDeadLetters},
		{"lost work", history, (*store.Queries).PruneLostWork},
		{"late writes", history, (*store.Queries).PruneLateWrites},
		{"minutes of activity", activityKept, (*store.Queries).PruneActivity},
		{"alerts", history, (*store.Queries).PruneAlerts},
		{"trace origins", history, (*store.Queries).PruneTraceOrigins},
		// Replicas that have tracing off now have left them.
		{"pending traces", pendingTraces, (*store.Queries).PruneTracePending},
		{"keys of requests", 0, func(q *store.Queries, ctx context.Context, _ float64, page int32) (int64, error) {
			return q.PruneRequestKeys(ctx, page)
		}},
		{"workflow definitions", sourcesKept, (*store.Queries).PruneWorkflowSources},
	}}
	r.base = newBase(supervise.LoopConfig{
		Name: "retention rows", Interval: cfg.Interval, Timeout: 10 * time.Minute, Jitter: 0.2, Tick: r.tick,
	}, st, logger, metrics, loops)
	return r
}

// NewQueues makes the loop that deletes unused queues of groups, and rows of unused shared limits (upstream 28). A
// queue with an operator's override (a pause, a limit) stays.
func NewQueues(cfg QueuesConfig, st *store.Store, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics,
) *Rows {
	r := &Rows{kinds: []removal{
		{"queues", supervise.OrDefault(cfg.Groups, 30*24*time.Hour), (*store.Queries).PruneGroupStates},
		{"shared limits", supervise.OrDefault(cfg.Scopes, 24*time.Hour), (*store.Queries).PruneScopes},
	}}
	r.base = newBase(supervise.LoopConfig{
		Name: "retention", Interval: cfg.Interval, Timeout: 5 * time.Minute, Jitter: 0.2, Tick: r.tick,
	}, st, logger, metrics, loops)
	return r
}

// tick handles one kind after the other; an error of one does not stop the others.
func (r *Rows) tick(ctx context.Context) error {
	var errs []error
	for _, kind := range r.kinds {
		errs = append(errs, r.prune(ctx, r.Name(), kind))
	}
	return errors.Join(errs...)
}

// removal is a kind of rows, its retention, and the function that deletes a page of them.
type removal struct {
	what   string
	kept   time.Duration
	remove func(q *store.Queries, ctx context.Context, older float64, page int32) (int64, error)
}

// prune deletes pages until one is not full, unless another replica does.
func (b *base) prune(ctx context.Context, lock string, kind removal) error {
	total, logged := int64(0), time.Now()
	defer func() {
		if total > 0 {
			b.logger.InfoContext(ctx, "Expired rows deleted", "what", kind.what, "rows", total)
		}
	}()
	for {
		var removed int64
		err := page(ctx, b.store, lock, func(ctx context.Context, tx *store.Tx) error {
			removed = 0
			won, err := tx.TryLoopLock(ctx, lock)
			if err != nil || !won {
				return err
			}
			removed, err = kind.remove(tx.Queries, ctx, kind.kept.Seconds(), pageRows)
			return err
		})
		if err != nil {
			return fmt.Errorf("delete %s after %d rows: %w", kind.what, total, err)
		}
		total += removed
		b.metrics.removedOne(kind.what, removed)
		if removed < pageRows {
			return nil
		}
		if time.Since(logged) > logEvery {
			logged = time.Now()
			b.logger.InfoContext(ctx, "Deleting expired rows", "what", kind.what, "rows_so_far", total)
		}
	}
}
