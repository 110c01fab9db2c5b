package deadletter

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// HandledBy names the handler in the ledger.
const HandledBy = "dead_letter_handler"

// Decisions of the ledger. A row without one waits for an operator.
const (
	Retried   = "retried"   // the execution continues at another worker, or is repeated
	Failed    = "failed"    // the execution was ended
	Stale     = "stale"     // the execution had been decided, or had moved on, before
	Released  = "released"  // the engine processed a lost report
	Requeued  = "requeued"  // an operator sent the message again, or repeated the execution
	Discarded = "discarded" // an operator ignored it
	reopened  = "reopened"  // only in the evidence: it is open again
	Purged    = "purged"    // Discarded, as earlier versions wrote it for many at once
	Sent      = "sent"      // an operator sent the message to another destination
	PutBack   = "put_back"  // an operator returned it to the queue it was taken from

	// Waiting stands for the decision that an operator has not taken yet.
	Waiting = "waiting"
)

// Decisions lists all decisions.
var Decisions = []string{Waiting, Retried, Failed, Stale, Released, Requeued, Discarded, Purged, Sent, PutBack}

// Errors of operators' decisions, for errors.Is.
var (
	// ErrNotFound reports that the ledger has no such row.
	ErrNotFound = errors.New("no such dead letter")
	// ErrDecided reports that the dead letter already has a decision. The error is a *DecidedError.
	ErrDecided = errors.New("the dead letter is decided already")
	// ErrNoMessage reports that the message cannot be sent again, because the ledger lacks a part
	// of it or its destination.
	ErrNoMessage = errors.New("the message cannot be sent again")
)

// DecidedError names the existing decision and its author.
type DecidedError struct {
	ID       int64
	Decision string
	By       string
	At       time.Time
}

// Error implements error.
func (e *DecidedError) Error() string {
	return fmt.Sprintf("dead letter %d is decided already: %s by %s at %s", e.ID, e.Decision, e.By,
		e.At.UTC().Format(time.RFC3339))
}

// Is reports whether the target is ErrDecided.
func (e *DecidedError) Is(target error) bool { return target == ErrDecided }

// Resent is the result of requeueing a dead letter.
type Resent struct {
	// Messages were appended to the outbox as the row OutboxRow. The caller hands both to a relay
	// after the commit, or leaves them to the sweep. Empty if NewAttempt is set.
	Messages  []outbox.Message
	OutboxRow int64
	// NewAttempt says that the dead letter was a dispatch of Execution. Sending it again could
	// start the execution twice, so nothing was sent: the caller repeats the execution as a new
	// row, in the same transaction if it can.
	NewAttempt bool
	Execution  int64
}

// Requeue decides to try a dead letter again, in the caller's transaction. The original message
// goes to its original exchange with its original routing key, properties and headers, without those
// of Entry.NotKept. The header x-attune-requeued-from names the ledger row. A waiting dead
// letter can be requeued; a dispatch also after the decisions failed and stale, see
// Resent.NewAttempt. by is the author of the decision; note is its comment and may be empty. It
// returns ErrNotFound, ErrDecided or ErrNoMessage if it cannot requeue.
func Requeue(ctx context.Context, tx *store.Tx, id int64, by, note string) (Resent, error) {
	row, err := lock(ctx, tx, id)
	if err != nil {
		return Resent{}, err
	}
	if isDispatch(row.RoutingKey) {
		return requeueDispatch(ctx, tx, row, by, note)
	}
	if err := undecided(row); err != nil {
		return Resent{}, err
	}
	if why := whereTo(row.Exchange, row.Queue, row.RoutingKey); why != "" {
		return Resent{}, fmt.Errorf("%w: dead letter %d: %s", ErrNoMessage, row.ID, why)
	}
	m, err := resend(&row, row.Exchange, row.RoutingKey, headerRequeuedFrom, fmt.Sprint(row.ID))
	if err != nil {
		return Resent{}, err
	}
	return publish(ctx, tx, row.ID, m, Requeued, by, note)
}

