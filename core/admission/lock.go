package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/store"
)

// ErrQueueGone says that a resolved queue row no longer exists. The batch is
// repeated after Forget.
var ErrQueueGone = errors.New("admission queue is gone")

// Lock locks the wanted queues and worker loads and returns their ledger. It
// is one round trip. Besides the wanted queues it locks some of those whose
// heads wait for a worker, so that whatever frees a worker serves them first.
func Lock(ctx context.Context, tx *store.Tx, want Want) (*Ledger, error) {
	ids, releases := want.ids()
	p := tx.Pipeline()
	states := store.Many[store.LockAdmissionStatesRow](p, store.LockAdmissionStates, ids, int32(maxBlockedQueues))
	loads := store.Many[store.LockWorkerLoadsRow](p, store.LockWorkerLoads, want.StaleAfter.Seconds(), want.Workers)
	facts := store.Many[store.ReadAdmissionFactsRow](p, store.ReadAdmissionFacts, want.Executions)
	waiting := store.Many[store.ReadAdmissionHeadsRow](p, store.ReadAdmissionHeads,
		ids, releases, int64(want.maxHeads()), int64(maxHeadsPerBlocked), int32(maxBlockedQueues))
	now := store.Many[struct{ Now time.Time }](p, "SELECT now()")
	if err := p.Send(ctx); err != nil {
		return nil, fmt.Errorf("lock %d admission queues: %w", len(ids), err)
	}
	l := &Ledger{
		Now:          now.Rows()[0].Now,
		withoutStats: want.WithoutStats,
		queues:       make(map[int64]*queue, len(states.Rows())),
		gone:         make(map[int64]bool),
		loads:        make(map[int64]*load, len(loads.Rows())),
		loadless:     make(map[int64]bool),
		facts:        make(map[int64]Fact, len(facts.Rows())),
	}
	l.readQueues(states.Rows())
	for _, id := range ids {
		if l.queues[id] != nil {
			continue
		}
		if want.Resolved[id] {
			return nil, fmt.Errorf("lock admission queue %d: %w", id, ErrQueueGone)
		}
		l.gone[id] = true
	}
	for _, row := range loads.Rows() {
		l.loads[row.Worker] = &load{before: int(row.Assigned), assigned: int(row.Assigned), live: row.Live}
	}
	for _, id := range want.Workers {
		l.loadless[id] = l.loads[id] == nil
	}
	for _, row := range facts.Rows() {
		fact := Fact{
			ID: row.ID, Status: row.Status, Updated: row.Updated, Attempt: row.Attempt,
			Worker: row.Worker, Holds: row.AdmissionStateID,
		}
		if row.Waits != 0 {
			fact.Waits = &row.Waits
		}
		l.facts[row.ID] = fact
	}
	l.readHeads(waiting.Rows())
	for i, id := range ids {
		if q := l.queues[id]; q != nil {
			q.trueUp(int(releases[i]), want.maxHeads())
		}
	}
	return l, nil
}

// trueUp makes the count of a line that was read to its end what was read. It
// can only be another when somebody else deleted executions, whose entries go
// with them; uncorrected, the line would count as unfilled for ever.
func (q *queue) trueUp(releases, most int) {
	room := q.free() + releases
	if q.queued == 0 || q.paused || room <= 0 {
		return // no head was asked for
	}
	if len(q.heads) < min(room+spareHeads, most) {
		q.queued = len(q.heads)
	}
}

func (l *Ledger) readQueues(rows []store.LockAdmissionStatesRow) {
	for _, row := range rows {
		l.queues[row.ID] = &queue{
			id: row.ID, actionID: row.ActionID, grouped: row.Grouped, unlimited: row.Unlimited, paused: row.Paused,
			max: int(row.MaxConcurrent), active: int(row.ActiveCount), queued: int(row.QueuedCount),
			head: row.HeadOrder, next: row.NextQueueOrder,
			activeBefore: int(row.ActiveCount), queuedBefore: int(row.QueuedCount),
			maxBefore: int(row.MaxConcurrent), unlimitedFirst: row.Unlimited,
		}
	}
}

// readHeads keeps the heads of queues that are locked. A queue that began to
// wait for a worker after the lock statement started is not, and is left to
// the next batch.
func (l *Ledger) readHeads(rows []store.ReadAdmissionHeadsRow) {
	for _, row := range rows {
		q := l.queues[row.StateID]
		if q == nil {
			continue
		}
		q.heads = append(q.heads, Waiter{
			ExecutionID: row.ExecutionID, Status: row.Status, ActionID: row.ActionID,
			ActionRef: row.ActionRef, Config: row.Config, Updated: row.Updated, Attempt: row.Attempt,
			order: row.QueueOrder, ticket: row.Ticket,
		})
	}
}
