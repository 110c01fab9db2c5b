package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// DecidedError reports the existing decision about a dead letter.
type DecidedError = deadletter.DecidedError

// Errors of actions on dead letters, for errors.Is.
var (
	ErrNoDeadLetter = deadletter.ErrNotFound  // there is no such dead letter
	ErrDecided      = deadletter.ErrDecided   // it is decided; the error is a *DecidedError
	ErrNoMessage    = deadletter.ErrNoMessage // it cannot be sent again
	// ErrUseless reports that a retry is possible but useless.
	ErrUseless = errors.New("a retry is of no use")
)

// RequeueReceipt is the result of a requeue.
type RequeueReceipt struct {
	Sent

	Audit      int64  `json:"audit_id,omitempty"`
	DeadLetter int64  `json:"dead_letter"`
	Reason     string `json:"reason,omitempty"`
	// Repeated is set for a dispatch: its execution was repeated. Otherwise the original message was
	// sent again, to this exchange with this key.
	Repeated   *RetryReceipt `json:"repeated,omitempty"`
	Exchange   string        `json:"exchange,omitempty"`
	RoutingKey string        `json:"routing_key,omitempty"`
	// NotKept are the properties and headers that the sent message has lost.
	NotKept []string `json:"not_kept,omitempty"`
}

// Requeue tries a dead letter again, at most once. A dispatch to a worker is never sent again,
// because it could start the execution twice: its execution is repeated, as by RetryExecution. Any
// other message goes to its destination again. One commit writes the decision, the retry or
// message, and the audit.
//
// A waiting dead letter can be requeued; a dispatch also after a decision of the handler. Errors
// other than those of the database: ErrNoDeadLetter, a *DecidedError, ErrNoMessage, and those of
// RetryExecution.
//
// Useless requeues fail with ErrUseless unless the operator insists (anyway): of completed executions, of deleted
// actions, below ended parents, to a missing exchange, and of what has died LoopDeaths times.
func (t *Triage) Requeue(ctx context.Context, id int64, anyway bool, reason string) (*RequeueReceipt, error) {
	row, err := t.readDeadLetter(ctx, id)
	if err != nil {
		return nil, err
	}
	open := []string{deadletter.Waiting, deadletter.Failed, deadletter.Stale}
	if !anyway && slices.Contains(open, row.Decision) {
		why := deadletter.LoopText(row.Deaths)
		if _, toWorker := message.WorkerOfKey(row.RoutingKey); why == "" && !toWorker && row.Exchange != "" {
			why = t.refuses(ctx, row.Exchange, row.RoutingKey)
		}
		if why != "" {
			return nil, fmt.Errorf("%w: %s", ErrUseless, why)
		}
	}
	return commit(ctx, t, fmt.Sprintf("requeue dead letter %d", id),
		func(ctx context.Context, tx *store.Tx) (*RequeueReceipt, error) {
			resent, err := deadletter.Requeue(ctx, tx, id, t.cfg.Actor, reason)
			if err != nil {
				return nil, err
			}
			receipt := &RequeueReceipt{DeadLetter: id, Reason: reason}
			if resent.NewAttempt {
				if err := useful(ctx, tx, resent.Execution); err != nil && !anyway {
					return nil, err
				}
				if receipt.Repeated, err = t.repeat(ctx, tx, resent.Execution, reason); err != nil {
					return nil, err
				}
				receipt.Sent = receipt.Repeated.Sent
				receipt.Repeated.Sent = Sent{}
			} else {
				receipt.Messages, receipt.Rows = len(resent.Messages), []int64{resent.OutboxRow}
				receipt.NotKept = deadletter.NotKept(row.HasProperties, row.NotKept)
				for _, m := range resent.Messages {
					receipt.Exchange, receipt.RoutingKey = m.Exchange, m.RoutingKey
				}
				if err := outbox.Publish(ctx, tx, t.relay, resent.OutboxRow, resent.Messages); err != nil {
					return nil, err
				}
			}
			return receipt, t.record(ctx, tx.Queries, &receipt.Audit, audit{
				action: "dead_letter.requeue", of: deadLetterOf(id), reason: reason, outcome: outcomeDone,
				request: receipt,
			})
		})
}

// readDeadLetter reads a dead letter without a lock. A missing one is left to the action to refuse.
func (t *Triage) readDeadLetter(ctx context.Context, id int64) (row store.ViewDeadLettersRow, err error) {
	rows, err := t.store.ViewDeadLetters(ctx, []int64{id})
	if err != nil {
		return row, fmt.Errorf("read dead letter %d: %w", id, err)
	}
	if len(rows) > 0 {
		row = rows[0]
	}
	return row, nil
}

// askTimeout bounds a question to the broker whose answer is not needed.
const askTimeout = 2 * time.Second

// refuses returns the reason why the broker accepts no message for an exchange, or without one for a queue; empty if
// it may accept one, or if that is unknown.
func (t *Triage) refuses(ctx context.Context, exchange, key string) string {
	if t.wires == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if exchange == "" {
		if state, err := t.wires.QueueState(ctx, key); err == nil && !state.Exists {
			return "there is no queue " + key
		}
		return ""
	}
	if exists, err := t.wires.ExchangeExists(ctx, exchange); err == nil && !exists && !message.Declared(exchange) {
		return "there is no exchange " + exchange
	}
	return ""
}

// useful refuses a useless retry. It does not check whether the retry is possible.
func useful(ctx context.Context, tx *store.Tx, id int64) error {
	x, err := deadletter.ReadExecution(ctx, tx, id)
	if err != nil || x == nil {
		return err
	}
	if why := x.Useless(); why != "" {
		return fmt.Errorf("%w: %s", ErrUseless, why)
	}
	return nil
}

