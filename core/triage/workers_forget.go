package triage

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/core/store"
)

// WorkerQueues acts on the broker's queues; *broker.Broker implements it.
type WorkerQueues interface {
	retention.Broker
	DeadLetterQueues
}

// With returns the same Triage with a broker.
func (t *Triage) With(queues WorkerQueues) *Triage {
	other := *t
	other.wires = queues
	return &other
}

func (w *WorkerNow) refuse(reason, advice string) error {
	return &WorkerRefusedError{Name: w.Name, Reason: reason, Advice: advice}
}

// forgettable returns an error if a worker cannot be removed.
func (w *WorkerNow) forgettable() error {
	switch {
	case w.leavesByItself():
		return w.refuse("its process is leaving and has not ended",
			"try again when it is inactive and no longer drains")
	case w.Status != "inactive" && !w.Stale:
		return w.refuse("it sends heartbeats",
			"stop its process first, or drain it with `attune-executor workers drain "+w.Name+
				" --wait` and then stop it")
	case !w.Empty() && w.Stale:
		return w.refuse(w.has(), "the engine decides about that within executor.timeout_check_interval, try again then")
	case w.Running > 0:
		return w.refuse(w.has(), "the engine decides about that when the last heartbeat is stale, try again then")
	case w.Unstarted > 0:
		return w.refuse(w.has(), "the engine gives it to other workers that can take it, try again then")
	}
	return nil
}

func (w *WorkerNow) has() string {
	return phrase.Plural(w.Running, "execution runs", "executions run") + " there and " +
		phrase.Plural(w.Unstarted, "was handed to it and has not begun", "were handed to it and have not begun")
}

// forget removes a worker. A refusal before the first change has no audit.
func (t *Triage) forget(ctx context.Context, request WorkerRequest) (*WorkerReceipt, error) {
	if t.wires == nil {
		return nil, ErrNoBroker
	}
	receipt := &WorkerReceipt{WorkerRequest: request}
	err := t.act(ctx, "forget a worker", func(ctx context.Context, tx *store.Tx) error {
		now, err := t.worker(ctx, tx, request, true)
		if err != nil {
			return err
		}
		receipt = &WorkerReceipt{
			WorkerRequest: request, Before: *now, After: *now, Outcome: outcomeRunning,
			Settled: true,
		}
		if err := now.forgettable(); err != nil {
			return err
		}
		if _, err := tx.RetireWorker(ctx, now.ID, t.cfg.HeartbeatStaleAfter.Seconds()); err != nil {
			return fmt.Errorf("mark worker %s inactive: %w", now.Name, err)
		}
		return t.record(ctx, tx.Queries, &receipt.Audit, receipt.audit())
	})
	if err != nil {
		return nil, err
	}
	err = t.remove(ctx, receipt)
	ending, cancel := ending(ctx)
	defer cancel()
	if err != nil {
		receipt.Outcome = outcomeFailed
	}
	a := receipt.audit()
	a.failure = failureOf(err)
	if err := cmp.Or(err, t.record(ending, t.store.Queries, &receipt.Audit, a)); err != nil {
		return nil, err
	}
	return receipt, nil
}

// remove deletes the queues and the row, like the pruning of inactive workers.
func (t *Triage) remove(ctx context.Context, receipt *WorkerReceipt) error {
	now := &receipt.Before
	done, err := retention.ForgetWorkers(ctx, t.store, t.wires, retention.ForgetRequest{
		Workers: []int64{now.ID}, Cordoned: true,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	one := done[0]
	if !one.Done {
		return t.stays(ctx, now, one.Reason)
	}
	receipt.Changed, receipt.Outcome, receipt.Discarded = true, outcomeDone, one.Discarded
	receipt.Says = "is forgotten: its row, its queues and the routes of its dead letters are gone"
	return nil
}

// stays returns the reason why a worker was not removed, with advice.
func (t *Triage) stays(ctx context.Context, now *WorkerNow, reason string) error {
	switch {
	case strings.Contains(reason, "not empty"):
		lie := "messages lie"
		if state, err := t.wires.QueueState(ctx, message.WorkerExecutionsQueue(now.ID)); err == nil {
			lie = phrase.Plural(state.Ready, "message lies", "messages lie")
		}
		return now.refuse(lie+" in its queue of dispatches",
			"none of them is needed, they expire within message_queue.rabbitmq.worker_queue_ttl_ms "+
				"and become dead letters (`attune-executor dlq list`), try again then")
	case strings.Contains(reason, "in use"):
		return now.refuse("its queue is still being consumed", "stop the process that consumes it")
	}
	return now.refuse(reason, "look at it with `attune-executor workers show "+now.Name+"` and try again")
}
