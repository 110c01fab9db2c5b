package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// DecidedError says that a letter was decided before, how, by whom and when.
type DecidedError = deadletter.DecidedError

// Errors of acts on dead letters, to be told apart by errors.Is.
var (
	ErrNoLetter  = deadletter.ErrNotFound  // there is no such dead letter
	ErrDecided   = deadletter.ErrDecided   // it is decided; the error is a *DecidedError
	ErrNoMessage = deadletter.ErrNoMessage // it cannot be sent again
	// ErrUseless says that a repetition could be made and would be of no use, or do
	// what is done already.
	ErrUseless = errors.New("a repetition is of no use")
)

// RequeueReceipt is what requeueing a dead letter did.
type RequeueReceipt struct {
	Sent

	Audit  int64  `json:"audit_id,omitempty"`
	Letter int64  `json:"dead_letter"`
	Reason string `json:"reason,omitempty"` // as it was given
	// Repeated is set for a hand-over: the execution was repeated. Otherwise the
	// original message was sent again, to this exchange with this key.
	Repeated   *RetryReceipt `json:"repeated,omitempty"`
	Exchange   string        `json:"exchange,omitempty"`
	RoutingKey string        `json:"routing_key,omitempty"`
}

// Requeue tries again what a dead letter was about, once, whoever else tries. A
// hand-over to a worker is never sent again, since it could start the execution
// twice: its execution is repeated as a new one, as RetryExecution does, if it has
// ended. Any other message goes back to where it was sent to. The decision, the
// repetition or message, and the audit are of one commit.
//
// A letter that waits may be requeued; a hand-over also after the handler has
// decided it. Errors besides those of the database: ErrNoLetter, a *DecidedError,
// ErrNoMessage, and those of RetryExecution.
func (t *Triage) Requeue(ctx context.Context, id int64, reason string) (*RequeueReceipt, error) {
	return t.requeue(ctx, id, reason, true)
}

// RequeueIfUseful is Requeue for whoever has not been told what it would do: what
// has completed, what no action is left for, and what nobody waits for any more is
// not repeated, which is ErrUseless.
func (t *Triage) RequeueIfUseful(ctx context.Context, id int64, reason string) (*RequeueReceipt, error) {
	return t.requeue(ctx, id, reason, false)
}

func (t *Triage) requeue(ctx context.Context, id int64, reason string, anyway bool) (*RequeueReceipt, error) {
	return commit(ctx, t, fmt.Sprintf("requeue dead letter %d", id),
		func(ctx context.Context, tx *store.Tx) (*RequeueReceipt, error) {
			resent, err := deadletter.Requeue(ctx, tx, id, t.cfg.Actor, reason)
			if err != nil {
				return nil, err
			}
			receipt := &RequeueReceipt{Letter: id, Reason: reason}
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
				for _, m := range resent.Messages {
					receipt.Exchange, receipt.RoutingKey = m.Exchange, m.RoutingKey
				}
				if err := outbox.Publish(ctx, tx, t.relay, resent.OutboxRow, resent.Messages); err != nil {
					return nil, err
				}
			}
			return receipt, t.record(ctx, tx.Queries, &receipt.Audit, audit{
				action: "dead_letter.requeue", of: letterOf(id), reason: reason, outcome: outcomeDone, request: receipt,
			})
		})
}

// useful refuses a repetition that would be of no use by the verdict on dead letters. Whether it can be made at
// all is for others to say.
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

// DiscardReceipt is what discarding a dead letter did.
type DiscardReceipt struct {
	Audit  int64  `json:"audit_id,omitempty"`
	Letter int64  `json:"dead_letter"`
	Reason string `json:"reason,omitempty"`
}

