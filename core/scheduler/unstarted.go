package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/lifecycle"
)

// Unstarted is an execution that its worker will not start, or did not start in time.
type Unstarted struct {
	Execution int64
	// Note, Worker and Attempt are set for a dispatch that the broker returned, because the worker
	// has no queue. Otherwise the worker fell silent.
	Note    int64
	Worker  int64
	Attempt int32
	// Leaving is set when the worker accepts nothing more: it drains, or has left.
	Leaving bool
	// Late is set, with Worker and Attempt, when the worker lives.
	Late *Late
}

// Late describes an execution that a live worker did not start in time.
type Late struct {
	Allowed time.Duration // how long the start may take
	// Full is set when the worker runs as much as it can: it will start the execution later.
	Full bool
}

// ReassignStep finds another worker for executions that their worker will not start (see
// Batch.Reassign). It checks everything under the locks: a worker that returned, or started the
// execution, keeps it (invariants S2, S9). An execution for which no worker has capacity keeps its
// slot, and the next batch tries it before the waiting executions.
//
// A live worker also loses an execution that it did not start in time: to another worker if late
// executions may move, or else its row is closed. If the worker is full, the execution stays while
// no other worker has capacity. Executions of a draining or departed worker move as soon as another
// worker has capacity. Until then they stay: the worker may return, and otherwise they become
// overdue or dead letters.
type ReassignStep struct {
	unstarted []Unstarted
	moves     bool
	left      []Unstarted
}

// NewReassignStep makes the step. moveLate says whether executions that a live worker did not start
// in time may move, and whether executions that no worker started are repeated.
func NewReassignStep(unstarted []Unstarted, moveLate bool) *ReassignStep {
	return &ReassignStep{unstarted: unstarted, moves: moveLate}
}

// Executions implements Step.
func (s *ReassignStep) Executions() []int64 {
	ids := make([]int64, len(s.unstarted))
	for i, one := range s.unstarted {
		ids[i] = one.Execution
	}
	return ids
}

// Plan implements Step.
func (s *ReassignStep) Plan(ctx context.Context, plan *Plan) error {
	var actions []int64
	for _, one := range s.unstarted {
		row, ok := plan.Row(one.Execution)
		if !ok || row.Status != lifecycle.StatusScheduled {
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

// Apply implements Step.
func (s *ReassignStep) Apply(batch *Batch) {
	s.left = s.left[:0]
	for _, one := range s.unstarted {
		switch decided := s.reassign(batch, one); {
		case !decided && len(s.left) < maxUnstarted:
			s.left = append(s.left, one)
		case decided && one.Note != 0:
			batch.DeleteNote(one.Note)
		}
	}
}

// maxUnstarted bounds the executions that the next batch tries again; the sweeps find the others.
const maxUnstarted = 100

// reassignTimeout is how long unstarted executions keep their slot while they wait for capacity.
// Then the row is closed, and the retry waits in the queue.
const reassignTimeout = 5 * time.Minute

// Left lists executions for which no worker had capacity. It is valid after the batch.
func (s *ReassignStep) Left() []Unstarted { return s.left }

// reassign reports whether the execution is decided.
func (s *ReassignStep) reassign(batch *Batch, one Unstarted) bool {
	fact, ok := batch.Ledger.Fact(one.Execution)
	if !ok || fact.Status != lifecycle.StatusScheduled {
		return true
	}
	from := deref(fact.Worker)
	if from == 0 { // its worker's row was deleted
		one.Late = nil
	} else if !one.concerns(batch, fact, from) {
		return true
	}
	row, ok := batch.Row(one.Execution)
	if !ok {
		return true
	}
	why := Reassignment{Cause: CauseGone, Move: true, Await: !s.moves, Timeout: reassignTimeout}
	switch {
	case one.Late != nil:
		why.Cause, why.Move, why.Keep, why.Await, why.Timeout = CauseOverdue, s.moves, one.Late.Full, false, 0
		why.Result = overdue(batch, fact, *one.Late)
		if !batch.Ledger.Live(from) { // it sends heartbeats but receives nothing: no consumer reads its queue
			why.Result["message"] = expiredText + ": " + waitedText(fact, from)
		}
	case one.Leaving:
		why.Keep, why.Result = true, map[string]any{} // this step does not end it
	case one.Note != 0:
		why.Cause, why.Same = CauseReturned, true // the returned dispatch never reached it
		why.Result = unavailable(batch, fact, from, "it has no queue to take the execution from",
			lifecycle.ByDispatcher)
	default:
		why.Result = unavailable(batch, fact, from, "it stopped sending heartbeats before it started the execution",
			lifecycle.ByTimeoutMonitor)
		if from != 0 { // its queue has no consumer; do not wait until the message expires there
			why.Result["error"] = expiredText + ": heartbeat timeout before the worker started the execution"
		}
	}
	why.Result["action_ref"] = row.ActionRef
	return batch.Reassign(fact, why) != ReassignOpen
}

// concerns reports whether the finding still holds under the locks.
func (one Unstarted) concerns(batch *Batch, fact admission.Fact, from int64) bool {
	switch {
	case one.Late != nil:
		return from == one.Worker && fact.Attempt == one.Attempt && !batch.Ledger.Gone(from) &&
			batch.Now().Sub(fact.Updated) >= one.Late.Allowed
	case one.Leaving:
		return batch.Ledger.Known(from) && !batch.Ledger.Live(from) // else it was moved since the read
	case one.Note != 0:
		return from == one.Worker && fact.Attempt == one.Attempt // else it was dispatched again since the read
	default:
		return batch.Ledger.Gone(from)
	}
}

// expiredText is what users search for in the result of an execution whose message no worker
// consumed, whichever loop decides first.
const expiredText = "Worker queue TTL expired"

func waitedText(fact admission.Fact, worker int64) string {
	return fmt.Sprintf("it was handed to worker %d at %s and never started",
		worker, fact.Updated.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}

// unavailable is the result of an unstarted execution. Its text decides about the retry.
func unavailable(batch *Batch, fact admission.Fact, worker int64, why, by string) map[string]any {
	return map[string]any{
		"error": "Worker unavailable: " + why, "failed_by": by,
		"message":         waitedText(fact, worker),
		"original_status": string(lifecycle.StatusScheduled), "worker_id": worker, "failed_at": batch.Now(),
	}
}

// overdue is the published result of an execution that a live worker did not start in time.
func overdue(batch *Batch, fact admission.Fact, late Late) map[string]any {
	age, allowed := int64(batch.Now().Sub(fact.Updated).Seconds()), int64(late.Allowed.Seconds())
	return map[string]any{
		"error": fmt.Sprintf(
			"Execution timeout: worker did not pick up task within %d seconds (scheduled for %d seconds)",
			allowed, age),
		"failed_by": lifecycle.ByTimeoutMonitor, "timeout_seconds": allowed, "age_seconds": age,
		"original_status": string(lifecycle.StatusScheduled), "worker_id": *fact.Worker, "failed_at": batch.Now(),
	}
}

var _ Step = (*ReassignStep)(nil)
