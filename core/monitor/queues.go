package monitor

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/store"
)

// Queues reads the busiest admission queues that match the filter.
func (m *Monitor) Queues(ctx context.Context, filter QueueFilter) (*Queues, error) {
	limit := filter.Limit
	if limit <= 0 {
		limit = DefaultQueueLimit
	}
	q := &Queues{}
	err := m.database(ctx, "queues", &q.Reading, func(ctx context.Context, tx *store.Tx, s shape) error {
		var err error
		q.List, q.Totals, q.More, err = readQueues(ctx, tx, s, pattern(filter.Text, true), limit)
		return err
	})
	return q, err
}

func readQueues(ctx context.Context, tx *store.Tx, s shape, like string, limit int) ([]Queue, QueueTotals, bool, error) {
	read, sum := readOwnQueues, readOwnTotals
	if !s.ours {
		read, sum = readPublishedQueues, readPublishedTotals
	}
	list, err := read(ctx, tx, like, int64(limit)+1)
	if err != nil {
		return nil, QueueTotals{}, false, fmt.Errorf("list queues: %w", err)
	}
	totals, err := sum(ctx, tx)
	if err != nil {
		return nil, QueueTotals{}, false, fmt.Errorf("sum up queues: %w", err)
	}
	return list[:min(len(list), limit)], totals, len(list) > limit, nil
}

func readOwnQueues(ctx context.Context, tx *store.Tx, like string, bound int64) ([]Queue, error) {
	rows, err := tx.MonitorQueues(ctx, like, bound)
	if err != nil {
		return nil, err
	}
	list := make([]Queue, len(rows))
	for i, r := range rows {
		list[i] = Queue{
			ID: r.ID, ActionID: r.ActionID, ActionRef: r.Ref, Group: text(r.GroupKey),
			Queued: int64(r.QueuedCount), Active: int64(r.ActiveCount), Oldest: r.Oldest,
			Completed: r.TotalCompleted, Enqueued: r.TotalEnqueued, Paused: r.Paused, PauseReason: text(r.PauseReason),
			BlockedSince: r.BlockedSince,
		}
		if !r.Unlimited {
			list[i].Limit = wide(&r.MaxConcurrent)
		}
		if r.BlockedSince != nil {
			list[i].Blocked = text(r.Blocked)
			if list[i].Blocked == "" {
				list[i].Blocked = "waiting for a worker"
			}
		}
	}
	return list, nil
}

func readOwnTotals(ctx context.Context, tx *store.Tx) (QueueTotals, error) {
	t, err := tx.MonitorQueueTotals(ctx)
	return QueueTotals{Queues: t.Queues, Busy: t.Busy, Queued: t.Queued, Active: t.Active, Slots: t.Slots, Completed: t.Completed}, err
}

// readPublishedQueues reads the statistics that every Attune executor keeps,
// one row for each action.
func readPublishedQueues(ctx context.Context, tx *store.Tx, like string, bound int64) ([]Queue, error) {
	rows, err := tx.MonitorPublishedQueues(ctx, like, bound)
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
