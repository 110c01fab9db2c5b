package monitor

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// WorkQueue is a work queue of an existing installation with items that wait: no
// engine of ours dispatches them.
type WorkQueue struct {
	Ref string `json:"ref"`
	// Waiting counts the items that are queued or to be tried again, of enabled queues
	// only; Leased those that an execution has, whose end settles them no more.
	Waiting Count `json:"waiting"`
	Leased  Count `json:"leased"`
	// Oldest is when the oldest of the counted items was made.
	Oldest time.Time `json:"oldest"`
}

// The bounds of reading work queues.
const (
	workQueueRows  = 100    // queues
	workQueueItems = 10_000 // items counted of each
)

// ReadWorkQueues reads the work queues in which items wait; none where the schema has
// no work queues, or is not adopted: another executor may dispatch them there.
func ReadWorkQueues(ctx context.Context, tx *store.Tx, s Shape) ([]WorkQueue, error) {
	if !s.workQueues {
		return nil, nil
	}
	rows, err := tx.ViewWorkQueues(ctx, workQueueItems, workQueueRows)
	if err != nil {
		return nil, fmt.Errorf("count the items of work queues: %w", err)
	}
	count := func(n int64) Count { return Count{Value: n, AtLeast: n >= workQueueItems} }
	var queues []WorkQueue
	for _, r := range rows {
		queues = append(queues,
			WorkQueue{Ref: r.Ref, Waiting: count(r.Waiting), Leased: count(r.Leased), Oldest: r.Oldest})
	}
	return queues, nil
}

// WorkQueues are the work queues in which items wait.
type WorkQueues struct {
	Reading
	List []WorkQueue `json:"list"`
}

// WorkQueues reads the work queues in which items wait, by name, 100 at most.
func (m *Monitor) WorkQueues(ctx context.Context) (*WorkQueues, error) {
	w := &WorkQueues{}
	err := m.Read(ctx, "work queues", &w.Reading, func(ctx context.Context, tx *store.Tx, s Shape) (err error) {
		w.List, err = ReadWorkQueues(ctx, tx, s)
		return err
	})
	return w, err
}

// Words says how many items wait in all of them, and for how long the oldest does.
func (w *WorkQueues) Words() string {
	items, oldest := SumWorkQueues(w.List)
	return items.Words("item waits", "items wait") + " in " + phrase.Plural(len(w.List), "work queue",
		"work queues") + ", the oldest for " + phrase.Since(oldest, w.At)
}

// Items counts the waiting and the leased items of the queue.
func (q WorkQueue) Items() Count {
	return Count{Value: q.Waiting.Value + q.Leased.Value, AtLeast: q.Waiting.AtLeast || q.Leased.AtLeast}
}

// Words says how many items wait and for how long the oldest does.
func (q WorkQueue) Words(at time.Time) string {
	text := q.Waiting.Words("item waits", "items wait")
	if q.Leased.Value > 0 {
		text += ", " + q.Leased.Words("is leased", "are leased")
	}
	return text + ", the oldest for " + phrase.Since(q.Oldest, at)
}

// SumWorkQueues counts the items of all queues and finds the oldest; zero without any.
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

// LeaseLine says of an execution that a work queue has leased items to it, which its
// end does not settle; empty of any other. It is a look-up by a unique index.
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
