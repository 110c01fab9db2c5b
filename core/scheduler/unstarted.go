package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/retrypolicy"
)

// Unstarted is an execution that was handed to a worker which will not start it,
// or has not in time.
type Unstarted struct {
	Execution int64
	// Note, Worker and Attempt are set for a hand-over that the broker returned,
	// because the worker has no queue. Otherwise the worker fell silent.
	Note    int64
	Worker  int64
	Attempt int32
	// Leaving is set when the worker takes nothing more: it drains, or has left.
	Leaving bool
	// Late is set, with Worker and Attempt, when the worker lives.
	Late *Late
}

// Late says that a worker which lives has not started an execution in time.
type Late struct {
	Allowed time.Duration // how long it may take
	// Full is set when the worker runs all that it can: it will come to it.
	Full bool
}

// ReassignStep is the step that finds another worker for executions that theirs will
// not start. In place when both workers fence attempts: what the old one may still
// have got is refused by it. Otherwise the old one could start it yet, so the row
// is closed and the work is repeated as a new row, which a late start cannot
// touch. Everything is judged under the locks: a worker that came back, or started
// the execution, keeps it (invariants S2, S9).
//
// For whom no fitting worker has room is left for the next batch, which comes to
// them before it comes to those who wait in line: they keep their slot.
//
// A worker that lives and has not started an execution in time loses it too: to
// another worker, if those may be moved that are merely late, or else its row is
// closed. Only what a worker with its hands full has not come to yet stays with
// it while nobody else has room. What lies at a worker that drains or has left
// goes to another as soon as one has room, and until then stays: it may come back
// to it, and is dealt with as overdue or as a dead letter if it does not.
type ReassignStep struct {
	unstarted []Unstarted
	moves     bool
	left      []Unstarted
}

// NewReassignStep makes the step. moveLate says whether what a living worker has not
// started in time may go to another.
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
		if !ok || row.Status != attune.StatusScheduled {
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
			batch.Settle(one.Note)
		}
	}
}

// maxUnstarted bounds who is tried again by the next batch; the sweeps find the
// others again.
const maxUnstarted = 100

// reassignTimeout is how long unstarted executions keep their slot while they wait for room;
// then the work is closed and repeated, and so waits in line like everybody else.
const reassignTimeout = 5 * time.Minute

// Left lists those for whom no worker had room. It is valid after the batch.
func (s *ReassignStep) Left() []Unstarted { return s.left }

// rehome reports whether nothing is left to do.
func (s *ReassignStep) reassign(batch *Batch, one Unstarted) bool {
	fact, ok := batch.Ledger.Fact(one.Execution)
	if !ok || fact.Status != attune.StatusScheduled {
		return true
	}
	from := int64(0) // its worker's row was deleted
	if fact.Worker != nil {
		from = *fact.Worker
	}
	if from == 0 {
		one.Late = nil
	} else if !one.concerns(batch, fact, from) {
		return true
	}
	row, ok := batch.Row(one.Execution)
	if !ok {
		return true
	}
	why := Reassignment{Cause: CauseGone, Move: true, Timeout: reassignTimeout}
	switch {
	case one.Late != nil:
		why.Cause, why.Move, why.Keep, why.Timeout = CauseOverdue, s.moves, one.Late.Full, 0
		why.Result = overdue(batch, fact, *one.Late)
		if !batch.Ledger.Live(from) { // beats, and is given nothing: nobody takes messages out of its queue
			why.Result["message"] = expiredText + ": " + waitedText(fact, from)
		}
	case one.Leaving:
		why.Keep, why.Result = true, map[string]any{} // it is not ended here
	case one.Note != 0:
		why.Cause, why.Same = CauseReturned, true // what was returned never reached it
		why.Result = unavailable(batch, fact, from, "it has no queue to take the execution from", retrypolicy.ByDispatcher)
	default:
		why.Result = unavailable(batch, fact, from, "it stopped sending heartbeats before it started the execution",
			retrypolicy.ByTimeoutMonitor)
		if from != 0 { // its message waits in a queue that nobody empties; the end is not put off until it expires there
			why.Result["error"] = expiredText + ": heartbeat timeout before the worker started the execution"
		}
	}
	why.Result["action_ref"] = row.ActionRef
	return batch.Reassign(fact, why) != ReassignOpen
}

// concerns reports whether what was found is still so under the locks.
func (one Unstarted) concerns(batch *Batch, fact admission.Fact, from int64) bool {
	switch {
	case one.Late != nil:
		return from == one.Worker && fact.Attempt == one.Attempt && !batch.Ledger.Gone(from) &&
			batch.Now().Sub(fact.Updated) >= one.Late.Allowed
	case one.Leaving:
		return batch.Ledger.Judged(from) && !batch.Ledger.Live(from) // else it has been moved since it was read
	case one.Note != 0:
		return from == one.Worker && fact.Attempt == one.Attempt // else it has been handed over again since
	default:
		return batch.Ledger.Gone(from)
	}
}

// expiredText is what users look for in the result of an execution whose message no
// worker took out of its queue, whichever loop has decided about it first.
const expiredText = "Worker queue TTL expired"

func waitedText(fact admission.Fact, worker int64) string {
	return fmt.Sprintf("it was handed to worker %d at %s and never started",
		worker, fact.Updated.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}

// unavailable is what the row of a stranded execution says, in the words by which
// its repetition is decided.
func unavailable(batch *Batch, fact admission.Fact, worker int64, why, by string) map[string]any {
	return map[string]any{
		"error": "Worker unavailable: " + why, "failed_by": by,
		"message":         waitedText(fact, worker),
		"original_status": string(attune.StatusScheduled), "worker_id": worker, "failed_at": batch.Now(),
	}
}

// overdue is what the row says of an execution whose worker lives and has not
// started it in time, in the published words.
func overdue(batch *Batch, fact admission.Fact, late Late) map[string]any {
	age, allowed := int64(batch.Now().Sub(fact.Updated).Seconds()), int64(late.Allowed.Seconds())
	return map[string]any{
		"error": fmt.Sprintf("Execution timeout: worker did not pick up task within %d seconds (scheduled for %d seconds)",
			allowed, age),
		"failed_by": retrypolicy.ByTimeoutMonitor, "timeout_seconds": allowed, "age_seconds": age,
		"original_status": string(attune.StatusScheduled), "worker_id": *fact.Worker, "failed_at": batch.Now(),
	}
}

var _ Step = (*ReassignStep)(nil)
