package triage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// ClearingQueue is a queue whose executions a clearing cancels.
type ClearingQueue = admission.ClearingQueue

// ClearRequest selects the queued executions that are to be cancelled.
type ClearRequest struct {
	Target

	// OlderThan selects executions that have waited at least as long; 0 selects all.
	OlderThan time.Duration `json:"-"`
	// Only selects executions by id; nil selects all.
	Only []int64 `json:"-"`
}

// ClearPlan has the executions that would be cancelled. It can be run once.
type ClearPlan struct {
	Target

	At        time.Time       `json:"at"`
	OlderThan float64         `json:"older_than_seconds,omitempty"`
	Waiting   int             `json:"waiting"`
	Queues    []ClearingQueue `json:"queues"`
	// Reason is the reason in the audit. The caller may set it before the run.
	Reason string `json:"reason,omitempty"`

	clearing *admission.Clearing
}

// PlanClear counts the queued executions, without locks or writes. Later ones are not in the plan.
func (t *Triage) PlanClear(ctx context.Context, request ClearRequest) (*ClearPlan, error) {
	return Read(ctx, t, "plan a clearing", func(ctx context.Context, tx *store.Tx) (*ClearPlan, error) {
		target, err := t.target(ctx, tx.Queries, request.Target)
		if err != nil {
			return nil, err
		}
		clearing, err := admission.PlanClearing(ctx, tx, target, request.OlderThan, request.Only)
		if err != nil {
			return nil, err
		}
		return &ClearPlan{
			Target: Target{Action: clearing.Target.ActionRef, Group: clearing.Target.Group}, At: clearing.At,
			OlderThan: request.OlderThan.Seconds(), Waiting: clearing.Waiting,
			Queues:   append([]ClearingQueue{}, clearing.Queues...),
			clearing: clearing,
		}, nil
	})
}

// ClearReceipt is the result of a clearing. Planned is the sum of Cancelled, AlreadyGone and Left.
type ClearReceipt struct {
	Target
	Sent

	Planned     int     `json:"planned"`
	Cancelled   int     `json:"cancelled"`
	AlreadyGone int     `json:"already_gone"` // promoted or ended meanwhile
	Left        int     `json:"left"`         // still queued: the clearing was interrupted
	First       int64   `json:"first_execution_id,omitempty"`
	Last        int64   `json:"last_execution_id,omitempty"`
	Seconds     float64 `json:"seconds"`
	Outcome     string  `json:"outcome"` // done, nothing to do, unchanged, interrupted or failed
	Audit       int64   `json:"audit_id,omitempty"`
}

// Clear cancels the executions of a plan, a page in each transaction. It always returns a receipt,
// with an error that of a part.
func (t *Triage) Clear(ctx context.Context, plan *ClearPlan) (*ClearReceipt, error) {
	began := time.Now()
	receipt := &ClearReceipt{Target: plan.Target, Planned: plan.Waiting, Outcome: outcomeRunning}
	err := t.clearPages(ctx, plan, receipt)
	receipt.Seconds = time.Since(began).Seconds()
	rest := max(receipt.Planned-receipt.Cancelled-receipt.AlreadyGone, 0)
	if receipt.Outcome = outcomeOf(ctx, err, receipt.Planned, receipt.Cancelled); err != nil {
		receipt.Left = rest
	} else {
		receipt.AlreadyGone += rest // they had left their queues before their pages were read
	}
	return receipt, t.finish(ctx, "end a clearing", err, func(ctx context.Context, tx *store.Tx) error {
		return t.closeClear(ctx, tx, plan, receipt, err)
	})
}

func (t *Triage) clearPages(ctx context.Context, plan *ClearPlan, receipt *ClearReceipt) error {
	err := loop{}.run(ctx, func(ctx context.Context) (more bool, err error) {
		page, err := plan.clearing.Next(ctx, t.store.Queries)
		if err != nil || page.Len() == 0 {
			return false, err
		}
		// If a row changes between its lock and its write, the page is decided again.
		err = t.decide(ctx, "clear a queue", func(ctx context.Context, tx *store.Tx) error {
			after := *receipt
			after.Rows = slices.Clone(receipt.Rows)
			tx.AfterCommit(func() { *receipt = after })
			return t.cancel(ctx, tx, plan, page, &after)
		})
		progress(ctx, receipt.Cancelled+receipt.AlreadyGone, plan.Waiting)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("clear %s after %d cancelled: %w", plan.clearing.Target, receipt.Cancelled, err)
	}
	return nil
}

func (t *Triage) cancel(
	ctx context.Context, tx *store.Tx, plan *ClearPlan, page admission.ClearingPage, receipt *ClearReceipt,
) error {
	cleared, err := admission.CancelPage(ctx, tx, page, admission.ClearingConfig{
		Result: t.cancelledResult, StaleAfter: t.cfg.HeartbeatStaleAfter, WithoutStats: t.cfg.WithoutStats,
	})
	if err != nil {
		return err
	}
	receipt.Cancelled += len(cleared.Ended)
	receipt.AlreadyGone += cleared.Gone
	for _, e := range cleared.Ended {
		if receipt.First == 0 || e.ExecutionID < receipt.First {
			receipt.First = e.ExecutionID
		}
		receipt.Last = max(receipt.Last, e.ExecutionID)
	}
	messages := make([]outbox.Message, len(cleared.Ended))
	for i, e := range cleared.Ended {
		if messages[i], err = admission.CompletedMessage(e, cleared.At, t.cfg.Source); err != nil {
			return err
		}
	}
	p := tx.Pipeline()
	cleared.Write(p)
	if err := p.Send(ctx); err != nil {
		return fmt.Errorf("cancel %d executions: %w", len(cleared.Ended), err)
	}
	if err := t.send(ctx, tx, messages, &receipt.Sent); err != nil {
		return err
	}
	return t.record(ctx, tx.Queries, &receipt.Audit, clearAudit(plan, receipt, nil))
}

// cancelledResult is the result of a cleared execution.
func (t *Triage) cancelledResult(at time.Time) json.RawMessage {
	raw, err := json.Marshal(map[string]any{
		"error": "Cancelled", "message": "cleared from its queue by " + t.cfg.Actor,
		"cancelled_by": t.cfg.Actor, "cancelled_at": at,
	})
	if err != nil {
		return json.RawMessage(`{}`) // impossible: strings and a time
	}
	return raw
}

func clearAudit(plan *ClearPlan, receipt *ClearReceipt, failure error) audit {
	return audit{
		action: "queue.clear", of: queuesOf(plan.clearing.Target), reason: plan.Reason, outcome: receipt.Outcome,
		request: map[string]any{"plan": plan, "receipt": receipt}, failure: failureOf(failure),
	}
}

// closeClear writes the end into the audit, and nudges the queues: the next executions may be due.
func (t *Triage) closeClear(
	ctx context.Context, tx *store.Tx, plan *ClearPlan, receipt *ClearReceipt, failure error,
) error {
	after := *receipt
	after.Rows = slices.Clone(receipt.Rows)
	if receipt.Cancelled > 0 {
		queues := make([]int64, len(plan.Queues))
		for i, line := range plan.Queues {
			queues[i] = line.ID
		}
		heads, err := admission.Heads(ctx, tx.Queries, queues)
		if err != nil {
			return err
		}
		if err := t.nudge(ctx, tx, heads, &after.Sent); err != nil {
			return err
		}
	}
	tx.AfterCommit(func() { *receipt = after })
	return t.record(ctx, tx.Queries, &after.Audit, clearAudit(plan, &after, failure))
}
