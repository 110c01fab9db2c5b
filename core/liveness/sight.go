package liveness

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// Sight detects outages of the database. During an outage no worker can write a heartbeat, and
// afterwards all heartbeats are old, which proves nothing about the workers. So no loop decides
// from missing heartbeats or ages until the database has answered without a gap, and its clock has
// run evenly, for as long as a worker may be silent.
type Sight struct {
	*supervise.Loop

	staleAfter time.Duration
	interval   time.Duration
	store      *store.Store
	logger     *slog.Logger
	now        func() time.Time

	mu      sync.Mutex
	since   time.Time // start of the unbroken series of answers; zero without one
	last    time.Time // the newest answer
	clock   time.Time // the database's clock in that answer
	started time.Time // when the server started
	outage  time.Time // end of the newest gap; zero without one
}

// sightMost and sightLeast bound the interval of the queries.
const (
	sightMost  = 5 * time.Second
	sightLeast = 50 * time.Millisecond
)

// NewSight makes the detector. It is blind until it is started.
func NewSight(staleAfter time.Duration, st *store.Store, logger *slog.Logger, metrics *supervise.Metrics) *Sight {
	s := &Sight{
		staleAfter: staleAfter, interval: min(max(staleAfter/15, sightLeast), sightMost), store: st, logger: logger,
		now: time.Now,
	}
	s.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "sight", Interval: s.interval, Timeout: s.patience(), MaxBackoff: s.interval,
		Tick: s.tick, Logger: logger, Metrics: metrics,
	})
	return s
}

// patience is the timeout of one answer; a later answer counts as a gap.
func (s *Sight) patience() time.Duration { return max(s.staleAfter/4, time.Second) }

func (s *Sight) tick(ctx context.Context) error {
	row, err := s.store.ReadClock(ctx)
	if err != nil {
		s.lose(ctx, fmt.Sprintf("it does not answer: %v", err))
		return nil // logged once here, and by every other loop
	}
	s.answered(ctx, row.At, row.Started)
	return nil
}

// answered records an answer of the database.
func (s *Sight) answered(ctx context.Context, clock, started time.Time) {
	s.mu.Lock()
	now, last, before, server := s.now(), s.last, s.clock, s.started
	s.last, s.clock, s.started = now, clock, started
	s.mu.Unlock()
	switch passed := now.Sub(last); {
	case last.IsZero():
	case passed > s.interval+s.patience():
		s.lose(ctx, "it was not asked, or did not answer, for "+passed.Round(time.Millisecond).String())
	case !started.Equal(server):
		s.lose(ctx, "its server was restarted")
	case (clock.Sub(before) - passed).Abs() > s.patience():
		s.lose(ctx, "its clock was set")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = now
		if !s.outage.IsZero() {
			s.outage = now
		}
	}
}

// lose records a gap.
func (s *Sight) lose(ctx context.Context, why string) {
	s.mu.Lock()
	seen := !s.since.IsZero()
	s.since = time.Time{}
	if seen {
		s.outage = s.now()
	}
	s.mu.Unlock()
	if seen {
		s.logger.WarnContext(ctx,
			"Nothing is decided from the silence of workers for a while: the database was not there all the time",
			"reason", why, "for", s.staleAfter)
	}
}

// Blind reports that missing heartbeats prove nothing: the database has not answered without a gap
// for as long as a worker may be silent.
func (s *Sight) Blind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since.IsZero() || s.now().Sub(s.since) < s.staleAfter || s.now().Sub(s.last) > s.interval+s.patience()
}

// Recovering reports that a gap ended only recently, so silent workers may be alive.
func (s *Sight) Recovering() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.outage.IsZero() && s.now().Sub(s.outage) < s.staleAfter
}
