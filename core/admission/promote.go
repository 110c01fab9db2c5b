package admission

import (
	"container/heap"
	"math"
	"slices"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/policy"
)

// Promote gives free slots to waiting heads: within a lane strictly in order, across queues by
// ticket, as long as the gate admits them. A head that must wait keeps its whole queue waiting.
// What it could have had of shared limits is reserved for it, so no later execution delays it.
func (l *Ledger) Promote(gate Gate) {
	l.promoted, l.ahead, l.kept = true, l.skipped, false
	for _, s := range l.scopes {
		s.reserved, s.awaited = 0, false
	}
	queues := &heads{}
	for _, q := range l.queues {
		q.blocked = nil
		if q.promotable() {
			*queues = append(*queues, q)
		}
	}
	heap.Init(queues)
	for queues.Len() > 0 {
		q := (*queues)[0]
		w, _, _ := q.first()
		l.keep(w.ticket, gate)
		l.promote(q, gate)
		if q.promotable() {
			heap.Fix(queues, 0)
			continue
		}
		heap.Pop(queues)
		if !q.unfilled() {
			continue
		}
		// Not all heads of the queue were read. Its next head may have waited longer than all
		// others, and another batch follows at once: until then its shared limits are closed.
		scopes, _ := l.wanted(w, gate)
		for _, s := range scopes {
			s.awaited = true
		}
	}
	l.keep(math.MaxInt64, gate) // new requests come after them
}

// keep reserves what the heads of queues that another batch holds could have of shared limits, if
// they have waited longer than a ticket: the next batch serves them.
func (l *Ledger) keep(ticket int64, gate Gate) {
	for len(l.ahead) > 0 && l.ahead[0].ticket < ticket {
		scopes, _ := l.wanted(l.ahead[0], gate) // without a lock this batch takes nothing of a limit
		l.ahead = l.ahead[1:]
		closed := slices.IndexFunc(scopes, func(s *scope) bool { return s.closed(l.Clock) != nil })
		switch {
		case closed < 0 && len(scopes) > 0:
			l.kept = true
			reserve(scopes)
			for _, s := range scopes {
				s.awaited = s.awaited || !s.kind.Slots()
			}
		case closed > 0 && scopes[closed].closed(l.Clock).until.IsZero():
			reserve(scopes[:closed])
		}
	}
}

func (l *Ledger) promote(q *queue, gate Gate) {
	w, lane, _ := q.first()
	if w.Status == lifecycle.StatusRequested {
		answer := l.try(w, gate)
		switch answer.kind {
		case answerWait:
			q.blocked = answer.obstacle(w)
			reserve(answer.openLimits)
			return
		case answerGrant:
			q.served(lane)
			l.grant(q, w, answer)
		case answerEnd:
		}
	}
	// Promoted, ended, or cancelled by another program: it leaves the queue.
	q.heads[lane] = q.heads[lane][1:]
	q.queued[lane]--
	q.head[lane] = w.order + 1
	l.withdrawn = append(l.withdrawn, w.ExecutionID)
	l.note(w.ExecutionID, func(fact *Fact) { fact.Waits = nil })
}

// try takes every limit that w needs besides its queue's, and a worker: all or none. If an obstacle
// ends with another execution, the answer names the limits before it, which are reserved while w
// waits. An execution that waits for a point in time reserves nothing, because it cannot start
// before it.
func (l *Ledger) try(w Candidate, gate Gate) Answer {
	scopes, ok := l.wanted(w, gate)
	if !ok {
		l.unplanned = true
		return Wait("its shared limits are being read")
	}
	for i, s := range scopes {
		if kept := s.closed(l.Clock); kept != nil {
			answer := Answer{
				kind: answerWait, reason: kept.reason, scope: kept.scope, until: kept.until,
				rejectIfFull: s.rule.Method == policy.MethodCancel,
			}
			if kept.until.IsZero() {
				answer.openLimits = scopes[:i]
			}
			return answer
		}
	}
	answer := gate.Place(w)
	switch answer.kind {
	case answerWait:
		if !answer.absent {
			answer.openLimits = scopes
		}
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

// wanted are the shared limits of an execution. It is false when one of them is not locked.
func (l *Ledger) wanted(w Candidate, gate Gate) ([]*scope, bool) {
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

// AdmitOptions are the inputs of Admit besides the execution.
type AdmitOptions struct {
	Queue     int64
	MayWait   bool  // false: the policy's method is cancel
	MaxQueued int   // limit of the queue's length; 0 means none
	Priority  int16 // above 0 the high lane, below 0 the low one
	Front     bool  // before all executions of its lane, instead of behind them
	// Late says that its request was lost: it goes before waiting executions that were requested
	// after it.
	Late bool
	// Moved says that it waited in another queue before: no limit refuses it.
	Moved bool
}

// Admit admits a new request directly if no execution waits before it and a slot is free. Otherwise
// the request waits, unless a policy or the queue's length limit forbids it. The text explains a
// refusal to users and is empty otherwise.
func (l *Ledger) Admit(w Candidate, how AdmitOptions, gate Gate) (Result, string) {
	q := l.queues[how.Queue]
	var answer Answer
	switch {
	case !how.MayWait && !q.paused && q.active+q.waiting() >= q.limits.max:
		return Refused, ""
	case q.waiting() == 0 && !q.paused && q.free() > 0:
		answer = l.try(w, gate)
		switch {
		case answer.kind == answerGrant:
			q.enqueuedEver++
			l.grant(q, w, answer)
			return Admitted, ""
		case answer.kind == answerEnd:
			return Ended, ""
		case answer.rejectIfFull && !how.Moved:
			return Refused, answer.reason
		}
	}
	if how.MaxQueued > 0 && q.waiting() >= how.MaxQueued {
		return Full, ""
	}
	if !q.paused && gate.Queue != nil && !gate.Queue(w) {
		return Ended, ""
	}
	if answer.kind == answerWait {
		q.blocked = answer.obstacle(w)
		reserve(answer.openLimits)
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

func (l *Ledger) grant(q *queue, w Candidate, answer Answer) {
	q.active++
	l.occupy(answer.worker, answer.capacity)
	l.granted = append(l.granted, Granted{Candidate: w, Queue: q.id, Worker: answer.worker, Scopes: answer.slots})
	l.note(w.ExecutionID, func(fact *Fact) { fact.Holds, fact.Scopes = &q.id, answer.slots })
}

// note updates a fact within the batch, so that an execution that is named twice is served once.
func (l *Ledger) note(id int64, change func(*Fact)) {
	if fact, ok := l.facts[id]; ok {
		change(&fact)
		l.facts[id] = fact
	}
}

// Unfilled lists the queues that still have a free slot and waiting executions after this batch,
// although no gate blocks them. Another batch must read more heads.
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
