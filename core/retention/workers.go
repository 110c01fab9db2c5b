package retention

import (
	"context"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// WorkersConfig configures the retention of inactive workers.
type WorkersConfig struct {
	// Interval is the pause between ticks. Default 1 h.
	Interval time.Duration
	// Silent is the minimum age of a worker's last heartbeat. Default 7 days.
	Silent time.Duration
}

// settled is the minimum age of a row's last write: a new worker has an old heartbeat until its
// first one.
const settled = time.Hour

// workersAtOnce bounds the workers of one pass over the executions.
const workersAtOnce = 100

// Workers forgets workers with a long inactivity, no execution and no cordon: see ForgetWorkers.
type Workers struct {
	base

	cfg    WorkersConfig
	broker Broker
	logged map[int64]string // the last logged reason for keeping a worker; only the loop uses it
}

// NewWorkers builds the loop.
func NewWorkers(cfg WorkersConfig, st *store.Store, b Broker, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics,
) *Workers {
	cfg.Silent = supervise.OrDefault(cfg.Silent, 7*24*time.Hour)
	w := &Workers{cfg: cfg, broker: b, logged: map[int64]string{}}
	w.base = newBase(supervise.LoopConfig{
		// A long pass over the executions starts again after the timeout.
		Name: "retention workers", Interval: cfg.Interval, Timeout: time.Hour, Jitter: 0.2, Tick: w.tick,
	}, st, logger, metrics, loops)
	return w
}

func (w *Workers) tick(ctx context.Context) error {
	return w.store.Locked(ctx, "retention workers", lockHolder, func() error { return w.forget(ctx) })
}

func (w *Workers) forget(ctx context.Context) error {
	stays := map[int64]string{}
	defer func() { w.logged = stays }()
	order := ForgetRequest{Silent: w.cfg.Silent, Settled: min(settled, w.cfg.Silent)}
	for after := int64(0); ; {
		found, err := w.store.FindForgettableWorkers(ctx, store.FindForgettableWorkersParams{
			After: after, Silent: order.Silent.Seconds(), Settled: order.Settled.Seconds(), Page: workersAtOnce,
		})
		if err != nil || len(found) == 0 {
			return wrapped(err, "find inactive workers")
		}
		order.Workers = order.Workers[:0]
		for _, one := range found {
			order.Workers = append(order.Workers, one.ID)
		}
		after = found[len(found)-1].ID
		all, err := ForgetWorkers(ctx, w.store, w.broker, order, w.logger)
		for _, one := range all {
			w.log(ctx, one, stays)
		}
		if err != nil {
			return wrapped(err, "forget inactive workers")
		}
	}
}

// log logs a deletion, and a reason for keeping a worker once.
func (w *Workers) log(ctx context.Context, one Forgotten, stays map[int64]string) {
	if one.Done {
		w.metrics.removedOne("workers", 1)
		w.logger.InfoContext(ctx, "Inactive worker forgotten", "worker", one.Name, "worker_id", one.ID,
			"discarded_messages", one.Discarded)
		return
	}
	stays[one.ID] = one.Reason
	if w.logged[one.ID] != one.Reason {
		w.logger.InfoContext(ctx, "Inactive worker is kept", "worker", one.Name, "worker_id", one.ID, "reason",
			one.Reason)
	}
}
