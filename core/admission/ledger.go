package admission

import (
	"container/heap"
	"time"

	"github.com/attune-go/attune/core/attune"
)

// Fact is what an execution row said when it was read under the queue locks.
type Fact struct {
	ID      int64
	Status  attune.Status
	Updated time.Time
	Attempt int32
	Worker  *int64 // the worker it was handed to, if any
	Holds   *int64 // the queue whose slot it holds, if any
	Waits   *int64 // the queue it waits in, if any
}

// Waiter is an execution that asks for a slot, with what placing it needs.
type Waiter struct {
	ExecutionID int64
	Status      attune.Status
	ActionID    int64
	ActionRef   string
	Config      []byte // JSON parameters, nil when there are none
	Updated     time.Time
	Attempt     int32

	order  int64 // position in its queue; 0 for a newcomer
	ticket int64 // order of waiting across queues; 0 for a newcomer
}

// Answer is what a Gate says about an execution for which its queue has a
// free slot.
type Answer struct {
	kind   answerKind
	worker int64
	reason string
}

type answerKind int

const (
	answerGrant answerKind = iota
	answerWait
	answerEnd
)

// Grant lets the execution take its slot at the worker.
func Grant(worker int64) Answer { return Answer{kind: answerGrant, worker: worker} }

// Wait keeps the execution in line: no worker has room. reason is for people.
func Wait(reason string) Answer { return Answer{kind: answerWait, reason: reason} }

// End says that the gate has decided that the execution will never run and
// has recorded its terminal status; it takes no slot and leaves the line.
func End() Answer { return Answer{kind: answerEnd} }

// Gate is asked for every execution that its queue would admit.
type Gate func(Waiter) Answer

// Granted is one execution that took a slot in this batch.
type Granted struct {
	Waiter
	Queue  int64
	Worker int64
}

// Result is the outcome of Admit.
type Result int

// The outcomes of Admit.
const (
	Admitted Result = iota // it took a slot
	Queued                 // it waits in line
	Refused                // no free slot, and its policy does not let it wait
	Full                   // the queue is at its maximum length
	Ended                  // the gate ended it
)

// Ledger is the working copy of the locked queues. Its methods are arithmetic
// on memory; nothing is stored before Write. It is not safe for concurrent
// use, and worthless once its transaction has ended.
type Ledger struct {
	// Now is the start of the transaction by the database's clock, which is
	// also what the rows it changes will say in updated.
	Now time.Time

	withoutStats bool // queue_stats is not kept

	queues   map[int64]*queue
	gone     map[int64]bool // queues that were wanted and no longer exist
	loads    map[int64]*load
	loadless map[int64]bool // workers that were wanted and have no load row
	facts    map[int64]Fact

	unplanned bool // something needs locks that were not wanted

	granted   []Granted
	released  []release
	withdrawn []int64 // executions whose entries are deleted
	enqueued  []enqueue
}

type load struct {
	before, assigned int
	live             bool
}

type release struct{ execution, queue int64 }

type enqueue struct {
	queue, execution, order int64
}

// Fact returns what the row of an execution said under the locks.
func (l *Ledger) Fact(id int64) (Fact, bool) {
	fact, ok := l.facts[id]
	return fact, ok
}

// Locked reports whether the ledger holds the lock of a queue.
func (l *Ledger) Locked(queue int64) bool { return l.queues[queue] != nil }

// Load is the number of executions at a worker as the ledger stands. live is
// false when the worker may be given nothing: its load was not locked, or it
// is inactive, cordoned, draining or silent.
func (l *Ledger) Load(worker int64) (assigned int, live bool) {
	if w := l.loads[worker]; w != nil {
		return w.assigned, w.live
	}
	return 0, false
}

// Queue is what a caller may know of a locked queue.
type Queue struct {
	ID, ActionID int64
}

// Queues lists the locked queues in no particular order.
func (l *Ledger) Queues() []Queue {
	out := make([]Queue, 0, len(l.queues))
	for _, q := range l.queues {
		out = append(out, Queue{ID: q.id, ActionID: q.actionID})
	}
	return out
}

// Released is the number of slots given back in this batch.
func (l *Ledger) Released() int { return len(l.released) }

// Enqueued is the number of executions that began to wait in this batch.
func (l *Ledger) Enqueued() int { return len(l.enqueued) }

// Granted lists the executions that took a slot in this batch, in the order
// in which they took it.
func (l *Ledger) Granted() []Granted { return l.granted }

// Release gives back the slot of a terminal execution. It reports whether
// there was one to give back; a second release of the same holder finds none
// (invariant S7). A holder whose queue or worker load is not locked is left,
// and makes the ledger Unplanned; a queue that was deleted has no counters to
// keep, but its holder's worker has.
func (l *Ledger) Release(id int64) bool {
	fact, ok := l.facts[id]
	if !ok || fact.Holds == nil || !fact.Status.Terminal() {
		return false
	}
	held := *fact.Holds
	q := l.queues[held]
	if (q == nil && !l.gone[held]) || !l.knowsLoad(fact.Worker) {
		l.unplanned = true
		return false
	}
	if q != nil {
		q.active--
		q.completed++
	}
	if fact.Worker != nil {
		if w := l.loads[*fact.Worker]; w != nil && w.assigned > 0 {
			w.assigned--
		}
	}
	l.released = append(l.released, release{execution: id, queue: held})
	l.note(id, func(fact *Fact) { fact.Holds = nil })
	return true
}

