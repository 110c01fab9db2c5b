package triage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// ErrNoWorkflow reports that an execution is not a workflow, does not exist, or has not started.
var ErrNoWorkflow = errors.New("it is no workflow")

// WorkflowEndedError reports that a workflow has ended.
type WorkflowEndedError struct {
	Execution int64
	Status    lifecycle.Status
}

// Error names the workflow and its status.
func (e *WorkflowEndedError) Error() string {
	return fmt.Sprintf("workflow %d has ended (%s)", e.Execution, e.Status)
}

// WorkflowReceipt is the result of an action on a workflow.
type WorkflowReceipt struct {
	Execution   int64  `json:"execution"`
	Action      string `json:"action"`
	Paused      bool   `json:"paused"`
	PauseReason string `json:"pause_reason,omitempty"`
	// PausedAbove is the nearest paused workflow above it, which pauses it too; 0 without one.
	PausedAbove int64 `json:"paused_above,omitempty"`
	Changed     bool  `json:"changed"`
	// Running are the running tasks, which a pause does not stop.
	Running []string `json:"running"`
	Reason  string   `json:"reason,omitempty"`
	Says    string   `json:"says"` // in a sentence
	Outcome string   `json:"outcome"`
	Audit   int64    `json:"audit_id,omitempty"`
}

// PauseWorkflow pauses the workflow of an execution and its nested workflows: they start nothing more
// until it is resumed. Running tasks go on to their ends. An engine notices within seconds.
func (t *Triage) PauseWorkflow(ctx context.Context, execution int64, reason string) (*WorkflowReceipt, error) {
	return t.setPaused(ctx, execution, true, reason)
}

// ResumeWorkflow resumes a paused workflow and its nested workflows that were not paused themselves.
// Below another paused workflow it stays paused until that is resumed.
func (t *Triage) ResumeWorkflow(ctx context.Context, execution int64, reason string) (*WorkflowReceipt, error) {
	return t.setPaused(ctx, execution, false, reason)
}

func (t *Triage) setPaused(ctx context.Context, execution int64, paused bool, reason string) (*WorkflowReceipt, error) {
	act := map[bool]string{true: "pause", false: "resume"}[paused]
	return commit(ctx, t, act+" a workflow", func(ctx context.Context, tx *store.Tx) (*WorkflowReceipt, error) {
		row, err := tx.LockActWorkflow(ctx, execution)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, ErrNoWorkflow
		}
		if err != nil {
			return nil, fmt.Errorf("lock workflow %d: %w", execution, err)
		}
		if status := lifecycle.Status(row.Status); status.Terminal() || !row.Open {
			return nil, &WorkflowEndedError{Execution: execution, Status: status}
		}
		receipt := &WorkflowReceipt{
			Execution: execution, Action: row.ActionRef, Paused: row.Paused, PauseReason: row.PauseReason,
			Running:     row.CurrentTasks,
			PausedAbove: row.PausedAbove, Reason: reason, Outcome: outcomeUnchanged,
		}
		word := t.pauseWord(receipt, paused)
		if word != row.PauseReason || paused != row.Paused {
			n, err := tx.PauseWorkflow(ctx,
				store.PauseWorkflowParams{ID: row.ID, Paused: paused, Reason: word, WasPaused: row.Paused})
			if err != nil {
				return nil, fmt.Errorf("%s workflow %d: %w", act, execution, err)
			}
			if n != 1 {
				return nil, fmt.Errorf("workflow %d changed meanwhile: the same again is safe", execution)
			}
			receipt.Changed, receipt.Outcome = true, outcomeDone
			receipt.Paused, receipt.PauseReason = paused, word
		}
		of := subject{kind: "workflow", id: execution, name: fmt.Sprintf("workflow %d (%s)", execution, row.ActionRef)}
		return receipt, t.record(ctx, tx.Queries, &receipt.Audit, audit{
			action: "workflow." + act, of: of, reason: reason, request: receipt, outcome: receipt.Outcome,
		})
	})
}

// pauseWord returns the reason of the pause, and sets the sentence of the receipt.
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

// CancelWorkflow stops a workflow like Cancel, also before it has started. Other executions fail with
// ErrNoWorkflow.
func (t *Triage) CancelWorkflow(ctx context.Context, execution int64, reason string) (*CancelReceipt, error) {
	row, err := t.store.ViewWorkflowOf(ctx, execution)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !row.Workflow {
		return nil, ErrNoWorkflow
	}
	if err != nil {
		return nil, fmt.Errorf("read workflow %d: %w", execution, err)
	}
	return t.Cancel(ctx, &CancelPlan{CancelRequest: CancelRequest{IDs: []int64{execution}, Reason: reason}})
}
