package triage

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/attune-go/attune/core/broker"
)

// QueueTTLPlan is how a time to live would be reached. Nothing is changed by it.
type QueueTTLPlan struct {
	Target int64  `json:"target_ms"`
	Worker string `json:"worker,omitempty"` // empty: all
	Reason string `json:"reason,omitempty"`
	// Put is the policy that would be made or replaced, Delete the names of ours
	// that would be taken away.
	Put    *broker.Policy `json:"put_policy,omitempty"`
	Delete []string       `json:"delete_policies,omitempty"`
	// Recreate are the queues whose argument is lower than the target, or, where
	// all are to be declared with the target, those whose argument is another.
	Recreate []QueueTTL `json:"recreate"`
	// Same are the queues that have it already.
	Same int `json:"same"`
	// Blocked says what stands in the way; the plan cannot be run then.
	Blocked  string   `json:"blocked,omitempty"`
	Warnings []string `json:"warnings,omitempty"`

	queues  []QueueTTL
	declare bool // no policy: all are declared with the target
}

// Nothing tells whether all is as wanted.
func (p *QueueTTLPlan) Nothing() bool {
	return p.Put == nil && len(p.Delete) == 0 && len(p.Recreate) == 0
}

// Queues are those that the plan is about.
func (p *QueueTTLPlan) Queues() []QueueTTL { return p.queues }

// The bounds of a time to live: the broker takes no more than 32 bits.
const (
	minQueueTTL = time.Second
	maxQueueTTL = 49 * 24 * time.Hour
)

// TTLOrder says which time to live queues should have.
type TTLOrder struct {
	TTL    time.Duration
	Worker string // by id or name; empty: all
	// Recreate has the queues declared with it, also where a policy would do. It
	// is for workers that declare it.
	Recreate bool
	Reason   string // for the audit
}

// PlanTTL says how the queues of a worker, or of all, come to a time to live.
func (q *QueueTTLs) PlanTTL(ctx context.Context, order TTLOrder) (*QueueTTLPlan, error) {
	target, worker := order.TTL, order.Worker
	if target < minQueueTTL || target > maxQueueTTL {
		return nil, fmt.Errorf("%w: a time to live is between %s and %s, not %s", ErrLimit, minQueueTTL, maxQueueTTL, target)
	}
	report, err := q.Report(ctx)
	if err != nil {
		return nil, err
	}
	plan := &QueueTTLPlan{Target: target.Milliseconds(), Worker: worker, Recreate: []QueueTTL{}, declare: order.Recreate, Reason: order.Reason}
	if plan.queues, err = report.pick(worker); err != nil {
		return nil, err
	}
	for _, one := range plan.queues {
		switch {
		case one.Interrupted, one.Argument != nil && *one.Argument < plan.Target,
			order.Recreate && (one.Argument == nil || *one.Argument != plan.Target):
			plan.Recreate = append(plan.Recreate, one)
		case one.Effective != nil && *one.Effective == plan.Target:
			plan.Same++
		}
		if one.Operator != nil && *one.Operator < plan.Target {
			plan.Blocked = fmt.Sprintf("operator policy %q gives %s %s, and only those who run the broker can change it",
				one.OperatorPolicy, one.Queue, span(*one.Operator))
		}
	}
	plan.policies(report)
	plan.warn(q.cfg)
	return plan, nil
}

// policies decides about ours: one makes what is above the target obey it, and
// none is left that is below it.
func (p *QueueTTLPlan) policies(report *QueueTTLReport) {
	name, pattern, priority := PolicyWorkerTTL, policyWorkerTTLPattern, 0
	if p.Worker != "" {
		name = fmt.Sprintf("%s-%d", PolicyWorkerTTL, p.queues[0].Worker)
		pattern, priority = "^"+regexp.QuoteMeta(p.queues[0].Queue)+"$", 1
	}
	lower, general := false, false // a policy is needed; the one for all is in the way
	for _, one := range p.queues {
		lower = lower || one.Exists && !p.declare && (one.Argument == nil || *one.Argument > p.Target)
		general = general || p.Worker != "" && one.PolicyName == PolicyWorkerTTL && one.Policy != nil && *one.Policy < p.Target
	}
	for _, one := range p.queues {
		below := one.Policy != nil && *one.Policy < p.Target && !ours(one.PolicyName)
		if foreign := p.foreign(report, one); foreign != "" && (lower || general || below) {
			p.Blocked = foreign
		}
	}
	mine := map[string]*int64{}
	for _, policy := range report.policies {
		if ours(policy.Name) {
			mine[policy.Name] = number(policy.Definition[policyTTLKey])
		}
	}
	if has := mine[name]; lower || general {
		if has == nil || *has != p.Target {
			p.Put = &broker.Policy{
				Name: name, Pattern: pattern, ApplyTo: "queues", Priority: priority, Definition: map[string]any{policyTTLKey: p.Target},
			}
		}
	} else if _, there := mine[name]; there {
		p.Delete = append(p.Delete, name)
	}
	if p.Worker == "" { // what single workers were given ends with a word about all
		for _, policy := range report.policies {
			if ours(policy.Name) && policy.Name != PolicyWorkerTTL {
				p.Delete = append(p.Delete, policy.Name)
			}
		}
	}
}

func ours(policy string) bool {
	return policy == PolicyWorkerTTL || strings.HasPrefix(policy, PolicyWorkerTTL+"-")
}

// foreign names a policy of somebody else for the queue. A queue obeys only one:
// ours would put theirs out of force, or be put out of force by it.
func (p *QueueTTLPlan) foreign(report *QueueTTLReport, one QueueTTL) string {
	for _, policy := range report.policies {
		if !ours(policy.Name) && policy.GovernsQueue(one.Queue) {
			return fmt.Sprintf("policy %q (%s, priority %d) governs %s, and a queue obeys only one: put %s %d into it, or take these queues out of its pattern",
				policy.Name, policy.Pattern, policy.Priority, one.Queue, policyTTLKey, p.Target)
		}
	}
	return ""
}

func (p *QueueTTLPlan) warn(cfg QueueTTLConfig) {
	target := time.Duration(p.Target) * time.Millisecond
	if len(p.Recreate) > 0 && target != AttuneWorkerTTL {
		p.Warnings = append(p.Warnings, fmt.Sprintf("existing Attune workers declare %d ms, whatever is configured: the broker refuses them (406) at a queue with %d ms, and they do not start",
			AttuneWorkerTTL.Milliseconds(), p.Target))
	}
	if len(p.Recreate) > 0 && target != cfg.Configured {
		p.Warnings = append(p.Warnings, fmt.Sprintf("message_queue.rabbitmq.worker_queue_ttl_ms is %d: set it to %d for engines and workers before they start again, or they are refused too",
			cfg.Configured.Milliseconds(), p.Target))
	}
}

// span is a number of milliseconds for people.
func span(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
