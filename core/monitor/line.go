package monitor

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

// The bounds of one part of a queue.
const (
	// LinePage is the default number of rows, LineBound the maximum.
	LinePage  = 100
	LineBound = 1_000
)

// LineAsk selects a part of a queue.
type LineAsk struct {
	Queue int64
	// Rows is how many to read; 0 means LinePage.
	Rows int64
	// End reads the end of the queue instead of its head.
	End bool
}

// Line is a part of a queue in the order of admission: high lane, normal lane, low lane, each FIFO.
type Line struct {
	Reading
	Queue int64 `json:"queue"`
	// Of is the length of the queue.
	Of int64 `json:"of"`
	// End says that List is the end of the queue.
	End  bool              `json:"end,omitempty"`
	List []QueuedExecution `json:"list"`
}

// QueuedExecution is a queued execution.
type QueuedExecution struct {
	ID int64 `json:"id"`
	// Place counts from the head of the queue. Order is the number given when it joined its lane.
	Place int64     `json:"place"`
	Lane  string    `json:"lane"`
	Order int64     `json:"order"`
	Since time.Time `json:"since"`
	// Source says what requested it.
	Source string `json:"source"`
	// Parent started it, as Task if it is a workflow.
	Parent    *int64 `json:"parent"`
	ParentRef string `json:"parent_ref,omitempty"`
	Task      string `json:"task,omitempty"`
}

// QueueLine reads a part of a queue. Its cost depends on the rows read, not on the length. A missing
// queue is ErrNotFound. ErrUnmigrated says that the schema records no queues.
func (m *Monitor) QueueLine(ctx context.Context, ask LineAsk) (*Line, error) {
	l := &Line{}
	rows := min(max(ask.Rows, 0), LineBound)
	if rows == 0 {
		rows = LinePage
	}
	err := m.Read(ctx, "the line of queue "+strconv.FormatInt(ask.Queue, 10), &l.Reading,
		func(ctx context.Context, tx *store.Tx, s Shape) error {
			*l = Line{Reading: l.Reading, Queue: ask.Queue, End: ask.End} // the transaction may be repeated
			if !s.Ours {
				return ErrUnmigrated
			}
			queues, err := m.QueuesByID(ctx, tx, []int64{ask.Queue})
			if err != nil {
				return err
			}
			if len(queues) == 0 {
				return fmt.Errorf("queue %d: %w", ask.Queue, ErrNotFound)
			}
			return l.read(ctx, tx, &queues[0], rows)
		})
	return l, err
}

func (l *Line) read(ctx context.Context, tx *store.Tx, q *Queue, rows int64) error {
	first, last := rows, int64(0)
	if l.End {
		first, last = 0, rows
	}
	var lanes []int16
	var heads []int64
	for _, one := range q.lanes {
		if one.queued > 0 {
			lanes, heads = append(lanes, one.number), append(heads, one.head)
		}
	}
	l.Of = q.Queued
	if len(lanes) == 0 {
		return nil
	}
	found, err := store.Rows[QueuedExecution](ctx, tx, store.ViewLine, lanes, heads, q.ID, first, last)
	if err != nil {
		return fmt.Errorf("read the line of queue %d: %w", q.ID, err)
	}
	n, place := min(int64(len(found)), rows), int64(1)
	l.List = found[:n]
	if l.End {
		l.List, place = found[int64(len(found))-n:], max(l.Of-n, 0)+1
	}
	for i := range l.List {
		l.List[i].Place = place + int64(i)
	}
	return nil
}
