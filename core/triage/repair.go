package triage

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/store"
)

// Drift is one difference from the facts.
type Drift = admission.Drift

// RepairReceipt is the result of a repair.
type RepairReceipt struct {
	Sent

	Action   string  `json:"action,omitempty"` // only this action's queues
	DryRun   bool    `json:"dry_run,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	Found    []Drift `json:"found"`
	Repaired []Drift `json:"repaired"`
	Remains  []Drift `json:"remains"` // also new differences
	Seconds  float64 `json:"seconds"`
	Audits   []int64 `json:"audit_ids"`
}

// PlanRepair finds differences, without locks or writes: in the queues of an action, or without one
// in everything.
func (t *Triage) PlanRepair(ctx context.Context, action string) (*RepairReceipt, error) {
	began := time.Now()
	receipt := &RepairReceipt{Action: action, DryRun: true, Repaired: []Drift{}, Audits: []int64{}}
	_, found, err := t.find(ctx, action)
	if err != nil {
		return nil, err
	}
	receipt.Found, receipt.Remains = found.Drifts, found.Drifts
	receipt.Seconds = time.Since(began).Seconds()
	return receipt, nil
}

func (t *Triage) terms(target admission.Target) admission.RepairConfig {
	return admission.RepairConfig{
		ActionID: target.ActionID, Grace: t.cfg.ReportGrace, StaleAfter: t.cfg.HeartbeatStaleAfter,
		WithoutStats: t.cfg.WithoutStats,
	}
}

func (t *Triage) find(
	ctx context.Context, action string,
) (target admission.Target, found *admission.Findings, err error) {
	err = t.store.ReadTx(ctx, "compare counters with facts", func(ctx context.Context, tx *store.Tx) error {
		if action != "" {
			if target, err = t.target(ctx, tx.Queries, Target{Action: action}); err != nil {
				return err
			}
		}
		found, err = admission.FindDrift(ctx, tx, t.terms(target))
		return err
	})
	return target, found, plain(err)
}

// Repair puts right what PlanRepair finds. It counts the counters again and sets them under the locks of a batch,
// releases the slots of ended executions, and nudges the queues that may admit an execution now. At the end it
// compares again. With an error it returns the receipt of a part.
func (t *Triage) Repair(ctx context.Context, action, reason string) (*RepairReceipt, error) {
	began := time.Now()
	receipt := &RepairReceipt{
		Action: action, Reason: reason, Repaired: []Drift{}, Remains: []Drift{}, Audits: []int64{},
	}
	target, found, err := t.find(ctx, action)
	if err != nil {
		return nil, err
	}
	defer func() { receipt.Seconds = time.Since(began).Seconds() }()
	receipt.Found, receipt.Remains = found.Drifts, found.Drifts
	if found.Empty() {
		return receipt, nil
	}
	// Counters come first: a release decrements them.
	for _, release := range []bool{false, true} {
		if err := t.repair(ctx, release, target, found, receipt); err != nil {
			return receipt, err
		}
	}
	if _, found, err = t.find(ctx, action); err == nil {
		receipt.Remains = found.Drifts
	}
	return receipt, err
}

// repair corrects counters, or with release it releases what ended executions hold. Each page is a transaction with
// its audit and its nudges.
func (t *Triage) repair(
	ctx context.Context, release bool, target admission.Target, found *admission.Findings, receipt *RepairReceipt,
) error {
	page := -1
	err := loop{}.run(ctx, func(ctx context.Context) (more bool, err error) {
		page++
		err = t.decide(ctx, "repair queues", func(ctx context.Context, tx *store.Tx) (err error) {
			var done *admission.Corrected
			if release {
				var writes *store.Pipeline
				if writes, done, more, err = found.Release(ctx, tx, page, t.terms(target)); err == nil && more {
					err = writes.Send(ctx)
				}
			} else {
				done, more, err = found.Correct(ctx, tx, page, t.terms(target))
			}
			if err != nil || !more {
				return err
			}
			after := *receipt
			tx.AfterCommit(func() { *receipt = after })
			return t.repaired(ctx, tx, target, done, &after)
		})
		progress(ctx, len(receipt.Repaired), len(receipt.Found))
		return more, err
	})
	if err != nil {
		return fmt.Errorf("after %d repairs: %w", len(receipt.Repaired), err)
	}
	return nil
}

func (t *Triage) repaired(
	ctx context.Context, tx *store.Tx, target admission.Target, done *admission.Corrected, receipt *RepairReceipt,
) error {
	if len(done.Drifts) == 0 {
		return nil
	}
	heads, err := done.Heads(ctx, tx.Queries)
	if err != nil {
		return err
	}
	// A transaction that is rolled back must not share these lists.
	receipt.Rows = append([]int64(nil), receipt.Rows...)
	receipt.Repaired = append(append([]Drift{}, receipt.Repaired...), done.Drifts...)
	if err := t.nudge(ctx, tx, heads, &receipt.Sent); err != nil {
		return err
	}
	var id int64
	err = t.record(ctx, tx.Queries, &id, audit{
		action: "queue.repair", of: queuesOf(target), reason: receipt.Reason, outcome: outcomeDone,
		request: map[string]any{"repaired": done.Drifts},
	})
	if err != nil {
		return err
	}
	receipt.Audits = append(append([]int64{}, receipt.Audits...), id)
	return nil
}