// knowsLoad reports whether the worker's load is locked, or known not to exist.
func (l *Ledger) knowsLoad(worker *int64) bool {
	return worker == nil || l.loads[*worker] != nil || l.loadless[*worker]
}

// Unplanned reports whether something in this batch needs a lock that was not
// wanted, because its row changed between planning and locking. The batch must
// be planned again.
func (l *Ledger) Unplanned() bool { return l.unplanned }

// End keeps the facts true about an execution that the caller has decided to
// end in this batch, so that nothing else decides on it.
func (l *Ledger) End(id int64, status attune.Status) {
	l.note(id, func(fact *Fact) { fact.Status = status })
}

// Withdraw takes an execution that will not run out of its line. It reports
// whether it stood in one.
func (l *Ledger) Withdraw(id int64) bool {
	fact, ok := l.facts[id]
	if !ok || fact.Waits == nil {
		return false
	}
	q := l.queues[*fact.Waits]
	if q == nil {
		return false
	}
	q.queued--
	q.skip(id)
	l.withdrawn = append(l.withdrawn, id)
	l.note(id, func(fact *Fact) { fact.Waits = nil })
	return true
}

// SetLimit puts the limit in force for a queue. Lowering it evicts nobody;
// raising it is filled by the next Promote.
func (l *Ledger) SetLimit(queueID int64, unlimited bool, maximum int) {
	q := l.queues[queueID]
	if q == nil {
		return
	}
	if unlimited {
		maximum = Unlimited
	}
	q.unlimited, q.max = unlimited, maximum
}

// Promote gives free slots to waiting heads: within a queue strictly in
// order, across queues by ticket, as long as the gate lets them. A head that
// the gate keeps waiting keeps its whole queue waiting.
func (l *Ledger) Promote(gate Gate) {
	line := &heads{}
	for _, q := range l.queues {
		q.blocked = ""
		if q.promotable() {
			*line = append(*line, q)
		}
	}
	heap.Init(line)
	for line.Len() > 0 {
		q := (*line)[0]
		l.promote(q, gate)
		if q.promotable() {
			heap.Fix(line, 0)
		} else {
			heap.Pop(line)
		}
	}
}

func (l *Ledger) promote(q *queue, gate Gate) {
	w := q.heads[0]
	if w.Status == attune.StatusRequested {
		answer := gate(w)
		if answer.kind == answerWait {
			q.blocked = answer.reason
			return
		}
		if answer.kind == answerGrant {
			l.grant(q, w, answer.worker)
		}
	}
	// Promoted, ended, or a hole left by whoever cancelled it: out of the line.
	q.heads = q.heads[1:]
	q.queued--
	q.head = w.order + 1
	l.withdrawn = append(l.withdrawn, w.ExecutionID)
	l.note(w.ExecutionID, func(fact *Fact) { fact.Waits = nil })
}

// Terms are what Admit needs to know besides the execution.
type Terms struct {
	Queue     int64
	MayWait   bool // false: the policy's method is cancel
	MaxQueued int  // longest line; 0 means no bound
}

// Admit takes a newcomer: straight into a free slot if nobody waits before it,
// else to the end of the line, unless its policy or the line's length says no.
func (l *Ledger) Admit(w Waiter, how Terms, gate Gate) Result {
	q := l.queues[how.Queue]
	if q.queued == 0 && !q.paused && q.free() > 0 {
		answer := gate(w)
		switch answer.kind {
		case answerGrant:
			q.enqueuedTotal++
			l.grant(q, w, answer.worker)
			return Admitted
		case answerEnd:
			return Ended
		case answerWait:
			q.blocked = answer.reason
		}
	} else if !how.MayWait {
		return Refused
	}
	if how.MaxQueued > 0 && q.queued >= how.MaxQueued {
		return Full
	}
	l.enqueued = append(l.enqueued, enqueue{queue: q.id, execution: w.ExecutionID, order: q.next})
	l.note(w.ExecutionID, func(fact *Fact) { fact.Waits = &q.id })
	q.next++
	q.queued++
	q.enqueuedTotal++
	return Queued
}

func (l *Ledger) grant(q *queue, w Waiter, worker int64) {
	q.active++
	if at := l.loads[worker]; at != nil {
		at.assigned++
	}
	l.granted = append(l.granted, Granted{Waiter: w, Queue: q.id, Worker: worker})
	l.note(w.ExecutionID, func(fact *Fact) { fact.Holds = &q.id })
}

// note keeps a fact true within the batch, so that an execution that is named
// twice is served once.
func (l *Ledger) note(id int64, change func(*Fact)) {
	if fact, ok := l.facts[id]; ok {
		change(&fact)
		l.facts[id] = fact
	}
}

// Unfilled lists the queues that still have a free slot and a waiter after
// this batch although no gate keeps them: more heads must be read, in another
// batch.
func (l *Ledger) Unfilled() []int64 {
	var ids []int64
	for _, q := range l.queues {
		if q.blocked == "" && !q.paused && q.queued > 0 && q.free() > 0 {
			ids = append(ids, q.id)
		}
	}
	return ids
}
