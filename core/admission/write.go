package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// WriteOpen queues the changes of queues of an optimistic batch. It comes before all other writes,
// because queues come first in the lock order. For any other batch it queues nothing.
func (l *Ledger) WriteOpen(p *store.Pipeline) {
	touched := l.touched()
	if !l.optimistic || len(touched) == 0 {
		return
	}
	n := len(touched)
	ids, active := make([]int64, n), make([]int32, n)
	enqueued, completed := make([]int64, n), make([]int64, n)
	for i, q := range touched {
		ids[i], active[i] = q.id, int32(q.active-q.before.active)
		enqueued[i], completed[i] = q.enqueuedEver, q.completed
	}
	stats := l.statsOf(touched)
	if stats == nil {
		stats = &statColumns{}
	}
	p.Exec(store.ChangeOpenStates, ids, active, enqueued, completed,
		stats.actions, stats.active, stats.maxima, stats.enqueued, stats.completed)
}

// ReleaseOpen queues the changes of open queues that only release slots, as many as the map says. actions are
// the actions of the queues.
func ReleaseOpen(p *store.Pipeline, released map[int64]int, actions map[int64]int64, withoutStats bool) {
	l := &Ledger{optimistic: true, withoutStats: withoutStats, queues: make(map[int64]*queue, len(released))}
	for id, n := range released {
		q := &queue{id: id, actionID: actions[id]}
		q.limits.max, q.limits.unlimited = Unlimited, true
		q.before = q.columns
		q.active, q.completed = -n, int64(n)
		l.queues[id] = q
	}
	l.WriteOpen(p)
}

// Write queues the statements that store all other changes of the ledger. Every row they touch is
// locked, or belongs to an execution whose queue is locked, or the statement counts its changes.
// The caller sends the pipeline.
func (l *Ledger) Write(p *store.Pipeline) {
	l.writeHolders(p)
	if l.optimistic {
		l.writeLoads(p)
		return
	}
	l.writeEntries(p)
	touched := l.touched()
	stats := l.statsOf(touched)
	quiet := stats != nil && !slices.ContainsFunc(touched, func(q *queue) bool { return q.waiting() > 0 })
	c := columnsOf(touched)
	if !quiet && len(touched) > 0 {
		p.Exec(store.UpdateAdmissionStates, c.ids, c.active, c.queued, c.headOrders, c.nextOrders, c.enqueued,
			c.completed)
	}
	l.writeLanes(p, touched)
	if len(l.late) > 0 {
		p.Exec(store.OrderLateEntries, l.late)
	}
	l.writeLimits(p, touched)
	l.writeScopes(p)
	l.writeLoads(p)
	l.writeBlocked(p)
	if len(l.returned) > 0 {
		p.Exec(store.DeleteLostHolders, l.returned)
	}
	switch {
	case quiet:
		p.Exec(store.UpdateQuietStates, stats.actions, stats.queued, stats.active, stats.maxima, stats.enqueued,
			stats.completed, stats.grouped,
			c.ids, c.active, c.headOrders, c.nextOrders, c.enqueued, c.completed)
	case stats != nil:
		p.Exec(store.ApplyQueueStats, stats.actions, stats.queued, stats.active, stats.maxima, stats.enqueued,
			stats.completed, stats.states, stats.grouped)
	}
}

// writeHolders stores granted and released slots, each in order of id. No execution has both in one
// batch: a granted one waited, a released one has ended.
func (l *Ledger) writeHolders(p *store.Pipeline) {
	if n := len(l.released); n > 0 {
		released := slices.SortedFunc(slices.Values(l.released),
			func(a, b release) int { return cmp.Compare(a.execution, b.execution) })
		ids, states := make([]int64, n), make([]int64, n)
		for i, r := range released {
			ids[i], states[i] = r.execution, r.queue
		}
		p.Exec(store.ReleaseSlots, ids, states)
	}
	if n := len(l.granted); n > 0 {
		granted := slices.SortedFunc(slices.Values(l.granted),
			func(a, b Granted) int { return cmp.Compare(a.ExecutionID, b.ExecutionID) })
		ids, states, workers, actions := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
		attempts := make([]int32, n)
		for i, g := range granted {
			ids[i], states[i], workers[i], attempts[i], actions[i] = g.ExecutionID, g.Queue, g.Worker, g.Attempt+1,
				g.ActionID
		}
		p.Exec(store.GrantSlots, l.guardedEpoch(), ids, l.Clock, states, workers, attempts, actions)
	}
	l.writeSlots(p)
}

// guardedEpoch is the version of the rules that must still be in force when the grants are written.
// Without locks, a shared limit may have come into force and counted the running executions since
// the rules were read.
func (l *Ledger) guardedEpoch() int64 {
	if l.optimistic {
		return l.Epoch
	}
	return 0
}

