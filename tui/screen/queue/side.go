package queue

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// side is the preview of the selected execution beside the rows.
func (q *Queue) side(w, h int) []string {
	e, id := q.env, q.SelectedID()
	if id == 0 {
		return nil
	}
	title := e.Dim("PREVIEW") + "  execution " + strconv.FormatInt(id, 10)
	lines := []string{widget.Spread(title, e.Dim("v closes"), w-1)}
	d := q.glance(id)
	if d == nil {
		return append(lines, e.Missing(screen.FeedGlance, "the execution", w)...)
	}
	lines = append(lines, "")
	for _, fact := range q.facts(d) {
		lines = append(lines, widget.Cut(e.Label(fact.Name, 11)+fact.Text, w-1))
	}
	lines = append(lines, "")
	timeline, why := q.timeline(d, max(3, h/4)), q.why(d, w)
	if room := h - len(lines) - len(timeline) - len(why) - 2; room >= 3 && d.Config != "" {
		if config := q.doc.Lines(w-1, room-2, e.Theme); len(config) > 0 {
			lines = append(append(append(lines, e.Dim("config")), config...), "")
		}
	}
	return append(append(lines, timeline...), why...)
}

func (q *Queue) facts(d *monitor.ExecutionDetail) []screen.Fact {
	e := q.env
	worker := widget.Clean(monitor.WorkerName(d.WorkerID, d.WorkerName))
	holder, waiter := q.selected()
	if health := holder.unwell(e); health != "" {
		worker += "  " + e.Paint(theme.Warn, e.Theme.Glyphs.Failed+" "+health)
	}
	from := "-"
	if waiter != nil {
		from = widget.Clean(waiter.Source)
	} else if d.Parent != nil {
		from = "child of " + strconv.FormatInt(*d.Parent, 10)
	}
	return []screen.Fact{
		{Name: "status", Text: e.State(d.Status) + "  for " + widget.Age(e.Lasted(&d.Execution))},
		{Name: "action", Text: widget.Clean(d.ActionRef)},
		{Name: "worker", Text: worker},
		{Name: "from", Text: from},
		{Name: "attempt", Text: strconv.FormatInt(d.RetryCount+1, 10)},
		{Name: "created", Text: d.Created.UTC().Format("15:04:05.000Z")},
	}
}

// timeline are the last steps of the execution.
func (q *Queue) timeline(d *monitor.ExecutionDetail, h int) []string {
	e := q.env
	lines := []string{e.Dim("TIMELINE")}
	if !d.TimelineKnown {
		return append(lines, " no history is kept here", "")
	}
	for _, s := range d.Timeline[max(0, len(d.Timeline)-h):] {
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

// why says what the execution waits for.
func (q *Queue) why(d *monitor.ExecutionDetail, w int) []string {
	text := strings.Join(d.Why[:min(len(d.Why), 2)], " ")
	holder, _ := q.selected()
	if health := holder.unwell(q.env); text == "" && health != "" {
		text = "Its worker is " + health +
			": the slot stays taken until the worker is back, or the engine counts it as lost."
	}
	if text == "" {
		return nil
	}
	lines := []string{q.env.Dim("WHY IS IT NOT DONE?")}
	return append(lines, screen.Indented(widget.Wrap(widget.Clean(text), max(20, w-3)))...)
}
