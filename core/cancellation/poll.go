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

// Config configures the poll.
type Config struct {
	// Interval is the pause between ticks. Default 5 s.
	Interval time.Duration
	// Grace is the grace of GraceDefault.
	Grace time.Duration
	// StaleAfter is the heartbeat age from which a worker counts as dead. Default 90 s.
	StaleAfter time.Duration
	// Keep is the retention of the cancel request of a cancelled or completed execution. Default 1 min.
	Keep time.Duration
	// KeepFailed is the same for a failed, timed out or abandoned execution: a redelivered report of its end
	// within that time does not retry it. Default 168 h.
	KeepFailed time.Duration
	// WithoutStats leaves queue_stats unchanged.
	WithoutStats bool
}

func (c Config) withDefaults() Config {
	for value, otherwise := range map[*time.Duration]time.Duration{
		&c.Interval: 5 * time.Second, &c.Grace: GraceDefault, &c.StaleAfter: 90 * time.Second, &c.Keep: time.Minute,
		&c.KeepFailed: 7 * 24 * time.Hour,
	} {
		if *value <= 0 {
			*value = otherwise
		}
	}
	return c
}

// Relay publishes the outbox messages of a committed transaction.
type Relay interface {
	Published(row int64, messages []outbox.Message)
}

// Poll reads all cancel requests of live executions and applies the decision table again. Every replica runs
// it; one replica at a time works.
type Poll struct {
	*supervise.Loop

	cfg    Config
	store  *store.Store
	relay  Relay
	logger *slog.Logger

	after int64             // start of the next page
	acted map[int64]float64 // per execution, the age of the request at the last action
	seen  map[int64]float64 // the same, of this pass
}

// NewPoll builds the poll.
func NewPoll(cfg Config, st *store.Store, relay Relay, logger *slog.Logger, metrics *supervise.Metrics) *Poll {
	p := &Poll{
		cfg: cfg.withDefaults(), store: st, relay: relay, logger: logger,
		acted: make(map[int64]float64), seen: make(map[int64]float64),
	}
	p.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "cancels", Interval: p.cfg.Interval, Timeout: 30 * time.Second, Jitter: 0.2,
		Tick: p.tick, Logger: logger, Metrics: metrics,
	})
	return p
}

// lockTries and lockPause bound the wait for the pass of another replica.
const (
	lockTries = 10
	lockPause = 100 * time.Millisecond
)

// tick processes all cancel requests, a page per transaction. It skips a failing page. While another replica
// works it waits: the pass of that one may have begun before the request that woke this one.
func (p *Poll) tick(ctx context.Context) error {
	var failed error
	for lost := 0; ; {
		full, won, err := p.page(ctx)
		if !won && err == nil {
			if lost++; lost < lockTries && supervise.Sleep(ctx, lockPause) {
				continue
			}
			return failed
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("process cancel requests: %w", err))
			if ctx.Err() != nil || store.IsAway(err) {
				return failed
			}
		}
		if !full {
			p.acted, p.seen = p.seen, make(map[int64]float64, len(p.seen))
			return failed
		}
	}
}

// page processes one page. If a row makes it fail, each row gets a transaction of its own, so that it delays no
// other. full reports that there are more, won that no other replica works.
func (p *Poll) page(ctx context.Context) (full, won bool, err error) {
	after := p.after
	divisible := func() bool {
		class := store.ClassOf(err)
		return class == store.ClassRetryable || class == store.ClassLocked || store.Divisible(err)
	}
	if full, won, err = p.rows(ctx, MaxPage); !divisible() {
		return full, won, err
	}
	p.after = after
	var failed error
	for range MaxPage {
		if full, won, err = p.rows(ctx, 1); err != nil {
			failed = errors.Join(failed, err)
		}
		if !full || !won || (err != nil && !divisible()) {
			break
		}
	}
	return full, won, failed
}

// rows processes the next rows, at most n, in one transaction.
func (p *Poll) rows(ctx context.Context, n int) (full, won bool, err error) {
	after := p.after
	for attempt := 1; ; attempt++ {
		won, err = p.store.Alone(ctx, "poll cancellations", "cancels", func(ctx context.Context, tx *store.Tx) error {
			p.after = 0
			rows, err := tx.FindCancels(ctx, after, int32(n))
			if err != nil {
				return fmt.Errorf("find cancel requests: %w", err)
			}
			if full = len(rows) == n; full {
				p.after = rows[len(rows)-1].Execution
			}
			return p.work(ctx, tx, rows)
		})
		if !won {
			p.after, full = 0, false
		}
		if err == nil || attempt == maxTries || !Contended(err) || ctx.Err() != nil {
			return full, won, err
		}
	}
}

// work processes the rows of a page.
func (p *Poll) work(ctx context.Context, tx *store.Tx, rows []store.FindCancelsRow) error {
	request := Request{
		Source: "attune-executor", Grace: p.cfg.Grace, StaleAfter: p.cfg.StaleAfter, WithoutStats: p.cfg.WithoutStats,
		recorded: true,
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
			return fmt.Errorf("delete %d cancel requests: %w", len(old), err)
		}
	}
	due, err := p.due(ctx, tx.Queries, request, live, asked)
	if due = append(due, strayed...); err != nil || len(due) == 0 {
		return err
	}
	done, err := Apply(ctx, tx, request, due)
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
		p.logger.InfoContext(ctx, "Cancel requests processed", "executions", len(due), "ended", done.count(Cancelled))
		p.relay.Published(row, done.Messages)
	})
	return nil
}

// due returns the live executions that can end now or whose next message is due.
func (p *Poll) due(ctx context.Context, queries *store.Queries, request Request, live []int64,
	asked map[int64]float64,
) ([]int64, error) {
	if len(live) == 0 {
		return nil, nil
	}
	rows, err := queries.CancelFacts(ctx, request.withDefaults().StaleAfter.Seconds(), live)
	if err != nil {
		return nil, fmt.Errorf("read %d executions to cancel: %w", len(live), err)
	}
	var due []int64
	for _, row := range rows {
		before, known := p.acted[row.ID]
		switch rule := Decide(factsOf(row), p.cfg.Grace); {
		case rule.Step == StepAgain && !row.Gone && askAgain(before, asked[row.ID]), rule.Step == StepEnd,
			rule.Step == StepAsk:
			due = append(due, row.ID)
		case known:
			p.seen[row.ID] = before
		}
	}
	return due, nil
}

// distances are the ages of a request, in seconds, at which its worker gets another message; after the last
// one, every lastDistance.
var distances = []float64{10, 40, 100}

const lastDistance = 120

// askAgain reports whether the next message is due at request age asked, after one at age before.
func askAgain(before, asked float64) bool {
	for _, distance := range distances {
		if before < distance && asked >= distance {
			return true
		}
	}
	last := distances[len(distances)-1]
	return asked >= last && asked-max(before, last) >= lastDistance
}

// count counts the results with an outcome.
func (p *Page) count(outcome Outcome) int {
	n := 0
	for _, r := range p.Results {
		if r.Outcome == outcome {
			n++
		}
	}
	return n
}