// writeSlots stores slots of shared limits.
func (l *Ledger) writeSlots(p *store.Pipeline) {
	var ended, began, scopes []int64
	slots := 0
	for _, r := range l.released {
		if r.slots > 0 {
			ended = append(ended, r.execution)
			slots += r.slots
		}
	}
	for _, g := range l.granted {
		for _, scope := range g.Scopes {
			began, scopes = append(began, g.ExecutionID), append(scopes, scope)
		}
	}
	if slots > 0 {
		p.Exec(store.ReturnScopeSlots, int64(slots), ended)
	}
	if len(began) > 0 {
		p.Exec(store.TakeScopeSlots, began, scopes)
	}
}

func (l *Ledger) writeEntries(p *store.Pipeline) {
	if len(l.withdrawn) > 0 {
		p.Exec(store.DeleteAdmissionEntries, l.withdrawn)
	}
	if len(l.enqueued) == 0 {
		return
	}
	n := len(l.enqueued)
	states, executions, orders, lanes := make([]int64, n), make([]int64, n), make([]int64, n), make([]int16, n)
	for i, e := range l.enqueued {
		states[i], executions[i], orders[i], lanes[i] = e.queue, e.execution, e.order, laneColumn(e.lane)
	}
	p.Exec(store.InsertAdmissionEntries, states, executions, orders, lanes)
}

// touched lists the queues whose row changes, in order of id.
func (l *Ledger) touched() []*queue {
	var out []*queue
	for _, q := range l.queues {
		if q.columns != q.before {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b *queue) int { return cmp.Compare(a.id, b.id) })
	return out
}

// stateColumns are queues as parallel columns.
type stateColumns struct {
	ids, headOrders, nextOrders, enqueued, completed []int64
	active, queued                                   []int32
}

func columnsOf(touched []*queue) stateColumns {
	n := len(touched)
	c := stateColumns{
		ids: make([]int64, n), headOrders: make([]int64, n), nextOrders: make([]int64, n),
		enqueued: make([]int64, n), completed: make([]int64, n), active: make([]int32, n), queued: make([]int32, n),
	}
	for i, q := range touched {
		c.ids[i], c.headOrders[i], c.nextOrders[i] = q.id, q.head[laneNormal], q.next
		c.enqueued[i], c.completed[i] = q.enqueuedEver, q.completed
		c.active[i], c.queued[i] = int32(q.active), int32(q.waiting())
	}
	return c
}

// writeLanes stores the columns that only queues with priorities use.
func (l *Ledger) writeLanes(p *store.Pipeline, touched []*queue) {
	var ids, headHigh, headLow, fronts []int64
	var high, low []int32
	var streaks []int16
	for _, q := range touched {
		b := q.before
		if q.queued[laneHigh] == b.queued[laneHigh] && q.queued[laneLow] == b.queued[laneLow] &&
			q.head[laneHigh] == b.head[laneHigh] && q.head[laneLow] == b.head[laneLow] &&
			q.front == b.front && q.streak == b.streak {
			continue
		}
		ids = append(ids, q.id)
		high, low = append(high, int32(q.queued[laneHigh])), append(low, int32(q.queued[laneLow]))
		headHigh, headLow = append(headHigh, q.head[laneHigh]), append(headLow, q.head[laneLow])
		fronts, streaks = append(fronts, q.front), append(streaks, int16(q.streak))
	}
	if len(ids) > 0 {
		p.Exec(store.UpdateAdmissionLanes, ids, high, low, headHigh, headLow, fronts, streaks)
	}
}

// writeLimits stores changed limits.
func (l *Ledger) writeLimits(p *store.Pipeline, touched []*queue) {
	var ids []int64
	var maxima, maxQueued, timeouts []int32
	var unlimited []bool
	var adapted []float64
	var lowered []*time.Time
	for _, q := range touched {
		if q.limits == q.before.limits {
			continue
		}
		ids = append(ids, q.id)
		maxima, unlimited = append(maxima, int32(q.limits.max)), append(unlimited, q.limits.unlimited)
		maxQueued = append(maxQueued, int32(q.limits.maxQueued))
		timeouts = append(timeouts, int32(q.limits.timeout/time.Second))
		adapted, lowered = append(adapted, q.limits.adapted.Limit), append(lowered, column(q.limits.adapted.Lowered))
	}
	if len(ids) > 0 {
		p.Exec(store.UpdateAdmissionLimits, ids, maxima, unlimited, maxQueued, timeouts, adapted, lowered)
	}
}

