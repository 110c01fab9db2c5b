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
	// StaleAfter is the age of a heartbeat from which a worker is gone.
	// Default 90 s.
	StaleAfter time.Duration
}

func (c OrphansConfig) withDefaults() OrphansConfig {
	if c.Interval <= 0 {
		c.Interval = time.Minute
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

// Orphans deals with the work of workers that are gone: what was handed to one
// and never started goes to the rounds, which find another worker for it (see
// Rehome); what ran there is abandoned. Age, status and heartbeat
// are judged by the database in the statement that writes (invariant S9), and
// the message that the execution has ended is written with it; slots are given
// back when that message is read. A worker that comes back late finds its rows
// closed, and what it writes is refused and recorded.
type Orphans struct {
	*supervise.Loop

	cfg    OrphansConfig
	store  *store.Store
	submit func(context.Context, Found) error
	relay  Relay
	logger *slog.Logger
	after  int64 // where the next window begins
}

// NewOrphans makes the search. submit is called with what rounds are to decide.
func NewOrphans(
	cfg OrphansConfig, st *store.Store, submit func(context.Context, Found) error, relay Relay, logger *slog.Logger, metrics *supervise.Metrics,
) *Orphans {
	o := &Orphans{cfg: cfg.withDefaults(), store: st, submit: submit, relay: relay, logger: logger}
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

// window deals with the orphans of one window and reports whether there are more.
func (o *Orphans) window(ctx context.Context) (full bool, err error) {
	stale := o.cfg.StaleAfter.Seconds()
	var stranded []int64
	err = o.store.Tx(ctx, "orphans", func(ctx context.Context, tx *store.Tx) error {
		full, stranded = false, nil
		won, err := tx.TryLoopLock(ctx, "timeouts")
		if err != nil || !won {
			return err
		}
		found, err := tx.FindOrphans(ctx, stale, o.after, rowsPerSweep)
		if err != nil {
			return fmt.Errorf("find orphans: %w", err)
		}
		o.after = next(found.Last, found.Scanned)
		full, stranded = o.after > 0, found.Stranded
		if len(found.Ids) == 0 {
			return nil
		}
		return o.abandon(ctx, tx, found.Ids)
	})
	if err != nil {
		return false, err
	}
	return full, o.handOn(ctx, stranded)
}

// handOn gives what was never started to the rounds, which find other workers.
func (o *Orphans) handOn(ctx context.Context, stranded []int64) error {
	if len(stranded) == 0 {
		return nil
	}
	o.logger.WarnContext(ctx, "Executions lie at workers that are gone", "executions", len(stranded))
	found := Found{Stranded: make([]Stranded, len(stranded))}
	for i, id := range stranded {
		found.Stranded[i].Execution = id
	}
	for !found.Empty() {
		if err := o.submit(ctx, found.take(pageDefault)); err != nil {
			return err
		}
	}
	return nil
}

// abandon ends what runs at workers that are gone.
func (o *Orphans) abandon(ctx context.Context, tx *store.Tx, ids []int64) error {
	abandoned, err := tx.AbandonOrphanedRuns(ctx, ids, o.cfg.StaleAfter.Seconds())
	if err != nil {
		return fmt.Errorf("abandon orphaned runs: %w", err)
	}
	var messages []outbox.Message
	for _, row := range abandoned {
		m, err := endedMessage(row)
		if err != nil {
			return err
		}
		messages = append(messages, m)
	}
	return o.announce(ctx, tx, messages)
}

func (o *Orphans) announce(ctx context.Context, tx *store.Tx, messages []outbox.Message) error {
	if len(messages) == 0 {
		return nil
	}
	row, err := outbox.Append(ctx, tx, messages)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() {
		o.logger.WarnContext(ctx, "Work of workers that are gone has been ended", "abandoned", len(messages))
		o.relay.Published(row, messages)
	})
	return nil
}

// endedMessage is the message that an execution has ended.
func endedMessage(row store.AbandonOrphanedRunsRow) (outbox.Message, error) {
	payload := message.ExecutionCompleted{
		ExecutionID: row.ID, ActionRef: row.ActionRef, Status: string(row.Status), Result: json.RawMessage(row.Result),
		CompletedAt: row.FinishedAt.UTC(),
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
