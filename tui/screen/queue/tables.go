package queue

import (
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// holders are the rows of who holds a slot.
type holders struct {
	env   *screen.Env
	table *widget.Table
	rows  []monitor.Holder
	// p95 is how long nineteen of twenty run; zero while that is not known.
	p95 time.Duration
}

func newHolders(env *screen.Env) *holders {
	return &holders{env: env, table: widget.NewTable([]widget.Column{
		{Title: "EXEC", Width: 9, Right: true},
		{Title: "STATUS", Width: 11, Priority: 2},
		{Title: "WORKER", Width: 18, Middle: true},
		{Title: "FOR", Width: 7, Right: true},
		{Title: "NOTE", Width: 20, Grow: true},
	})}
}

func (h *holders) set(d *explain.QueueDetail) {
	h.rows, h.p95 = nil, 0
	if d.Holders != nil {
		h.rows = d.Holders.List
	}
	if d.Timing.Run != nil {
		h.p95 = d.Timing.Run.P95
	}
	h.table.SetRows(h)
}

// Len is the number of rows.
func (h *holders) Len() int { return len(h.rows) }

// Key identifies a row.
func (h *holders) Key(i int) string { return strconv.FormatInt(h.rows[i].ID, 10) }

// Cells are the texts of a row.
func (h *holders) Cells(i int, into []widget.Cell) []widget.Cell {
	r := &h.rows[i]
	note, role := h.note(r)
	return append(into,
		widget.Cell{Text: strconv.FormatInt(r.ID, 10)},
		h.env.StateCell(r.Status),
		widget.Cell{Text: screen.WorkerName(r.WorkerID, r.WorkerName)},
		widget.Cell{Text: widget.Age(h.env.Since(r.Since))},
		widget.Cell{Text: note, Role: role},
	)
}

// longRun is by how much a run must exceed what nineteen of twenty take to be told of.
const longRun = 3

// note says what is wrong with a holder, as the table shows it.
func (h *holders) note(r *monitor.Holder) (string, theme.Role) {
	if note := h.complaint(r); note != "" {
		return h.env.Theme.Glyphs.Warning + " " + note, theme.Warn
	}
	return "", theme.Plain
}

// complaint says what is wrong with a holder; empty when nothing is.
func (h *holders) complaint(r *monitor.Holder) string {
	note := ""
	if lasted := h.env.Since(r.Since); h.p95 > 0 && lasted >= longRun*h.p95 {
		note = fmt.Sprintf("%dx p95", int64(lasted/h.p95))
	}
	if worker := workerNote(h.env, r); worker != "" {
		if note != "" {
			note += ", "
		}
		note += worker
	}
	return note
}

// workerNote says that the worker of a holder is not well.
func workerNote(e *screen.Env, r *monitor.Holder) string {
	switch r.Health {
	case monitor.WorkerStale:
		if r.HeartbeatAge == nil {
			return "worker never beat"
		}
		return "worker stale " + widget.Age(*r.HeartbeatAge+e.Since(e.Data.Queue.At))
	case monitor.WorkerDeaf, monitor.WorkerSuspect, monitor.WorkerUnhealthy, monitor.WorkerInactive, monitor.WorkerDraining:
		return "worker " + string(r.Health)
	default:
		return ""
	}
}

// line are the rows of who waits.
type line struct {
	env   *screen.Env
	table *widget.Table
	rows  []monitor.Waiter
	of    int64
	// end is true while the end of the line is wanted, shows whether it is shown.
	end, shows bool
	// wanted is how many rows are.
	wanted int64
}

func newLine(env *screen.Env) *line {
	return &line{env: env, wanted: monitor.LinePage, table: widget.NewTable([]widget.Column{
		{Title: "#", Width: 7, Right: true},
		{Title: "EXEC", Width: 9, Right: true},
		{Title: "ORDER", Width: 9, Right: true, Priority: 3},
		{Title: "WAIT", Width: 7, Right: true},
		{Title: "LANE", Width: 6, Priority: 2},
		{Title: "SOURCE", Width: 16, Grow: true, Middle: true},
		{Title: "PARENT", Width: 17, Middle: true, Priority: 1},
	})}
}

func (l *line) ask(queue int64) monitor.LineAsk {
	return monitor.LineAsk{Queue: queue, Rows: l.wanted, End: l.end}
}

func (l *line) set(d *monitor.Line) {
	turned := l.shows != d.End
	l.rows, l.of, l.shows = d.List, d.Of, d.End
	l.table.SetRows(l)
	switch {
	case turned && l.shows:
		l.table.Bottom()
	case turned:
		l.table.Top()
	}
}

// do moves in the line. Its beginning and its end are read by themselves, and more of
// either when the cursor comes near what was not read.
func (l *line) do(action keymap.Action) screen.Effect {
	wanted := false
	switch {
	case action == keymap.Bottom && !l.end && l.of > int64(len(l.rows)):
		l.end, wanted = true, true
	case action == keymap.Top && l.end:
		l.end, wanted = false, true
	}
	if wanted {
		l.wanted = monitor.LinePage
		return screen.Effect{Handled: true, Refetch: screen.FeedLine}
	}
	if !screen.MoveTable(l.table, action) {
		return screen.Effect{}
	}
	effect := screen.Effect{Handled: true}
	left := len(l.rows) - 1 - l.table.Cursor()
	if l.shows {
		left = l.table.Cursor()
	}
	if left < monitor.LinePage/4 && int64(len(l.rows)) < l.of && int64(len(l.rows)) >= l.wanted && l.wanted < monitor.LineBound {
		l.wanted = min(2*l.wanted, monitor.LineBound)
		effect.Refetch = screen.FeedLine
	}
	return effect
}

// Len is the number of rows.
func (l *line) Len() int { return len(l.rows) }

// Key identifies a row.
func (l *line) Key(i int) string { return strconv.FormatInt(l.rows[i].ID, 10) }

// Cells are the texts of a row.
func (l *line) Cells(i int, into []widget.Cell) []widget.Cell {
	r := &l.rows[i]
	lane := ""
	if r.Lane != monitor.LaneNormal {
		lane = r.Lane
	}
	return append(into,
		widget.Cell{Text: l.env.Num(r.Place)},
		widget.Cell{Text: strconv.FormatInt(r.ID, 10)},
		widget.Cell{Text: strconv.FormatInt(r.Order, 10), Role: theme.Dim},
		l.env.Worry(widget.Age(l.env.Since(r.Since)), l.env.Since(r.Since) > monitor.HeadWaitLimit),
		widget.Cell{Text: lane, Role: theme.Dim},
		widget.Cell{Text: r.Source},
		widget.Cell{Text: parent(r), Role: theme.Dim},
	)
}

// parent names what started a waiter.
func parent(r *monitor.Waiter) string {
	if r.Parent == nil {
		return "-"
	}
	text := strconv.FormatInt(*r.Parent, 10)
	if r.Task != "" {
		return text + " " + r.Task
	}
	return text + " " + r.ParentRef
}
