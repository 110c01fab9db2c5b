package monitor

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// WorkQueue is a work queue of an adopted installation with waiting items. This engine does not
// dispatch them.
type WorkQueue struct {
	Ref string `json:"ref"`
	// Waiting counts queued and retried items of enabled queues, Leased the items of an execution
	// whose end no longer settles them.
	Waiting Count `json:"waiting"`
	Leased  Count `json:"leased"`
	// Oldest is when the oldest counted item was made.
	Oldest time.Time `json:"oldest"`
}

// The bounds of reading work queues.
const (
	workQueueRows  = 100    // queues
	workQueueItems = 10_000 // items counted of each
)

// ReadWorkQueues reads the work queues with waiting items. Without an adopted schema there are none:
// another executor may dispatch them.
func ReadWorkQueues(ctx context.Context, tx *store.Tx, s Shape) ([]WorkQueue, error) {
	if !s.workQueues {
		return nil, nil
	}
	rows, err := tx.ViewWorkQueues(ctx, workQueueItems, workQueueRows)
	if err != nil {
		return nil, fmt.Errorf("count the items of work queues: %w", err)
	}
	var queues []WorkQueue
	for _, r := range rows {
		queues = append(queues, WorkQueue{
			Ref: r.Ref, Waiting: upTo(r.Waiting, workQueueItems), Leased: upTo(r.Leased, workQueueItems),
			Oldest: r.Oldest,
		})
	}
	return queues, nil
}

// WorkQueues are the work queues with waiting items.
type WorkQueues struct {
	Reading
	List []WorkQueue `json:"list"`
}

// WorkQueues reads the work queues with waiting items by name, at most 100.
func (m *Monitor) WorkQueues(ctx context.Context) (*WorkQueues, error) {
	w := &WorkQueues{}
	err := m.Read(ctx, "work queues", &w.Reading, func(ctx context.Context, tx *store.Tx, s Shape) (err error) {
		w.List, err = ReadWorkQueues(ctx, tx, s)
		return err
	})
	return w, err
}

// Words counts the waiting items of all queues, with the age of the oldest.
func (w *WorkQueues) Words() string {
	items, oldest := SumWorkQueues(w.List)
	return items.Words("item waits", "items wait") + " in " + phrase.Plural(len(w.List), "work queue",
		"work queues") + ", the oldest for " + phrase.Since(oldest, w.At)
}

// Items counts the waiting and leased items.
func (q WorkQueue) Items() Count {
	return Count{Value: q.Waiting.Value + q.Leased.Value, AtLeast: q.Waiting.AtLeast || q.Leased.AtLeast}
}

// Words counts the waiting items, with the age of the oldest.
func (q WorkQueue) Words(at time.Time) string {
	text := q.Waiting.Words("item waits", "items wait")
	if q.Leased.Value > 0 {
		text += ", " + q.Leased.Words("is leased", "are leased")
	}
	return text + ", the oldest for " + phrase.Since(q.Oldest, at)
}

// SumWorkQueues counts the items of all queues and finds the oldest.
func SumWorkQueues(list []WorkQueue) (items Count, oldest time.Time) {
	for _, q := range list {
		n := q.Items()
		items.Value, items.AtLeast = items.Value+n.Value, items.AtLeast || n.AtLeast
		if oldest.IsZero() || q.Oldest.Before(oldest) {
			oldest = q.Oldest
		}
	}
	return items, oldest
}

// LeaseLine says which work queue leased items to an execution, which its end does not settle. It is
// one look-up by a unique index.
func LeaseLine(ctx context.Context, tx *store.Tx, s Shape, id int64) (string, error) {
	if !s.workQueues {
		return "", nil
	}
	rows, err := tx.ViewWorkQueueLease(ctx, id)
	if err != nil {
		return "", fmt.Errorf("read what work queue dispatched execution %d: %w", id, err)
	}
	if len(rows) == 0 {
		return "", nil
	}
	return fmt.Sprintf(
		"Work queue %s dispatched it with %s. This engine does not settle them: they stay leased when it ends.",
		rows[0].Ref, phrase.Plural(rows[0].Items, "item", "items")), nil
}
