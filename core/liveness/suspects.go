package liveness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// Inspector reads the state of a queue from the broker; *broker.Broker is one.
type Inspector interface {
	QueueState(ctx context.Context, name string) (broker.QueueState, error)
}

// interval is the pause between two checks of the suspect workers.
const interval = 5 * time.Second

// Suspects clears suspect workers whose queue has a consumer again. Every replica runs it; clearing
// twice changes nothing.
type Suspects struct {
	*supervise.Loop

	store  *store.Store
	broker Inspector
	logger *slog.Logger
}

// NewSuspects makes the loop.
func NewSuspects(st *store.Store, inspector Inspector, logger *slog.Logger, metrics *supervise.Metrics) *Suspects {
	s := &Suspects{store: st, broker: inspector, logger: logger}
	s.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "suspects", Interval: interval, Timeout: 20 * time.Second, Jitter: 0.2,
		Tick: s.tick, Logger: logger, Metrics: metrics,
	})
	return s
}

func (s *Suspects) tick(ctx context.Context) error {
	suspects, err := s.store.FindSuspects(ctx)
	if err != nil {
		return fmt.Errorf("read the suspect workers: %w", err)
	}
	var failed error // one failing queue must not hide the others
	for _, suspect := range suspects {
		if err := s.check(ctx, suspect); err != nil {
			failed = errors.Join(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

func (s *Suspects) check(ctx context.Context, suspect store.FindSuspectsRow) error {
	state, err := s.broker.QueueState(ctx, message.WorkerExecutionsQueue(suspect.ID))
	if err != nil {
		return fmt.Errorf("read the queue of suspect worker %d: %w", suspect.ID, err)
	}
	if state.Consumers == 0 {
		return nil
	}
	cleared, err := s.store.ClearSuspect(ctx, suspect.ID, suspect.SuspectSince)
	if err != nil {
		return fmt.Errorf("clear suspect worker %d: %w", suspect.ID, err)
	}
	if cleared > 0 {
		s.logger.InfoContext(ctx, "Worker is no longer suspect: its queue has a consumer", "worker_id", suspect.ID,
			"worker", suspect.Name)
	}
	return nil
}
