package triage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/store"
)

// ErrNoWorkflow says that an execution is no workflow, or is not there, or is to be
// paused and was not begun.
var ErrNoWorkflow = errors.New("it is no workflow")

// WorkflowEndedError says that a workflow has ended, so that nothing is to be paused.
type WorkflowEndedError struct {
	Execution int64
	Status    attune.Status
}

// Error says so.
func (e *WorkflowEndedError) Error() string {
	return fmt.Sprintf("workflow %d has ended (%s)", e.Execution, e.Status)
}

// WorkflowReceipt is what was done to a workflow.
type WorkflowReceipt struct {
	Execution int64  `json:"execution"`
	Action    string `json:"action"`
	// Paused is whether it starts nothing more, and why somebody wanted that.
	Paused      bool   `json:"paused"`
	PauseReason string `json:"pause_reason,omitempty"`
	// PausedAbove is the nearest workflow above it that is paused, so that this one
	// starts nothing either; 0 if there is none.
	PausedAbove int64 `json:"paused_above,omitempty"`
	Changed     bool  `json:"changed"`
	// Running are the tasks that are on their way; a pause lets them come to their end.
	Running []string `json:"running"`
	Reason  string   `json:"reason,omitempty"`
	Says    string   `json:"says"` // in a sentence
	Outcome string   `json:"outcome"`
	Audit   int64    `json:"audit_id,omitempty"`
}

// PauseWorkflow has a workflow, and those nested in it, start nothing more until it is
// resumed. What runs goes on to its end. An engine notices within seconds. The workflow
// is known by the execution that it runs for.
func (t *Triage) PauseWorkflow(ctx context.Context, execution int64, reason string) (*WorkflowReceipt, error) {
	return t.setPaused(ctx, execution, true, reason)
}

// ResumeWorkflow has a paused workflow go on, and those nested in it that were not
// paused by themselves. One above which another is paused goes on with that.
func (t *Triage) ResumeWorkflow(ctx context.Context, execution int64, reason string) (*WorkflowReceipt, error) {
	return t.setPaused(ctx, execution, false, reason)
}

func (t *Triage) setPaused(ctx context.Context, execution int64, paused bool, reason string) (*WorkflowReceipt, error) {
	act := map[bool]string{true: "pause", false: "resume"}[paused]
	var receipt *WorkflowReceipt
	err := t.store.Tx(ctx, act+" a workflow", func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.LockActWorkflow(ctx, execution)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNoWorkflow
		}
		if err != nil {
			return fmt.Errorf("lock workflow %d: %w", execution, err)
		}
		if status := attune.Status(row.Status); status.Terminal() || !row.Open {
			return &WorkflowEndedError{execution, status}
		}
		receipt = &WorkflowReceipt{
			Execution: execution, Action: row.ActionRef, Paused: row.Paused, PauseReason: row.PauseReason,
			Running:     row.CurrentTasks,
			PausedAbove: row.PausedAbove, Reason: reason, Outcome: outcomeUnchanged,
		}
		word := t.pauseWord(receipt, paused)
		if word != row.PauseReason || paused != row.Paused {
			n, err := tx.PauseWorkflow(ctx,
				store.PauseWorkflowParams{ID: row.ID, Paused: paused, Reason: word, WasPaused: row.Paused})
			if err != nil {
				return fmt.Errorf("%s workflow %d: %w", act, execution, err)
			}
			if n != 1 {
				return fmt.Errorf("workflow %d changed meanwhile: the same again is safe", execution)
			}
			receipt.Changed, receipt.Outcome = true, outcomeDone
			receipt.Paused, receipt.PauseReason = paused, word
		}
		of := subject{kind: "workflow", id: execution, name: fmt.Sprintf("workflow %d (%s)", execution, row.ActionRef)}
		return t.record(ctx, tx.Queries, &receipt.Audit, audit{
			action: "workflow." + act, of: of, reason: reason, request: receipt, outcome: receipt.Outcome,
		})
	})
	if err != nil {
		return nil, err
	}
	return receipt, nil
}

// pauseWord is what shall stand as the reason of the pause; it puts into words what
// becomes of the workflow.
func (t *Triage) pauseWord(receipt *WorkflowReceipt, paused bool) string {
	was, word := receipt.Paused, ""
	if paused {
		word = "by " + t.cfg.Actor
		if receipt.Reason != "" {
			word = receipt.Reason + " (" + word + ")"
		}
	}
	above := fmt.Sprintf("workflow %d above it is paused, and it goes on with that", receipt.PausedAbove)
	switch {
	case !paused && receipt.PausedAbove != 0:
		receipt.Says = above
		if !was {
			return receipt.PauseReason
		}
		receipt.Says = "is not paused any more, but " + above
	case !paused && was:
		receipt.Says = "goes on"
	case !paused:
		receipt.Says = "is not paused"
		return receipt.PauseReason
	case was && (receipt.Reason == "" || word == receipt.PauseReason):
		receipt.Says = "is paused already"
		return receipt.PauseReason
	case was:
		receipt.Says = "is paused already: only the reason changes"
	case len(receipt.Running) > 0:
		receipt.Says = "starts nothing more; what runs goes on to its end"
	default:
		receipt.Says = "starts nothing more"
	}
	return word
}

// CancelWorkflow stops a workflow as Cancel does, and refuses with ErrNoWorkflow what
// is none. One that was not begun is stopped before it begins.
func (t *Triage) CancelWorkflow(ctx context.Context, execution int64, reason string) (*CancelReceipt, error) {
	row, err := t.store.ViewWorkflowOf(ctx, execution)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !row.Workflow {
		return nil, ErrNoWorkflow
	}
	if err != nil {
		return nil, fmt.Errorf("look at workflow %d: %w", execution, err)
	}
	return t.Cancel(ctx, &CancelPlan{CancelOrder: CancelOrder{IDs: []int64{execution}, Reason: reason}})
}
