package scheduler

import (
	"maps"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/placement"
)

// Cause is why a dispatch is taken back, as lost_work spells it.
type Cause string

// The causes.
const (
	CauseGone       Cause = "worker_gone"       // the worker fell silent, or leaves
	CauseReturned   Cause = "returned"          // the broker returned the message: no queue took it
	CauseOverdue    Cause = "scheduled_timeout" // the worker lives and did not start it in time
	CauseDeadLetter Cause = "dead_letter"       // the message expired in the worker's queue, or was rejected
)

// Reassignment says why a worker will not start a dispatch, and how the batch may react.
type Reassignment struct {
	Cause Cause
	// Same allows the same worker, if it may receive work: the dispatch never reached it, or is no
	// longer there.
	Same bool
	// Move allows another worker, in place.
	Move bool
	// Keep leaves the execution where it is while no other worker has capacity: its worker will
	// start it later.
	Keep bool
	// Await leaves the execution where it is while the grace for workers runs, because it would not be
	// repeated.
	Await bool
	// Timeout is how long after the dispatch it may wait for capacity elsewhere. It keeps its slot
	// meanwhile.
	Timeout time.Duration
	// Result is the result of the execution if it is ended.
	Result map[string]any
}

// ReassignResult is the outcome for an execution that its worker will not start.
type ReassignResult int

// The results.
const (
	ReassignOpen  ReassignResult = iota // no worker has capacity: the next batch tries again
	ReassignKept                        // it stays where it is
	ReassignMoved                       // another worker has it, as its next attempt
	ReassignEnded                       // its row is closed; a retry may follow from its end
)

// mostReassignments bounds the moves of one execution. Beyond it the execution is ended, and its retry
// waits in the queue like any other.
const mostReassignments = 10

// Reassign decides about a scheduled execution that its worker has not started. If both workers
// fence attempts, the execution moves in place: the old worker refuses a dispatch that still
// reaches it. Otherwise the old worker could still start it, so the row is closed and the work is
// repeated as a new row, which a late start cannot change. A live worker is told to drop its
// dispatch. The caller must have checked under the locks that the execution is still scheduled at
// that worker.
func (b *Batch) Reassign(fact admission.Fact, why Reassignment) ReassignResult {
	w, ok := b.Candidate(fact)
	if !ok {
		return ReassignKept
	}
	if err := jsonvalue.TooDeep("parameters", w.Config); err != nil {
		why.Move, why.Result = false, maps.Clone(why.Result)
		why.Result["error"], why.Result["message"] = "parameters cannot be read", err.Error()
	}
	from := deref(fact.Worker) // 0: its worker's row was deleted
	if result := b.elsewhere(fact, w, from, why); result != ReassignEnded {
		return result
	}
	b.stop(w, from, why)
	return ReassignEnded
}

// elsewhere finds another worker for an execution; ReassignEnded means that none is worth waiting
// for.
func (b *Batch) elsewhere(fact admission.Fact, w admission.Candidate, from int64, why Reassignment) ReassignResult {
	last := ReassignEnded
	if why.Keep {
		last = ReassignKept
	}
	if !why.Move || from == 0 || fact.Holds == nil || fact.Attempt >= mostReassignments || !b.Fences(from) {
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
		w.Requested = time.Time{} // it was accepted: a worker got it
		if _, waits := b.find(w); !why.Keep && (b.scheduler.cfg.Recovering() || why.Await && waits) {
			return ReassignOpen
		}
	}
	return last
}
