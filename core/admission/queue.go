package admission

import (
	"math"
	"slices"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/policy"
)

// Unlimited is the max_concurrent of a queue without a limit.
const Unlimited = math.MaxInt32

// The lanes of a queue, in the order in which they are served.
const (
	laneHigh = iota
	laneNormal
	laneLow
	laneCount
)

// laneOf is the lane of a priority, or of a stored value.
func laneOf(priority int16) int {
	switch {
	case priority > 0:
		return laneHigh
	case priority < 0:
		return laneLow
	default:
		return laneNormal
	}
}

// laneColumn is the stored value of a lane; laneOf is its inverse.
func laneColumn(lane int) int16 { return int16(laneNormal - lane) }

// MaxStreak is how many executions of higher lanes may be admitted in a row while a lower lane
// waits. The next one comes from a lower lane (invariant S23).
const MaxStreak = 7

// columns are the values of a queue's row that a batch may change.
type columns struct {
	active       int
	queued       [laneCount]int
	head         [laneCount]int64 // no entry of the lane has a lower order
	next         int64            // order of the next entry
	front        int64            // order of the next entry that goes before all others
	streak       int              // admissions in a row while a lower lane waited
	limits       limits
	enqueuedEver int64 // executions that entered in this batch
	completed    int64 // slots released in this batch
}

// limits are the limits in a queue's row.
type limits struct {
	max       int
	unlimited bool
	maxQueued int           // 0: as configured
	timeout   time.Duration // 0: as configured
	adapted   policy.Adapted
}

// queue is the working copy of one locked row of execution_admission_state.
type queue struct {
	columns

	id, actionID int64
	grouped      bool
	paused       bool
	override     int       // an operator's limit; 0 for none
	resumed      time.Time // end of the last pause
	adaptive     *policy.Adaptive
	hard         int // the limit that adaptation never exceeds

	heads   [laneCount][]Candidate // the first waiting executions of each lane, in order, as far as they were read
	tried   bool                   // it was not wanted, but waits for a shared limit or a worker
	blocked *obstacle              // what blocks the head although a slot is free; nil if nothing does
	before  columns
}

// obstacle is what blocks an execution for which its queue has a free slot.
type obstacle struct {
	execution int64
	ticket    int64  // 0 for a new request
	scope     int64  // 0: the workers
	need      string // which kind of them
	reason    string
	until     time.Time // when the next try can succeed; zero if unknown
}

// open reports whether the queue admits every new execution: it has no limit, no pause and no
// waiting execution. A queue of a group never counts as open.
func (q *queue) open() bool {
	return q.limits.unlimited && q.override == 0 && !q.grouped && !q.paused && q.waiting() == 0
}

func (q *queue) free() int { return q.limits.max - q.active }

// waiting is the length of the whole queue.
func (c *columns) waiting() int {
	n := 0
	for _, queued := range c.queued {
		n += queued
	}
	return n
}

// lane is the lane whose head is admitted next: the highest with waiting executions. After
// MaxStreak of those it is the lower lane whose head has waited longest. It is -1 when no execution
// waits.
func (q *queue) lane() int {
	highest := slices.IndexFunc(q.queued[:], func(n int) bool { return n > 0 })
	if highest < 0 || q.streak < MaxStreak {
		return highest
	}
	oldest := -1
	for lane := highest + 1; lane < laneCount; lane++ {
		if q.queued[lane] == 0 {
			continue
		}
		if len(q.heads[lane]) == 0 {
			return lane // it is next, but it was not read: another batch must serve it
		}
		if oldest < 0 || q.heads[lane][0].ticket < q.heads[oldest][0].ticket {
			oldest = lane
		}
	}
	if oldest < 0 {
		return highest
	}
	return oldest
}

