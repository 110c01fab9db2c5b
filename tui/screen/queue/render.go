package queue

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Render draws the view.
func (q *Queue) Render(w, h int) []string {
	e, d := q.env, q.current()
	q.tops = [2]int{}
	if d == nil {
		return e.Missing(screen.FeedQueue, "queue "+widget.Clean(q.name), w)
	}
	if q.part == inAbout {
		return q.about(d, w, h)
	}
	q.holders.table.Focus(q.part == inHolders)
	q.line.table.Focus(q.part == inLine)
	if q.wide() && w >= 120 {
		lw := w * 82 / 140
		return widget.Beside(q.body(d, lw-1, h), q.side(w-lw-2, h), lw, w-lw-2, h, e.Paint(theme.Dim, "│")+" ")
	}
	return q.body(d, w, h)
}

// body is the queue itself: its state, how it was, who holds it and who waits.
func (q *Queue) body(d *explain.QueueDetail, w, h int) []string {
	lines := q.head(d, w)
	if h >= 28 && w >= 60 {
		lines = append(append(lines, ""), q.charts(d, w)...)
	}
	if h >= 16 {
		lines = append(lines, "")
	}
	room := h - len(lines)
	lines = append(lines, q.holderPart(d, w, min(2+max(1, q.holders.Len()), max(3, room*2/5)), len(lines))...)
	if h >= 16 {
		lines = append(lines, "")
	}
	return widget.Fit(append(lines, q.linePart(d, w, h-len(lines), len(lines))...), w, h)
}

// head says in a few lines how the queue is.
func (q *Queue) head(d *explain.QueueDetail, w int) []string {
	e := q.env
	look := e.Theme.Of(map[string]string{"paused": "paused", "blocked": "warning", "full": "busy", "open": "active"}[state(d)])
	lines := widget.Hang(" "+e.Paint(look.Role, look.Glyph+" "+state(d))+"  ", widget.Clean(d.StateLine()), w-1)
	limit := "no limit"
	if d.Limit != nil {
		limit = "max " + e.Num(*d.Limit)
	}
	if from := d.LimitFrom.String(); from != "" && from != string(monitor.LimitNone) {
		limit += " by " + widget.Clean(from)
	}
	facts := []string{limit, q.drains(d), "enqueued " + e.Num(d.Enqueued), "done " + e.Num(d.Completed)}
	line, hint := " "+e.Paint(theme.Dim, strings.Join(facts, " · ")), e.Paint(theme.Dim, "tab: limits, times; A there acts on the queue")
	if widget.Width(line)+widget.Width(hint) < w-2 {
		line = widget.Spread(line, hint, w-1)
	}
	return append(lines[:min(len(lines), 3)], widget.Cut(line, w-1))
}

// drains says how fast the queue can become shorter, and when it is empty.
func (q *Queue) drains(d *explain.QueueDetail) string {
	if d.Drain.PerMinute == nil {
		return "pace unknown"
	}
	text := "up to " + pace(*d.Drain.PerMinute, q.env) + "/min"
	if at := d.Empties.At; at != nil && d.Queued > 0 {
		text += ", empty in " + widget.Age(at.Sub(d.At))
	}
	return text
}

// pace writes a rate in three digits, or whole where it has more.
func pace(rate float64, e *screen.Env) string {
	if rate >= 999.5 {
		return e.Num(int64(math.Round(rate)))
	}
	return strconv.FormatFloat(rate, 'g', 3, 64)
}

// charts are the last hour: how long the head waited, and how many did.
func (q *Queue) charts(d *explain.QueueDetail, w int) []string {
	e := q.env
	cw := w/2 - 1
	now := "-"
	if d.Oldest != nil {
		now = e.AgeOf(d.Oldest)
	}
	chart := func(title, now, series string, draw func([]float64, int, int, *theme.Theme) []string) []string {
		lines := []string{widget.Spread(" "+e.Head(screen.FeedQueue, title), e.Paint(theme.Dim, "now ")+now, cw)}
		return append(lines, draw(e.Data.History.Trend(series, time.Hour, e.Points(cw-8)), cw, 5, e.Theme)...)
	}
	sampled := ""
	if p := q.past(); p != nil && p.Estimated {
		sampled = " from samples"
	}
	head := chart("HEAD WAIT, 60m"+sampled, now, screen.QueueHead(d.ID), widget.DurationChart)
	depth := chart("QUEUED, 60m"+sampled, e.Num(d.Queued), screen.QueueSeries(d.ID), widget.Chart)
	return widget.Beside(head, depth, cw, cw, len(head), "  ")
}

// past is the last hour of the queue as the database told it; nil before it did.
func (q *Queue) past() *monitor.QueuePast {
	if d := q.env.Data.QueuesPast; d != nil {
		for i := range d.List {
			if d.List[i].ID == q.id {
				return &d.List[i]
			}
		}
	}
	return nil
}

// heading is the title of a part, lit up while the keys go there.
func (q *Queue) heading(part int, title, note string, w int) string {
	role := theme.Dim
	if q.part == part {
		role = theme.Accent
	}
	return widget.Spread(" "+q.env.Paint(role, title), q.env.Paint(theme.Dim, note), w-1)
}

