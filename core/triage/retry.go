package triage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// Errors of actions on executions, for errors.Is.
var (
	ErrNoExecution = errors.New("there is no such execution")
	ErrNotEnded    = errors.New("the execution has not ended")
)

// AlreadyRetriedError reports that an execution has been repeated before. Only the newest attempt
// can be repeated, after it has ended.
type AlreadyRetriedError struct {
	ID int64
	By int64 // the newest attempt
}

// Error names both executions.
func (e *AlreadyRetriedError) Error() string {
	return fmt.Sprintf("execution %d has been repeated already: the newest attempt is execution %d", e.ID, e.By)
}

// RetryReceipt is the result of a retry by hand.
type RetryReceipt struct {
	Sent

	Audit     int64  `json:"audit_id,omitempty"`
	Failed    int64  `json:"repeats"`            // the ended execution
	Execution int64  `json:"execution"`          // its retry
	Original  int64  `json:"original_execution"` // the first attempt
	Attempt   int    `json:"attempt"`            // 2 for the first retry
	ActionRef string `json:"action"`
	Reason    string `json:"reason,omitempty"`
}

// RetryExecution repeats an ended execution, whatever its status and its number of attempts:
// max_retries binds the engine, not operators. The retry is a new execution that is due at
// once and enters its queue like any other. An execution is repeated once: a second call, also a
// concurrent one, fails with an AlreadyRetriedError.
func (t *Triage) RetryExecution(ctx context.Context, id int64, reason string) (*RetryReceipt, error) {
	name := fmt.Sprintf("repeat execution %d", id)
	var receipt *RetryReceipt
	err := t.store.Tx(ctx, name, func(ctx context.Context, tx *store.Tx) (err error) {
		if receipt, err = t.repeat(ctx, tx, id, reason); err != nil {
			return err
		}
		return t.record(ctx, tx.Queries, &receipt.Audit, audit{
			action: "execution.retry", of: subject{kind: "execution", id: id, name: fmt.Sprintf("execution %d", id)},
			reason: reason, request: receipt, outcome: outcomeDone,
		})
	})
	if err != nil {
		return nil, cmp.Or(refusal(err), err)
	}
	return receipt, nil
}

// repeat creates the retry of an execution and its request.
func (t *Triage) repeat(ctx context.Context, tx *store.Tx, id int64, reason string) (*RetryReceipt, error) {
	if err := retriable(ctx, tx, id); err != nil {
		return nil, err
	}
	rows, err := tx.RepeatExecutions(ctx, store.RepeatExecutionsParams{
		Failed: []int64{id}, Reasons: []string{string(lifecycle.ManualRetry)}, Delays: []float64{0},
		RequestedBy: &t.cfg.Actor,
	})
	if err != nil {
		return nil, fmt.Errorf("make the retry: %w", err)
	}
	if len(rows) == 0 { // a concurrent retry was first, and is visible now
		return nil, errors.Join(retriable(ctx, tx, id), errNothingMade)
	}
	row := rows[0]
	receipt := &RetryReceipt{
		Failed: id, Execution: row.ID, Attempt: int(row.RetryCount) + 1, ActionRef: row.ActionRef, Reason: reason,
	}
	if row.OriginalExecution != nil {
		receipt.Original = *row.OriginalExecution
	}
	request, err := admission.NudgeMessage(admission.Head{
		ExecutionID: row.ID, ActionID: row.Action, ActionRef: row.ActionRef, Parent: row.Parent, Config: row.Config,
	}, row.Created, t.cfg.Source)
	if err != nil {
		return nil, err
	}
	return receipt, t.send(ctx, tx, []outbox.Message{request}, &receipt.Sent)
}

// errNothingMade is joined with the reason.
var errNothingMade = errors.New("nothing was repeated")

// retriable returns an error if an execution cannot be repeated.
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
