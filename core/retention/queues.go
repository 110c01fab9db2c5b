package retention

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

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

// Queues deletes unused queues of groups, and rows of unused shared limits (upstream 28). A queue
// with an operator's override (a pause, a limit) stays.
type Queues struct {
	*supervise.Loop

	cfg     QueuesConfig
	store   *store.Store
	logger  *slog.Logger
	metrics *Metrics
}

// NewQueues builds the loop.
func NewQueues(cfg QueuesConfig, st *store.Store, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics,
) *Queues {
	cfg.Interval = orDefault(cfg.Interval, time.Hour)
	cfg.Groups, cfg.Scopes = orDefault(cfg.Groups, 30*24*time.Hour), orDefault(cfg.Scopes, 24*time.Hour)
	q := &Queues{cfg: cfg, store: st, logger: logger, metrics: metrics}
	q.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "retention", Interval: q.cfg.Interval, Timeout: 5 * time.Minute, Jitter: 0.2,
		Tick: q.tick, Logger: logger, Metrics: loops,
	})
	return q
}

func (q *Queues) tick(ctx context.Context) error {
	var errs []error
	for _, kind := range []removal{
		{"queues", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneGroupStates(ctx, q.cfg.Groups.Seconds(), pageRows)
		}},
		{"shared limits", func(ctx context.Context, tx *store.Tx) (int64, error) {
			return tx.PruneScopes(ctx, q.cfg.Scopes.Seconds(), pageRows)
		}},
	} {
		errs = append(errs, prune(ctx, q.store, "retention", kind, q.logger, q.metrics))
	}
	return errors.Join(errs...)
}
