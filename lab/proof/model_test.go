package proof

import (
	"cmp"
	"fmt"
	"slices"
)

// model is shared admission by its rules, in memory and independent of the engine's methods. A queue is an action,
// or an action and a group, with three lanes. After each event the model at once gives every free slot to the next
// queued execution.
type model struct {
	actions map[string]*rules
	queues  map[place]*waitingQueue
	packs   map[string]*counter
	global  *counter
	workers *counter // room at the workers, the last need of every execution
	all     map[int64]*execution
	notes   map[int64]*execution // deleted, with slots that are not released yet
	tickets int
	longest int // of a queue without a policy
}

// rules are the policies and the operator's states of one action.
type rules struct {
	pack      string
	grouped   bool
	threshold int // 0: no policy
	cancel    bool
	longest   int
	front     bool // where retries join
}

type place struct{ action, group string }

// counter is a limit that queues share. A limit that comes into force counts the running executions, and not the
// ended ones whose slots are not released yet.
type counter struct {
	inForce bool
	most    int
	cancel  bool
	taken   map[int64]bool
}

func newCounter() *counter { return &counter{taken: map[int64]bool{}} }

func (c *counter) full() bool { return c.inForce && len(c.taken) >= c.most }

// force puts a shared limit in force, or out of it.
func (m *model) force(c *counter, most int) {
	if !c.inForce && most > 0 {
		for id, e := range m.all {
			if e.holds && !e.ended() && slices.Contains(m.shared(e.at.action), c) {
				c.taken[id] = true
			}
		}
	}
	c.inForce, c.most = most > 0, most
}

type waitingQueue struct {
	lanes    [3][]*execution // high, normal, low
	holders  map[int64]bool
	override int
	paused   bool
	resumed  bool // all timeouts have started anew
	passed   int  // promotions in a row past a lower waiting lane
	ghosts   int  // deleted waiting executions that the queue may still count
}

type execution struct {
	id       int64
	at       place
	lane     int
	retry    bool
	status   string
	waits    bool
	holds    bool
	admitted int // how often
	ticket   int
	aged     bool // has waited longer than a timeout
}

// String describes a drawn execution.
func (e *execution) String() string {
	return fmt.Sprintf("%d %s%s lane %d %s", e.id, e.at.action, e.at.group, e.lane, e.status)
}

func (e *execution) ended() bool { return e.status != "requested" && e.status != "scheduled" }

func newModel(longest int) *model {
	return &model{
		actions: map[string]*rules{}, queues: map[place]*waitingQueue{}, packs: map[string]*counter{},
		global: newCounter(), workers: newCounter(), all: map[int64]*execution{}, notes: map[int64]*execution{},
		longest: longest,
	}
}

func (m *model) queue(at place) *waitingQueue {
	q := m.queues[at]
	if q == nil {
		q = &waitingQueue{holders: map[int64]bool{}}
		if plain := m.queues[place{action: at.action}]; plain != nil {
			// An unused group inherits the state of its action.
			q.override, q.paused, q.resumed = plain.override, plain.paused, plain.resumed
		}
		m.queues[at] = q
	}
	return q
}

// ofAction lists the queues of an action; its plain one has the state of all.
func (m *model) ofAction(action string) []*waitingQueue {
	list := []*waitingQueue{m.queue(place{action: action})}
	for at, q := range m.queues {
		if at.action == action && at.group != "" {
			list = append(list, q)
		}
	}
	return list
}

const unlimited = 1 << 30

// limit is the operator's, else the policy's, else none.
func (m *model) limit(at place) int {
	return cmp.Or(m.queues[at].override, m.actions[at.action].threshold, unlimited)
}

func (m *model) free(at place) int { return m.limit(at) - len(m.queues[at].holders) }

func (q *waitingQueue) waiting() int { return len(q.lanes[0]) + len(q.lanes[1]) + len(q.lanes[2]) }

// shared lists what an execution of the action needs in addition to a slot of its queue, in the order of the
// engine.
func (m *model) shared(action string) []*counter {
	return []*counter{m.packs[m.actions[action].pack], m.global, m.workers}
}

// obstacle is the first shared limit that an execution of the action would find closed.
func (m *model) obstacle(action string) *counter {
	for _, c := range m.shared(action) {
		if c.full() {
			return c
		}
	}
	return nil
}

// promised is the first shared limit that an execution of the action would find closed or promised: one that waits
// for one limit is promised a slot of each one before it.
func (m *model) promised(action string) *counter {
	promises := map[*counter]int{}
	for at, q := range m.queues {
		if q.paused || m.free(at) <= 0 || q.next() == nil {
			continue
		}
		for _, c := range m.shared(at.action) {
			if c.full() {
				break
			}
			promises[c]++
		}
	}
	for _, c := range m.shared(action) {
		if c.inForce && len(c.taken)+promises[c] >= c.most {
			return c
		}
	}
	return nil
}