// column is the nullable column of a time: NULL for zero.
func column(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (l *Ledger) writeScopes(p *store.Pipeline) {
	var changed []*scope
	for _, s := range l.scopes {
		if s.scopeColumns != s.before {
			changed = append(changed, s)
		}
	}
	n := len(changed)
	if n == 0 {
		return
	}
	slices.SortFunc(changed, func(a, b *scope) int { return cmp.Compare(a.id, b.id) })
	ids, policies, refs := make([]int64, n), make([]int64, n), make([]string, n)
	active, maxima, used, windows, bursts := make([]int32, n), make([]int32, n), make([]int32, n), make([]int32,
		n), make([]int32, n)
	due, periods := make([]*time.Time, n), make([]*time.Time, n)
	for i, s := range changed {
		ids[i], active[i], maxima[i], used[i] = s.id, int32(s.active), int32(s.max), int32(s.used)
		due[i], periods[i], policies[i] = column(s.due), column(s.period), -1
		if s.rule != nil {
			policies[i], refs[i] = s.rule.PolicyID, s.rule.PolicyRef
			windows[i] = int32(s.rule.Window / time.Second)
			if s.kind == policy.SharedRate {
				bursts[i] = int32(s.rule.Burst)
			}
		}
	}
	p.Exec(store.UpdateAdmissionScopes, ids, active, maxima, due, periods, used, policies, refs, windows, bursts)
}

// writeLoads takes and returns worker capacity.
func (l *Ledger) writeLoads(p *store.Pipeline) {
	maps.DeleteFunc(l.changes, func(_ int64, c *change) bool { return c.by == 0 && !c.takes })
	n := len(l.changes)
	if n == 0 {
		return
	}
	workers := slices.Sorted(maps.Keys(l.changes))
	changes, most, takes := make([]int32, n), make([]int32, n), make([]bool, n)
	taking := 0
	for i, id := range workers {
		c := l.changes[id]
		changes[i], most[i], takes[i] = int32(c.by), int32(c.most), c.takes
		if c.takes {
			taking++
		}
	}
	p.Exec(store.ChangeWorkerLoads, int64(taking), l.staleAfter.Seconds(), workers, changes, takes, most)
}

// writeBlocked keeps admission_blocked equal to the set of queues whose head has a slot in its own
// limit but waits for a shared limit or a worker. A batch that did not promote cannot know the set
// and leaves it unchanged.
func (l *Ledger) writeBlocked(p *store.Pipeline) {
	var kept []*queue
	var open []int64
	for _, q := range l.queues {
		switch {
		case q.blocked != nil && q.waiting() > 0 && q.free() > 0 && !q.paused:
			kept = append(kept, q)
		case q.unfilled():
			// Another batch follows; if it does not run, the stored row makes a later batch try the
			// queue.
		case (q.tried || q.before.waiting() > 0) && (l.promoted || q.waiting() == 0):
			open = append(open, q.id)
		}
	}
	if len(open) > 0 {
		p.Exec(store.UnblockQueues, open)
	}
	n := len(kept)
	if n == 0 {
		return
	}
	slices.SortFunc(kept, func(a, b *queue) int { return cmp.Compare(a.id, b.id) })
	ids, executions, scopes := make([]int64, n), make([]int64, n), make([]int64, n)
	reasons, needs := make([]string, n), make([]string, n)
	untils, wakes := make([]*time.Time, n), make([]*time.Time, n)
	wake := wakers(kept)
	for i, q := range kept {
		ids[i], executions[i], scopes[i] = q.id, q.blocked.execution, q.blocked.scope
		reasons[i], needs[i], untils[i] = q.blocked.reason, q.blocked.need, column(q.blocked.until)
		if q.blocked.scope == 0 || wake[q.blocked.scope] == q {
			wakes[i] = untils[i]
		}
	}
	l.recheck = store.Many[bool](p, store.BlockQueues, ids, executions, reasons, needs, scopes, untils, wakes)
}

// wakers selects, for each shared limit that blocks queues until a point in time, the queue whose
// head has waited longest. The batch that runs at that time finds the others by the limit. Without
// this, thousands of queues under one rate would keep the batches busy.
func wakers(kept []*queue) map[int64]*queue {
	first := map[int64]*queue{}
	for _, q := range kept {
		if q.blocked.until.IsZero() || q.blocked.scope == 0 {
			continue
		}
		best := first[q.blocked.scope]
		if best == nil || best.blocked.ticket == 0 ||
			(q.blocked.ticket != 0 && q.blocked.ticket < best.blocked.ticket) {
			first[q.blocked.scope] = q
		}
	}
	return first
}

// delta is what one batch changes in the statistics of one action.
type delta struct {
	queued, active, max int32
	enqueued, completed int64
	grouped             bool
}

// statColumns are the statistics of actions as parallel columns.
type statColumns struct {
	actions, enqueued, completed, states, grouped []int64
	queued, active, maxima                        []int32
}

// statsOf is what the batch changes in the statistics; nil if nothing changes.
func (l *Ledger) statsOf(touched []*queue) *statColumns {
	if len(touched) == 0 || l.withoutStats {
		return nil
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
		d.queued += int32(q.waiting() - q.before.waiting())
		d.active += int32(q.active - q.before.active)
		d.enqueued += q.enqueuedEver
		d.completed += q.completed
		d.max = int32(q.limits.max)
		d.grouped = d.grouped || q.grouped
	}
	actions := slices.Sorted(maps.Keys(deltas))
	n := len(actions)
	c := &statColumns{
		actions: actions, states: states, grouped: []int64{}, enqueued: make([]int64, n), completed: make([]int64, n),
		queued: make([]int32, n), active: make([]int32, n), maxima: make([]int32, n),
	}
	for i, id := range actions {
		d := deltas[id]
		c.queued[i], c.active[i], c.maxima[i], c.enqueued[i], c.completed[i] = d.queued, d.active, d.max, d.enqueued,
			d.completed
		if d.grouped {
			c.grouped = append(c.grouped, id)
		}
	}
	return c
}
