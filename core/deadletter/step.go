package deadletter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

// Step is the part of a batch that decides about dispatches that died before their worker took
// them. It checks each again under the locks: only an execution that is still scheduled at that
// worker, with that attempt, is moved or ended (invariant S9). The batch's transaction writes the
// ledger row and its decision.
type Step struct {
	deadLetters []*Message
	room        int
	ttl         time.Duration
}

// MaxOpen bounds the open dead letters of a replica, for which no worker has capacity. It is less
// than Prefetch, so that they never block later deliveries.
const MaxOpen = 20

// NewStep makes the step. A dead letter belongs to one batch at a time. At most room of them may
// stay open; the others are decided at once.
func NewStep(deadLetters []*Message, room int) *Step {
	deadLetters = slices.Clone(deadLetters)
	// Two batches with the same dead letters write them in the same order.
	slices.SortFunc(deadLetters, func(a, b *Message) int { return strings.Compare(a.fingerprint, b.fingerprint) })
	return &Step{deadLetters: deadLetters, room: room}
}

// WithQueueTTL says how long dispatches live in the queues of workers. A dead letter of a dispatch at a live worker
// that cannot have expired yet is a copy, and changes nothing; if the dispatch is lost nevertheless, the execution is
// late.
func (s *Step) WithQueueTTL(ttl time.Duration) *Step {
	s.ttl = ttl
	return s
}

// Executions implements scheduler.Step.
func (s *Step) Executions() []int64 {
	ids := make([]int64, len(s.deadLetters))
	for i, l := range s.deadLetters {
		ids[i] = l.Execution
	}
	return ids
}

// Plan implements scheduler.Step.
func (s *Step) Plan(ctx context.Context, plan *scheduler.Plan) error {
	var actions []int64
	for _, l := range s.deadLetters {
		row, ok := plan.Row(l.Execution)
		if !ok {
			continue
		}
		if row.HeldState != 0 {
			plan.NeedQueue(row.HeldState)
		}
		if row.Worker != nil {
			plan.NeedWorker(*row.Worker)
		}
		if row.Action != nil {
			actions = append(actions, *row.Action)
		}
	}
	return plan.LoadRules(ctx, actions, nil)
}

// Apply implements scheduler.Step.
func (s *Step) Apply(batch *scheduler.Batch) {
	kept := 0
	for _, l := range s.deadLetters {
		v, open := l.resolve(batch, kept < s.room, s.ttl)
		if l.open = open; open {
			kept++
			continue
		}
		l.decision, l.detail = v.decision, v.detail
		batch.Also(store.RecordDeadLetter, l.columns(v)...)
	}
}

// Open reports that no worker had capacity for the execution, and that nothing was decided: the
// next batch must try again. It is valid after the batch.
func (l *Message) Open() bool { return l.open }

// roomTimeout is how long the execution of a dead letter keeps its slot while it waits for capacity at
// another worker. Then it is ended, and its retry waits in the queue like any other.
const roomTimeout = 5 * time.Minute

// wait is how long after its dispatch an execution may wait for capacity: roomTimeout from the time
// when a batch first read its dead letter, by the database's clock, because the broker's clock may
// be wrong. Another replica may have read a redelivered dead letter before: its timeout starts at
// the dispatch.
func (l *Message) wait(now, handed time.Time) time.Duration {
	if l.delivery.Redelivered {
		return roomTimeout
	}
	if l.firstRead.IsZero() {
		l.firstRead = now
	}
	return roomTimeout + max(l.firstRead.Sub(handed), 0)
}

