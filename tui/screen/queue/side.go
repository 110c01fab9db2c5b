package queue

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// side is the execution under the cursor, beside the rows.
func (q *Queue) side(w, h int) []string {
	e, id := q.env, q.Subject()
	if id == 0 {
		return nil
	}
	lines := []string{widget.Spread(e.Paint(theme.Dim, "PREVIEW")+"  execution "+strconv.FormatInt(id, 10), e.Paint(theme.Dim, "v closes"), w-1)}
	d := q.glance(id)
	if d == nil {
		return append(lines, e.Missing(screen.FeedGlance, "it", w)...)
	}
	lines = append(append(lines, ""), q.facts(d, w)...)
	timeline, why := q.timeline(d, max(3, h/4)), q.why(d, w)
	if room := h - len(lines) - len(timeline) - len(why) - 2; room >= 3 {
		lines = append(lines, q.config(d, w, room)...)
	}
	return append(append(lines, timeline...), why...)
}

func (q *Queue) facts(d *monitor.ExecutionDetail, w int) []string {
	e := q.env
	line := func(name, value string) string {
		return widget.Cut(e.Paint(theme.Dim, widget.Left(name, 11))+value, w-1)
	}
	worker := widget.Clean(screen.WorkerName(d.WorkerID, d.WorkerName))
	if h := q.holder(d.ID); h != nil {
		if note := workerNote(e, h); note != "" {
			worker += "  " + e.Paint(theme.Warn, e.Theme.Glyphs.Failed+" "+strings.TrimPrefix(note, "worker "))
		}
	}
	from := "-"
	if r := q.waiter(d.ID); r != nil {
		from = widget.Clean(r.Source)
	} else if d.Parent != nil {
		from = "child of " + strconv.FormatInt(*d.Parent, 10)
	}
	return []string{
		line("status", e.State(d.Status)+"  for "+widget.Age(e.Lasted(&d.Execution))),
		line("action", widget.Clean(d.ActionRef)),
		line("worker", worker),
		line("from", from),
		line("attempt", strconv.FormatInt(d.RetryCount+1, 10)),
		line("created", d.Created.UTC().Format("15:04:05.000Z")),
		"",
	}
}

// holder is the row of a holder, and waiter that of a waiter; nil if it is none.
func (q *Queue) holder(id int64) *monitor.Holder {
	for i := range q.holders.rows {
		if q.holders.rows[i].ID == id {
			return &q.holders.rows[i]
		}
	}
	return nil
}

func (q *Queue) waiter(id int64) *monitor.Waiter {
	for i := range q.line.rows {
		if q.line.rows[i].ID == id {
			return &q.line.rows[i]
		}
	}
	return nil
}

// config is the beginning of the parameters, with secrets masked.
func (q *Queue) config(d *monitor.ExecutionDetail, w, h int) []string {
	if d.Config == "" {
		return nil
	}
	if key := strconv.FormatInt(d.ID, 10) + " " + d.Config; key != q.shown {
		q.shown = key
		q.doc.Reset()
		q.doc.Set(d.Config)
	}
	lines := q.doc.Lines(w-1, h-2, q.env.Theme)
	if len(lines) == 0 {
		return nil
	}
	return append(append([]string{q.env.Paint(theme.Dim, "config")}, lines...), "")
}

// timeline are the last steps of the execution.
func (q *Queue) timeline(d *monitor.ExecutionDetail, h int) []string {
	e := q.env
	lines := []string{e.Paint(theme.Dim, "TIMELINE")}
	if !d.TimelineKnown {
		return append(lines, " no history is kept here", "")
	}
	steps := d.Timeline[max(0, len(d.Timeline)-h):]
	for _, s := range steps {
		if s.Status == "" {
			continue
		}
		text := " " + s.At.UTC().Format("15:04:05.0") + "  " + e.State(s.Status)
		if s.Worker != nil {
			text += "  worker " + strconv.FormatInt(*s.Worker, 10)
		}
		lines = append(lines, text)
	}
	return append(lines, "")
}

// why says what the execution waits for, in the words of its own view.
func (q *Queue) why(d *monitor.ExecutionDetail, w int) []string {
	e := q.env
	text := strings.Join(d.Why[:min(len(d.Why), 2)], " ")
	if h := q.holder(d.ID); text == "" && h != nil {
		if note := workerNote(e, h); note != "" {
			text = "Its worker is " + strings.TrimPrefix(note, "worker ") + ": the slot stays taken until the worker is back, or the engine counts it as lost."
		}
	}
	if text == "" {
		return nil
	}
	lines := []string{e.Paint(theme.Dim, "WHY IS IT NOT DONE?")}
	for _, part := range widget.Wrap(widget.Clean(text), max(20, w-3)) {
		lines = append(lines, " "+part)
	}
	return lines
}
