package queue

import (
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// holder is an execution that holds a slot. P95 is how long nineteen of twenty run, zero while
// that is not known; at is when it was read.
type holder struct {
	monitor.Holder

	p95 time.Duration
	at  time.Time
}

// held are the holders of a queue.
func held(d *explain.QueueDetail) []holder {
	if d.Holders == nil {
		return nil
	}
	rows := make([]holder, len(d.Holders.List))
	for i := range d.Holders.List {
		rows[i] = holder{Holder: d.Holders.List[i], at: d.At}
		if d.Timing.Run != nil {
			rows[i].p95 = d.Timing.Run.P95
		}
	}
	return rows
}

func newHolders(env *screen.Env) *list.Table[holder] {
	return list.NewTable(env, (*holder).key, []list.Field[holder]{
		{Column: widget.Column{Title: "EXEC", Width: 9, Right: true}, Cell: list.Plain((*holder).key)},
		{
			Column: widget.Column{Title: "STATUS", Width: 11, Priority: 2},
			Cell:   func(e *screen.Env, h *holder) widget.Cell { return e.StateCell(h.Status) },
		},
		{
			Column: widget.Column{Title: "WORKER", Width: 18, Middle: true},
			Cell:   list.Plain(func(h *holder) string { return screen.WorkerName(h.WorkerID, h.WorkerName) }),
		},
		{
			Column: widget.Column{Title: "FOR", Width: 7, Right: true},
			Cell:   list.Age(func(h *holder) *time.Time { return &h.Since }),
		},
		{
			Column: widget.Column{Title: "NOTE", Width: 20, Grow: true},
			Cell: func(e *screen.Env, h *holder) widget.Cell {
				if note := h.complaint(e); note != "" {
					return widget.Cell{Text: e.Theme.Glyphs.Warning + " " + note, Role: theme.Warn}
				}
				return widget.Cell{}
			},
		},
	})
}

func (h *holder) key() string { return strconv.FormatInt(h.ID, 10) }

// longRun is by how much a run must exceed what nineteen of twenty take to be told of.
const longRun = 3

// complaint says what is wrong with a holder; empty when nothing is.
func (h *holder) complaint(e *screen.Env) string {
	note := ""
	if lasted := e.Since(h.Since); h.p95 > 0 && lasted >= longRun*h.p95 {
		note = fmt.Sprintf("%dx p95", int64(lasted/h.p95))
	}
	ill := h.illness(e)
	switch {
	case ill == "":
		return note
	case note == "":
		return "worker " + ill
	default:
		return note + ", worker " + ill
	}
}

// illness says how the worker of a holder is that is not well.
func (h *holder) illness(e *screen.Env) string {
	switch h.Health {
	case monitor.WorkerStale:
		if h.HeartbeatAge == nil {
			return "never beat"
		}
		return "stale " + widget.Age(*h.HeartbeatAge+e.Since(h.at))
	case monitor.WorkerDeaf, monitor.WorkerSuspect, monitor.WorkerUnhealthy, monitor.WorkerInactive,
		monitor.WorkerDraining:
		return string(h.Health)
	default:
		return ""
	}
}

// line are the rows of who waits.
type line struct {
	*list.Table[monitor.Waiter]

	of int64
	// end is true while the end of the line is wanted, shows whether it is shown.
	end, shows bool
	// wanted is how many rows are.
	wanted int64
}

func newLine(env *screen.Env) *line {
	key := func(w *monitor.Waiter) string { return strconv.FormatInt(w.ID, 10) }
	return &line{wanted: monitor.LinePage, Table: list.NewTable(env, key, []list.Field[monitor.Waiter]{
		{
			Column: widget.Column{Title: "#", Width: 7, Right: true},
			Cell:   list.Number(func(w *monitor.Waiter) int64 { return w.Place }),
		},
		{Column: widget.Column{Title: "EXEC", Width: 9, Right: true}, Cell: list.Plain(key)},
		{
			Column: widget.Column{Title: "ORDER", Width: 9, Right: true, Priority: 3},
			Cell:   list.Dim(func(w *monitor.Waiter) string { return strconv.FormatInt(w.Order, 10) }),
		},
		{
			Column: widget.Column{Title: "WAIT", Width: 7, Right: true},
			Cell: func(e *screen.Env, w *monitor.Waiter) widget.Cell {
				return e.Worry(e.AgeOf(&w.Since), e.Since(w.Since) > monitor.HeadWaitLimit)
			},
		},
		{
			Column: widget.Column{Title: "LANE", Width: 6, Priority: 2},
			Cell: list.Dim(func(w *monitor.Waiter) string {
				if w.Lane == monitor.LaneNormal {
					return ""
				}
				return w.Lane
			}),
		},
		{
			Column: widget.Column{Title: "SOURCE", Width: 16, Grow: true, Middle: true},
			Cell:   list.Plain(func(w *monitor.Waiter) string { return w.Source }),
		},
		{Column: widget.Column{Title: "PARENT", Width: 17, Middle: true, Priority: 1}, Cell: list.Dim(parent)},
	})}
}

// parent names what started a waiter.
func parent(w *monitor.Waiter) string {
	switch {
	case w.Parent == nil:
		return "-"
	case w.Task != "":
		return screen.Reference(w.Parent) + " " + w.Task
	default:
		return screen.Reference(w.Parent) + " " + w.ParentRef
	}
}

func (l *line) set(d *monitor.Line) {
	turned := l.shows != d.End
	l.of, l.shows = d.Of, d.End
	l.SetList(d.List)
	switch {
	case turned && l.shows:
		l.Bottom()
	case turned:
		l.Top()
	}
}

// do moves in the line. Its beginning and its end are read by themselves, and more of
// either when the cursor comes near what was not read.
func (l *line) do(action keymap.Action) screen.Effect {
	read := int64(l.Len())
	if action == keymap.Bottom && !l.end && l.of > read || action == keymap.Top && l.end {
		l.end, l.wanted = !l.end, monitor.LinePage
		return screen.Effect{Handled: true, Refetch: screen.FeedLine}
	}
	if !screen.MoveTable(l.Table.Table, action) {
		return screen.Effect{}
	}
	effect := screen.Effect{Handled: true}
	left := l.Len() - 1 - l.Cursor()
	if l.shows {
		left = l.Cursor()
	}
	if left < monitor.LinePage/4 && read < l.of && read >= l.wanted && l.wanted < monitor.LineBound {
		l.wanted = min(2*l.wanted, monitor.LineBound)
		effect.Refetch = screen.FeedLine
	}
	return effect
}
