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

// Sight watches whether the database can be trusted about silence. While it is
// away nobody can write a heartbeat, and when it is back all heartbeats are old:
// that says nothing about the workers. So nothing is decided from silence or age
// until the database has answered without a gap, and its clock has run evenly, for
// as long as a worker may be silent.
type Sight struct {
	*supervise.Loop

	staleAfter time.Duration
	interval   time.Duration
	store      *store.Store
	logger     *slog.Logger
	now        func() time.Time

	mu      sync.Mutex
	since   time.Time // the beginning of the unbroken series of answers; zero while there is none
	last    time.Time // the newest answer
	clock   time.Time // what the database's clock said then
	started time.Time // when the server was started
	outage  time.Time // when the newest gap ended; zero if none was seen
}

// sightMost and sightLeast bound how often the database is asked.
const (
	sightMost  = 5 * time.Second
	sightLeast = 50 * time.Millisecond
)

// NewSight makes the watch. Until it has been started it sees nothing.
func NewSight(staleAfter time.Duration, st *store.Store, logger *slog.Logger, metrics *supervise.Metrics) *Sight {
	s := &Sight{
		staleAfter: staleAfter, interval: min(max(staleAfter/15, sightLeast), sightMost), store: st, logger: logger, now: time.Now,
	}
	s.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "sight", Interval: s.interval, Timeout: s.patience(), MaxBackoff: s.interval,
		Tick: s.tick, Logger: logger, Metrics: metrics,
	})
	return s
}

// patience is how long an answer may take, or fail to come, before it is a gap.
func (s *Sight) patience() time.Duration { return max(s.staleAfter/4, time.Second) }

func (s *Sight) tick(ctx context.Context) error {
	row, err := s.store.ReadClock(ctx)
	if err != nil {
		s.lose(ctx, fmt.Sprintf("it does not answer: %v", err))
		return nil // it is said once, and by every other loop
	}
	s.answered(ctx, row.At, row.Started)
	return nil
}

// answered takes an answer of the database.
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

// lose notes a gap.
func (s *Sight) lose(ctx context.Context, why string) {
	s.mu.Lock()
	seen := !s.since.IsZero()
	s.since = time.Time{}
	if seen {
		s.outage = s.now()
	}
	s.mu.Unlock()
	if seen {
		s.logger.WarnContext(ctx, "Nothing is decided from the silence of workers for a while: the database was not there all the time",
			"reason", why, "for", s.staleAfter)
	}
}

// Blind reports that silence says nothing about workers: the database has not been
// seen without a gap for as long as a worker may be silent.
func (s *Sight) Blind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since.IsZero() || s.now().Sub(s.since) < s.staleAfter || s.now().Sub(s.last) > s.interval+s.patience()
}

// Recovering reports that a gap was seen which has ended only lately, so that
// workers which seem to be away may be there.
func (s *Sight) Recovering() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.outage.IsZero() && s.now().Sub(s.outage) < s.staleAfter
}
