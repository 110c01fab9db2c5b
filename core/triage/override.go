package triage

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/store"
)

// Act is what an override does to queues.
type Act = admission.Act

// The acts.
const (
	Pause  = admission.ActPause  // admit nothing
	Resume = admission.ActResume // admit again
	Limit  = admission.ActLimit  // replace the policy's limit
	Reset  = admission.ActReset  // return to the policy's limit
)

// QueueChange is a queue before and after an override.
type QueueChange = admission.QueueChange

// Override asks for a change of queues.
type Override struct {
	Target

	Act    Act    `json:"act"`
	Limit  int    `json:"limit,omitempty"`  // of Limit
	Reason string `json:"reason,omitempty"` // of Pause
}

func (t *Triage) override(order Override) (admission.Override, error) {
	if order.Act == Limit && (order.Limit < 1 || order.Limit >= admission.Unlimited) {
		return admission.Override{}, fmt.Errorf("%w: %d", ErrLimit, order.Limit)
	}
	return admission.Override{Act: order.Act, Limit: order.Limit, Reason: order.Reason, By: t.cfg.Actor}, nil
}

// OverridePlan is what an override would change.
type OverridePlan struct {
	Override

	Queues []QueueChange `json:"queues"` // in order of id; empty: the queue would be created
	// PolicyLimit is the limit of the action's policy; nil without one.
	PolicyLimit *int `json:"policy_limit,omitempty"`
}

// AbovePolicy reports whether the override sets a limit above that of the policy.
func (p *OverridePlan) AbovePolicy() bool {
	return p.Act == Limit && p.PolicyLimit != nil && p.Limit > *p.PolicyLimit
}

// maxListed bounds the queues or executions that a receipt lists one by one.
const maxListed = 1000

// PlanOverride reads what an override would change, without locks or writes.
func (t *Triage) PlanOverride(ctx context.Context, order Override) (*OverridePlan, error) {
	override, err := t.override(order)
	if err != nil {
		return nil, err
	}
	return Read(ctx, t, "plan an override", func(ctx context.Context, tx *store.Tx) (*OverridePlan, error) {
		target, err := t.target(ctx, tx.Queries, order.Target)
		if err != nil {
			return nil, err
		}
		planned := &OverridePlan{Override: order}
		planned.Group = target.Group
		if limit, limited := target.PolicyLimit(); limited {
			planned.PolicyLimit = &limit
		}
		planned.Queues, err = admission.Preview(ctx, tx.Queries, target, override)
		return planned, err
	})
}

// OverrideReceipt is what an override has changed.
type OverrideReceipt struct {
	Override
	Sent

	Queues  []QueueChange `json:"queues"`  // in order of id, the first thousand
	Changed int           `json:"changed"` // queues that changed
	Already int           `json:"already"` // queues that needed no change
	// ReasonChanged counts the queues that were paused already and have a new reason.
	ReasonChanged int `json:"reason_changed,omitempty"`
	Waiting       int `json:"waiting"` // executions in the queues
	// WithRoom counts the queues that can admit an execution now; a batch is requested for each.
	WithRoom int   `json:"queues_with_room"`
	Audit    int64 `json:"audit_id,omitempty"`
}

// Override applies an override to queues. The action must exist. For pause and limit a missing
// queue is created, so that the override holds for future executions.
func (t *Triage) Override(ctx context.Context, order Override) (*OverrideReceipt, error) {
	override, err := t.override(order)
	if err != nil {
		return nil, err
	}
	name := string(order.Act) + " queues"
	return commit(ctx, t, name, func(ctx context.Context, tx *store.Tx) (*OverrideReceipt, error) {
		receipt := &OverrideReceipt{Override: order}
		target, err := t.target(ctx, tx.Queries, order.Target)
		if err != nil {
			return nil, err
		}
		receipt.Group = target.Group
		applied, err := admission.Apply(ctx, tx, target, override)
		if err != nil {
			return nil, err
		}
		receipt.Queues, receipt.WithRoom = applied.Queues[:min(len(applied.Queues), maxListed)], len(applied.Heads)
		for _, q := range applied.Queues {
			receipt.Waiting += q.Waiting
			if q.ReasonChanged() {
				receipt.ReasonChanged++
			}
			if q.Changed {
				receipt.Changed++
			}
		}
		receipt.Already = len(applied.Queues) - receipt.Changed
		if err := t.nudge(ctx, tx, applied.Heads, &receipt.Sent); err != nil {
			return nil, err
		}
		outcome := outcomeDone
		if receipt.Changed == 0 {
			outcome = outcomeUnchanged
		}
		return receipt, t.record(ctx, tx.Queries, &receipt.Audit, audit{
			action: "queue." + string(order.Act), of: queuesOf(target), reason: order.Reason, request: receipt,
			outcome: outcome,
		})
	})
}
