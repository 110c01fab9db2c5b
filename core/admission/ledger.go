package admission

import (
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/store"
)

// Fact is what an execution row said when it was read under the queue locks.
type Fact struct {
	ID      int64
	Status  attune.Status
	Updated time.Time
	Attempt int32
	Worker  *int64  // the worker it was handed to, if any
	Holds   *int64  // the queue whose slot it holds, if any
	HeldAt  *int64  // the worker whose room it takes, if it holds a slot and the worker's row is there
	Scopes  []int64 // the shared limits of which it holds a slot
	Waits   *int64  // the queue it waits in, if any
	Since   time.Time
	Started *time.Time
	Ended   *time.Time

	lane int // of the queue it waits in
}

// Waiter is an execution that asks for a slot, with what placing it needs.
type Waiter struct {
	ExecutionID int64
	Status      attune.Status
	ActionID    int64
	ActionRef   string
	Config      []byte // JSON parameters, nil when there are none
	Updated     time.Time
	Created     time.Time
	Attempt     int32

	// Where it may run, as its row says in place of its action: raw JSON, nil
	// where the row says nothing. Avoid are workers on which it has failed.
	Selector, Tolerations, Affinity []byte
	Avoid                           []int64

	order  int64 // position in its lane; 0 for a newcomer
	ticket int64 // order of waiting across queues; 0 for a newcomer
}

// Ledger is the working copy of the locked queues. Its methods are arithmetic
// on memory; nothing is stored before Write. It is not safe for concurrent
// use, and worthless once its transaction has ended.
type Ledger struct {
	// Now is the start of the transaction by the database's clock, which is
	// also what the rows it changes will say in updated.
	Now time.Time
	// Clock is the moment at which the locks were held, by the same clock. Rates
	// are judged by it: it never goes back from one holder of a lock to the next.
	Clock time.Time
	// Epoch is the version of the rules that were in force at Clock.
	Epoch int64

	withoutStats bool      // queue_stats is not kept
	optimistic   bool      // the queues are not locked, and all were open
	due          time.Time // when the first queue that waits for a moment was to be tried
	moreDue      bool      // more such queues are due than this batch tries

	queues  map[int64]*queue
	gone    map[int64]bool // queues that were wanted and no longer exist
	held    map[int64]bool // queues that could be spared and that another batch holds
	passed  bool           // a queue that waits for shared room was held by another batch
	blocked bool           // some queue waits for something wider than its own limit
	scopes  map[int64]*scope
	pruned  map[int64]bool // shared limits that were wanted and no longer exist
	facts   map[int64]Fact
	rows    []store.ReadBatchExecutionsRow
	lost    map[int64]lostHolder

	staleAfter time.Duration
	assigned   map[int64]int      // executions at workers when the batch began
	judged     map[int64]standing // the workers that were asked for
	changes    map[int64]*change  // what the batch takes and returns at workers

	unplanned bool // something needs locks that were not wanted
	promoted  bool // waiting heads were given what is free

	granted   []Granted
	released  []release
	withdrawn []int64 // executions whose entries are deleted
	enqueued  []enqueue
	late      []int64 // enqueued executions whose request was lost
	returned  []int64 // notes of lost holders that were given back

	recheck *store.Result[bool] // after the commit: a queue begins to wait for workers
}

// Optimistic reports whether the batch has no locks. What it decides is then to be refused by
// guards of what it writes if another batch decided first.
func (l *Ledger) Optimistic() bool { return l.optimistic }

// Open reports whether every queue is open as the ledger stands, and nothing is to be changed of it but
// who holds its slots.
func (l *Ledger) Open() bool {
	if len(l.enqueued)+len(l.withdrawn)+len(l.returned) > 0 {
		return false
	}
	for _, q := range l.queues {
		if !q.open() || q.limits != q.before.limits || q.blocked != nil {
			return false
		}
	}
	return true
}

// standing is how a worker stood when the batch began.
type standing struct {
	live bool // it may be given work
	gone bool // it has been silent for too long, or was deleted
}

// change is what a batch does to the load of one worker.
type change struct {
	by    int  // more executions than before; negative if it returns more than it takes
	takes bool // it is given something
	most  int  // executions that it may have; of one that is given something
}

type release struct {
	execution, queue int64
	slots            int // of shared limits
}

type enqueue struct {
	queue, execution, order int64
	lane                    int
	position                int // how many then wait in the queue, this one included
}

// lostHolder is what a deleted execution held.
type lostHolder struct {
	queue  int64
	worker *int64
	scopes []int64
}