// Send decides to send the message of a waiting dead letter to another destination, in the caller's
// transaction: an exchange with a routing key, or without an exchange the queue of that name. It
// refuses to send a dispatch to a worker, which could start the execution twice. It returns
// ErrNotFound, ErrDecided or ErrNoMessage if it cannot send.
func Send(ctx context.Context, tx *store.Tx, id int64, exchange, key, by, note string) (Resent, error) {
	row, err := lockUndecided(ctx, tx, id)
	if err != nil {
		return Resent{}, err
	}
	_, toWorker := message.WorkerOfKey(key)
	if exchange == "" {
		_, toWorker = message.WorkerOfQueue(key)
	}
	if isDispatch(row.RoutingKey) && toWorker {
		return Resent{}, fmt.Errorf("%w: dead letter %d is a dispatch, which a worker could start twice; requeue it, "+
			"and placement chooses another worker", ErrNoMessage, id)
	}
	m, err := resend(&row, exchange, key, headerRequeuedFrom, fmt.Sprint(row.ID))
	if err != nil {
		return Resent{}, err
	}
	return publish(ctx, tx, row.ID, m, Sent, by, note)
}

// Return undoes the taking of a waiting dead letter, in the caller's transaction. Its message goes
// back to the queue from which an operator took it, with its cause of death in a header. If it dies
// again it is another dead letter. A dispatch goes back to its worker only while its execution is
// still scheduled there. Return returns ErrNotFound, ErrDecided or ErrNoMessage if it cannot return
// the message.
func Return(ctx context.Context, tx *store.Tx, id int64, by, note string) (Resent, error) {
	row, err := lockUndecided(ctx, tx, id)
	if err != nil {
		return Resent{}, err
	}
	if row.TakenFrom == "" {
		return Resent{}, fmt.Errorf("%w: dead letter %d was not taken from a queue by an operator", ErrNoMessage, id)
	}
	if err := stillScheduled(ctx, tx, row); err != nil {
		return Resent{}, err
	}
	was, err := json.Marshal(putBack{
		Queue: row.Queue, Exchange: row.Exchange, Key: row.RoutingKey, Reason: row.Reason, Died: row.Died,
		Count: int64(row.Deaths), Said: row.Said, Row: row.ID,
	})
	if err != nil {
		return Resent{}, fmt.Errorf("say how dead letter %d died: %w", id, err)
	}
	m, err := resend(&row, "", row.TakenFrom, headerPutBack, string(was))
	if err != nil {
		return Resent{}, err
	}
	resent, err := publish(ctx, tx, id, m, PutBack, by, note)
	if err != nil {
		return Resent{}, err
	}
	if err := tx.ForgetDeadLetterPrint(ctx, id); err != nil {
		return Resent{}, fmt.Errorf("forget the fingerprint of dead letter %d: %w", id, err)
	}
	return resent, nil
}

// stillScheduled refuses to return a dispatch that its worker must no longer start.
func stillScheduled(ctx context.Context, tx *store.Tx, row store.LockDeadLetterRow) error {
	if row.TakenFrom == message.QueueDeadLetter || !isDispatch(row.RoutingKey) {
		return nil
	}
	l := Read(&broker.Delivery{RoutingKey: row.RoutingKey, Body: row.Body})
	found, err := tx.ReadDeadLetterExecutions(ctx, []int64{row.Execution})
	if err != nil {
		return fmt.Errorf("read execution %d: %w", row.Execution, err)
	}
	var now *execution
	if len(found) == 1 {
		e := execution(found[0])
		now = &e
	}
	if v := l.decideDispatch(now); !v.needsBatch {
		return fmt.Errorf("%w: dead letter %d is a dispatch that is over: %s", ErrNoMessage, row.ID, v.detail)
	}
	return nil
}

// publish decides about a dead letter and appends its message to the outbox.
func publish(
	ctx context.Context, tx *store.Tx, id int64, m outbox.Message, decision, by, note string,
) (Resent, error) {
	if err := decidedBy(ctx, tx, id, decision, by, note); err != nil {
		return Resent{}, err
	}
	resent := Resent{Messages: []outbox.Message{m}}
	var err error
	if resent.OutboxRow, err = outbox.Append(ctx, tx, resent.Messages); err != nil {
		return Resent{}, fmt.Errorf("send dead letter %d: %w", id, err)
	}
	return resent, nil
}