// next is the next promoted execution: the head of the highest waiting lane, or, after seven in a row past a lower
// lane, the head that started to wait first.
func (q *waitingQueue) next() *execution {
	highest := slices.IndexFunc(q.lanes[:], func(lane []*execution) bool { return len(lane) > 0 })
	if highest < 0 {
		return nil
	}
	chosen := q.lanes[highest][0]
	if q.passed < 7 {
		return chosen
	}
	var lower *execution
	for _, lane := range q.lanes[highest+1:] {
		if len(lane) > 0 && (lower == nil || lane[0].ticket < lower.ticket) {
			lower = lane[0]
		}
	}
	if lower != nil {
		return lower
	}
	return chosen
}

// promote gives the free slots to waiting executions: across queues to the head that started to wait first, until
// every waiting queue has a reason to wait.
func (m *model) promote() {
	kept := map[place]bool{}
	for {
		var best place
		var first *execution
		for at, q := range m.queues {
			if kept[at] || q.paused || m.free(at) <= 0 {
				continue
			}
			if w := q.next(); w != nil && (first == nil || w.ticket < first.ticket) {
				best, first = at, w
			}
		}
		switch {
		case first == nil:
			return
		case first.ended():
			m.leave(first) // a hole after a cancel
		case m.obstacle(best.action) != nil:
			kept[best] = true // the head keeps all others waiting
		default:
			m.queues[best].count(first.lane)
			m.leave(first)
			m.grant(first)
		}
	}
}

// count keeps the number of promotions in a row past a lower lane.
func (q *waitingQueue) count(lane int) {
	higher, lower := 0, 0
	for other, waiting := range q.lanes {
		switch {
		case other < lane:
			higher += len(waiting)
		case other > lane:
			lower += len(waiting)
		}
	}
	if higher == 0 && lower > 0 {
		q.passed = min(q.passed+1, 7)
	} else {
		q.passed = 0
	}
}

func (m *model) grant(e *execution) {
	e.status, e.holds = "scheduled", true
	e.admitted++
	m.queues[e.at].holders[e.id] = true
	for _, c := range m.shared(e.at.action) {
		if c.inForce {
			c.taken[e.id] = true
		}
	}
}

func (m *model) giveBack(e *execution) {
	e.holds = false
	delete(m.queues[e.at].holders, e.id)
	for _, c := range m.shared(e.at.action) {
		delete(c.taken, e.id)
	}
}

// leave takes an execution out of its queue.
func (m *model) leave(e *execution) {
	lane := &m.queues[e.at].lanes[e.lane]
	*lane = slices.DeleteFunc(*lane, func(other *execution) bool { return other == e })
	e.waits = false
}

// ask is a request that arrives, for the first time or again. refused resolves what the rules leave open: whether
// a queue still counts a deleted waiter, and which of two limits keeps an execution that would find one promised
// and the other taken.
func (m *model) ask(e *execution, refused func() bool) {
	switch {
	case e.ended():
		if e.waits {
			m.leave(e)
		}
		return
	case e.waits || e.holds:
		return
	}
	r, q := m.actions[e.at.action], m.queue(e.at)
	switch {
	case r.threshold > 0 && r.cancel && !q.paused && len(q.holders)+q.waiting() >= m.limit(e.at):
		e.status = "cancelled"
		return
	case q.waiting() == 0 && !q.paused && m.free(e.at) > 0:
		kept := m.obstacle(e.at.action)
		if kept == nil {
			m.grant(e)
			return
		}
		if promised := m.promised(e.at.action); kept.cancel && promised.cancel || kept.cancel != promised.cancel &&
			refused() {
			e.status = "cancelled"
			return
		}
	}
	longest := m.longest
	if r.threshold > 0 {
		longest = cmp.Or(r.longest, m.longest)
	}
	if q.waiting() >= longest || q.waiting()+q.ghosts >= longest && refused() {
		e.status = "cancelled"
		return
	}
	m.tickets++
	e.waits, e.ticket, e.aged = true, m.tickets, false
	if lane := &q.lanes[e.lane]; e.retry && r.front && r.threshold > 0 {
		*lane = slices.Insert(*lane, 0, e)
	} else {
		*lane = append(*lane, e)
	}
}

// report is a report of an end, true or not, for the first time or again.
func (m *model) report(e *execution) {
	if !e.ended() {
		return
	}
	if e.holds {
		m.giveBack(e)
	}
	if e.waits {
		m.leave(e)
	}
}

// erase is a deletion by another service.
func (m *model) erase(e *execution) {
	if e.waits {
		m.leave(e)
		m.queues[e.at].ghosts++
		m.notes[e.id] = e
	}
	if e.holds {
		m.notes[e.id] = e
	}
	delete(m.all, e.id)
}

// restore releases the slots of a deleted execution.
func (m *model) restore(e *execution) {
	if e.holds {
		m.giveBack(e)
	} else {
		m.queues[e.at].ghosts = 0 // the engine counts the queue anew
	}
	delete(m.notes, e.id)
}

// expire ends the executions that have waited too long, unless their queue is paused.
func (m *model) expire(e *execution) {
	if q := m.queues[e.at]; e.waits && !e.ended() && e.aged && !q.paused && !q.resumed {
		m.leave(e)
		e.status = "timeout"
	}
}