// Discard decides that nothing is done about a dead letter that waits. The row
// keeps everything. Errors besides those of the database: ErrNoLetter and a
// *DecidedError.
func (t *Triage) Discard(ctx context.Context, id int64, reason string) (*DiscardReceipt, error) {
	return commit(ctx, t, fmt.Sprintf("discard dead letter %d", id),
		func(ctx context.Context, tx *store.Tx) (*DiscardReceipt, error) {
			if err := deadletter.Discard(ctx, tx, id, t.cfg.Actor, reason); err != nil {
				return nil, err
			}
			receipt := &DiscardReceipt{Letter: id, Reason: reason}
			return receipt, t.record(ctx, tx.Queries, &receipt.Audit, audit{
				action: "dead_letter.discard", of: letterOf(id), reason: reason, outcome: outcomeDone, request: receipt,
			})
		})
}

func letterOf(id int64) subject {
	return subject{kind: "dead_letter", id: id, name: fmt.Sprintf("dead letter %d", id)}
}

// manyLetters is the subject of an action on several dead letters.
var manyLetters = subject{kind: "dead_letters", name: "dead letters"}

// lettersLock is the lock under which one operator at a time acts on many dead letters.
var lettersLock = deadletter.LockName(message.QueueDeadLetter)

// RequeueMany requeues letters that were chosen one by one as a run, in their order. Ids in anyway are
// requeued although that is of no use.
func (t *Triage) RequeueMany(ctx context.Context, ids, anyway []int64, reason string) (*RunReceipt, error) {
	return t.eachLetter(ctx, ids, reason, func(ctx context.Context, id int64) (int64, error) {
		r, err := t.requeue(ctx, id, reason, slices.Contains(anyway, id))
		if err != nil {
			return 0, err
		}
		return r.Audit, nil
	})
}

// SendLetters has the messages of letters that wait published to an exchange with a
// routing key, or without an exchange to the queue of that name, as a run. A hand-over
// is not sent to a worker, which is ErrNoMessage.
func (t *Triage) SendLetters(ctx context.Context, ids []int64, exchange, key, reason string) (*RunReceipt, error) {
	return t.eachLetter(ctx, ids, reason, func(ctx context.Context, id int64) (int64, error) {
		to := map[string]any{"exchange": exchange, "routing_key": key}
		return t.publishLetter(ctx, audit{action: "dead_letter.send", of: letterOf(id), reason: reason, request: to},
			func(ctx context.Context, tx *store.Tx) (deadletter.Resent, error) {
				return deadletter.Send(ctx, tx, id, exchange, key, t.cfg.Actor, reason)
			})
	})
}

// ReturnLetters undoes the taking of letters that wait as a run: their messages go back to the queues that an
// operator took them from.
func (t *Triage) ReturnLetters(ctx context.Context, ids []int64, reason string) (*RunReceipt, error) {
	return t.eachLetter(ctx, ids, reason, func(ctx context.Context, id int64) (int64, error) {
		return t.publishLetter(ctx, audit{action: "dead_letter.return", of: letterOf(id), reason: reason},
			func(ctx context.Context, tx *store.Tx) (deadletter.Resent, error) {
				return deadletter.Return(ctx, tx, id, t.cfg.Actor, reason)
			})
	})
}

// eachLetter runs an act, which returns its audit, on one letter after the other.
func (t *Triage) eachLetter(
	ctx context.Context, ids []int64, reason string, act func(ctx context.Context, id int64) (int64, error),
) (*RunReceipt, error) {
	run := Run{Lock: lettersLock}
	for _, id := range ids {
		run.Steps = append(run.Steps, Step{Rows: []int64{id}, Do: func(ctx context.Context, _ string) (Outcome, error) {
			row, err := act(ctx, id)
			return Outcome{Done: 1, Audits: []int64{row}}, err
		}})
	}
	return t.Run(ctx, run, reason)
}

// publishLetter decides about one letter, appends its message and records both, in one
// transaction.
func (t *Triage) publishLetter(
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

// Reopen has letters that were discarded wait again, as a run of pages; others are left as
// they are. What had been decided stays written down.
func (t *Triage) Reopen(ctx context.Context, ids []int64, reason string) (*RunReceipt, error) {
	run := Run{Lock: lettersLock}
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
					action: "dead_letter.reopen", of: manyLetters, reason: reason, outcome: outcomeDone,
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
