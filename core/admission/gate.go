package admission

import (
	"time"
)

// Answer is the decision of a Gate about an execution for which its queue has a free slot.
type Answer struct {
	kind        answerKind
	worker      int64
	capacity    int // the worker's limit of executions
	reason      string
	requirement string // the kind of worker that it waits for

	// Of a shared limit that blocks the execution.
	scope        int64
	until        time.Time
	rejectIfFull bool     // its policy's method is cancel
	openLimits   []*scope // the limits before it, which had a free slot
	absent       bool     // of a worker that is absent: nothing is reserved

	slots []int64 // slots taken of shared limits
}

type answerKind int

const (
	answerGrant answerKind = iota
	answerWait
	answerEnd
)

// obstacle is why the execution waits.
func (a Answer) obstacle(w Candidate) *obstacle {
	return &obstacle{
		execution: w.ExecutionID, ticket: w.ticket, scope: a.scope, need: a.requirement, reason: a.reason,
		until: a.until,
	}
}

// Grant lets the execution take its slot at the worker, which may have capacity executions.
func Grant(worker int64, capacity int) Answer {
	return Answer{kind: answerGrant, worker: worker, capacity: capacity}
}

// Wait keeps the execution in its queue: no worker has capacity. reason is for users.
func Wait(reason string) Answer { return Answer{kind: answerWait, reason: reason} }

// WaitFor is Wait for a kind of worker. Of each kind, every batch that releases something tries the
// executions that have waited longest.
func WaitFor(kind, reason string) Answer {
	return Answer{kind: answerWait, requirement: kind, reason: reason}
}

// WaitForReturn is WaitFor for workers that are all absent. It reserves nothing: the execution can
// start only after one has come back. At until, unless it is zero, the execution is tried again.
func WaitForReturn(kind, reason string, until time.Time) Answer {
	return Answer{kind: answerWait, requirement: kind, reason: reason, until: until, absent: true}
}

// End reports that the execution will never run, and that the gate recorded its terminal status. It
// takes no slot and leaves the queue.
func End() Answer { return Answer{kind: answerEnd} }

// Gate decides about every execution that its queue would admit.
type Gate struct {
	// Scopes lists the shared limits that the execution needs, in the order in which they are
	// checked. It is false while they are unknown: the batch must be planned again. A nil Scopes
	// means none.
	Scopes func(Candidate) ([]int64, bool)
	// Place finds a worker for an execution that every limit admits.
	Place func(Candidate) Answer
	// Queue reports whether a new execution may join its queue. If not, the gate recorded its
	// terminal status. A nil Queue lets all join.
	Queue func(Candidate) bool
}

// Granted is one execution that took its slots in this batch.
type Granted struct {
	Candidate
	Queue  int64
	Worker int64
	Scopes []int64
}

// Promoted reports whether the execution waited in its queue before.
func (g Granted) Promoted() bool { return g.order != 0 }

// Result is the outcome of Admit.
type Result int

// The outcomes of Admit.
const (
	Admitted Result = iota // it took its slots
	Queued                 // it waits in the queue
	Refused                // no free slot, and its policy does not let it wait
	Full                   // the queue is at its maximum length
	Ended                  // the gate ended it
)
