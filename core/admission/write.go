package admission

import (
	"slices"
	"sort"

	"github.com/attune-go/attune/core/store"
)

// Write queues the statements that store the ledger's changes: executions in
// order of id first, then entries, counters, loads and statistics, which is
// the lock order. Nothing is sent before the pipeline is.
func (l *Ledger) Write(p *store.Pipeline) {
	l.writeReleases(p)
	l.writeGrants(p)
	l.writeEntries(p)
	touched := l.touched()
	l.writeQueues(p, touched)
	l.writeLoads(p)
	l.writeBlocked(p)
	l.writeStats(p, touched)
}

// Changed reports whether Write has anything to store.
func (l *Ledger) Changed() bool {
	return len(l.released)+len(l.granted)+len(l.withdrawn)+len(l.enqueued) > 0 || len(l.touched()) > 0 || l.anyBlocked()
}

func (l *Ledger) anyBlocked() bool {
	for _, q := range l.queues {
		if q.blocked != "" || q.queuedBefore > 0 {
			return true
		}
	}
	return false
}

func (l *Ledger) writeReleases(p *store.Pipeline) {
	if len(l.released) == 0 {
		return
	}
	sort.Slice(l.released, func(i, j int) bool { return l.released[i].execution < l.released[j].execution })
	ids, states := make([]int64, len(l.released)), make([]int64, len(l.released))
	for i, r := range l.released {
		ids[i], states[i] = r.execution, r.queue
	}
	p.Exec(store.ReleaseHolders, ids, states)
}

func (l *Ledger) writeGrants(p *store.Pipeline) {
	if len(l.granted) == 0 {
		return
	}
	ordered := append([]Granted(nil), l.granted...)
	sort.Slice(ordered, func(i, j int) bool { return ordered[i].ExecutionID < ordered[j].ExecutionID })
	n := len(ordered)
	ids, states, workers, actions := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	attempts := make([]int32, n)
	for i, g := range ordered {
		ids[i], states[i], workers[i], actions[i] = g.ExecutionID, g.Queue, g.Worker, g.ActionID
		attempts[i] = g.Attempt + 1
	}
	p.Exec(store.GrantSlots, ids, states, workers, attempts, actions)
}

func (l *Ledger) writeEntries(p *store.Pipeline) {
	if len(l.withdrawn) > 0 {
		p.Exec(store.DeleteAdmissionEntries, l.withdrawn)
	}
	if len(l.enqueued) == 0 {
		return
	}
	n := len(l.enqueued)
	states, executions, orders := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, e := range l.enqueued {
		states[i], executions[i], orders[i] = e.queue, e.execution, e.order
	}
	p.Exec(store.InsertAdmissionEntries, states, executions, orders)
}

// touched lists the queues whose row changes, in order of id.
func (l *Ledger) touched() []*queue {
	var out []*queue
	for _, q := range l.queues {
		if q.touched() {
			out = append(out, q)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}

func (q *queue) touched() bool {
	return q.active != q.activeBefore || q.queued != q.queuedBefore || q.completed > 0 || q.enqueuedTotal > 0 ||
		q.max != q.maxBefore || q.unlimited != q.unlimitedFirst
}

func (l *Ledger) writeQueues(p *store.Pipeline, touched []*queue) {
	n := len(touched)
	if n == 0 {
		return
	}
	ids, headOrders, nextOrders := make([]int64, n), make([]int64, n), make([]int64, n)
	enqueued, completed := make([]int64, n), make([]int64, n)
	maxima, active, queued := make([]int32, n), make([]int32, n), make([]int32, n)
	unlimited := make([]bool, n)
	for i, q := range touched {
		ids[i], headOrders[i], nextOrders[i] = q.id, q.headOrder(), q.next
		enqueued[i], completed[i] = q.enqueuedTotal, q.completed
		maxima[i], active[i], queued[i] = int32(q.max), int32(q.active), int32(q.queued)
		unlimited[i] = q.unlimited
	}
	p.Exec(store.UpdateAdmissionStates, ids, maxima, unlimited, active, queued, headOrders, nextOrders, enqueued, completed)
}

func (l *Ledger) writeLoads(p *store.Pipeline) {
	var workers []int64
	for id, w := range l.loads {
		if w.assigned != w.before {
			workers = append(workers, id)
		}
	}
	if len(workers) == 0 {
		return
	}
	slices.Sort(workers)
	assigned := make([]int32, len(workers))
	for i, id := range workers {
		assigned[i] = int32(l.loads[id].assigned)
	}
	p.Exec(store.UpdateWorkerLoads, workers, assigned)
}

// writeBlocked keeps admission_blocked equal to the set of queues whose head
// has room in its own limit but none at a worker.
func (l *Ledger) writeBlocked(p *store.Pipeline) {
	reasons := map[int64]string{}
	var blocked, open []int64
	for _, q := range l.queues {
		switch {
		case q.blocked != "" && q.queued > 0 && q.free() > 0:
			blocked = append(blocked, q.id)
			reasons[q.id] = q.blocked
		case q.queuedBefore > 0:
			open = append(open, q.id)
		}
	}
	if len(open) > 0 {
		p.Exec(store.UnblockQueues, open)
	}
	if len(blocked) == 0 {
		return
	}
	slices.Sort(blocked)
	texts := make([]string, len(blocked))
	for i, id := range blocked {
		texts[i] = reasons[id]
	}
	p.Exec(store.BlockQueues, blocked, texts)
}

// delta is what one batch changes in the statistics of one action.
type delta struct {
	queued, active, max int32
	enqueued, completed int64
}

func (l *Ledger) writeStats(p *store.Pipeline, touched []*queue) {
	if len(touched) == 0 || l.withoutStats {
		return
	}
	deltas := map[int64]*delta{}
	states := make([]int64, len(touched))
	for i, q := range touched {
		states[i] = q.id
		d := deltas[q.actionID]
		if d == nil {
			d = &delta{}
			deltas[q.actionID] = d
		}
		d.queued += int32(q.queued - q.queuedBefore)
		d.active += int32(q.active - q.activeBefore)
		d.enqueued += q.enqueuedTotal
		d.completed += q.completed
		d.max = int32(q.max)
	}
	actions := make([]int64, 0, len(deltas))
	for id := range deltas {
		actions = append(actions, id)
	}
	slices.Sort(actions)
	n := len(actions)
	queued, active, maxima := make([]int32, n), make([]int32, n), make([]int32, n)
	enqueued, completed := make([]int64, n), make([]int64, n)
	for i, id := range actions {
		d := deltas[id]
		queued[i], active[i], maxima[i], enqueued[i], completed[i] = d.queued, d.active, d.max, d.enqueued, d.completed
	}
	p.Exec(store.ApplyQueueStats, actions, queued, active, maxima, enqueued, completed, states)
}
