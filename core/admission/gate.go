package admission

import (
	"time"
)

// Answer is what a Gate says about an execution for which its queue has a
// free slot.
type Answer struct {
	kind   answerKind
	worker int64
	most   int // executions that the worker may have
	reason string
	need   string // the kind of worker that is waited for

	// Of a shared limit that keeps the execution.
	scope  int64
	until  time.Time
	refuse bool     // its policy's method is cancel
	passed []*scope // which had room for it

	slots []int64 // what was taken of shared limits
}

type answerKind int

const (
	answerGrant answerKind = iota
	answerWait
	answerEnd
)

// kept is the obstacle that a waiting answer is for an execution.
func (a Answer) kept(w Waiter) *obstacle {
	return &obstacle{
		execution: w.ExecutionID, ticket: w.ticket, scope: a.scope, need: a.need, reason: a.reason, until: a.until,
	}
}

// Grant lets the execution take its slot at the worker, which may have most executions.
func Grant(worker int64, most int) Answer {
	return Answer{kind: answerGrant, worker: worker, most: most}
}

// Wait keeps the execution in line: no worker has room. reason is for people.
func Wait(reason string) Answer { return Answer{kind: answerWait, reason: reason} }

// WaitFor is Wait for a worker of a kind. Of every kind that is waited for those
// who have waited longest are tried whenever something is given back.
func WaitFor(kind, reason string) Answer { return Answer{kind: answerWait, need: kind, reason: reason} }

// End says that the gate has decided that the execution will never run and
// has recorded its terminal status; it takes no slot and leaves the line.
func End() Answer { return Answer{kind: answerEnd} }

// Gate is asked for every execution that its queue would admit.
type Gate struct {
	// Scopes lists the shared limits that the execution needs, in the order in
	// which they are asked. It is false while they are not known: the batch must
	// be planned again. A nil Scopes means that there are none.
	Scopes func(Waiter) ([]int64, bool)
	// Place finds a worker for an execution that every limit admits.
	Place func(Waiter) Answer
}

// Granted is one execution that took its slots in this batch.
type Granted struct {
	Waiter
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
	Queued                 // it waits in line
	Refused                // no free slot, and its policy does not let it wait
	Full                   // the queue is at its maximum length
	Ended                  // the gate ended it
)