// resolve decides under the locks. Only with mayWait it leaves a dead letter open if no worker has
// capacity.
func (l *Message) resolve(batch *scheduler.Batch, mayWait bool, ttl time.Duration) (v verdict, open bool) {
	fact, ok := batch.Ledger.Fact(l.Execution)
	if !ok {
		return stale("no such execution"), false
	}
	row, planned := batch.Row(l.Execution)
	e := l.locked(fact, row.ActionRef)
	if v = l.decideDispatch(e); !v.needsBatch {
		return v, false
	}
	if !planned { // it was written after the batch planned
		batch.Replan()
		return v, true
	}
	if age := batch.Now().Sub(fact.Updated); batch.Ledger.Live(l.worker) && l.early(age, ttl) {
		return stale("execution %d was handed to worker %d %s ago, and its queue keeps dispatches for %s: a copy died",
			l.Execution, l.worker, age.Round(time.Second/10), ttl), false
	}
	why := scheduler.Reassignment{
		Cause: scheduler.CauseDeadLetter, Move: true,
		// An expired dispatch never reached the worker, and a rejected one would be rejected again.
		// A worker rejects a batch when it no longer reads batches.
		Same:   l.reason == ReasonExpired || l.batched,
		Result: l.result(batch, row.ActionRef),
	}
	if mayWait {
		why.Timeout = l.wait(batch.Now(), fact.Updated)
	}
	switch batch.Reassign(fact, why) {
	case scheduler.ReassignOpen:
		return v, true
	case scheduler.ReassignMoved:
		return verdict{decision: Retried, detail: l.moved(batch)}, false
	case scheduler.ReassignEnded:
		return verdict{decision: Failed, detail: "ended; its retry, if it may have one, is a new execution"}, false
	case scheduler.ReassignKept:
	}
	return stale("execution %d stays where it is", l.Execution), false
}

// early reports that a dispatch of this age cannot have died by its queue's time to live, in spite of its dead letter.
// Clocks may differ a little.
func (l *Message) early(age, ttl time.Duration) bool {
	return (l.reason == ReasonExpired || l.reason == ReasonUnknown) && age < ttl-ttl/10
}

// locked is the execution as the batch read it under its locks.
func (l *Message) locked(fact admission.Fact, actionRef string) *execution {
	e := &execution{ActionRef: actionRef}
	if l.seen.execution != nil {
		*e = *l.seen.execution
	}
	e.ID, e.Status, e.Attempt, e.Updated, e.StartedAt, e.Holds = fact.ID, fact.Status, fact.Attempt, fact.Updated,
		fact.Started, fact.Holds != nil
	e.Worker = 0
	if fact.Worker != nil {
		e.Worker = *fact.Worker
	}
	l.seen.execution = e
	return e
}

// moved names the worker to which the execution moved.
func (l *Message) moved(batch *scheduler.Batch) string {
	if fact, ok := batch.Ledger.Fact(l.Execution); ok && fact.Worker != nil {
		return fmt.Sprintf("handed to worker %d as attempt %d", *fact.Worker, fact.Attempt)
	}
	return "dispatched again"
}

// result is the result of an execution that is ended because of its dead letter.
func (l *Message) result(batch *scheduler.Batch, actionRef string) map[string]any {
	result := map[string]any{
		"error": "Worker queue TTL expired",
		"message": fmt.Sprintf(
			"Worker did not process execution within configured TTL: it was handed to worker %d and never started",
			l.worker),
		"failed_by":       lifecycle.ByDeadLetters,
		"original_status": "scheduled", "action_ref": actionRef,
		"worker_id": l.worker, "failed_at": batch.Now(), "expired_at": batch.Now(),
	}
	if !l.died.IsZero() {
		result["expired_at"] = l.died.UTC()
	}
	if l.unreadable {
		result["error"] = "Dispatch cannot be read"
		result["message"] = fmt.Sprintf(
			"the message that handed the execution to worker %d is too large, nested too deeply or damaged", l.worker)
		return result
	}
	if l.reason != ReasonExpired {
		result["error"] = "Worker unavailable: the execution was returned unprocessed"
		result["message"] = fmt.Sprintf("worker %d, to which it was handed, did not take it (%s)", l.worker,
			clean(l.reason))
		result["rejected_at"] = result["expired_at"]
		delete(result, "expired_at")
	}
	return result
}

var _ scheduler.Step = (*Step)(nil)