func (q *Queue) holderPart(d *explain.QueueDetail, w, h, top int) []string {
	e := q.env
	note := "holds slot"
	if d.Holders != nil && d.Holders.Incomplete {
		note = "the oldest of " + e.Num(d.Holders.Found) + " found, of " + e.Num(d.Active)
	} else if more := d.Active - int64(q.holders.Len()); more > 0 {
		note = e.Num(more) + " more"
	}
	lines := []string{q.heading(inHolders, "ACTIVE "+screen.Slots(d.Active, d.Limit), note, w)}
	if q.holders.Len() == 0 {
		return append(lines, " "+e.Paint(theme.Dim, "Nobody holds a slot."))
	}
	q.tops[inHolders] = top + 2
	return append(lines, q.holders.table.Lines(w, h-1, e.Theme)...)
}

func (q *Queue) linePart(d *explain.QueueDetail, w, h, top int) []string {
	e := q.env
	if h < 2 {
		return nil
	}
	title := "QUEUED " + e.Num(d.Queued)
	lines := []string{q.heading(inLine, title, "FIFO order"+q.lanes(d), w)}
	switch {
	case d.Queued == 0 && q.line.Len() == 0:
		return append(lines, " "+e.Paint(theme.Dim, "Nobody waits."))
	case e.Data.Line == nil:
		return append(lines, e.Missing(screen.FeedLine, "the line", w)[1:]...)
	}
	foot := []string{}
	if h >= 5 {
		foot = append(foot, q.lineFoot(d, w))
	}
	q.tops[inLine] = top + 2
	room := h - len(lines) - len(foot)
	lines = append(lines, q.line.table.Lines(w, min(room, q.line.Len()+1), e.Theme)...)
	return append(lines, foot...)
}

// lanes says that not all stand in one lane.
func (q *Queue) lanes(d *explain.QueueDetail) string {
	text := ""
	if d.QueuedHigh > 0 {
		text += ", " + q.env.Num(d.QueuedHigh) + " high first"
	}
	if d.QueuedLow > 0 {
		text += ", " + q.env.Num(d.QueuedLow) + " low last"
	}
	return text
}

// lineFoot says how much of the line is not shown, and how long it waits.
func (q *Queue) lineFoot(d *explain.QueueDetail, w int) string {
	e := q.env
	text := ""
	if more := q.line.of - int64(q.line.Len()); more > 0 && q.line.shows {
		text = "… " + e.Num(more) + " before those read, gg the first   "
	} else if more > 0 {
		text = "… " + e.Num(more) + " more than are read, G the last   "
	}
	if d.Ages != nil && d.Ages.Waited != nil {
		a := d.Ages.Waited
		about := ""
		if d.Ages.Estimated {
			about = "about "
		}
		text += about + "wait p50 " + widget.Age(a.P50) + "  p95 " + widget.Age(a.P95) + "  max " + widget.Age(a.Max)
	}
	return " " + widget.Cut(e.Paint(theme.Dim, text)+e.Mark(screen.FeedLine)+e.GoneNote(q.line.table, "the execution under the cursor"), w-1)
}

// about is all that is known of the queue as text.
func (q *Queue) about(d *explain.QueueDetail, w, h int) []string {
	e := q.env
	var lines []string
	for i, section := range d.Sections() {
		if i > 0 {
			lines = append(lines, "", " "+e.Paint(theme.Dim, widget.Clean(section.Title)))
		}
		lines = append(lines, aligned(section.Rows, w-2)...)
	}
	total := len(lines)
	q.visible = h
	if total > h { // the last line says that there is more
		q.visible = h - 1
	}
	q.scroll = max(0, min(q.scroll, total-q.visible))
	out := lines[q.scroll:min(total, q.scroll+q.visible)]
	if total > h {
		at := strconv.Itoa(q.scroll+1) + "-" + strconv.Itoa(min(total, q.scroll+q.visible)) + " of " + strconv.Itoa(total)
		out = append(append([]string{}, out...), e.Paint(theme.Dim, " lines "+at+" · j and k scroll · enter shows its executions"))
	}
	return out
}

// aligned aligns the cells of a section. The last cell of a row goes on below
// itself where it is too long.
func aligned(rows [][]string, w int) []string {
	widths := columnWidths(rows, w/4)
	var lines []string
	for _, cells := range rows {
		parts := make([]string, 0, len(cells))
		for i, cell := range cells[:len(cells)-1] {
			parts = append(parts, widget.Left(widget.CutMiddle(widget.Clean(cell), widths[i]), widths[i])+"  ")
		}
		lines = append(lines, widget.Hang(" "+strings.Join(parts, ""), widget.Clean(cells[len(cells)-1]), w)...)
	}
	return lines
}

// columnWidths measures the columns; none but the last is wider than most.
func columnWidths(rows [][]string, most int) []int {
	var widths []int
	for _, cells := range rows {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(cells)-1 {
				widths[i] = min(max(widths[i], widget.Width(widget.Clean(cell))), most)
			}
		}
	}
	return widths
}
