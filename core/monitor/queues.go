package monitor

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Queues reads the busiest admission queues that match the filter. Where nobody
// records whether a queue is paused or blocked, a filter on that finds none.
func (m *Monitor) Queues(ctx context.Context, filter QueueFilter) (*Queues, error) {
	limit := filter.Limit
	if limit <= 0 {
		limit = DefaultQueueLimit
	}
	q := &Queues{}
	err := m.Read(ctx, "queues", &q.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		var err error
		q.List, q.Totals, q.More, err = m.ReadQueues(ctx, tx, s, filter, limit)
		return err
	})
	return q, err
}

func (m *Monitor) ReadQueues(ctx context.Context, tx *store.Tx, s Shape, filter QueueFilter, limit int) ([]Queue, QueueTotals, bool, error) {
	read, sum := m.listQueues, readOwnTotals
	if !s.Shared {
		read, sum = readPublishedQueues, readPublishedTotals
	}
	list, err := read(ctx, tx, filter, int64(limit)+1)
	if err != nil {
		return nil, QueueTotals{}, false, fmt.Errorf("list queues: %w", err)
	}
	totals, err := sum(ctx, tx)
	if err != nil {
		return nil, QueueTotals{}, false, fmt.Errorf("sum up queues: %w", err)
	}
	return list[:min(len(list), limit)], totals, len(list) > limit, nil
}

func (m *Monitor) listQueues(ctx context.Context, tx *store.Tx, filter QueueFilter, bound int64) ([]Queue, error) {
	ids, err := tx.ViewQueueIDs(ctx, store.ViewQueueIDsParams{
		Pattern: pattern(filter.Text, true), OnlyPaused: filter.Paused, OnlyBlocked: filter.Blocked, Everything: filter.All, Bound: bound,
	})
	if err != nil {
		return nil, err
	}
	return m.QueuesByID(ctx, tx, ids)
}

// QueuesByID reads queues with the heads of their lanes, the busiest first.
func (m *Monitor) QueuesByID(ctx context.Context, tx *store.Tx, ids []int64) ([]Queue, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.ViewQueues(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d queues: %w", len(ids), err)
	}
	heads, err := tx.ViewHeads(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the heads of %d queues: %w", len(ids), err)
	}
	list := make([]Queue, len(rows))
	at := make(map[int64]int, len(rows))
	for i, r := range rows {
		list[i] = m.queueOf(r)
		at[r.ID] = i
	}
	for _, h := range heads {
		takeHead(&list[at[h.StateID]], h)
	}
	return list, nil
}

func (m *Monitor) queueOf(r store.ViewQueuesRow) Queue {
	q := Queue{
		ID: r.ID, ActionID: r.ActionID, ActionRef: r.Ref, Group: text(r.GroupKey),
		Queued: int64(r.QueuedCount), QueuedHigh: int64(r.QueuedHigh), QueuedLow: int64(r.QueuedLow),
		Active: int64(r.ActiveCount), Completed: r.TotalCompleted, Enqueued: r.TotalEnqueued,
		Paused: r.Paused, PauseReason: text(r.PauseReason), PausedBy: text(r.PausedBy), PausedAt: r.PausedAt, ResumedAt: r.ResumedAt,
		LimitFrom: limitSource(r), QueueTimeout: m.cfg.QueueTimeout, PackID: r.PackID,
	}
	q.lanes = [3]lane{
		{number: 1, queued: q.QueuedHigh, head: r.HeadHigh, next: r.NextQueueOrder},
		{number: 0, queued: q.Queued - q.QueuedHigh - q.QueuedLow, head: r.HeadOrder, next: r.NextQueueOrder},
		{number: -1, queued: q.QueuedLow, head: r.HeadLow, next: r.NextQueueOrder},
	}
	if !r.Unlimited {
		q.Limit = wide(&r.MaxConcurrent)
	}
	switch {
	case r.MaxQueued != nil && *r.MaxQueued > 0:
		q.MaxQueued = wide(r.MaxQueued)
	case m.cfg.MaxQueued > 0:
		n := int64(m.cfg.MaxQueued)
		q.MaxQueued = &n
	}
	if r.QueueTimeoutSeconds != nil && *r.QueueTimeoutSeconds > 0 {
		q.QueueTimeout = time.Duration(*r.QueueTimeoutSeconds) * time.Second
	}
	if r.Blocked != nil {
		q.Blocked, q.BlockedSince, q.BlockedUntil, q.BlockedScope = text(r.BlockedReason), r.BlockedSince, r.BlockedUntil, r.ScopeID
		if q.Blocked == "" {
			q.Blocked = "waiting for a worker"
		}
	}
	return q
}

