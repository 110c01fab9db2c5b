package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// OrphansConfig is what the search for orphaned work depends on.
type OrphansConfig struct {
	// Interval between looks. Default 60 s.
	Interval time.Duration
	// PickUp is how long a worker may take to start what it was handed before
	// it is asked whether the worker is gone. Default 300 s.
	PickUp time.Duration
	// StaleAfter is the age of a heartbeat from which a worker is gone.
	// Default 90 s.
	StaleAfter time.Duration
}

func (c OrphansConfig) withDefaults() OrphansConfig {
	if c.Interval <= 0 {
		c.Interval = time.Minute
	}
	if c.PickUp <= 0 {
		c.PickUp = 5 * time.Minute
	}
	if c.StaleAfter <= 0 {
		c.StaleAfter = 90 * time.Second
	}
	return c
}

// Relay publishes what a committed transaction has put into the outbox.
type Relay interface {
	Published(row int64, messages []outbox.Message)
}

// Orphans ends the work of workers that are gone: what was handed to one and
// never started fails, what ran there is abandoned. Age, status and heartbeat
// are judged by the database in the statement that writes (invariant S9), and
// the message that the execution has ended is written with it; slots are given
// back when that message is read. A worker that comes back late finds its rows
// closed, and what it writes is refused and recorded.
type Orphans struct {
	*supervise.Loop

	cfg    OrphansConfig
	store  *store.Store
	relay  Relay
	logger *slog.Logger
	after  int64 // where the next window begins
}

// NewOrphans makes the search.
func NewOrphans(cfg OrphansConfig, st *store.Store, relay Relay, logger *slog.Logger, metrics *supervise.Metrics) *Orphans {
	o := &Orphans{cfg: cfg.withDefaults(), store: st, relay: relay, logger: logger}
	o.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "timeouts", Interval: o.cfg.Interval, Timeout: 30 * time.Second, Jitter: 0.2,
		Tick: o.tick, Logger: logger, Metrics: metrics,
	})
	return o
}

// tick looks through all live rows, a window at a time, one transaction each.
func (o *Orphans) tick(ctx context.Context) error {
	for {
		full, err := o.window(ctx)
		if err != nil {
			return fmt.Errorf("look for orphaned work: %w", err)
		}
		if !full {
			return nil
		}
	}
}

// window ends the orphans of one window and reports whether there are more.
func (o *Orphans) window(ctx context.Context) (full bool, err error) {
	pickUp, stale := o.cfg.PickUp.Seconds(), o.cfg.StaleAfter.Seconds()
	err = o.store.Tx(ctx, "orphans", func(ctx context.Context, tx *store.Tx) error {
		full = false
		won, err := tx.TryLoopLock(ctx, "timeouts")
		if err != nil || !won {
			return err
		}
		found, err := tx.FindOrphans(ctx, store.FindOrphansParams{
			PickUp: pickUp, StaleAfter: stale, After: o.after, WindowSize: rowsPerSweep,
		})
		if err != nil {
			return fmt.Errorf("find orphans: %w", err)
		}
		o.after = next(found.Last, found.Scanned)
		full = o.after > 0
		if len(found.Ids) == 0 {
			return nil
		}
		failed, err := tx.FailOrphanedDispatches(ctx, pickUp, found.Ids, stale)
		if err != nil {
			return fmt.Errorf("fail orphaned dispatches: %w", err)
		}
		abandoned, err := tx.AbandonOrphanedRuns(ctx, found.Ids, stale)
		if err != nil {
			return fmt.Errorf("abandon orphaned runs: %w", err)
		}
		var messages []outbox.Message
		for _, row := range failed {
			abandoned = append(abandoned, store.AbandonOrphanedRunsRow(row))
		}
		for _, row := range abandoned {
			m, err := endedMessage(row)
			if err != nil {
				return err
			}
			messages = append(messages, m)
		}
		return o.announce(ctx, tx, messages, len(failed))
	})
	return full, err
}

func (o *Orphans) announce(ctx context.Context, tx *store.Tx, messages []outbox.Message, failed int) error {
	if len(messages) == 0 {
		return nil
	}
	row, err := outbox.Append(ctx, tx, messages)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() {
		o.logger.WarnContext(ctx, "Work of workers that are gone has been ended", "failed", failed, "abandoned", len(messages)-failed)
		o.relay.Published(row, messages)
	})
	return nil
}

// endedMessage is the message that an execution has ended.
func endedMessage(row store.AbandonOrphanedRunsRow) (outbox.Message, error) {
	payload := message.ExecutionCompleted{
		ExecutionID: row.ID, ActionRef: row.ActionRef, Status: string(row.Status), Result: json.RawMessage(row.Result),
		CompletedAt: time.Now().UTC(),
	}
	if row.Action != nil {
		payload.ActionID = *row.Action
	}
	envelope := message.New(message.TypeExecutionCompleted, payload, payload.CompletedAt, "execution_timeout_monitor")
	body, err := envelope.Encode()
	if err != nil {
		return outbox.Message{}, fmt.Errorf("announce the end of execution %d: %w", row.ID, err)
	}
	return outbox.Message{
		ID: envelope.MessageID, Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionCompleted,
		Type: message.TypeExecutionCompleted, Body: body,
	}, nil
}
