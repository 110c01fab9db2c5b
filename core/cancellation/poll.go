package cancellation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// Config is what the poll depends on.
type Config struct {
	// Interval between looks. Default 5 s.
	Interval time.Duration
	// Grace: see GraceDefault.
	Grace time.Duration
	// StaleAfter is the age of a heartbeat from which a worker is gone. Default
	// 90 s.
	StaleAfter time.Duration
	// Keep is how long it is remembered of an execution that was cancelled, or
	// succeeded all the same, that a stop was asked for. Default 1 min.
	Keep time.Duration
	// KeepFailed is the same of one that failed, timed out or was abandoned: a
	// report of its end that comes again within that time does not have it
	// repeated. Default 168 h.
	KeepFailed time.Duration
	// WithoutStats leaves queue_stats alone.
	WithoutStats bool
}

func (c Config) withDefaults() Config {
	for _, field := range []struct {
		value   *time.Duration
		meaning time.Duration
	}{{&c.Interval, 5 * time.Second}, {&c.Grace, GraceDefault}, {&c.StaleAfter, 90 * time.Second}, {&c.Keep, time.Minute}, {&c.KeepFailed, 7 * 24 * time.Hour}} {
		if *field.value <= 0 {
			*field.value = field.meaning
		}
	}
	return c
}

// Relay publishes what a committed transaction has put into the outbox.
type Relay interface {
	Published(row int64, messages []outbox.Message)
}

// Poll is the backstop of cancelling: it looks at everything of which a stop was
// asked for and that has not ended, and does again what the decision table says.
// Every replica runs it, one at a time does something.
type Poll struct {
	*supervise.Loop

	cfg    Config
	store  *store.Store
	relay  Relay
	logger *slog.Logger

	after int64             // where the next page begins
	told  map[int64]float64 // of each execution, how long ago the stop had been asked for when it was done something about
	seen  map[int64]float64 // the same, of this pass
}

// NewPoll makes the poll.
func NewPoll(cfg Config, st *store.Store, relay Relay, logger *slog.Logger, metrics *supervise.Metrics) *Poll {
	p := &Poll{
		cfg: cfg.withDefaults(), store: st, relay: relay, logger: logger,
		told: make(map[int64]float64), seen: make(map[int64]float64),
	}
	p.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "cancels", Interval: p.cfg.Interval, Timeout: 30 * time.Second, Jitter: 0.2,
		Tick: p.tick, Logger: logger, Metrics: metrics,
	})
	return p
}

// tick looks through all stops that were asked for, a page a transaction. A page
// that fails is passed over, so that it does not hide those behind it.
func (p *Poll) tick(ctx context.Context) error {
	var failed error
	for {
		full, won, err := p.page(ctx)
		if !won && err == nil {
			return nil // another replica looks
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("look after what shall stop: %w", err))
			if ctx.Err() != nil || store.IsAway(err) {
				return failed
			}
		}
		if !full {
			p.told, p.seen = p.seen, make(map[int64]float64, len(p.seen))
			return failed
		}
	}
}

// page deals with one page and reports whether there are more. It is not won
// when another replica looks.
func (p *Poll) page(ctx context.Context) (full, won bool, err error) {
	after := p.after
	for attempt := 1; ; attempt++ {
		err = p.store.Tx(ctx, "poll cancellations", func(ctx context.Context, tx *store.Tx) error {
			p.after, full = 0, false
			if won, err = tx.TryLoopLock(ctx, "cancels"); err != nil || !won {
				return err
			}
			rows, err := tx.FindCancels(ctx, after, MaxPage)
			if err != nil {
				return fmt.Errorf("find what shall stop: %w", err)
			}
			if full = len(rows) == MaxPage; full {
				p.after = rows[len(rows)-1].Execution
			}
			return p.work(ctx, tx, rows)
		})
		if err == nil || attempt == maxTries || !Contended(err) || ctx.Err() != nil {
			return full, won, err
		}
	}
}

// work does what is due about the rows of a page.
func (p *Poll) work(ctx context.Context, tx *store.Tx, rows []store.FindCancelsRow) error {
	order := Order{
		Source: "attune-executor", Grace: p.cfg.Grace, StaleAfter: p.cfg.StaleAfter, WithoutStats: p.cfg.WithoutStats, noted: true,
	}
	var live, strayed, old []int64
	asked := make(map[int64]float64, len(rows))
	for _, row := range rows {
		switch {
		case row.Live:
			live = append(live, row.Execution)
			asked[row.Execution] = row.Asked
		case row.Strayed:
			strayed = append(strayed, row.Execution)
		case row.Holds:
		case row.Ended > p.cfg.KeepFailed.Seconds(), !row.Failed && row.Ended > p.cfg.Keep.Seconds():
			old = append(old, row.Execution)
		}
	}
	if len(old) > 0 {
		if err := tx.PruneCancels(ctx, old); err != nil {
			return fmt.Errorf("forget %d cancellations: %w", len(old), err)
		}
	}
	due, err := p.due(ctx, tx.Queries, order, live, asked)
	if due = append(due, strayed...); err != nil || len(due) == 0 {
		return err
	}
	done, err := Apply(ctx, tx, order, due)
	if err != nil || len(done.Messages) == 0 {
		return err
	}
	row, err := outbox.Append(ctx, tx, done.Messages)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() {
		for _, id := range due {
			p.seen[id] = asked[id]
		}
		p.logger.InfoContext(ctx, "Executions that shall stop were looked after", "executions", len(due), "ended", done.count(Cancelled))
		p.relay.Published(row, done.Messages)
	})
	return nil
}

// due are those of the live executions about which something is to be done:
// whatever can be ended at once, and asking again when its time has come.
func (p *Poll) due(ctx context.Context, queries *store.Queries, order Order, live []int64, asked map[int64]float64) ([]int64, error) {
	if len(live) == 0 {
		return nil, nil
	}
	rows, err := queries.CancelFacts(ctx, order.withDefaults().StaleAfter.Seconds(), live)
	if err != nil {
		return nil, fmt.Errorf("read %d executions that shall stop: %w", len(live), err)
	}
	var due []int64
	for _, row := range rows {
		before, known := p.told[row.ID]
		switch rule := Decide(factsOf(row), p.cfg.Grace); {
		case rule.Step == StepAgain && !row.Gone && askAgain(before, asked[row.ID]), rule.Step == StepEnd, rule.Step == StepAsk:
			due = append(due, row.ID)
		case known:
			p.seen[row.ID] = before
		}
	}
	return due, nil
}

// distances are the ages of a request, in seconds, at which its worker is asked
// again; after the last of them, at every further one of lastDistance.
var distances = []float64{10, 40, 100}

const lastDistance = 120

// askAgain reports whether a worker that was asked when the request was before
// seconds old is to be asked again now that it is asked seconds old.
func askAgain(before, asked float64) bool {
	for _, distance := range distances {
		if before < distance && asked >= distance {
			return true
		}
	}
	last := distances[len(distances)-1]
	return asked >= last && asked-max(before, last) >= lastDistance
}

// count is how many results have an outcome.
func (p *Page) count(outcome Outcome) int {
	n := 0
	for _, r := range p.Results {
		if r.Outcome == outcome {
			n++
		}
	}
	return n
}