// limitSource tells what the limit in force comes from: an operator's word goes
// before the policy, and adapting only ever lowers.
func limitSource(r store.ViewQueuesRow) LimitSource {
	source := LimitSource{Policy: r.PolicyRef}
	if r.PolicyID != 0 {
		source.Threshold = wide(&r.PolicyLimit)
	}
	threshold := r.PolicyLimit
	if r.LimitOverride != nil {
		threshold = *r.LimitOverride
	}
	switch {
	case r.Unlimited:
		source.Kind = LimitNone
	case r.AdaptiveLimit != nil && *r.AdaptiveLimit > 0 && r.MaxConcurrent < threshold:
		source.Kind = LimitAdaptive
	case r.LimitOverride != nil:
		source.Kind = LimitOverride
	default:
		source.Kind = LimitPolicy
	}
	return source
}

// takeHead takes over the first waiter of a lane.
func takeHead(q *Queue, h store.ViewHeadsRow) {
	for i := range q.lanes {
		if q.lanes[i].number == h.Lane {
			q.lanes[i].first, q.lanes[i].since = h.ExecutionID, h.EnqueuedAt
		}
	}
	if q.Oldest == nil || h.EnqueuedAt.Before(*q.Oldest) {
		q.Oldest = &h.EnqueuedAt
	}
}

func readOwnTotals(ctx context.Context, tx *store.Tx) (QueueTotals, error) {
	t, err := tx.MonitorQueueTotals(ctx)
	return QueueTotals{Queues: t.Queues, Busy: t.Busy, Queued: t.Queued, Active: t.Active, Slots: t.Slots, Completed: t.Completed}, err
}

// readPublishedQueues reads the statistics that every Attune executor keeps,
// one row for each action.
func readPublishedQueues(ctx context.Context, tx *store.Tx, filter QueueFilter, bound int64) ([]Queue, error) {
	if filter.Paused || filter.Blocked {
		return nil, nil
	}
	rows, err := tx.MonitorPublishedQueues(ctx, pattern(filter.Text, true), bound)
	if err != nil {
		return nil, err
	}
	list := make([]Queue, len(rows))
	for i, r := range rows {
		list[i] = Queue{
			ID: r.ActionID, ActionID: r.ActionID, ActionRef: r.Ref, Queued: int64(r.QueueLength), Active: int64(r.ActiveCount),
			Limit: wide(&r.MaxConcurrent), Oldest: r.OldestEnqueuedAt, Completed: r.TotalCompleted, Enqueued: r.TotalEnqueued,
		}
	}
	return list, nil
}

func readPublishedTotals(ctx context.Context, tx *store.Tx) (QueueTotals, error) {
	t, err := tx.MonitorPublishedTotals(ctx)
	return QueueTotals{Queues: t.Queues, Busy: t.Busy, Queued: t.Queued, Active: t.Active, Slots: t.Slots, Completed: t.Completed}, err
}

// aheadBound is where counting those who wait before an execution stops.
const aheadBound = 10_000

// ReadPlace counts who goes before a waiter: the higher lanes have counters,
// its own is counted up to a bound.
func ReadPlace(ctx context.Context, tx *store.Tx, q *Queue, number int16, order int64, since time.Time) (*Waiting, error) {
	waiting := &Waiting{
		Queue: q.Name(), Lane: laneName(number), Since: since, Of: q.Queued, Active: q.Active, Limit: q.Limit, Paused: q.Paused,
	}
	own, higher := lane{head: math.MinInt64, next: order}, int64(0)
	for _, l := range q.lanes {
		switch {
		case l.number > number:
			higher += max(l.queued, 0)
		case l.number == number:
			own = l
		}
	}
	n, err := tx.ViewAhead(ctx, store.ViewAheadParams{State: q.ID, Lane: number, Head: own.head, Place: order, Bound: aheadBound})
	if err != nil {
		return nil, fmt.Errorf("count who waits before place %d of queue %d: %w", order, q.ID, err)
	}
	waiting.Ahead = Count{Value: higher + n, AtLeast: n >= aheadBound}
	if waiting.Ahead.AtLeast {
		waiting.About = higher + max(estimate(own, order), n)
	}
	if q.QueueTimeout > 0 && !q.Paused {
		from := since
		if q.ResumedAt != nil && q.ResumedAt.After(from) {
			from = *q.ResumedAt
		}
		expires := from.Add(q.QueueTimeout)
		waiting.Expires = &expires
	}
	return waiting, nil
}

// estimate guesses how many wait before a place of a lane: the lane's waiters
// spread evenly over the places that were given.
func estimate(l lane, order int64) int64 {
	places := l.next - l.head
	if places <= 0 || order <= l.head {
		return 0
	}
	return int64(float64(l.queued) * float64(order-l.head) / float64(places))
}
