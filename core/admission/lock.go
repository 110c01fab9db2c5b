package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// ErrQueueGone reports that the row of a resolved queue or shared limit no longer exists. The
// caller repeats the batch after Forget.
var ErrQueueGone = errors.New("admission queue was deleted")

// ErrNotOpen reports that an optimistic batch needs the locks of its queues: one of them is not
// open, or the batch changes more of it than the holders of its slots.
var ErrNotOpen = errors.New("an admission queue is not open")

// BriefLockTimeout is how long the write of an optimistic batch waits for the lock of a queue.
// Other batches hold a queue for less; a lock held for longer is left.
const BriefLockTimeout = "300ms"

// reading is the result of one round trip.
type reading struct {
	scopes    *store.Result[store.LockAdmissionScopesRow]
	firm      *store.Result[store.LockAdmissionStatesRow] // nil if none is
	open      *store.Result[store.ReadAdmissionStatesRow] // instead of states, of an optimistic batch
	states    *store.Result[store.LockFreeAdmissionStatesRow]
	standings *store.Result[store.ReadWorkerStandingsRow]
	rows      *store.Result[store.ReadBatchExecutionsRow]
	heads     *store.Result[store.ReadAdmissionHeadsRow] // nil while they are not read
	counted   *store.Result[store.CountAdmissionEntriesRow]
	lost      *store.Result[store.LockLostHoldersRow]
	moment    *store.Result[store.ReadAdmissionMomentRow]
}

// Lock locks the wanted shared limits and queues and returns their ledger. It reads the load of
// workers without locks: Write takes their capacity. It takes one round trip, and a second one if
// Want.Quiet was wrong. An optimistic batch locks nothing. Any other batch also locks queues whose
// heads wait for a worker, for a point in time that has passed, or for a shared limit with a free
// slot, so that these are served first.
func Lock(ctx context.Context, tx *store.Tx, want Want) (*Ledger, error) {
	ids, releases := want.ids()
	p := tx.Pipeline()
	r := want.read(p, ids, releases)
	if err := p.Send(ctx); err != nil {
		return nil, fmt.Errorf("lock %d admission queues: %w", len(ids), err)
	}
	moment := r.moment.Rows()[0]
	l := &Ledger{
		Now: moment.Now, Clock: moment.Clock, Epoch: moment.Epoch, due: moment.Due, moreDue: moment.MoreDue,
		withoutStats: want.WithoutStats, optimistic: want.Optimistic,
		queues:     make(map[int64]*queue, len(ids)),
		gone:       make(map[int64]bool),
		held:       make(map[int64]bool),
		scopes:     make(map[int64]*scope),
		pruned:     make(map[int64]bool),
		staleAfter: want.StaleAfter,
		assigned:   make(map[int64]int, len(moment.Workers)),
		standings:  make(map[int64]standing, len(want.Workers)),
		facts:      make(map[int64]Fact, len(r.rows.Rows())),
		rows:       r.rows.Rows(),
		lost:       make(map[int64]lostHolder),
	}
	if err := l.readQueues(want, r); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if l.queues[id] != nil {
			continue
		}
		if want.Spare[id] {
			l.held[id] = true // or deleted, which a batch that waits for it finds
			continue
		}
		if want.Resolved[id] {
			return nil, fmt.Errorf("lock admission queue %d: %w", id, ErrQueueGone)
		}
		l.gone[id] = true
	}
	if err := l.readScopes(want.Scopes, r.scopes); err != nil {
		return nil, err
	}
	for i, worker := range moment.Workers {
		l.assigned[worker] = int(moment.Assigned[i])
	}
	l.readStandings(want.Workers, r.standings)
	l.readFacts()
	if !want.Optimistic && r.heads == nil && (moment.Blocked || l.anyServed(ids, releases)) {
		r.heads = want.readHeads(p, ids, releases)
		if err := p.Send(ctx); err != nil {
			return nil, fmt.Errorf("read the heads of %d admission queues: %w", len(ids), err)
		}
	}
	l.blocked = moment.Blocked
	if r.heads != nil {
		l.readHeads(r.heads.Rows())
		l.reconcile(want, ids, releases)
	}
	l.readRecounts(r)
	return l, nil
}

