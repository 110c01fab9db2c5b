package eventing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// SweepConfig configures the sweep.
type SweepConfig struct {
	// Interval is the pause between sweeps. Default 10 s.
	Interval time.Duration
	// Age is the age from which the message of an event or enforcement counts as lost. Default 30
	// s.
	Age time.Duration
	// Horizon is the age from which a lost event is only reported: its rules would fire too late.
	// Default 24 h.
	Horizon time.Duration
	// Keep is how long the mark of a matched event is kept. Default 7 days, at least twice the
	// horizon.
	Keep time.Duration
}

func (c SweepConfig) withDefaults() SweepConfig {
	c.Interval, c.Age = cmp.Or(c.Interval, 10*time.Second), cmp.Or(c.Age, 30*time.Second)
	c.Horizon = cmp.Or(c.Horizon, 24*time.Hour)
	c.Keep = max(cmp.Or(c.Keep, 7*24*time.Hour), 2*c.Horizon)
	return c
}

// Submit processes findings of a sweep like messages. It returns when they are taken, or with an
// error when the engine stops.
type Submit func(ctx context.Context, ids []int64) error

// Sweep finds unprocessed events and enforcements whose message was lost between the commit and the
// broker, or in the broker. One replica at a time runs it. Its findings are processed like
// messages, and may be found again until they are done. It also finds the leftovers of another
// engine: all enforcements, and events with a rule but no enforcement.
type Sweep struct {
	*supervise.Loop

	cfg          SweepConfig
	store        *store.Store
	events       Submit
	enforcements Submit
	logger       *slog.Logger
	metrics      *Metrics

	floor    int64     // events up to here are matched
	thorough time.Time // when all events within the horizon are checked again
	pruned   time.Time // when marks were last pruned
	reported bool      // late events were reported
}

// Limits of one sweep.
const (
	eventWindow   = 10_000  // events checked in one transaction
	eventsAtOnce  = 200     // found events submitted at once
	openPage      = 500     // enforcements found and submitted at once
	markPage      = 5_000   // marks removed in one transaction
	lateScan      = 100_000 // newest events checked for late ones
	thoroughEvery = time.Hour
	pruneEvery    = 10 * time.Minute
	// settle is how long events with smaller ids may still be committed after an event.
	settle = 10 * time.Minute
)

// NewSweep makes the loop. Metrics may be nil.
func NewSweep(cfg SweepConfig, st *store.Store, events, enforcements Submit, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics,
) *Sweep {
	s := &Sweep{
		cfg: cfg.withDefaults(), store: st, events: events, enforcements: enforcements, logger: logger,
		metrics: cmp.Or(metrics, NewMetrics(nil)),
	}
	s.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "events", Interval: s.cfg.Interval, Timeout: 2 * time.Minute, Jitter: 0.2, Tick: s.tick, Logger: logger,
		Metrics: loops,
	})
	return s
}

// tick handles the events first, since they create enforcements.
func (s *Sweep) tick(ctx context.Context) error {
	if err := s.forgottenEvents(ctx); err != nil {
		return err
	}
	if err := s.forgottenEnforcements(ctx); err != nil {
		return err
	}
	return s.prune(ctx)
}

// alone runs a transaction, unless another replica runs one.
func (s *Sweep) alone(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) (won bool, err error) {
	return s.store.Alone(ctx, "sweep of events", "events", func(ctx context.Context, tx *store.Tx) error {
		// A cached plan for empty tables would also serve full ones.
		if _, err := tx.Exec(ctx, "SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
			return fmt.Errorf("disable cached plans: %w", err)
		}
		return fn(ctx, tx)
	})
}