// Fact returns what the row of an execution said under the locks.
func (l *Ledger) Fact(id int64) (Fact, bool) {
	fact, ok := l.facts[id]
	return fact, ok
}

// Rows are the rows of the wanted executions under the locks, as Fact has them.
func (l *Ledger) Rows() []store.ReadBatchExecutionsRow { return l.rows }

// Blocked reports whether any queue waits for something wider than its own limit.
func (l *Ledger) Blocked() bool {
	for _, q := range l.queues {
		if q.blocked != nil {
			return true
		}
	}
	return l.blocked
}

// Locked reports whether the ledger holds the lock of a queue.
func (l *Ledger) Locked(queue int64) bool { return l.queues[queue] != nil }

// Assigned is the number of executions at a worker as the ledger stands.
func (l *Ledger) Assigned(worker int64) int {
	assigned := l.assigned[worker]
	if c := l.changes[worker]; c != nil {
		assigned += c.by
	}
	return max(assigned, 0)
}

// Judged reports whether a worker was asked for, so that Live and Gone say how it stands.
func (l *Ledger) Judged(worker int64) bool {
	_, ok := l.judged[worker]
	return ok
}

// Live reports whether a worker may be given work: it is there and not cordoned,
// draining, suspected or silent. It is false for a worker that was not asked for.
func (l *Ledger) Live(worker int64) bool { return l.judged[worker].live }

// Gone reports whether a worker that was asked for has been silent for too long, or
// was deleted. It is false for a worker that was not asked for.
func (l *Ledger) Gone(worker int64) bool { return l.judged[worker].gone }

// Queue is what a caller may know of a locked queue.
type Queue struct {
	ID, ActionID int64
	Queued       int           // who waits in it
	Max          int           // the limit in force; Unlimited for none
	Paused       bool          // an operator's word
	Resumed      time.Time     // when a pause ended last; zero if there was none
	Timeout      time.Duration // how long one may wait in it; 0: as configured
}

// Queues lists the locked queues in no particular order.
func (l *Ledger) Queues() []Queue {
	out := make([]Queue, 0, len(l.queues))
	for id := range l.queues {
		q, _ := l.Queue(id)
		out = append(out, q)
	}
	return out
}

// Queue returns a locked queue as the ledger stands.
func (l *Ledger) Queue(id int64) (Queue, bool) {
	q := l.queues[id]
	if q == nil {
		return Queue{}, false
	}
	return Queue{
		ID: q.id, ActionID: q.actionID, Queued: q.waiting(), Max: q.limits.max, Paused: q.paused,
		Resumed: q.resumed, Timeout: q.limits.timeout,
	}, true
}

// EachWaiter calls a function for every waiter that was read.
func (l *Ledger) EachWaiter(call func(Waiter)) {
	for _, q := range l.queues {
		for _, line := range q.heads {
			for _, w := range line {
				call(w)
			}
		}
	}
}

// ReleasedIDs are the executions that gave back a slot in this batch.
func (l *Ledger) ReleasedIDs() []int64 {
	ids := make([]int64, len(l.released))
	for i, one := range l.released {
		ids[i] = one.execution
	}
	return ids
}

// Released is the number of slots given back in this batch.
func (l *Ledger) Released() int { return len(l.released) }

// Enqueued is the number of executions that began to wait in this batch.
func (l *Ledger) Enqueued() int { return len(l.enqueued) }

// Entry is an execution that began to wait.
type Entry struct {
	Execution, Queue, Action int64
	Position                 int // how many then wait in the queue, this one included
}

// Entries lists the executions that began to wait.
func (l *Ledger) Entries() []Entry {
	list := make([]Entry, len(l.enqueued))
	for i, e := range l.enqueued {
		list[i] = Entry{Execution: e.execution, Queue: e.queue, Action: l.queues[e.queue].actionID, Position: e.position}
	}
	return list
}

// Granted lists the executions that took a slot in this batch, in the order
// in which they took it.
func (l *Ledger) Granted() []Granted { return l.granted }

// Release gives back the slots of a terminal execution. It reports whether
// there were any to give back; a second release of the same holder finds none
// (invariant S7). A holder of which not every queue and shared limit is locked is
// left, and makes the ledger Unplanned; a queue that was deleted has no counters to
// keep, but its holder's worker has.
func (l *Ledger) Release(id int64) bool {
	fact, ok := l.facts[id]
	if !ok || fact.Holds == nil || !fact.Status.Terminal() {
		return false
	}
	held := *fact.Holds
	if !l.giveBack(held, fact.HeldAt, fact.Scopes) {
		return false
	}
	if q := l.queues[held]; q != nil {
		q.completed++
		q.adapt(fact, l.Now)
	}
	l.released = append(l.released, release{execution: id, queue: held, slots: len(fact.Scopes)})
	l.note(id, func(fact *Fact) { fact.Holds, fact.HeldAt, fact.Scopes = nil, nil, nil })
	return true
}

