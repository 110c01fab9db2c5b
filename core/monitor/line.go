package monitor

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

// The bounds of a line that is read.
const (
	// LinePage is how many of a line are read where nothing else is asked for, and
	// LineBound the most that are.
	LinePage  = 100
	LineBound = 1_000
)

// LineAsk says which part of a queue's line is wanted.
type LineAsk struct {
	Queue int64
	// Rows is how many; zero means LinePage, and more than LineBound means that.
	Rows int64
	// End asks for the last of the line instead of the first.
	End bool
}

// Line is who stands in a queue, in the order in which they are let in while nothing
// else decides: the high lane before the normal one, that before the low one, and
// in each who came first.
type Line struct {
	Reading
	Queue int64 `json:"queue"`
	// Of is how many stand in the line.
	Of int64 `json:"of"`
	// End says that List is the end of the line and not its beginning.
	End  bool     `json:"end,omitempty"`
	List []Waiter `json:"list"`
}

// Waiter is an execution in a line.
type Waiter struct {
	ID int64 `json:"id"`
	// Place is the place in the whole line, the first being 1; Order is the number it
	// was given when it joined its lane.
	Place int64     `json:"place"`
	Lane  string    `json:"lane"`
	Order int64     `json:"order"`
	Since time.Time `json:"since"`
	// Source says in a few words what asked for it.
	Source string `json:"source"`
	// Parent started it, as Task where that is a workflow.
	Parent    *int64 `json:"parent"`
	ParentRef string `json:"parent_ref,omitempty"`
	Task      string `json:"task,omitempty"`
}

// QueueLine reads a part of the line of a queue, at a cost that depends on how many
// are asked for and not on how many wait. A queue that does not exist is ErrNotFound;
// ErrUnmigrated says that nobody records lines here.
func (m *Monitor) QueueLine(ctx context.Context, ask LineAsk) (*Line, error) {
	l := &Line{}
	rows := min(max(ask.Rows, 0), LineBound)
	if rows == 0 {
		rows = LinePage
	}
	err := m.Read(ctx, "the line of queue "+strconv.FormatInt(ask.Queue, 10), &l.Reading,
		func(ctx context.Context, tx *store.Tx, s Shape) error {
			*l = Line{Reading: l.Reading, Queue: ask.Queue, End: ask.End} // the transaction may be repeated
			if !s.Shared {
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
	p := store.ViewLineParams{State: q.ID, First: rows}
	if l.End {
		p.First, p.Last = 0, rows
	}
	for _, one := range q.lanes {
		if one.queued > 0 {
			p.Lanes, p.Heads = append(p.Lanes, one.number), append(p.Heads, one.head)
		}
	}
	l.Of = q.Queued
	if len(p.Lanes) == 0 {
		return nil
	}
	found, err := tx.ViewLine(ctx, p)
	if err != nil {
		return fmt.Errorf("read the line of queue %d: %w", q.ID, err)
	}
	n := min(int64(len(found)), rows)
	first := int64(1)
	if l.End {
		found = found[int64(len(found))-n:]
		first = max(l.Of-n, 0) + 1
	}
	for i, r := range found[:n] {
		l.List = append(l.List, waiterOf(r, first+int64(i)))
	}
	return nil
}

func waiterOf(r store.ViewLineRow, place int64) Waiter {
	return Waiter{
		ID: r.ID, Place: place, Lane: laneName(r.Lane), Order: r.QueueOrder, Since: r.EnqueuedAt, Source: sourceOf(r),
		Parent: r.Parent, ParentRef: r.ParentRef, Task: r.Task,
	}
}

// sourceOf says what asked for an execution: an attempt says what it repeats, and
// what a rule asked for stays the rule's below the workflow that it started.
func sourceOf(r store.ViewLineRow) string {
	switch {
	case r.OriginalExecution != nil:
		return "retry of " + strconv.FormatInt(*r.OriginalExecution, 10)
	case r.RuleRef != "":
		return "rule " + r.RuleRef
	case r.Login != "":
		return "by " + r.Login
	case r.Parent != nil:
		return "workflow"
	default:
		return "request"
	}
}
