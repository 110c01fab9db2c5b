package admission

import "math"

// Unlimited is what max_concurrent says for a queue without a limit.
const Unlimited = math.MaxInt32

// queue is the working copy of one locked row of execution_admission_state.
type queue struct {
	id, actionID int64
	grouped      bool
	unlimited    bool
	paused       bool
	max          int
	active       int
	queued       int
	head         int64 // no waiting entry has a lower order
	next         int64 // order of the next entry

	heads   []Waiter // the first waiters, in order, as far as they were read
	blocked string   // why the head waits although a slot is free; empty if it does not

	enqueuedTotal  int64 // executions that entered in this batch
	completed      int64 // slots given back in this batch
	activeBefore   int
	queuedBefore   int
	maxBefore      int
	unlimitedFirst bool
}

func (q *queue) free() int { return q.max - q.active }

func (q *queue) promotable() bool {
	return q.blocked == "" && !q.paused && q.queued > 0 && q.free() > 0 && len(q.heads) > 0
}

// skip drops a withdrawn execution from the heads that were read.
func (q *queue) skip(id int64) {
	for i, w := range q.heads {
		if w.ExecutionID == id {
			q.heads = append(q.heads[:i:i], q.heads[i+1:]...)
			return
		}
	}
}

// headOrder is the order below which no entry waits.
func (q *queue) headOrder() int64 {
	if q.queued == 0 {
		return q.next
	}
	return q.head
}

// heads orders queues by the ticket of their first waiter.
type heads []*queue

// Len implements heap.Interface.
func (h *heads) Len() int { return len(*h) }

// Less implements heap.Interface.
func (h *heads) Less(i, j int) bool { return (*h)[i].heads[0].ticket < (*h)[j].heads[0].ticket }

// Swap implements heap.Interface.
func (h *heads) Swap(i, j int) { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push implements heap.Interface; a line is never pushed to after Init.
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
