package proof

import (
	"cmp"
	"fmt"
	"slices"
)

// model is shared admission as its rules tell it, in memory and without a
// thought for how the engine does it. A queue is an action, or an action and a
// group. Who waits stands in one of three lanes of a queue. Whatever happens,
// the model at once gives every slot that may be given to whoever is next.
type model struct {
	actions map[string]*rules
	queues  map[place]*waitingQueue
	packs   map[string]*counter
	global  *counter
	workers *counter // room at the workers, which everybody needs last
	all     map[int64]*execution
	notes   map[int64]*execution // deleted, and what they left was not given back yet
	tickets int
	longest int // of a line of which no policy says it
}

// rules is what the policies and the operator say of one action.
type rules struct {
	pack      string
	grouped   bool
	threshold int // 0: no policy
	cancel    bool
	longest   int
	front     bool // where retries join
}

type place struct{ action, group string }

// counter is a limit that queues share. One that comes into force finds who runs
// already; who has ended, and only was not given back yet, is none of its
// business.
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
	resumed  bool // the clock of everybody's patience began anew
	passed   int  // promotions in a row past a lower lane in which somebody waited
	ghosts   int  // deleted waiters that the count of the line may still know
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

// String is what a drawn execution looks like.
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
			// A group that nobody has used inherits the word on its action.
			q.override, q.paused, q.resumed = plain.override, plain.paused, plain.resumed
		}
		m.queues[at] = q
	}
	return q
}

// ofAction lists the queues of an action; its plain one bears the word on all.
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

// shared lists what an execution of the action needs besides a slot of its
// queue, in the order in which it is asked for.
func (m *model) shared(action string) []*counter {
	return []*counter{m.packs[m.actions[action].pack], m.global, m.workers}
}

// obstacle is the first of the shared limits that an execution of the action
// would find closed.
func (m *model) obstacle(action string) *counter {
	for _, c := range m.shared(action) {
		if c.full() {
			return c
		}
	}
	return nil
}

// promised is the first of the shared limits that an execution of the action
// would find closed or promised: who waits for one limit is promised a slot of
// each that comes before.
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

// next is who is to be promoted next: of the highest lane in which somebody
// waits; but after seven in a row past a lower lane, whoever began to wait
// first at the head of one.
func (q *waitingQueue) next() *execution {
	highest := slices.IndexFunc(q.lanes[:], func(line []*execution) bool { return len(line) > 0 })
	if highest < 0 {
		return nil
	}
	chosen := q.lanes[highest][0]
	if q.passed < 7 {
		return chosen
	}
	var lower *execution
	for _, line := range q.lanes[highest+1:] {
		if len(line) > 0 && (lower == nil || line[0].ticket < lower.ticket) {
			lower = line[0]
		}
	}
	if lower != nil {
		return lower
	}
	return chosen
}

// promote gives what is free to who waits: across queues to whose next one
// began to wait first, until every queue that waits has a reason to.
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
			m.leave(first) // a hole that a cancel left
		case m.obstacle(best.action) != nil:
			kept[best] = true // who is next keeps all behind it
		default:
			m.queues[best].count(first.lane)
			m.leave(first)
			m.grant(first)
		}
	}
}

// count keeps how many were promoted in a row past a lower lane.
func (q *waitingQueue) count(lane int) {
	higher, lower := 0, 0
	for other, line := range q.lanes {
		switch {
		case other < lane:
			higher += len(line)
		case other > lane:
			lower += len(line)
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

// leave takes an execution out of its line.
func (m *model) leave(e *execution) {
	line := &m.queues[e.at].lanes[e.lane]
	*line = slices.DeleteFunc(*line, func(other *execution) bool { return other == e })
	e.waits = false
}

// ask is a request that arrives, for the first time or again. refused resolves
// what the rules leave open: whether a line still counts who was deleted, and
// which of two limits keeps an execution that would find the one promised and
// the other taken.
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
	if line := &q.lanes[e.lane]; e.retry && r.front && r.threshold > 0 {
		*line = slices.Insert(*line, 0, e)
	} else {
		*line = append(*line, e)
	}
}

// report is the news of an end, true or not, for the first time or again.
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

// erase is a deletion by somebody else.
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

// restore gives back what a deleted execution left behind.
func (m *model) restore(e *execution) {
	if e.holds {
		m.giveBack(e)
	} else {
		m.queues[e.at].ghosts = 0 // the line is counted anew
	}
	delete(m.notes, e.id)
}

// expire ends who has waited too long, if anybody may say so now.
func (m *model) expire(e *execution) {
	if q := m.queues[e.at]; e.waits && !e.ended() && e.aged && !q.paused && !q.resumed {
		m.leave(e)
		e.status = "timeout"
	}
}
