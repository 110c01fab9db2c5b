package admission

import (
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/policy"
)

// QueueConfig are the limits that policies set for a queue.
type QueueConfig struct {
	Limit     policy.Limit
	MaxQueued int           // 0: as configured
	Timeout   time.Duration // 0: as configured
}

// Configure puts the limits of a queue in force. An operator's limit replaces the policy's; an
// adaptive one stays below. A lowered limit evicts no execution; the next Promote fills a raised
// one.
func (l *Ledger) Configure(queueID int64, terms QueueConfig) {
	q := l.queues[queueID]
	if q == nil {
		return
	}
	q.hard, q.adaptive = terms.Limit.Max, terms.Limit.Adaptive
	unlimited := terms.Limit.Unlimited
	if q.override > 0 {
		q.hard, unlimited = q.override, false
	}
	if unlimited {
		q.hard, q.adaptive = Unlimited, nil
	}
	now := limits{
		max: q.hard, unlimited: unlimited, maxQueued: terms.MaxQueued, timeout: terms.Timeout,
		adapted: q.limits.adapted,
	}
	if q.adaptive == nil {
		now.adapted = policy.Adapted{}
	} else {
		now.adapted = q.adaptive.Bound(now.adapted, q.hard)
		now.max = now.adapted.Whole()
	}
	q.limits = now
}

// adapt moves an adaptive limit by the outcome of an execution. A cancelled execution does not
// count.
func (q *queue) adapt(fact Fact, now time.Time) {
	if q.adaptive == nil || fact.Status == attune.StatusCancelled {
		return
	}
	bad := fact.Status != attune.StatusCompleted
	if !bad && q.adaptive.Latency > 0 && fact.Started != nil {
		ended := now
		if fact.Ended != nil {
			ended = *fact.Ended
		}
		bad = ended.Sub(*fact.Started) > q.adaptive.Latency
	}
	q.limits.adapted = q.adaptive.After(q.limits.adapted, q.hard, bad, now)
	q.limits.max = q.limits.adapted.Whole()
}

// SetScope sets the policy of a shared limit for this batch.
func (l *Ledger) SetScope(id int64, rule policy.SharedLimit) {
	s := l.scopes[id]
	if s == nil {
		return
	}
	s.rule, s.max = &rule, rule.Max
	if s.kind == policy.SharedRate {
		s.due = s.rate().Due(l.Clock, s.due)
	}
}
