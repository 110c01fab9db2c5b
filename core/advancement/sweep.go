package advancement

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// Sweep finds workflows that can continue although no request came.
type Sweep struct {
	*supervise.Loop

	cfg     Config
	store   *store.Store
	logger  *slog.Logger
	recheck func(workflows ...int64)
	report  func(ctx context.Context, executions []int64) error
}

// page is the number of open workflows in one statement.
const page = 500

// NewSweep makes the sweep. It calls recheck with the workflows it finds. It calls report with ended executions whose
// inquiry was never opened.
func NewSweep(
	cfg Config, interval time.Duration, st *store.Store, recheck func(...int64),
	report func(context.Context, []int64) error,
	logger *slog.Logger, metrics *supervise.Metrics,
) *Sweep {
	s := &Sweep{cfg: cfg.withDefaults(), store: st, recheck: recheck, report: report, logger: logger}
	s.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "workflows", Interval: interval, Timeout: max(interval, 20*time.Second), Jitter: 0.1,
		Tick: s.tick, Logger: logger, Metrics: metrics,
	})
	return s
}

func (s *Sweep) tick(ctx context.Context) error {
	for after, more := int64(0), true; more; {
		var found, unasked []int64
		err := s.store.Tx(ctx, "find workflows", func(ctx context.Context, tx *store.Tx) error {
			found, unasked, more = nil, nil, false
			won, err := tx.TryLoopLock(ctx, "workflows")
			if err != nil || !won {
				return err
			}
			rows, err := tx.FindWorkflows(ctx, s.cfg.UnreportedAfter.Seconds(), after, page)
			if err != nil {
				return fmt.Errorf("find workflows to advance: %w", err)
			}
			for _, row := range rows {
				if after = row.ID; row.Due {
					found = append(found, row.ID)
				}
				unasked = append(unasked, row.Unasked...)
			}
			more = len(rows) == page
			return nil
		})
		if err != nil {
			return err
		}
		if len(found) > 0 {
			s.logger.DebugContext(ctx, "Workflows to recheck found", "workflows", len(found))
			s.recheck(found...)
		}
		if len(unasked) > 0 {
			if err := s.report(ctx, unasked); err != nil {
				return err
			}
		}
	}
	return nil
}
