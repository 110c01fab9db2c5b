package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// duePerTick bounds the retries of one tick.
const duePerTick = 500

// Retries submits due retries to the batches. Every replica checks once a second, and at the
// time of a retry that it postponed itself; submitting one twice is harmless.
type Retries struct {
	*supervise.Loop

	store  *store.Store
	submit Submit

	mu    sync.Mutex
	timer *time.Timer // guarded by mu; nil before the first use and after Stop
	next  time.Time   // guarded by mu; when timer fires
	over  bool        // guarded by mu
}

// NewRetries makes the loop.
func NewRetries(
	st *store.Store, submit Submit, logger *slog.Logger, metrics *supervise.Metrics,
) *Retries {
	r := &Retries{store: st, submit: submit}
	r.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "retries", Interval: time.Second, Timeout: 30 * time.Second, Jitter: 0.2,
		Tick: r.tick, Logger: logger, Metrics: metrics,
	})
	return r
}

// Soon wakes the loop after a delay, because a retry is due then.
func (r *Retries) Soon(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now().Add(after)
	if r.over || (r.next.After(time.Now()) && r.next.Before(at)) {
		return
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	r.next, r.timer = at, time.AfterFunc(after, r.Wake)
}

// Stop implements supervise.Service.
func (r *Retries) Stop() {
	r.mu.Lock()
	r.over = true
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	r.Loop.Stop()
}

func (r *Retries) tick(ctx context.Context) error {
	// A retry that another program ended would stay due for ever and hide the others.
	if err := r.store.CloseEndedRetries(ctx); err != nil {
		return fmt.Errorf("close retries that ended before they were due: %w", err)
	}
	due, err := r.store.FindDueRetries(ctx, duePerTick)
	if err != nil {
		return fmt.Errorf("find due retries: %w", err)
	}
	found := Found{Requested: due}
	return found.submit(ctx, pageDefault, r.submit)
}
