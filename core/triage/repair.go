package triage

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/store"
)

// Drift is one thing that is not what the facts say.
type Drift = admission.Drift

// RepairReceipt is what a repair found and did.
type RepairReceipt struct {
	Sent

	Action   string  `json:"action,omitempty"` // only this action's queues
	DryRun   bool    `json:"dry_run,omitempty"`
	Found    []Drift `json:"found"`
	Repaired []Drift `json:"repaired"`
	Remains  []Drift `json:"remains"` // also what went wrong anew meanwhile
	Seconds  float64 `json:"seconds"`
	Audits   []int64 `json:"audit_ids"`
}

// PlanRepair finds what is not as it should be. Nothing is locked or written.
// action limits it to the queues of one; empty: everything.
func (t *Triage) PlanRepair(ctx context.Context, action string) (*RepairReceipt, error) {
	began := time.Now()
	receipt := &RepairReceipt{Action: action, DryRun: true, Repaired: []Drift{}, Audits: []int64{}}
	_, findings, err := t.find(ctx, action)
	if err != nil {
		return nil, err
	}
	receipt.Found, receipt.Remains = findings.list(), findings.list()
	receipt.Seconds = time.Since(began).Seconds()
	return receipt, nil
}

// findings gives the list of drifts its JSON form.
type findings struct{ *admission.Findings }

func (f findings) list() []Drift {
	if f.Drifts == nil {
		return []Drift{}
	}
	return f.Drifts
}

func (t *Triage) terms(target admission.Target) admission.RepairTerms {
	return admission.RepairTerms{
		ActionID: target.ActionID, Grace: t.cfg.ReportGrace, StaleAfter: t.cfg.HeartbeatStaleAfter,
		WithoutStats: t.cfg.WithoutStats,
	}
}

func (t *Triage) find(ctx context.Context, action string) (target admission.Target, found findings, err error) {
	err = t.store.ReadTx(ctx, "compare counters with facts", func(ctx context.Context, tx *store.Tx) error {
		if action != "" {
			if target, err = t.target(ctx, tx.Queries, Target{Action: action}); err != nil {
				return err
			}
		}
		found.Findings, err = admission.FindDrift(ctx, tx, t.terms(target))
		return err
	})
	return target, found, err
}

// Repair puts right what PlanRepair would find: counters are counted again and
// set under the locks of a batch, ended executions give back what they hold,
// and queues that may admit somebody are nudged, also those that waited for a
// shared limit or a worker that has room now. It looks again at the end.
// With an error it returns what had been done by then.
func (t *Triage) Repair(ctx context.Context, action string) (*RepairReceipt, error) {
	began := time.Now()
	receipt := &RepairReceipt{Action: action, Repaired: []Drift{}, Remains: []Drift{}, Audits: []int64{}}
	target, found, err := t.find(ctx, action)
	if err != nil {
		return nil, err
	}
	receipt.Found = found.list()
	if !found.Empty() {
		// Counters first, so that what is released is taken from true ones.
		for _, step := range []pageFunc{t.correct, t.release} {
			if err := t.pages(ctx, step, target, found, receipt); err != nil {
				receipt.Remains = receipt.Found
				return receipt, err
			}
		}
		_, remains, err := t.find(ctx, action)
		if err != nil {
			return receipt, err
		}
		receipt.Remains = remains.list()
	}
	receipt.Seconds = time.Since(began).Seconds()
	return receipt, nil
}

// pageFunc does one page of a repair in a transaction.
type pageFunc func(
	ctx context.Context, tx *store.Tx, target admission.Target, found findings, page int,
) (done *admission.Corrected, more bool, err error)

// pages runs a step page by page, each a transaction with its audit and its
// nudges.
func (t *Triage) pages(ctx context.Context, step pageFunc, target admission.Target, found findings, receipt *RepairReceipt) error {
	more := true
	for page := 0; more; page++ {
		var after RepairReceipt
		err := t.decide(ctx, "repair queues", func(ctx context.Context, tx *store.Tx) (err error) {
			after = *receipt
			var done *admission.Corrected
			if done, more, err = step(ctx, tx, target, found, page); err != nil || !more {
				return err
			}
			return t.repaired(ctx, tx, target, done, &after)
		})
		if err != nil {
			return fmt.Errorf("after %d repairs: %w", len(receipt.Repaired), err)
		}
		*receipt = after
	}
	return nil
}

func (t *Triage) correct(
	ctx context.Context, tx *store.Tx, target admission.Target, found findings, page int,
) (*admission.Corrected, bool, error) {
	return found.Correct(ctx, tx, page, t.terms(target))
}

func (t *Triage) release(
	ctx context.Context, tx *store.Tx, target admission.Target, found findings, page int,
) (*admission.Corrected, bool, error) {
	p, done, more, err := found.Release(ctx, tx, page, t.terms(target))
	if err != nil || !more {
		return nil, more, err
	}
	return done, true, p.Send(ctx)
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
	// Lists of an attempt that is taken back must not share memory with these.
	receipt.Rows = append([]int64(nil), receipt.Rows...)
	receipt.Repaired = append(append([]Drift{}, receipt.Repaired...), done.Drifts...)
	if err := t.nudge(ctx, tx, heads, &receipt.Sent); err != nil {
		return err
	}
	var id int64
	err = t.record(ctx, tx.Queries, &id, audit{
		action: "queue.repair", of: queuesOf(target), outcome: outcomeDone,
		request: map[string]any{"repaired": done.Drifts},
	})
	if err != nil {
		return err
	}
	receipt.Audits = append(append([]int64{}, receipt.Audits...), id)
	return nil
}
