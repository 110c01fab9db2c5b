package triage

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/store"
)

// Act is what an operator may say about queues.
type Act = admission.Act

// The acts.
const (
	Pause  = admission.ActPause  // admit nothing
	Resume = admission.ActResume // admit again
	Limit  = admission.ActLimit  // another limit than the policy's
	Reset  = admission.ActReset  // the policy's limit again
)

// QueueWord is a queue before and after a word.
type QueueWord = admission.QueueChange

// Order is a word to be said.
type Order struct {
	Target

	Act    Act    `json:"act"`
	Limit  int    `json:"limit,omitempty"`  // of Limit
	Reason string `json:"reason,omitempty"` // of Pause
}

func (t *Triage) word(order Order) (admission.Override, error) {
	if order.Act == Limit && (order.Limit < 1 || order.Limit >= admission.Unlimited) {
		return admission.Override{}, fmt.Errorf("%w: %d", ErrLimit, order.Limit)
	}
	return admission.Override{Act: order.Act, Limit: order.Limit, Reason: order.Reason, By: t.cfg.Actor}, nil
}

// WordPlan is what a word would change.
type WordPlan struct {
	Order

	Queues []QueueWord `json:"queues"` // in order of id; empty: the queue would be made
	// PolicyLimit is the limit of the action's policy; nil where it sets none.
	PolicyLimit *int `json:"policy_limit,omitempty"`
}

// AbovePolicy reports whether the order sets a limit above that of the policy.
func (p *WordPlan) AbovePolicy() bool {
	return p.Act == Limit && p.PolicyLimit != nil && p.Limit > *p.PolicyLimit
}

// maxListed bounds the queues that a receipt lists one by one.
const maxListed = 1000

// PlanWord reads what a word would change. Nothing is locked or written.
func (t *Triage) PlanWord(ctx context.Context, order Order) (*WordPlan, error) {
	word, err := t.word(order)
	if err != nil {
		return nil, err
	}
	return snapshot(ctx, t, "plan a word on queues", func(ctx context.Context, tx *store.Tx) (*WordPlan, error) {
		target, err := t.target(ctx, tx.Queries, order.Target)
		if err != nil {
			return nil, err
		}
		planned := &WordPlan{Order: order}
		planned.Group = target.Group
		if limit, limited := target.PolicyLimit(); limited {
			planned.PolicyLimit = &limit
		}
		planned.Queues, err = admission.Preview(ctx, tx.Queries, target, word)
		return planned, err
	})
}

// WordReceipt is what a word has changed.
type WordReceipt struct {
	Order
	Sent

	Queues  []QueueWord `json:"queues"`  // in order of id, the first thousand
	Changed int         `json:"changed"` // queues that changed
	Already int         `json:"already"` // queues that were so already
	// ReasonChanged is how many of them were paused already: only why has changed.
	ReasonChanged int `json:"reason_changed,omitempty"`
	Waiting       int `json:"waiting"` // executions that wait in them
	// WithRoom is how many queues have room now for somebody whom they kept; their
	// batches are asked for.
	WithRoom int   `json:"queues_with_room"`
	Audit    int64 `json:"audit_id,omitempty"`
}

// Say puts a word on queues. The action must exist; a queue that nobody has
// used yet is made for pause and limit, so that the word holds for whoever
// comes.
func (t *Triage) Say(ctx context.Context, order Order) (*WordReceipt, error) {
	word, err := t.word(order)
	if err != nil {
		return nil, err
	}
	return commit(ctx, t, string(order.Act)+" queues", func(ctx context.Context, tx *store.Tx) (*WordReceipt, error) {
		receipt := &WordReceipt{Order: order}
		target, err := t.target(ctx, tx.Queries, order.Target)
		if err != nil {
			return nil, err
		}
		receipt.Group = target.Group
		said, err := admission.Apply(ctx, tx, target, word)
		if err != nil {
			return nil, err
		}
		receipt.Queues, receipt.WithRoom = said.Queues[:min(len(said.Queues), maxListed)], len(said.Heads)
		for _, q := range said.Queues {
			receipt.Waiting += q.Waiting
			if q.ReasonChanged() {
				receipt.ReasonChanged++
			}
			if q.Changed {
				receipt.Changed++
			} else {
				receipt.Already++
			}
		}
		a := audit{
			action: "queue." + string(order.Act), of: queuesOf(target), reason: order.Reason, request: receipt,
			outcome: outcomeDone,
		}
		if receipt.Changed == 0 {
			a.outcome = outcomeUnchanged
		}
		if err := t.nudge(ctx, tx, said.Heads, &receipt.Sent); err != nil {
			return nil, err
		}
		return receipt, t.record(ctx, tx.Queries, &receipt.Audit, a)
	})
}