// read queues the statements that the batch needs, in the order of the locks.
func (w Want) read(p *store.Pipeline, ids []int64, releases []int32) reading {
	var r reading
	if w.First != nil {
		w.First(p)
	}
	scopes, maxima, back := w.shared()
	if len(scopes) > 0 {
		r.scopes = store.Many[store.LockAdmissionScopesRow](p, store.LockAdmissionScopes, scopes)
	}
	if w.Optimistic {
		r.open = store.Many[store.ReadAdmissionStatesRow](p, store.ReadAdmissionStates, ids, BriefLockTimeout)
	} else {
		firm, spare := w.firmAndSpare(ids)
		if len(firm) > 0 {
			r.firm = store.Many[store.LockAdmissionStatesRow](p, store.LockAdmissionStates, firm)
		}
		r.states = store.Many[store.LockFreeAdmissionStatesRow](p, store.LockFreeAdmissionStates,
			spare, int32(maxBlockedQueues), scopes, maxima, back, firm)
	}
	if len(w.Workers) > 0 {
		r.standings = store.Many[store.ReadWorkerStandingsRow](p, store.ReadWorkerStandings, w.StaleAfter.Seconds(),
			w.Workers)
	}
	r.rows = store.Many[store.ReadBatchExecutionsRow](p, store.ReadBatchExecutions, w.Executions)
	if !w.Quiet && !w.Optimistic {
		r.heads = w.readHeads(p, ids, releases)
	}
	if len(w.Recount) > 0 {
		r.counted = store.Many[store.CountAdmissionEntriesRow](p, store.CountAdmissionEntries, w.Recount)
	}
	if len(w.Lost) > 0 {
		r.lost = store.Many[store.LockLostHoldersRow](p, store.LockLostHolders, w.Lost)
	}
	r.moment = store.Many[store.ReadAdmissionMomentRow](p, store.ReadAdmissionMoment, int32(maxBlockedQueues))
	return r
}

func (w Want) readHeads(p *store.Pipeline, ids []int64, releases []int32) *store.Result[store.ReadAdmissionHeadsRow] {
	scopes, maxima, back := w.shared()
	return store.Many[store.ReadAdmissionHeadsRow](p, store.ReadAdmissionHeads,
		ids, releases, int64(w.maxHeads()), int64(maxHeadsPerBlocked), int32(maxBlockedQueues), scopes, maxima, back)
}

// readQueues keeps the queues that were read; an optimistic batch requires them all open.
func (l *Ledger) readQueues(want Want, r reading) error {
	if r.open != nil {
		for _, row := range r.open.Rows() {
			l.readQueue(want.Queues, store.LockFreeAdmissionStatesRow(row))
		}
		for id := range want.Queues {
			if q := l.queues[id]; q == nil || !q.open() {
				return fmt.Errorf("admission queue %d: %w", id, ErrNotOpen)
			}
		}
		if r.moment.Rows()[0].Blocked {
			return fmt.Errorf("others wait for workers or shared limits: %w", ErrNotOpen)
		}
		return nil
	}
	if r.firm != nil {
		for _, row := range r.firm.Rows() {
			l.readQueue(want.Queues, store.LockFreeAdmissionStatesRow(row))
		}
	}
	for _, row := range r.states.Rows() {
		l.readQueue(want.Queues, row)
	}
	return nil
}

// anyServed reports whether a wanted queue has waiting executions and a slot for one of them.
func (l *Ledger) anyServed(ids []int64, releases []int32) bool {
	for i, id := range ids {
		if q := l.queues[id]; q != nil && !q.paused && q.waiting() > 0 && q.free()+int(releases[i]) > 0 {
			return true
		}
	}
	return false
}

func (l *Ledger) readQueue(wanted map[int64]int, row store.LockFreeAdmissionStatesRow) {
	_, asked := wanted[row.ID]
	q := &queue{
		id: row.ID, actionID: row.ActionID, grouped: row.Grouped, paused: row.Paused, tried: !asked,
		override: int(value(row.LimitOverride)), hard: int(row.MaxConcurrent), resumed: value(row.ResumedAt),
		columns: columns{
			active: int(row.ActiveCount), next: row.NextQueueOrder, front: row.FrontOrder, streak: int(row.LaneStreak),
			limits: limits{
				max: int(row.MaxConcurrent), unlimited: row.Unlimited, maxQueued: int(value(row.MaxQueued)),
				timeout: time.Duration(value(row.QueueTimeoutSeconds)) * time.Second,
				adapted: policy.Adapted{Limit: value(row.AdaptiveLimit), Lowered: value(row.AdaptiveAt)},
			},
		},
	}
	q.queued = [laneCount]int{
		int(row.QueuedHigh), int(row.QueuedCount - row.QueuedHigh - row.QueuedLow),
		int(row.QueuedLow),
	}
	q.head = [laneCount]int64{row.HeadHigh, row.HeadOrder, row.HeadLow}
	q.before = q.columns
	l.queues[row.ID] = q
}

// value is the content of a nullable column, zero for NULL.
func value[T any](column *T) T {
	if column == nil {
		var zero T
		return zero
	}
	return *column
}