// forgottenEvents checks the events from the last ones whose predecessors may still be uncommitted,
// and at intervals all within the horizon.
func (s *Sweep) forgottenEvents(ctx context.Context) error {
	if time.Now().After(s.thorough) {
		s.floor = 0
	}
	after, floor := s.floor, int64(-1)
	for {
		var row store.FindForgottenEventsRow
		won, err := s.alone(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			row, err = tx.FindForgottenEvents(ctx, store.FindForgottenEventsParams{
				After: after, Horizon: s.cfg.Horizon.Seconds(), Older: s.cfg.Age.Seconds(), WindowSize: eventWindow,
				Settle: settle.Seconds(),
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("find forgotten events after %d: %w", after, err)
		}
		if !won {
			return nil
		}
		if floor < 0 && row.Recent > 0 {
			floor = row.Recent - 1
		}
		if len(row.Ids) > 0 && (floor < 0 || row.Ids[0] <= floor) {
			floor = row.Ids[0] - 1 // until it is matched
		}
		if err := s.submitEvents(ctx, row.Ids); err != nil {
			return err
		}
		if row.Scanned < eventWindow {
			if floor < 0 {
				floor = max(row.Last, after) // no recent events
			}
			break
		}
		after = row.Last
	}
	if s.floor == 0 {
		s.thorough = time.Now().Add(thoroughEvery)
	}
	s.floor = floor
	return s.reportLate(ctx)
}

// reportLate logs once, after the first check of all events, the events that fire no rules any more.
func (s *Sweep) reportLate(ctx context.Context) error {
	if s.reported {
		return nil
	}
	var late store.CountLateEventsRow
	won, err := s.alone(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		late, err = tx.CountLateEvents(ctx, store.CountLateEventsParams{
			Horizon: s.cfg.Horizon.Seconds(), Keep: s.cfg.Keep.Seconds(), Older: s.cfg.Age.Seconds(), Bound: lateScan,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("count events that are too old to be matched: %w", err)
	}
	s.reported = won
	if late.Events > 0 {
		s.logger.WarnContext(ctx,
			"Late events not matched, they are too old or their rule has changed since",
			"events", late.Events, "first", late.First, "last", late.Last, "max_event_age", s.cfg.Horizon)
		s.metrics.forgotten.WithLabelValues("late_event").Add(float64(late.Events))
	}
	return nil
}

func (s *Sweep) submitEvents(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	s.logger.InfoContext(ctx, "Forgotten events found", "events", len(ids), "first", ids[0])
	s.metrics.forgotten.WithLabelValues("event").Add(float64(len(ids)))
	for part := range slices.Chunk(ids, eventsAtOnce) {
		if err := s.events(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// forgottenEnforcements pages through the enforcements that are still created.
func (s *Sweep) forgottenEnforcements(ctx context.Context) error {
	for after := int64(0); ; {
		var ids []int64
		won, err := s.alone(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			ids, err = tx.FindForgottenEnforcements(ctx, after, s.cfg.Age.Seconds(), openPage)
			return err
		})
		if err != nil {
			return fmt.Errorf("find forgotten enforcements after %d: %w", after, err)
		}
		if !won || len(ids) == 0 {
			return nil
		}
		s.logger.InfoContext(ctx, "Forgotten enforcements found", "enforcements", len(ids), "first", ids[0])
		s.metrics.forgotten.WithLabelValues("enforcement").Add(float64(len(ids)))
		if err := s.enforcements(ctx, ids); err != nil {
			return err
		}
		if len(ids) < openPage {
			return nil
		}
		after = ids[len(ids)-1]
	}
}

// prune deletes marks of matched events that are no longer needed.
func (s *Sweep) prune(ctx context.Context) error {
	if time.Since(s.pruned) < pruneEvery {
		return nil
	}
	for {
		var removed int64
		_, err := s.alone(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			if removed, err = tx.PruneEventMatched(ctx, s.cfg.Keep.Seconds(), markPage); err != nil {
				return err
			}
			_, err = tx.PruneEventOrigins(ctx, markPage)
			return err
		})
		if err != nil {
			return fmt.Errorf("prune marks of matched events: %w", err)
		}
		if removed < markPage {
			s.pruned = time.Now()
			return nil
		}
	}
}
