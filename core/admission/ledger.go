package admission

import (
	"slices"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// Fact is the state of an execution's row, read under the queue locks.
type Fact struct {
	ID      int64
	Status  lifecycle.Status
	Updated time.Time
	Attempt int32
	Worker  *int64  // the worker that received its dispatch, if any
	Holds   *int64  // the queue whose slot it holds, if any
	HeldAt  *int64  // the worker whose capacity it takes, if it holds a slot and the worker's row exists
	Scopes  []int64 // the shared limits of which it holds a slot
	Waits   *int64  // the queue it waits in, if any
	Since   time.Time
	Started *time.Time
	Ended   *time.Time

	lane int // of the queue it waits in
}

// Candidate is an execution that needs a slot, with the inputs of its placement.
type Candidate struct {
	ExecutionID int64
	Status      lifecycle.Status
	ActionID    int64
	ActionRef   string
	Config      []byte // JSON parameters, nil when there are none
	Updated     time.Time
	Created     time.Time
	Attempt     int32
	// Requested is when the work was requested of which this is an attempt or a part; zero for one
	// that waits in a queue.
	Requested time.Time

	// Placement has the fields of its row. Avoid are workers on which it has failed.
	Placement placement.Own
	Avoid     []int64
	// Cancel is what its cancel request says, if its end was requested while it waited and is not
	// written yet; else nil.
	Cancel []byte

	order  int64 // position in its lane; 0 for a new request
	ticket int64 // order of waiting across queues; 0 for a new request
}

// Ledger is the working copy of the locked queues. Its methods are arithmetic in memory; only Write
// stores anything. It is not safe for concurrent use, and is invalid after its transaction.
type Ledger struct {
	// Now is the start of the transaction by the database's clock. Rows that it changes have this
	// time in updated.
	Now time.Time
	// Clock is the time at which the locks were held, by the same clock. Rates use it, because it
	// never goes back from one holder of a lock to the next.
	Clock time.Time
	// Epoch is the version of the rules that were in force at Clock.
	Epoch int64

	withoutStats bool      // do not maintain queue_stats
	optimistic   bool      // the queues are not locked, and all were open
	due          time.Time // when the first queue that waits for a point in time was due
	moreDue      bool      // more such queues are due than this batch tries

	queues  map[int64]*queue
	gone    map[int64]bool // wanted queues that no longer exist
	held    map[int64]bool // spare queues that another batch holds
	passed  bool           // another batch held a queue that waits for shared capacity
	skipped []Candidate    // the heads of queues that another batch holds, as many as have a free slot, by ticket
	ahead   []Candidate    // those of skipped for which Promote has reserved nothing yet
	kept    bool           // something is reserved for one of skipped
	blocked bool           // a queue waits for a shared limit or a worker
	scopes  map[int64]*scope
	pruned  map[int64]bool // wanted shared limits that no longer exist
	facts   map[int64]Fact
	rows    []store.ReadBatchExecutionsRow
	lost    map[int64]lostHolder

	staleAfter time.Duration
	assigned   map[int64]int      // executions at workers when the batch began
	standings  map[int64]standing // the wanted workers
	changes    map[int64]*change  // what the batch takes and returns at workers

	unplanned bool // the batch needs a lock that was not wanted
	promoted  bool // Promote has run

	granted   []Granted
	released  []release
	withdrawn []int64 // executions whose entries are deleted
	enqueued  []enqueue
	late      []int64 // enqueued executions whose request was lost
	returned  []int64 // notes of deleted executions that were processed

	recheck *store.Result[bool] // after the commit: a queue begins to wait for workers
}

// Optimistic reports whether the batch has no locks. The guards of its writes then refuse its
// decisions if another batch decided first.
func (l *Ledger) Optimistic() bool { return l.optimistic }

// Open reports whether every queue is open in the ledger, and whether the batch changes nothing of
// the queues but the holders of their slots.
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

// standing is the state of a worker when the batch began.
type standing struct {
	live bool // it may receive work
	gone bool // silent for too long, or deleted
}

// change is what a batch does to the load of one worker.
type change struct {
	by    int  // more executions than before; negative if it returns more than it takes
	takes bool // it receives an execution
	most  int  // its limit of executions, if it receives one
}

type release struct {
	execution, queue int64
	slots            int // of shared limits
}

type enqueue struct {
	queue, execution, order int64
	lane                    int
	position                int // number of waiting executions in the queue, including this one
}

// lostHolder is what a deleted execution held.
type lostHolder struct {
	queue  int64
	worker *int64
	scopes []int64
}

// Fact returns the state of an execution's row under the locks.
func (l *Ledger) Fact(id int64) (Fact, bool) {
	fact, ok := l.facts[id]
	return fact, ok
}

// Rows are the rows of the wanted executions under the locks.
func (l *Ledger) Rows() []store.ReadBatchExecutionsRow { return l.rows }

// Blocked reports whether any queue waits for a shared limit or a worker.
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

// Assigned is the number of executions at a worker in the ledger.
func (l *Ledger) Assigned(worker int64) int {
	assigned := l.assigned[worker]
	if c := l.changes[worker]; c != nil {
		assigned += c.by
	}
	return max(assigned, 0)
}

// Known reports whether a worker was wanted, so that Live and Gone know its state.
func (l *Ledger) Known(worker int64) bool {
	_, ok := l.standings[worker]
	return ok
}

// Live reports whether a worker may receive work: it is present and not cordoned, draining, suspect
// or silent. It is false for a worker that was not wanted.
func (l *Ledger) Live(worker int64) bool { return l.standings[worker].live }

// Gone reports whether a wanted worker was silent for too long, or was deleted. It is false for a
// worker that was not wanted.
func (l *Ledger) Gone(worker int64) bool { return l.standings[worker].gone }

// Queue is the public view of a locked queue.
type Queue struct {
	ID, ActionID int64
	Queued       int           // waiting executions
	Max          int           // the limit in force; Unlimited for none
	Paused       bool          // by an operator
	Resumed      time.Time     // end of the last pause; zero without one
	Timeout      time.Duration // how long executions may wait in it; 0: as configured
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

// Queue returns a locked queue as it is in the ledger.
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

// EachHead calls a function for every waiting execution that was read.
func (l *Ledger) EachHead(call func(Candidate)) {
	for _, q := range l.queues {
		for _, lane := range q.heads {
			for _, w := range lane {
				call(w)
			}
		}
	}
}

// SkippedActions are the actions of queues that were read and that another batch holds. Promote needs
// their shared limits.
func (l *Ledger) SkippedActions() []int64 {
	ids := make([]int64, len(l.skipped))
	for i, w := range l.skipped {
		ids[i] = w.ActionID
	}
	return ids
}

// ReleasedIDs are the executions that released a slot in this batch.
func (l *Ledger) ReleasedIDs() []int64 {
	ids := make([]int64, len(l.released))
	for i, one := range l.released {
		ids[i] = one.execution
	}
	return ids
}

// Promoted reports whether Promote has run.
func (l *Ledger) Promoted() bool { return l.promoted }

// Released is the number of slots released in this batch.
func (l *Ledger) Released() int { return len(l.released) }

// Enqueued is the number of executions that began to wait in this batch.
func (l *Ledger) Enqueued() int { return len(l.enqueued) }

// Entry is an execution that began to wait.
type Entry struct {
	Execution, Queue, Action int64
	Position                 int // number of waiting executions in the queue, including this one
}

// Entries lists the executions that began to wait.
func (l *Ledger) Entries() []Entry {
	list := make([]Entry, len(l.enqueued))
	for i, e := range l.enqueued {
		list[i] = Entry{
			Execution: e.execution, Queue: e.queue, Action: l.queues[e.queue].actionID,
			Position: e.position,
		}
	}
	return list
}

// Granted lists the executions that took a slot in this batch, in that order.
func (l *Ledger) Granted() []Granted { return l.granted }

// Release releases the slots of a terminal execution. It reports whether it had any; a second
// release of the same holder finds none (invariant S7). If a queue or shared limit of the holder is
// not locked, Release changes nothing and makes the ledger Unplanned. A deleted queue has no
// counters, but its holder's worker has.
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

// GiveBack releases what a deleted execution held, by the note that its deletion left. It reports
// whether the note exists; another replica may have processed it.
func (l *Ledger) GiveBack(note int64) bool {
	held, ok := l.lost[note]
	if !ok || !l.giveBack(held.queue, held.worker, held.scopes) {
		return false
	}
	delete(l.lost, note)
	l.returned = append(l.returned, note)
	return true
}

// giveBack subtracts what one holder holds, all or none. Queue 0 means none.
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

// Move moves a holder to another worker, which may have most executions; it keeps its slots. It
// reports whether it could: the holder's queue must be locked.
func (l *Ledger) Move(id, to int64, most int) bool {
	fact, ok := l.facts[id]
	if !ok || fact.Worker == nil || fact.Holds == nil {
		return false
	}
	known := l.queues[*fact.Holds] != nil || l.gone[*fact.Holds] // a deleted queue has no counters
	if !known {
		l.unplanned = true
		return false
	}
	if fact.HeldAt != nil {
		l.leave(*fact.HeldAt)
	}
	l.occupy(to, most)
	l.note(id, func(fact *Fact) { fact.Worker, fact.HeldAt = &to, &to; fact.Attempt++ })
	return true
}

// occupy adds one execution to a worker, which may have most executions.
func (l *Ledger) occupy(worker int64, most int) {
	c := l.changeAt(worker)
	c.by, c.takes, c.most = c.by+1, true, most
}

// leave removes one execution from a worker.
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

// Recheck reports, after the commit, whether one more batch must run. Either a queue began to wait
// for workers while another batch returned capacity that it did not offer to this queue; or this
// batch returned capacity, or found free slots of shared limits, that it could not offer to a queue,
// because another batch held it.
func (l *Ledger) Recheck() bool {
	returned := len(l.released)+len(l.returned) > 0
	return (l.passed && returned) || l.kept || (l.recheck != nil && l.recheck.Rows()[0])
}

// Held reports whether another batch holds a spare queue.
func (l *Ledger) Held(queue int64) bool { return l.held[queue] }

// Unplanned reports whether the batch needs a lock that was not wanted, because a row changed
// between planning and locking. The batch must be planned again.
func (l *Ledger) Unplanned() bool { return l.unplanned }

// Create adds the fact of an execution that this batch creates.
func (l *Ledger) Create(id int64, status lifecycle.Status) {
	l.facts[id] = Fact{ID: id, Status: status, Updated: l.Now, Since: l.Now}
}

// End records the status of an execution that the caller ends in this batch, so that no later step
// decides about it.
func (l *Ledger) End(id int64, status lifecycle.Status) {
	l.note(id, func(fact *Fact) { fact.Status = status })
}

// Withdraw removes an execution that will not run from its queue. It reports whether it waited in
// one.
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
	q.heads[fact.lane] = slices.DeleteFunc(q.heads[fact.lane], func(w Candidate) bool { return w.ExecutionID == id })
	l.withdrawn = append(l.withdrawn, id)
	l.note(id, func(fact *Fact) { fact.Waits = nil })
	return true
}

// triedAtLeast is how many queues attune_blocked finds at least, if they exist, for each kind of
// worker and each limit with a free slot.
const triedAtLeast = 8

// served counts the queues that were only tried and got something. If it reaches the search limit,
// more such queues may exist.
func (l *Ledger) served() int {
	n := 0
	for _, q := range l.queues {
		if q.tried && q.active > q.before.active {
			n++
		}
	}
	return n
}

// Wake is the delay, from Clock, until the first queue that waits for a point in time should be
// tried again. It is 0 when more queues may be served than the search found. It is false when no
// queue waits for a point in time.
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
