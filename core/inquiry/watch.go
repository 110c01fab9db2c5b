package inquiry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// loopName is the name of the loop and of its lock, which one replica at a time holds.
const loopName = "inquiries"

// WatchConfig configures Watch.
type WatchConfig struct {
	// Interval between two passes. Default 1 s.
	Interval time.Duration
	// Page is the number of inquiries in one transaction. Default 200.
	Page int
	// Source is the source_service of messages. Default "attune-executor".
	Source string
	// Keys seal the secrets of answers that another service has stored. Without a key the answers stay as they are.
	Keys secret.Keyring
}

// Watch expires unanswered inquiries, cancels inquiries for whose answer nothing waits, and settles inquiries that
// another service has ended and whose message was lost. One replica at a time does this.
type Watch struct {
	*supervise.Loop

	cfg     WatchConfig
	store   *store.Store
	relay   Relay
	logger  *slog.Logger
	metrics *Metrics
	after   int64 // the last inquiry of the window of strays, 0 to begin again
	counted time.Time
}

// NewWatch creates the loop. relay and metrics may be nil.
func NewWatch(cfg WatchConfig, st *store.Store, relay Relay, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics,
) *Watch {
	cfg.Interval, cfg.Page = cmp.Or(cfg.Interval, time.Second), cmp.Or(cfg.Page, 200)
	cfg.Source = cmp.Or(cfg.Source, "attune-executor")
	w := &Watch{cfg: cfg, store: st, relay: relay, logger: logger, metrics: cmp.Or(metrics, NewMetrics(nil))}
	w.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: loopName, Interval: w.cfg.Interval, Timeout: 30 * time.Second, Jitter: 0.1, MaxBackoff: 5 * time.Second,
		Tick: w.tick, Logger: logger, Metrics: loops,
	})
	return w
}

// tick runs all passes, a page and a transaction at a time.
func (w *Watch) tick(ctx context.Context) error {
	for _, pass := range []pass{
		{name: "expire", find: w.expired, end: (*store.Queries).ExpireInquiries},
		{name: "settle", find: w.unsettled},
		{name: "cancel", find: w.strays, end: (*store.Queries).CancelInquiries},
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

// pass finds, ends and settles inquiries.
type pass struct {
	name string
	// find returns one page; full says that another one may follow.
	find func(ctx context.Context, tx *store.Tx) (ids, executions []int64, full bool, err error)
	// end ends the pending ones; nil if all have ended.
	end func(q *store.Queries, ctx context.Context, ids []int64) error
}

// page processes one page. If an inquiry makes it fail, each gets a transaction of its own, so that it delays no other.
func (w *Watch) page(ctx context.Context, all pass) (full bool, err error) {
	if full, err = w.process(ctx, all); !store.Divisible(err) {
		return full, err
	}
	var ids, executions []int64
	err = w.store.Tx(ctx, "find inquiries", func(ctx context.Context, tx *store.Tx) (err error) {
		ids, executions, _, err = all.find(ctx, tx)
		return err
	})
	if err != nil {
		return false, err
	}
	for i := range ids {
		_, err := w.process(ctx, pass{
			name: all.name, end: all.end,
			find: func(context.Context, *store.Tx) ([]int64, []int64, bool, error) {
				return ids[i : i+1], executions[i : i+1], false, nil
			},
		})
		switch {
		case err == nil:
		case store.Divisible(err):
			w.logger.ErrorContext(ctx, "Inquiry cannot be settled", "inquiry_id", ids[i], "execution_id", executions[i],
				"error", err)
		default:
			return false, err
		}
	}
	return false, nil // the next tick finds the rest
}

// process processes what a pass finds, in one transaction. It does nothing while another replica has the lock.
func (w *Watch) process(ctx context.Context, pass pass) (full bool, err error) {
	var done *settled
	won, err := w.store.Alone(ctx, pass.name+" inquiries", loopName, func(ctx context.Context, tx *store.Tx) error {
		done, full = &settled{}, false
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
	if err != nil || !won {
		return false, err
	}
	if len(done.inquiries) > 0 {
		crashpoint.Reach("inquiry:committed")
	}
	w.record(ctx, done.inquiries)
	return full, nil
}

func (w *Watch) expired(ctx context.Context, tx *store.Tx) (ids, executions []int64, full bool, err error) {
	rows, err := tx.FindExpiredInquiries(ctx, int32(w.cfg.Page))
	if err != nil {
		return nil, nil, false, fmt.Errorf("find expired inquiries: %w", err)
	}
	for _, row := range rows {
		ids, executions = append(ids, row.ID), append(executions, row.Execution)
	}
	return ids, executions, len(rows) == w.cfg.Page, nil
}

func (w *Watch) unsettled(ctx context.Context, tx *store.Tx) (ids, executions []int64, full bool, err error) {
	rows, err := tx.FindUnsettledInquiries(ctx, int32(w.cfg.Page))
	if err != nil {
		return nil, nil, false, fmt.Errorf("find unsettled inquiries: %w", err)
	}
	for _, row := range rows {
		ids, executions = append(ids, row.ID), append(executions, row.Execution)
	}
	return ids, executions, len(rows) == w.cfg.Page, nil
}

// strays reads one window of open inquiries a tick, so that its cost does not grow with their number.
func (w *Watch) strays(ctx context.Context, tx *store.Tx) (ids, executions []int64, full bool, err error) {
	window, err := tx.FindStrayInquiries(ctx, Action, w.after, int32(w.cfg.Page))
	if err != nil {
		return nil, nil, false, fmt.Errorf("find inquiries for whose answer nothing waits: %w", err)
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

// record counts and logs the settled inquiries.
func (w *Watch) record(ctx context.Context, ended []store.SettleInquiriesRow) {
	for _, row := range ended {
		w.metrics.endings.WithLabelValues(string(row.Status)).Inc()
		w.logger.InfoContext(ctx, "Inquiry settled", "inquiry_id", row.ID, "execution_id", row.Execution, "status",
			row.Status)
	}
}

const (
	countEvery = 5 * time.Second
	countBound = 100_000
)

// count measures the open inquiries, every countEvery and up to countBound.
func (w *Watch) count(ctx context.Context) error {
	if time.Since(w.counted) < countEvery {
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
