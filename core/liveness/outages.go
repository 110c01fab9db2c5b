package liveness

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// OutageDetector detects outages of the database. During an outage no worker can write a heartbeat,
// and afterwards all heartbeats are old, which proves nothing about the workers. So no loop decides
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

// longestInterval and shortestInterval bound the interval of the queries.
const (
	longestInterval  = 5 * time.Second
	shortestInterval = 50 * time.Millisecond
)

// NewOutageDetector makes the detector. It is unsure until it is started.
func NewOutageDetector(staleAfter time.Duration, st *store.Store, logger *slog.Logger,
	metrics *supervise.Metrics,
) *OutageDetector {
	d := &OutageDetector{
		staleAfter: staleAfter, interval: min(max(staleAfter/15, shortestInterval), longestInterval), store: st,
		logger: logger, now: time.Now,
	}
	d.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "sight", Interval: d.interval, Timeout: d.answerTimeout(), MaxBackoff: d.interval,
		Tick: d.tick, Logger: logger, Metrics: metrics,
	})
	return d
}

// answerTimeout is the timeout of one answer; a later answer counts as a gap.
func (d *OutageDetector) answerTimeout() time.Duration { return max(d.staleAfter/4, time.Second) }

func (d *OutageDetector) tick(ctx context.Context) error {
	row, err := d.store.ReadClock(ctx)
	if err != nil {
		d.recordGap(ctx, store.Trouble(err).String())
		return nil // logged once here, and by every other loop
	}
	d.recordAnswer(ctx, row.At, row.Started)
	return nil
}

// LastSuccess is the time of the last answer: a tick without one does not fail, because other loops log it.
func (d *OutageDetector) LastSuccess() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

func (d *OutageDetector) recordAnswer(ctx context.Context, clock, started time.Time) {
	d.mu.Lock()
	now, last, before, server := d.now(), d.last, d.clock, d.started
	d.last, d.clock, d.started = now, clock, started
	d.mu.Unlock()
	switch passed := now.Sub(last); {
	case last.IsZero():
	case passed > d.interval+d.answerTimeout():
		d.recordGap(ctx, "it was not asked, or did not answer, for "+passed.Round(time.Millisecond).String())
	case !started.Equal(server):
		d.recordGap(ctx, "its server was restarted")
	case (clock.Sub(before) - passed).Abs() > d.answerTimeout():
		d.recordGap(ctx, "its clock was set")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.IsZero() {
		d.since = now
		if !d.outage.IsZero() {
			d.outage = now
		}
	}
}

func (d *OutageDetector) recordGap(ctx context.Context, why string) {
	d.mu.Lock()
	seen := !d.since.IsZero()
	d.since = time.Time{}
	if seen {
		d.outage = d.now()
	}
	d.mu.Unlock()
	if seen {
		d.logger.WarnContext(ctx,
			"Missing heartbeats are ignored for a while: the database was not reachable all the time",
			"reason", why, "for", d.staleAfter)
	}
}

// Unsure reports that missing heartbeats prove nothing: the database has not answered without a gap
// for as long as a worker may be silent.
func (d *OutageDetector) Unsure() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.since.IsZero() || d.now().Sub(d.since) < d.staleAfter || d.now().Sub(d.last) > d.interval+d.answerTimeout()
}

// Recovering reports that a gap ended only recently, so silent workers may be alive.
func (d *OutageDetector) Recovering() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.outage.IsZero() && d.now().Sub(d.outage) < d.staleAfter
}
