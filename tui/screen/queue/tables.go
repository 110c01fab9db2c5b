package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// holder is an execution that holds a slot.
type holder struct {
	monitor.Holder

	p95 time.Duration // of all runs of the queue, zero if unknown
	at  time.Time     // of the reading
}

func holders(d *explain.QueueDetail) []holder {
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
		list.Text("EXEC", 9, (*holder).key).Right(),
		list.State("STATUS", 11, func(h *holder) string { return h.Status }).Priority(2),
		list.Text("WORKER", 18, func(h *holder) string { return monitor.WorkerName(h.WorkerID, h.WorkerName) }).
			Middle(),
		list.Age("FOR", 7, func(h *holder) *time.Time { return &h.Since }),
		list.Draw("NOTE", 20, func(e *screen.Env, h *holder) widget.Cell {
			if note := h.problem(e); note != "" {
				return widget.Cell{Text: e.Theme.Glyphs.Warning + " " + note, Role: theme.Warn}
			}
			return widget.Cell{}
		}).Grow(),
	})
}

func (h *holder) key() string { return strconv.FormatInt(h.ID, 10) }

// longRun is how many times the 95th percentile a run may last without a note.
const longRun = 3

// problem says what is wrong with a holder; empty if nothing is.
func (h *holder) problem(e *screen.Env) string {
	note := ""
	if lasted := e.Since(h.Since); h.p95 > 0 && lasted >= longRun*h.p95 {
		note = fmt.Sprintf("%dx p95", int64(lasted/h.p95))
	}
	switch health := h.unwell(e); {
	case health == "":
		return note
	case note == "":
		return "worker " + health
	default:
		return note + ", worker " + health
	}
}

// unwell is the health of the worker of a holder; empty if it is well or there is no holder.
func (h *holder) unwell(e *screen.Env) string {
	if h == nil {
		return ""
	}
	switch h.Health {
	case monitor.WorkerStale:
		if h.HeartbeatAge == nil {
			return "never sent a heartbeat"
		}
		return "stale " + widget.Age(*h.HeartbeatAge+e.Since(h.at))
	case monitor.WorkerDeaf, monitor.WorkerSuspect, monitor.WorkerUnhealthy, monitor.WorkerInactive,
		monitor.WorkerDraining:
		return string(h.Health)
	default:
		return ""
	}
}

// waiting are the waiting executions of a queue, of which one end is read.
type waiting struct {
	*list.Table[monitor.QueuedExecution]

	total int64
	// wantsEnd is true if the last executions are read next, showsEnd if they are shown.
	wantsEnd, showsEnd bool
	// rows is how many are read next.
	rows int64
}

func newWaiting(env *screen.Env) *waiting {
	key := func(w *monitor.QueuedExecution) string { return strconv.FormatInt(w.ID, 10) }
	return &waiting{rows: monitor.LinePage, Table: list.NewTable(env, key, []list.Field[monitor.QueuedExecution]{
		list.Number("#", 7, func(w *monitor.QueuedExecution) int64 { return w.Place }),
		list.Text("EXEC", 9, key).Right(),
		list.Text("ORDER", 9, func(w *monitor.QueuedExecution) string {
			return strconv.FormatInt(w.Order, 10)
		}).Dim().Right().Priority(3),
		list.Age("WAIT", 7, func(w *monitor.QueuedExecution) *time.Time { return &w.Since }).
			Worry(func(e *screen.Env, w *monitor.QueuedExecution) bool {
				return e.Since(w.Since) > monitor.HeadWaitLimit
			}),
		list.Text("LANE", 6, func(w *monitor.QueuedExecution) string {
			return strings.TrimPrefix(w.Lane, monitor.LaneNormal)
		}).Dim().Priority(2),
		list.Text("SOURCE", 16, func(w *monitor.QueuedExecution) string { return w.Source }).Grow().Middle(),
		list.Text("PARENT", 17, parent).Dim().Middle().Priority(1),
	})}
}

// parent names the execution that requested a waiting one.
func parent(w *monitor.QueuedExecution) string {
	switch {
	case w.Parent == nil:
		return "-"
	case w.Task != "":
		return screen.Reference(w.Parent) + " " + w.Task
	default:
		return screen.Reference(w.Parent) + " " + w.ParentRef
	}
}

func (t *waiting) set(d *monitor.Line) {
	turned := t.showsEnd != d.End
	t.total, t.showsEnd = d.Of, d.End
	t.SetList(d.List)
	switch {
	case turned && t.showsEnd:
		t.Bottom()
	case turned:
		t.Top()
	}
}

// do moves the cursor. It reads the other end on demand, and more rows when the cursor comes near the last one read.
func (t *waiting) do(action keymap.Action) screen.Effect {
	read := int64(t.Len())
	if action == keymap.Bottom && !t.wantsEnd && t.total > read || action == keymap.Top && t.wantsEnd {
		t.wantsEnd, t.rows = !t.wantsEnd, monitor.LinePage
		return screen.Effect{Handled: true, Refetch: screen.FeedLine}
	}
	if !screen.MoveTable(t.Table.Table, action) {
		return screen.Effect{}
	}
	effect := screen.Effect{Handled: true}
	left := t.Len() - 1 - t.Cursor()
	if t.showsEnd {
		left = t.Cursor()
	}
	if left < monitor.LinePage/4 && read < t.total && read >= t.rows && t.rows < monitor.LineBound {
		t.rows = min(2*t.rows, monitor.LineBound)
		effect.Refetch = screen.FeedLine
	}
	return effect
}
