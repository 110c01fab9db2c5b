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

// OutageDetector detects outages of the database. During an outage no worker can write a heartbeat, and
// afterwards all heartbeats are old, which proves nothing about the workers. So no loop decides
// from missing heartbeats or ages until the database has answered without a gap, and its clock has
// run evenly, for as long as a worker may be silent.
type OutageDetector struct {
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
	longestInterval  = 5 * time.Second
	shortestInterval = 50 * time.Millisecond
)

// NewOutageDetector makes the detector. It is blind until it is started.
func NewOutageDetector(staleAfter time.Duration, st *store.Store, logger *slog.Logger,
	metrics *supervise.Metrics) *OutageDetector {
	s := &OutageDetector{
		staleAfter: staleAfter, interval: min(max(staleAfter/15, shortestInterval), longestInterval), store: st,
		logger: logger,
		now:    time.Now,
	}
	s.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "sight", Interval: s.interval, Timeout: s.answerTimeout(), MaxBackoff: s.interval,
		Tick: s.tick, Logger: logger, Metrics: metrics,
	})
	return s
}

// answerTimeout is the timeout of one answer; a later answer counts as a gap.
func (s *OutageDetector) answerTimeout() time.Duration { return max(s.staleAfter/4, time.Second) }

func (s *OutageDetector) tick(ctx context.Context) error {
	row, err := s.store.ReadClock(ctx)
	if err != nil {
		s.recordGap(ctx, fmt.Sprintf("it does not answer: %v", err))
		return nil // logged once here, and by every other loop
	}
	s.recordAnswer(ctx, row.At, row.Started)
	return nil
}

// recordAnswer records an answer of the database.
func (s *OutageDetector) recordAnswer(ctx context.Context, clock, started time.Time) {
	s.mu.Lock()
	now, last, before, server := s.now(), s.last, s.clock, s.started
	s.last, s.clock, s.started = now, clock, started
	s.mu.Unlock()
	switch passed := now.Sub(last); {
	case last.IsZero():
	case passed > s.interval+s.answerTimeout():
		s.recordGap(ctx, "it was not asked, or did not answer, for "+passed.Round(time.Millisecond).String())
	case !started.Equal(server):
		s.recordGap(ctx, "its server was restarted")
	case (clock.Sub(before) - passed).Abs() > s.answerTimeout():
		s.recordGap(ctx, "its clock was set")
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

// recordGap records a gap.
func (s *OutageDetector) recordGap(ctx context.Context, why string) {
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

// Unsure reports that missing heartbeats prove nothing: the database has not answered without a gap
// for as long as a worker may be silent.
func (s *OutageDetector) Unsure() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since.IsZero() || s.now().Sub(s.since) < s.staleAfter || s.now().Sub(s.last) > s.interval+s.answerTimeout()
}

// Recovering reports that a gap ended only recently, so silent workers may be alive.
func (s *OutageDetector) Recovering() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.outage.IsZero() && s.now().Sub(s.outage) < s.staleAfter
}
