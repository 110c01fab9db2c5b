package scheduler

import (
	"fmt"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/policy"
)

// Entry says how an execution enters its queue.
type Entry struct {
	Key      admission.Key
	Priority int16
	Retry    bool // a retry: it goes before waiting executions if its policy says so
	// Late is set when a sweep found the execution because its request was lost.
	Late bool
	// Moved is set when the execution waited in another queue before. The number of waiting
	// executions stays the same, so neither the length limit nor a policy that forbids waiting
	// applies.
	Moved bool
}

// Enter admits an execution whose queue was planned: it gets a slot and a worker, waits in the
// queue, or ends with the reason in its result.
func (b *Batch) Enter(w admission.Candidate, rule Rule, entry Entry) {
	queue, ok := b.Queue(entry.Key)
	if !ok {
		b.Fail(w.ExecutionID, rule.ActionID, w.ActionRef, "action not found",
			"the action was deleted while the execution was admitted")
		return
	}
	if entry.Moved {
		w.Requested = time.Time{} // it waits
	}
	how := admission.AdmitOptions{
		Queue: queue, MayWait: entry.Moved || rule.Limits.Queue.Method != policy.MethodCancel,
		Priority: entry.Priority, Front: entry.Retry && b.Front(rule), Late: entry.Late && !entry.Retry,
		Moved: entry.Moved,
	}
	if !entry.Moved {
		how.MaxQueued = b.MaxQueued(rule)
	}
	switch result, why := b.Ledger.Admit(w, how, b.Gate()); result {
	case admission.Full:
		q, _ := b.Ledger.Queue(queue)
		b.Refuse(w.ExecutionID, w.ActionID, w.ActionRef, fmt.Sprintf("Queue full (max length: %d)", how.MaxQueued),
			fmt.Sprintf("%d executions wait in the queue of the action, which is as many as may", q.Queued),
			map[string]any{"queue_length": q.Queued, "max_queue_length": how.MaxQueued})
	case admission.Refused:
		b.refuse(w, rule, queue, why)
	case admission.Admitted, admission.Queued, admission.Ended:
	}
}

func (b *Batch) refuse(w admission.Candidate, rule Rule, queue int64, why string) {
	if why != "" {
		b.Refuse(w.ExecutionID, w.ActionID, w.ActionRef, "policy violation",
			why+", and it does not let executions wait", nil)
		return
	}
	q, _ := b.Ledger.Queue(queue)
	b.Refuse(w.ExecutionID, w.ActionID, w.ActionRef, "policy violation",
		fmt.Sprintf("all %d slots of policy %s are in use or reserved, and it does not let executions wait",
			q.Max, rule.Limits.Queue.PolicyRef),
		map[string]any{"policy": rule.Limits.Queue.PolicyRef, "limit": q.Max})
}
