package inquiry

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// loopName is the name of the loop, and of the lock by which one replica at a time
// runs it.
const loopName = "inquiries"

// WatchConfig is what the watch over open questions depends on.
type WatchConfig struct {
	// Interval between looks. Default 1 s.
	Interval time.Duration
	// Page is how many inquiries one transaction is about. Default 200.
	Page int
	// Source is the source_service of messages. Default "attune-executor".
	Source string
	// Keys seal the secrets of answers that another service has taken. Without a key
	// these stay in the clear.
	Keys secret.Keyring
}

func (c WatchConfig) withDefaults() WatchConfig {
	if c.Interval <= 0 {
		c.Interval = time.Second
	}
	if c.Page <= 0 {
		c.Page = 200
	}
	if c.Source == "" {
		c.Source = "attune-executor"
	}
	return c
}

// Watch ends what nobody answered in time, and what nobody waits for any more, and
// draws what follows from inquiries that another service has ended and whose message
// was lost. Every replica may look; one at a time does.
type Watch struct {
	*supervise.Loop

	cfg     WatchConfig
	store   *store.Store
	relay   Relay
	logger  *slog.Logger
	metrics *Metrics
	after   int64 // where the next window of pending inquiries begins
	counted time.Time
}

// NewWatch makes the loop. relay and metrics may be nil.
func NewWatch(cfg WatchConfig, st *store.Store, relay Relay, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics) *Watch {
	w := &Watch{cfg: cfg.withDefaults(), store: st, relay: relay, logger: logger, metrics: metrics}
	w.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: loopName, Interval: w.cfg.Interval, Timeout: 30 * time.Second, Jitter: 0.1, MaxBackoff: 5 * time.Second,
		Tick: w.tick, Logger: logger, Metrics: loops,
	})
	return w
}

// tick looks for everything there is to do, a page and a transaction at a time.
func (w *Watch) tick(ctx context.Context) error {
	for _, pass := range []pass{
		{"expire", w.expired, (*store.Queries).ExpireInquiries},
		{"settle", w.unsettled, nil},
		{"cancel", w.strays, (*store.Queries).CancelInquiries},
	} {
		for {
			full, err := w.page(ctx, pass)
			if err != nil {
				return err
			}
			if !full {
				break
			}
		}
	}
	return w.count(ctx)
}

// pass is one kind of thing to look for.
type pass struct {
	name string
	// find returns inquiries, and whether there may be more of them at once.
	find func(ctx context.Context, tx *store.Tx) (ids, executions []int64, full bool, err error)
	// end ends those of them that are pending; nil if they have ended.
	end func(q *store.Queries, ctx context.Context, ids []int64) error
}

// page deals with one page in one transaction. Somebody else who looks has the lock;
// then there is nothing to do here.
func (w *Watch) page(ctx context.Context, pass pass) (full bool, err error) {
	var done *settled
	err = w.store.Tx(ctx, pass.name+" inquiries", func(ctx context.Context, tx *store.Tx) error {
		done, full = &settled{}, false
		won, err := tx.TryLoopLock(ctx, loopName)
		if err != nil || !won {
			return err
		}
		ids, executions, more, err := pass.find(ctx, tx)
		if err != nil || len(ids) == 0 {
			return err
		}
		full = more
		if err := lockExecutions(ctx, tx, executions); err != nil {
			return err
		}
		if pass.end != nil {
			if err := pass.end(tx.Queries, ctx, ids); err != nil {
				return fmt.Errorf("%s %d inquiries: %w", pass.name, len(ids), err)
			}
		}
		if done, err = settle(ctx, tx, ids, w.cfg.Source, w.cfg.Keys); err != nil {
			return err
		}
		if err := publish(ctx, tx, w.relay, done.messages); err != nil {
			return err
		}
		crashpoint.Reach("inquiry:before-commit")
		return nil
	})
	if err != nil {
		return false, err
	}
	if len(done.inquiries) > 0 {
		crashpoint.Reach("inquiry:committed")
	}
	w.tell(ctx, done.inquiries)
	return full, nil
}

func (w *Watch) expired(ctx context.Context, tx *store.Tx) (ids, executions []int64, full bool, err error) {
	rows, err := tx.FindExpiredInquiries(ctx, int32(w.cfg.Page))
	if err != nil {
		return nil, nil, false, fmt.Errorf("find inquiries whose time is over: %w", err)
	}
	for _, row := range rows {
		ids, executions = append(ids, row.ID), append(executions, row.Execution)
	}
	return ids, executions, len(rows) == w.cfg.Page, nil
}

func (w *Watch) unsettled(ctx context.Context, tx *store.Tx) (ids, executions []int64, full bool, err error) {
	rows, err := tx.FindUnsettledInquiries(ctx, int32(w.cfg.Page))
	if err != nil {
		return nil, nil, false, fmt.Errorf("find inquiries that nothing was drawn from: %w", err)
	}
	for _, row := range rows {
		ids, executions = append(ids, row.ID), append(executions, row.Execution)
	}
	return ids, executions, len(rows) == w.cfg.Page, nil
}

// strays looks at one window of open questions a tick, so that a great many of them
// cost no more than a few.
func (w *Watch) strays(ctx context.Context, tx *store.Tx) (ids, executions []int64, full bool, err error) {
	window, err := tx.FindStrayInquiries(ctx, Action, w.after, int32(w.cfg.Page))
	if err != nil {
		return nil, nil, false, fmt.Errorf("find inquiries that nobody waits for: %w", err)
	}
	next := window.Last
	if int(window.Scanned) < w.cfg.Page {
		next = 0
	}
	tx.AfterCommit(func() { w.after = next })
	if len(window.Ids) == 0 {
		return nil, nil, false, nil
	}
	rows, err := tx.InquiryExecutions(ctx, window.Ids)
	if err != nil {
		return nil, nil, false, fmt.Errorf("find the executions of %d inquiries: %w", len(window.Ids), err)
	}
	for _, row := range rows {
		ids, executions = append(ids, row.ID), append(executions, row.Execution)
	}
	return ids, executions, false, nil
}

// tell says what has become of inquiries.
func (w *Watch) tell(ctx context.Context, ended []store.SettleInquiriesRow) {
	for _, row := range ended {
		status := Status(row.Status)
		w.metrics.ended(status)
		text := "Inquiry of which nobody waits for the answer was cancelled"
		switch status {
		case Expired:
			text = "Inquiry was not answered in time"
		case Responded:
			text = "Answer whose message was not heard of is taken"
		}
		w.logger.InfoContext(ctx, text, "inquiry_id", row.ID, "execution_id",
			row.Execution) //nolint:sloglint // one of three
	}
}

// countEvery is how often the open inquiries are counted.
const (
	countEvery = 5 * time.Second
	countBound = 100_000
)

// count measures what is open.
func (w *Watch) count(ctx context.Context) error {
	if w.metrics == nil || time.Since(w.counted) < countEvery {
		return nil
	}
	row, err := w.store.CountOpenInquiries(ctx, countBound)
	if err != nil {
		w.metrics.unknown()
		return fmt.Errorf("count open inquiries: %w", err)
	}
	w.counted = time.Now()
	w.metrics.count(row)
	return nil
}