// GiveBack gives back what a deleted execution held, named by the note that
// its deletion left. It reports whether there was such a note; another replica
// may have been first.
func (l *Ledger) GiveBack(note int64) bool {
	held, ok := l.lost[note]
	if !ok || !l.giveBack(held.queue, held.worker, held.scopes) {
		return false
	}
	delete(l.lost, note)
	l.returned = append(l.returned, note)
	return true
}

// giveBack counts down what one holder holds, all or none. Queue 0 is none.
func (l *Ledger) giveBack(queueID int64, worker *int64, scopes []int64) bool {
	q := l.queues[queueID]
	if q == nil && queueID == 0 {
		return true
	}
	known := q != nil || l.gone[queueID]
	for _, id := range scopes {
		known = known && (l.scopes[id] != nil || l.pruned[id])
	}
	if !known {
		l.unplanned = true
		return false
	}
	if q != nil {
		q.active--
	}
	for _, id := range scopes {
		if s := l.scopes[id]; s != nil {
			s.active--
		}
	}
	if worker != nil {
		l.leave(*worker)
	}
	return true
}

// occupy gives a worker one execution, of most that it may have.
func (l *Ledger) occupy(worker int64, most int) {
	c := l.changeAt(worker)
	c.by, c.takes, c.most = c.by+1, true, most
}

// leave takes one execution from a worker.
func (l *Ledger) leave(worker int64) { l.changeAt(worker).by-- }

func (l *Ledger) changeAt(worker int64) *change {
	if l.changes == nil {
		l.changes = make(map[int64]*change)
	}
	c := l.changes[worker]
	if c == nil {
		c = &change{}
		l.changes[worker] = c
	}
	return c
}

// Recheck reports, after the commit, whether a queue begins to wait for workers, to which
// room that another batch returned meanwhile was not offered, or whether this batch
// could not offer what it returned to a queue because another one held it. The caller
// is to run one more batch.
func (l *Ledger) Recheck() bool {
	returned := len(l.released)+len(l.returned) > 0
	return (l.passed && returned) || (l.recheck != nil && l.recheck.Rows()[0])
}

// Held reports whether another batch holds a queue that this one could spare.
func (l *Ledger) Held(queue int64) bool { return l.held[queue] }

// Unplanned reports whether something in this batch needs a lock that was not
// wanted, because its row changed between planning and locking. The batch must
// be planned again.
func (l *Ledger) Unplanned() bool { return l.unplanned }

// Create tells of an execution that this batch makes, so that it is known like one
// that was read.
func (l *Ledger) Create(id int64, status attune.Status) {
	l.facts[id] = Fact{ID: id, Status: status, Updated: l.Now, Since: l.Now}
}

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
	q.queued[fact.lane]--
	q.skip(fact.lane, id)
	l.withdrawn = append(l.withdrawn, id)
	l.note(id, func(fact *Fact) { fact.Waits = nil })
	return true
}

// triedAtLeast is how many queues attune_blocked finds at least, if there are so
// many, of those that one kind of worker or one limit with room keeps.
const triedAtLeast = 8

// served is how many queues that were only tried have got something. There may
// be more of them when it is as many as are looked for.
func (l *Ledger) served() int {
	n := 0
	for _, q := range l.queues {
		if q.tried && q.active > q.before.active {
			n++
		}
	}
	return n
}

// Wake is when the first queue that waits for a moment should be tried again,
// measured from Clock, or at once when there may be more to serve than was
// looked for. It is false when none waits for anything that will come by itself.
func (l *Ledger) Wake() (time.Duration, bool) {
	if l.moreDue || l.served() >= triedAtLeast {
		return 0, true
	}
	first := l.due
	for _, q := range l.queues {
		if q.blocked == nil || q.blocked.until.IsZero() || q.waiting() == 0 {
			continue
		}
		if !first.After(l.Now) || q.blocked.until.Before(first) {
			first = q.blocked.until
		}
	}
	if !first.After(l.Now) {
		return 0, false
	}
	return max(first.Sub(l.Clock), 0), true
}
