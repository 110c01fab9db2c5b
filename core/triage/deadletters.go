package triage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/deadletter"
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
	var receipt *RequeueReceipt
	var refused error
	err := t.letterTx(ctx, fmt.Sprintf("requeue dead letter %d", id), func(ctx context.Context, tx *store.Tx) error {
		resent, err := deadletter.Requeue(ctx, tx, id, t.cfg.Actor, reason)
		if refused = err; err != nil {
			return err
		}
		receipt = &RequeueReceipt{Letter: id, Reason: reason}
		if resent.NewAttempt {
			if refused = useful(ctx, tx, resent.Execution, anyway); refused != nil {
				return refused
			}
			receipt.Repeated, err = t.repeat(ctx, tx, resent.Execution, reason)
			if refused = err; err != nil {
				return err
			}
			receipt.Sent = receipt.Repeated.Sent
			receipt.Repeated.Sent = Sent{}
		} else {
			receipt.Messages, receipt.Rows = len(resent.Messages), []int64{resent.OutboxRow}
			for _, m := range resent.Messages {
				receipt.Exchange, receipt.RoutingKey = m.Exchange, m.RoutingKey
			}
			if err := outbox.Publish(ctx, tx, t.relay, resent.OutboxRow, resent.Messages); err != nil {
				return err
			}
		}
		return t.record(ctx, tx.Queries, &receipt.Audit, audit{
			action: "dead_letter.requeue", of: letterOf(id), reason: reason, outcome: outcomeDone, request: receipt,
		})
	})
	if err != nil {
		return nil, refusal(refused, err)
	}
	return receipt, nil
}

// useful says why a repetition of an execution would be of no use, or nothing.
// Whether it can be made at all is for others to say.
func useful(ctx context.Context, tx *store.Tx, id int64, anyway bool) error {
	if anyway {
		return nil
	}
	e, err := tx.ViewLetterExecution(ctx, id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read execution %d: %w", id, err)
	case e.Status == string(attune.StatusCompleted):
		return fmt.Errorf("%w: execution %d has completed", ErrUseless, id)
	case e.ActionGone:
		return fmt.Errorf("%w: the action %s was deleted", ErrUseless, e.ActionRef)
	case e.ParentStatus != "" && attune.Status(e.ParentStatus).Terminal():
		return fmt.Errorf("%w: execution %d, which started execution %d, has ended (%s)", ErrUseless, *e.Parent, id,
			e.ParentStatus)
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
	var receipt *DiscardReceipt
	var refused error
	err := t.letterTx(ctx, fmt.Sprintf("discard dead letter %d", id), func(ctx context.Context, tx *store.Tx) (err error) {
		if refused = deadletter.Discard(ctx, tx, id, t.cfg.Actor, reason); refused != nil {
			return refused
		}
		receipt = &DiscardReceipt{Letter: id, Reason: reason}
		return t.record(ctx, tx.Queries, &receipt.Audit, audit{
			action: "dead_letter.discard", of: letterOf(id), reason: reason, outcome: outcomeDone, request: receipt,
		})
	})
	if err != nil {
		return nil, refusal(refused, err)
	}
	return receipt, nil
}

// letterTx is the one transaction of an act on rows of the ledger.
func (t *Triage) letterTx(ctx context.Context, name string, act func(context.Context, *store.Tx) error) error {
	err := t.store.Tx(ctx, name, func(ctx context.Context, tx *store.Tx) error {
		if err := act(ctx, tx); err != nil {
			return err
		}
		crashpoint.Reach("triage:before-commit")
		return nil
	})
	if err == nil {
		crashpoint.Reach("triage:committed")
	}
	return err
}

func letterOf(id int64) subject {
	return subject{kind: "dead_letter", id: id, name: fmt.Sprintf("dead letter %d", id)}
}

// manyLetters is the subject of an action on several dead letters.
var manyLetters = subject{kind: "dead_letters", name: "dead letters"}

// refusals are the errors that refuse a dead letter for what it is by now.
var refusals = []error{ErrNoLetter, ErrDecided, ErrNoMessage, ErrUseless, ErrNoExecution, ErrNotEnded}

func isRefusal(err error) bool {
	_, already := errors.AsType[*AlreadyRetriedError](err)
	return already || slices.ContainsFunc(refusals, func(kind error) bool { return errors.Is(err, kind) })
}

// refusal returns what refused an act, if err is one: what was being done when it
// was found says nothing more.
func refusal(inner, err error) error {
	if already, ok := errors.AsType[*AlreadyRetriedError](inner); ok {
		return already
	}
	if isRefusal(inner) {
		return inner
	}
	return err
}
