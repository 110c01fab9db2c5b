package triage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/retrypolicy"
	"github.com/attune-go/attune/core/store"
)

// Errors of acts on executions, to be told apart by errors.Is.
var (
	ErrNoExecution = errors.New("there is no such execution")
	ErrNotEnded    = errors.New("the execution has not ended")
)

// AlreadyRetriedError says that an execution has been repeated before, by the
// engine or by somebody. What ended and has been repeated stays closed; the
// newest attempt may be repeated once it has ended.
type AlreadyRetriedError struct {
	ID int64 // what was to be repeated
	By int64 // the newest attempt
}

// Error names both.
func (e *AlreadyRetriedError) Error() string {
	return fmt.Sprintf("execution %d has been repeated already: the newest attempt is execution %d", e.ID, e.By)
}

// RetryReceipt is what a repetition by hand has made.
type RetryReceipt struct {
	Sent

	Audit     int64  `json:"audit_id,omitempty"`
	Failed    int64  `json:"repeats"`            // what had ended
	Execution int64  `json:"execution"`          // its repetition
	Original  int64  `json:"original_execution"` // the first attempt
	Attempt   int    `json:"attempt"`            // 2 for the first repetition
	ActionRef string `json:"action"`
	Reason    string `json:"reason,omitempty"` // as it was given
}

// RetryExecution repeats an execution that has ended, whatever its end was and
// however often that has happened: max_retries binds the engine, not people. The
// repetition is a new execution that is due at once; it joins its line like any
// other. An execution is repeated once: who comes second, also at the same time,
// gets an AlreadyRetriedError.
func (t *Triage) RetryExecution(ctx context.Context, id int64, reason string) (*RetryReceipt, error) {
	var receipt *RetryReceipt
	err := t.store.Tx(ctx, fmt.Sprintf("repeat execution %d", id), func(ctx context.Context, tx *store.Tx) (err error) {
		if receipt, err = t.repeat(ctx, tx, id, reason); err != nil {
			return err
		}
		return t.record(ctx, tx.Queries, &receipt.Audit, audit{
			action: "execution.retry", of: subject{kind: "execution", id: id, name: fmt.Sprintf("execution %d", id)},
			reason: reason, request: receipt, outcome: outcomeDone,
		})
	})
	if already, ok := errors.AsType[*AlreadyRetriedError](err); ok {
		return nil, already // what was being done when it was found says nothing more
	}
	if err != nil {
		return nil, err
	}
	return receipt, nil
}

// repeat makes the repetition of an execution and its request.
func (t *Triage) repeat(ctx context.Context, tx *store.Tx, id int64, reason string) (*RetryReceipt, error) {
	if err := retriable(ctx, tx, id); err != nil {
		return nil, err
	}
	rows, err := tx.RepeatExecutions(ctx, store.RepeatExecutionsParams{
		Failed: []int64{id}, Reasons: []string{string(retrypolicy.ManualRetry)}, Delays: []float64{0},
		RequestedBy: &t.cfg.Actor,
	})
	if err != nil {
		return nil, fmt.Errorf("make the repetition: %w", err)
	}
	if len(rows) == 0 { // somebody was quicker; what they made is visible now
		return nil, errors.Join(retriable(ctx, tx, id), errNothingMade)
	}
	receipt := &RetryReceipt{
		Failed: id, Execution: rows[0].ID, Attempt: int(rows[0].RetryCount) + 1, ActionRef: rows[0].ActionRef,
		Reason: reason,
	}
	if rows[0].OriginalExecution != nil {
		receipt.Original = *rows[0].OriginalExecution
	}
	row := rows[0]
	request, err := admission.NudgeMessage(admission.Head{
		ExecutionID: row.ID, ActionID: row.Action, ActionRef: row.ActionRef, Parent: row.Parent, Config: row.Config,
	}, row.Created, t.cfg.Source)
	if err != nil {
		return nil, err
	}
	return receipt, t.send(ctx, tx, []outbox.Message{request}, &receipt.Sent)
}

// errNothingMade goes with the reason why nothing was made.
var errNothingMade = errors.New("nothing was repeated")

// retriable says why an execution cannot be repeated, or nothing.
func retriable(ctx context.Context, tx *store.Tx, id int64) error {
	row, err := tx.FindNewestAttempt(ctx, id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return ErrNoExecution
	case err != nil:
		return fmt.Errorf("read its attempts: %w", err)
	case !row.Status.Terminal():
		return fmt.Errorf("%w: it is %s", ErrNotEnded, row.Status)
	case row.Newest != id:
		return &AlreadyRetriedError{ID: id, By: row.Newest}
	}
	return nil
}