// readScopes keeps the locked shared limits. A missing one was pruned and must be created again, or
// was deleted with the pack of its policy.
func (l *Ledger) readScopes(wanted map[int64]ScopeWant, result *store.Result[store.LockAdmissionScopesRow]) error {
	if result == nil {
		return nil
	}
	for _, row := range result.Rows() {
		s := &scope{id: row.ID, kind: policy.SharedKind(row.Kind), scopeColumns: scopeColumns{
			max: int(row.MaxConcurrent), active: int(row.ActiveCount), due: value(row.NextAt),
			period: value(row.PeriodStart), used: int(row.Used),
		}}
		s.before = s.scopeColumns
		l.scopes[row.ID] = s
	}
	for id, want := range wanted {
		switch {
		case want.Rule == nil:
			l.pruned[id] = l.scopes[id] == nil
		case l.scopes[id] == nil:
			return fmt.Errorf("lock shared limit %d: %w", id, ErrQueueGone)
		default:
			l.SetScope(id, *want.Rule)
		}
	}
	return nil
}

// readStandings keeps the state of the wanted workers. A deleted worker is gone.
func (l *Ledger) readStandings(wanted []int64, rows *store.Result[store.ReadWorkerStandingsRow]) {
	for _, id := range wanted {
		l.standings[id] = standing{gone: true}
	}
	if rows == nil {
		return
	}
	for _, row := range rows.Rows() {
		l.standings[row.ID] = standing{live: row.Live, gone: row.Gone}
	}
}

func (l *Ledger) readFacts() {
	for _, row := range l.rows {
		fact := Fact{
			ID: row.ID, Status: row.Status, Updated: row.Updated, Attempt: row.Attempt,
			Worker: row.Worker, HeldAt: row.HeldWorker, Scopes: row.Scopes,
			Started: row.StartedAt, Ended: row.FinishedAt, Since: row.Since, lane: laneOf(row.Lane),
		}
		if row.HeldState != 0 {
			fact.Holds = &row.HeldState
		}
		if row.Waits != 0 {
			fact.Waits = &row.Waits
		}
		l.facts[row.ID] = fact
	}
}

// readHeads keeps the heads of the locked queues. It leaves a queue to the next batch if another
// batch holds it, or if it began to wait for a worker after the lock statement started: the other
// batch may not see the capacity that this one returns.
func (l *Ledger) readHeads(rows []store.ReadAdmissionHeadsRow) {
	skipped := map[int64]int32{} // heads of each queue that another batch holds
	for _, row := range rows {
		head := Candidate{
			ExecutionID: row.ExecutionID, Status: row.Status, ActionID: row.ActionID,
			ActionRef: row.ActionRef, Config: row.Config, Updated: row.Updated, Created: row.Created,
			Attempt: row.Attempt, Placement: placement.ReadOwn(row.Placement), Avoid: row.Avoid, Cancel: row.Cancel,
			order: row.QueueOrder, ticket: row.Ticket,
		}
		lane := laneOf(row.Lane)
		switch q := l.queues[row.StateID]; {
		case q != nil:
			q.heads[lane] = append(q.heads[lane], head)
		default:
			l.passed = l.passed || !l.held[row.StateID]
			if row.Status == lifecycle.StatusRequested && skipped[row.StateID] < row.Free {
				l.skipped = append(l.skipped, head)
				skipped[row.StateID]++
			}
		}
	}
	slices.SortFunc(l.skipped, func(a, b Candidate) int { return cmp.Compare(a.ticket, b.ticket) })
}

// reconcile reconciles the count of a lane that was read to its end with what was read. They differ
// only if another program deleted executions, whose entries are deleted with them. Uncorrected, the
// queue would count as unfilled for ever.
func (l *Ledger) reconcile(want Want, ids []int64, releases []int32) {
	for i, id := range ids {
		q := l.queues[id]
		if q == nil || q.paused {
			continue
		}
		room := q.free() + int(releases[i])
		if room <= 0 {
			continue // no head was read
		}
		for lane := range q.heads {
			if len(q.heads[lane]) < min(room+spareHeads, want.maxHeads()) {
				q.queued[lane] = len(q.heads[lane])
			}
		}
	}
}

// readRecounts keeps the recounted queues, and what deleted executions held.
func (l *Ledger) readRecounts(r reading) {
	if r.counted != nil {
		for _, row := range r.counted.Rows() {
			if q := l.queues[row.StateID]; q != nil {
				q.queued = [laneCount]int{int(row.High), int(row.Normal), int(row.Low)}
			}
		}
	}
	if r.lost != nil {
		for _, row := range r.lost.Rows() {
			l.lost[row.ID] = lostHolder{queue: row.StateID, worker: row.Worker, scopes: row.Scopes}
		}
	}
}
