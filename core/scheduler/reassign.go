package scheduler

import (
	"maps"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/bounds"
	"github.com/attune-go/attune/core/placement"
)

// Cause is why a hand-over is taken back, as lost_work spells it.
type Cause string

// The causes.
const (
	CauseGone       Cause = "worker_gone"       // the worker fell silent, or leaves
	CauseReturned   Cause = "returned"          // the broker returned the message: no queue took it
	CauseOverdue    Cause = "scheduled_timeout" // the worker lives and has not started it in time
	CauseDeadLetter Cause = "dead_letter"       // the message expired in the worker's queue, or was rejected
)

// Reassignment says why a worker will not start what it was handed, and what may be
// done about it.
type Reassignment struct {
	Cause Cause
	// Same lets its own worker have it again, while that may be given work: what it
	// was handed never reached it, or is there no more.
	Same bool
	// Move lets another worker have it, in place.
	Move bool
	// Keep leaves it where it is while no other worker has room: its worker will
	// come to it.
	Keep bool
	// Timeout is how long after the hand-over it may wait for room elsewhere. It
	// keeps its slot meanwhile.
	Timeout time.Duration
	// Result is what the row says if it is ended.
	Result map[string]any
}

// ReassignResult is what became of an execution that its worker will not start.
type ReassignResult int

// The results.
const (
	ReassignOpen  ReassignResult = iota // no worker has room: the next batch tries again
	ReassignKept                        // it stays where it is
	ReassignMoved                       // another worker has it, as its next attempt
	ReassignEnded                       // its row is closed; what follows, a repetition perhaps, follows from its end
)

// maxMoves bounds the hand-overs of one attempt; beyond it the work is closed and
// repeated, and so waits in line like everybody else.
const maxMoves = 10

// Reassign decides about a scheduled execution that its worker has not started. In
// place if both workers fence attempts: what the old one may still have got is
// refused by it. Otherwise the old one could start it yet, so the row is closed
// and the work is repeated as a new row, which a late start cannot touch; a worker
// that lives is told to drop what it has. The caller has made sure under the locks
// that the execution is still scheduled where it thinks.
func (b *Batch) Reassign(fact admission.Fact, why Reassignment) ReassignResult {
	w, ok := b.Waiter(fact)
	if !ok {
		return ReassignKept
	}
	if err := bounds.TooDeep("parameters", w.Config); err != nil {
		why.Move, why.Result = false, maps.Clone(why.Result)
		why.Result["error"], why.Result["message"] = "parameters cannot be read", err.Error()
	}
	from := int64(0) // its worker's row was deleted
	if fact.Worker != nil {
		from = *fact.Worker
	}
	if result := b.elsewhere(fact, w, from, why); result != ReassignEnded {
		return result
	}
	b.stop(w, from, why)
	return ReassignEnded
}

// elsewhere finds another worker for an execution; ReassignEnded says that there is
// none to wait for.
func (b *Batch) elsewhere(fact admission.Fact, w admission.Waiter, from int64, why Reassignment) ReassignResult {
	last := ReassignEnded
	if why.Keep {
		last = ReassignKept
	}
	if !why.Move || from == 0 || fact.Holds == nil || fact.Attempt >= maxMoves || !b.Fences(from) {
		return last
	}
	except := from
	if why.Same && b.Ledger.Live(from) {
		except = 0
	}
	switch verdict := b.Choose(w, true, except); verdict.Outcome {
	case placement.Placed:
		b.move(w, from, verdict.Worker, why.Cause)
		return ReassignMoved
	case placement.Busy:
		if !why.Keep && b.Now().Sub(fact.Updated) < why.Timeout {
			return ReassignOpen
		}
	case placement.NoWorkers, placement.Incompatible:
		if !why.Keep && b.scheduler.cfg.Recovering() {
			return ReassignOpen
		}
	}
	return last
}