// served counts an admission from a lane, before the execution leaves the count of waiting ones.
func (q *queue) served(lane int) {
	highest, below := true, false
	for other, n := range q.queued {
		highest = highest && (other >= lane || n == 0)
		below = below || (other > lane && n > 0)
	}
	if highest && below {
		q.streak = min(q.streak+1, MaxStreak)
	} else {
		q.streak = 0
	}
}

// first is the next waiting execution, if it was read.
func (q *queue) first() (w Candidate, lane int, ok bool) {
	lane = q.lane()
	if lane < 0 || len(q.heads[lane]) == 0 {
		return Candidate{}, lane, false
	}
	return q.heads[lane][0], lane, true
}

func (q *queue) promotable() bool {
	if q.blocked != nil || q.paused || q.free() <= 0 {
		return false
	}
	_, _, ok := q.first()
	return ok
}

// unfilled reports whether an execution that was not read could be admitted.
func (q *queue) unfilled() bool {
	return q.blocked == nil && !q.paused && q.waiting() > 0 && q.free() > 0
}

// place returns the next order in a lane, at the end or before all others.
func (q *queue) place(lane int, front bool) int64 {
	order := q.next
	if front {
		order = q.front
		q.front--
	} else {
		q.next++
	}
	if q.queued[lane] == 0 || order < q.head[lane] {
		q.head[lane] = order
	}
	q.queued[lane]++
	return order
}

// QueueConfig are the limits that policies set for a queue.
type QueueConfig struct {
	Limit     policy.Limit
	MaxQueued int           // 0: as configured
	Timeout   time.Duration // 0: as configured
}

// Configure puts the limits of a queue in force. An operator's limit replaces the policy's; an
// adaptive one stays below. A lowered limit evicts no execution; the next Promote fills a raised
// one.
func (l *Ledger) Configure(queueID int64, config QueueConfig) {
	q := l.queues[queueID]
	if q == nil {
		return
	}
	q.hard, q.adaptive = config.Limit.Max, config.Limit.Adaptive
	unlimited := config.Limit.Unlimited
	if q.override > 0 {
		q.hard, unlimited = q.override, false
	}
	if unlimited {
		q.hard, q.adaptive = Unlimited, nil
	}
	now := limits{
		max: q.hard, unlimited: unlimited, maxQueued: config.MaxQueued, timeout: config.Timeout,
		adapted: q.limits.adapted,
	}
	if q.adaptive == nil {
		now.adapted = policy.Adapted{}
	} else {
		now.adapted = q.adaptive.Bound(now.adapted, q.hard)
		now.max = now.adapted.Whole()
	}
	q.limits = now
}

// adapt moves an adaptive limit by the outcome of an execution. A cancelled execution does not
// count.
func (q *queue) adapt(fact Fact, now time.Time) {
	if q.adaptive == nil || fact.Status == lifecycle.StatusCancelled {
		return
	}
	bad := fact.Status != lifecycle.StatusCompleted
	if !bad && q.adaptive.Latency > 0 && fact.Started != nil {
		ended := now
		if fact.Ended != nil {
			ended = *fact.Ended
		}
		bad = ended.Sub(*fact.Started) > q.adaptive.Latency
	}
	q.limits.adapted = q.adaptive.After(q.limits.adapted, q.hard, bad, now)
	q.limits.max = q.limits.adapted.Whole()
}

// heads orders queues by the ticket of their head.
type heads []*queue

// Len implements heap.Interface.
func (h *heads) Len() int { return len(*h) }

// Less implements heap.Interface.
func (h *heads) Less(i, j int) bool { return (*h)[i].ticket() < (*h)[j].ticket() }

// ticket is the ticket of the head of a promotable queue.
func (q *queue) ticket() int64 {
	w, _, _ := q.first()
	return w.ticket
}

// Swap implements heap.Interface.
func (h *heads) Swap(i, j int) { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push implements heap.Interface; nothing is pushed after Init.
func (h *heads) Push(x any) {
	if q, ok := x.(*queue); ok {
		*h = append(*h, q)
	}
}

// Pop implements heap.Interface.
func (h *heads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