// DiscardReceipt is the result of a discard.
type DiscardReceipt struct {
	Audit      int64  `json:"audit_id,omitempty"`
	DeadLetter int64  `json:"dead_letter"`
	Reason     string `json:"reason,omitempty"`
}

// Discard decides that nothing is done about a waiting dead letter. The row keeps everything. Errors
// other than those of the database: ErrNoDeadLetter and a *DecidedError.
func (t *Triage) Discard(ctx context.Context, id int64, reason string) (*DiscardReceipt, error) {
	return commit(ctx, t, fmt.Sprintf("discard dead letter %d", id),
		func(ctx context.Context, tx *store.Tx) (*DiscardReceipt, error) {
			if err := deadletter.Discard(ctx, tx, id, t.cfg.Actor, reason); err != nil {
				return nil, err
			}
			receipt := &DiscardReceipt{DeadLetter: id, Reason: reason}
			return receipt, t.record(ctx, tx.Queries, &receipt.Audit, audit{
				action: "dead_letter.discard", of: deadLetterOf(id), reason: reason, outcome: outcomeDone,
				request: receipt,
			})
		})
}

func deadLetterOf(id int64) subject {
	return subject{kind: "dead_letter", id: id, name: fmt.Sprintf("dead letter %d", id)}
}

// manyDeadLetters is the target of an action on several dead letters.
var manyDeadLetters = subject{kind: "dead_letters", name: "dead letters"}

// DeadLettersLock allows one operator at a time to act on many dead letters.
var DeadLettersLock = deadletter.LockName(message.QueueDeadLetter)

// SendDeadLetter publishes the message of a waiting dead letter to an exchange with a routing key, or without an
// exchange to the queue of that name. It returns its audit. A dispatch is not sent to a worker, which is ErrNoMessage.
func (t *Triage) SendDeadLetter(ctx context.Context, id int64, exchange, key, reason string) (int64, error) {
	return t.publishDeadLetter(ctx, audit{
		action: "dead_letter.send", of: deadLetterOf(id), reason: reason,
		request: map[string]any{"exchange": exchange, "routing_key": key},
	}, func(ctx context.Context, tx *store.Tx) (deadletter.Resent, error) {
		return deadletter.Send(ctx, tx, id, exchange, key, t.cfg.Actor, reason)
	})
}

// ReturnDeadLetter returns the message of a waiting dead letter to the queue that an operator took it from. It returns
// its audit.
func (t *Triage) ReturnDeadLetter(ctx context.Context, id int64, reason string) (int64, error) {
	row, err := t.readDeadLetter(ctx, id)
	if err != nil {
		return 0, err
	}
	if why := t.refuses(ctx, "", row.TakenFrom); row.TakenFrom != "" && why != "" {
		return 0, fmt.Errorf("%w: dead letter %d: %s", ErrNoMessage, id, why)
	}
	return t.publishDeadLetter(ctx, audit{action: "dead_letter.return", of: deadLetterOf(id), reason: reason},
		func(ctx context.Context, tx *store.Tx) (deadletter.Resent, error) {
			return deadletter.Return(ctx, tx, id, t.cfg.Actor, reason)
		})
}

// Accepts refuses with ErrNoMessage what the broker would not accept for an exchange, or without one for a queue.
func (t *Triage) Accepts(ctx context.Context, exchange, key string) error {
	if why := t.refuses(ctx, exchange, key); why != "" {
		return fmt.Errorf("%w: %s", ErrNoMessage, why)
	}
	return nil
}

// publishDeadLetter decides about one dead letter, appends its message and records both, in one transaction.
func (t *Triage) publishDeadLetter(
	ctx context.Context, a audit, decide func(context.Context, *store.Tx) (deadletter.Resent, error),
) (row int64, err error) {
	a.outcome = outcomeDone
	err = t.act(ctx, fmt.Sprintf("%s %d", a.action, a.of.id), func(ctx context.Context, tx *store.Tx) error {
		resent, err := decide(ctx, tx)
		if err != nil {
			return err
		}
		if err := outbox.Publish(ctx, tx, t.relay, resent.OutboxRow, resent.Messages); err != nil {
			return err
		}
		row = 0 // the transaction may be repeated
		return t.record(ctx, tx.Queries, &row, a)
	})
	return row, err
}

// Reopen makes discarded dead letters wait again, as a run of pages; others stay as they are. The rows keep the
// former decisions.
func (t *Triage) Reopen(ctx context.Context, ids []int64, reason string) (*RunReceipt, error) {
	run := Run{Lock: DeadLettersLock}
	for page := range slices.Chunk(ids, discardPage) {
		run.Steps = append(run.Steps, Step{Rows: page, Do: func(ctx context.Context, reason string) (Outcome, error) {
			var outcome Outcome
			err := t.act(ctx, "reopen dead letters", func(ctx context.Context, tx *store.Tx) error {
				reopened, err := deadletter.Reopen(ctx, tx, page, t.cfg.Actor, reason)
				if outcome = (Outcome{Done: len(reopened)}); err != nil || len(reopened) == 0 {
					return err
				}
				row := int64(0)
				err = t.record(ctx, tx.Queries, &row, audit{
					action: "dead_letter.reopen", of: manyDeadLetters, reason: reason, outcome: outcomeDone,
					request: map[string]any{"letters": reopened},
				})
				outcome.Audits = []int64{row}
				return err
			})
			return outcome, err
		}})
	}
	return t.Run(ctx, run, reason)
}
