package admission

import (
	"container/heap"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/policy"
)

// Promote gives free slots to waiting heads: within a lane strictly in order,
// across queues by ticket, as long as the gate lets them. A head that is kept
// waiting keeps its whole queue waiting, and what it could have had of the
// limits it shares with other queues is kept for it: nobody who came later
// delays it.
func (l *Ledger) Promote(gate Gate) {
	l.promoted = true
	for _, s := range l.scopes {
		s.reserved, s.awaited = 0, false
	}
	line := &heads{}
	for _, q := range l.queues {
		q.blocked = nil
		if q.promotable() {
			*line = append(*line, q)
		}
	}
	heap.Init(line)
	for line.Len() > 0 {
		q := (*line)[0]
		w, _, _ := q.first()
		l.promote(q, gate)
		if q.promotable() {
			heap.Fix(line, 0)
			continue
		}
		heap.Pop(line)
		if q.unfilled() {
			l.await(w, gate)
		}
	}
}

// await closes the shared limits of a queue of which not enough waiters were
// read: the next of them may have waited longer than anybody else, and another
// batch follows at once.
func (l *Ledger) await(w Waiter, gate Gate) {
	scopes, _ := l.wanted(w, gate)
	for _, s := range scopes {
		s.awaited = true
	}
}

func (l *Ledger) promote(q *queue, gate Gate) {
	w, lane, _ := q.first()
	if w.Status == attune.StatusRequested {
		answer := l.try(w, gate)
		switch answer.kind {
		case answerWait:
			q.blocked = answer.kept(w)
			reserve(answer.passed)
			return
		case answerGrant:
			q.served(lane)
			l.grant(q, w, answer)
		case answerEnd:
		}
	}
	// Promoted, ended, or a hole left by whoever cancelled it: out of the line.
	q.heads[lane] = q.heads[lane][1:]
	q.queued[lane]--
	q.head[lane] = w.order + 1
	l.withdrawn = append(l.withdrawn, w.ExecutionID)
	l.note(w.ExecutionID, func(fact *Fact) { fact.Waits = nil })
}

// try asks every limit that w needs besides its queue's, and then for a worker:
// all or none. Of an obstacle that goes when somebody ends, the answer says what
// comes before: it is reserved if w waits. Who waits for a moment can use
// nothing until it comes.
func (l *Ledger) try(w Waiter, gate Gate) Answer {
	scopes, ok := l.wanted(w, gate)
	if !ok {
		l.unplanned = true
		return Wait("its limits are being looked up")
	}
	for i, s := range scopes {
		if kept := s.closed(l.Clock); kept != nil {
			answer := Answer{
				kind: answerWait, reason: kept.reason, scope: kept.scope, until: kept.until,
				refuse: s.rule.Method == policy.MethodCancel,
			}
			if kept.until.IsZero() {
				answer.passed = scopes[:i]
			}
			return answer
		}
	}
	answer := gate.Place(w)
	switch answer.kind {
	case answerWait:
		answer.passed = scopes
	case answerGrant:
		for _, s := range scopes {
			s.take(l.Clock)
			if s.kind.Slots() {
				answer.slots = append(answer.slots, s.id)
			}
		}
	case answerEnd:
	}
	return answer
}

// wanted are the shared limits of an execution. It is false when one of them
// is not locked.
func (l *Ledger) wanted(w Waiter, gate Gate) ([]*scope, bool) {
	if gate.Scopes == nil {
		return nil, true
	}
	ids, known := gate.Scopes(w)
	if !known {
		return nil, false
	}
	scopes := make([]*scope, len(ids))
	for i, id := range ids {
		if scopes[i] = l.scopes[id]; scopes[i] == nil {
			return nil, false
		}
	}
	return scopes, true
}

func reserve(scopes []*scope) {
	for _, s := range scopes {
		if s.kind.Slots() {
			s.reserved++
		}
	}
}

// Terms are what Admit needs to know besides the execution.
type Terms struct {
	Queue     int64
	MayWait   bool  // false: the policy's method is cancel
	MaxQueued int   // longest line; 0 means no bound
	Priority  int16 // above 0 the high lane, below 0 the low one
	Front     bool  // before all who wait in its lane, instead of behind them
	// Late says that its request was lost: it goes before the waiting executions that
	// were requested after it.
	Late bool
}

// Admit takes a newcomer: straight into a free slot if nobody waits before it,
// else into the line, unless a policy or the line's length says no. The text
// says which and why, for people; it is empty unless the newcomer was refused.
func (l *Ledger) Admit(w Waiter, how Terms, gate Gate) (Result, string) {
	q := l.queues[how.Queue]
	switch {
	case !how.MayWait && !q.paused && q.active+q.waiting() >= q.limits.max:
		return Refused, ""
	case q.waiting() == 0 && !q.paused && q.free() > 0:
		answer := l.try(w, gate)
		switch {
		case answer.kind == answerGrant:
			q.enqueuedEver++
			l.grant(q, w, answer)
			return Admitted, ""
		case answer.kind == answerEnd:
			return Ended, ""
		case answer.refuse:
			return Refused, answer.reason
		}
		q.blocked = answer.kept(w)
		reserve(answer.passed)
	}
	if how.MaxQueued > 0 && q.waiting() >= how.MaxQueued {
		return Full, ""
	}
	lane := laneOf(how.Priority)
	l.enqueued = append(l.enqueued, enqueue{
		queue: q.id, execution: w.ExecutionID, order: q.place(lane, how.Front), lane: lane, position: q.waiting(),
	})
	l.note(w.ExecutionID, func(fact *Fact) { fact.Waits, fact.lane = &q.id, lane })
	q.enqueuedEver++
	if how.Late && !how.Front {
		l.late = append(l.late, w.ExecutionID)
	}
	return Queued, ""
}

func (l *Ledger) grant(q *queue, w Waiter, answer Answer) {
	q.active++
	l.occupy(answer.worker, answer.most)
	l.granted = append(l.granted, Granted{Waiter: w, Queue: q.id, Worker: answer.worker, Scopes: answer.slots})
	l.note(w.ExecutionID, func(fact *Fact) { fact.Holds, fact.Scopes = &q.id, answer.slots })
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
		if q.unfilled() {
			ids = append(ids, q.id)
		}
	}
	return ids
}

// ActionOf is the action of a locked queue.
func (l *Ledger) ActionOf(queue int64) int64 {
	if q := l.queues[queue]; q != nil {
		return q.actionID
	}
	return 0
}