func requeueDispatch(ctx context.Context, tx *store.Tx, row store.LockDeadLetterRow, by, note string) (Resent, error) {
	if row.Decision != Failed && row.Decision != Stale {
		if err := undecided(row); err != nil {
			return Resent{}, err
		}
	}
	if row.Execution == 0 {
		return Resent{}, fmt.Errorf("%w: dead letter %d is a dispatch that names no execution", ErrNoMessage, row.ID)
	}
	if err := decidedBy(ctx, tx, row.ID, Requeued, by, note); err != nil {
		return Resent{}, err
	}
	return Resent{NewAttempt: true, Execution: row.Execution}, nil
}

// Discard decides to ignore a waiting dead letter, in the caller's transaction. It returns
// ErrNotFound or ErrDecided if it cannot.
func Discard(ctx context.Context, tx *store.Tx, id int64, by, note string) error {
	if _, err := lockUndecided(ctx, tx, id); err != nil {
		return err
	}
	return decidedBy(ctx, tx, id, Discarded, by, note)
}

// DiscardMany is Discard for many dead letters. It skips decided ones, and returns the newly
// decided ones.
func DiscardMany(ctx context.Context, tx *store.Tx, ids []int64, by, note string) ([]int64, error) {
	discarded, err := tx.DecideDeadLetters(ctx, store.DecideDeadLettersParams{
		Ids: ids, Decision: Discarded, DecidedBy: by, Note: note, Among: []string{""},
	})
	if err != nil {
		return nil, fmt.Errorf("discard %d dead letters: %w", len(ids), err)
	}
	return discarded, nil
}

// Reopen makes discarded dead letters wait again, and returns them. It leaves the others unchanged.
func Reopen(ctx context.Context, tx *store.Tx, ids []int64, by, note string) ([]int64, error) {
	opened, err := tx.DecideDeadLetters(ctx, store.DecideDeadLettersParams{
		Ids: ids, Decision: reopened, DecidedBy: by, Note: note, Among: []string{Discarded, Purged},
	})
	if err != nil {
		return nil, fmt.Errorf("reopen %d dead letters: %w", len(ids), err)
	}
	return opened, nil
}

func lock(ctx context.Context, tx *store.Tx, id int64) (store.LockDeadLetterRow, error) {
	row, err := tx.LockDeadLetter(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		return row, fmt.Errorf("%w: %d", ErrNotFound, id)
	}
	if err != nil {
		return row, fmt.Errorf("read dead letter %d: %w", id, err)
	}
	return row, nil
}

func lockUndecided(ctx context.Context, tx *store.Tx, id int64) (store.LockDeadLetterRow, error) {
	row, err := lock(ctx, tx, id)
	if err == nil {
		err = undecided(row)
	}
	return row, err
}

func undecided(row store.LockDeadLetterRow) error {
	if row.Decision == "" {
		return nil
	}
	decided := &DecidedError{ID: row.ID, Decision: row.Decision, By: row.DecidedBy}
	if row.DecidedAt != nil {
		decided.At = *row.DecidedAt
	}
	return decided
}

func decidedBy(ctx context.Context, tx *store.Tx, id int64, decision, by, note string) error {
	_, err := tx.DecideDeadLetters(ctx, store.DecideDeadLettersParams{
		Ids: []int64{id}, Decision: decision, DecidedBy: by, Note: note, Among: []string{},
	})
	if err != nil {
		return fmt.Errorf("decide dead letter %d as %s: %w", id, decision, err)
	}
	return nil
}

// headerRequeuedFrom names the ledger row of a requeued message, headerDeaths counts how often it died before.
const (
	headerRequeuedFrom = "x-attune-requeued-from"
	headerDeaths       = "x-attune-deaths"
)

// isDispatch reports whether a routing key dispatches an execution to a worker.
func isDispatch(key string) bool {
	worker, ok := message.WorkerOfKey(key)
	return ok && strings.EqualFold(key, message.DispatchKey(worker))
}
