package queue

import (
	"fmt"
	"math"
	"slices"
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
	if d == nil {
		return e.Missing(screen.FeedQueue, "queue "+widget.Clean(q.name), w)
	}
	if q.part == inAbout {
		return q.aboutShown(w, h)
	}
	body, _ := q.body(d, q.bodyWidth(w), h)
	if q.wide() {
		_, rw := screen.Halves(w)
		return e.Beside(body, q.side(rw, h), w, h)
	}
	return body
}

// Places are the tables of holders and waiting executions.
func (q *Queue) Places(w, h int) screen.Places {
	d := q.current()
	if d == nil || q.part == inAbout {
		return nil
	}
	_, places := q.body(d, q.bodyWidth(w), h)
	return places
}

func (q *Queue) bodyWidth(w int) int {
	if q.wide() {
		w, _ = screen.Halves(w)
		w--
	}
	return w
}

// body draws state, charts, holders and waiting executions, and says where the tables are.
func (q *Queue) body(d *explain.QueueDetail, w, h int) (lines []string, places screen.Places) {
	e := q.env
	place := func(part int, t *widget.Table, h int) {
		places = append(places, screen.Place{Table: t, Top: len(lines), W: w, H: h, Focus: func() {
			q.turnTo(part)
			q.chosen = true
		}})
		lines = append(lines, t.Lines(w, h, e.Theme)...)
	}
	lines = q.head(d, w)
	if h >= 28 && w >= 60 {
		lines = append(append(lines, ""), q.charts(d, w)...)
	}
	if h >= 16 {
		lines = append(lines, "")
	}
	note := "holds slot"
	if d.Holders != nil && d.Holders.Incomplete {
		note = "the oldest of " + e.Num(d.Holders.Found) + " found, of " + e.Num(d.Active)
	} else if more := d.Active - int64(q.holders.Len()); more > 0 {
		note = e.Num(more) + " more"
	}
	room := min(2+max(1, q.holders.Len()), max(3, (h-len(lines))*2/5))
	lines = append(lines, q.heading(inHolders, "ACTIVE "+screen.Slots(d.Active, d.Limit), note, w))
	if q.holders.Len() == 0 {
		lines = append(lines, " "+e.Dim("No execution holds a slot."))
	} else {
		place(inHolders, q.holders.Table, room-1)
	}
	if h >= 16 {
		lines = append(lines, "")
	}
	if room = h - len(lines); room < 2 {
		return widget.Fit(lines, w, h), places
	}
	lines = append(lines, q.heading(inWaiting, "QUEUED "+e.Num(d.Queued), "FIFO order"+q.lanes(d), w))
	switch {
	case d.Queued == 0 && q.waiting.Len() == 0:
		lines = append(lines, " "+e.Dim("No execution waits."))
	case e.Data.Line == nil:
		lines = append(lines, e.Missing(screen.FeedLine, "the waiting executions", w)[1:]...)
	default:
		var foot []string
		if room >= 5 {
			foot = append(foot, q.foot(d, w))
		}
		place(inWaiting, q.waiting.Table.Table, min(room-1-len(foot), q.waiting.Len()+1))
		lines = append(lines, foot...)
	}
	return widget.Fit(lines, w, h), places
}

// head is the state of the queue with its reason, limit and pace.
func (q *Queue) head(d *explain.QueueDetail, w int) []string {
	e := q.env
	word := state(d)
	look := e.Theme.Of(map[string]string{
		"paused": "paused", "blocked": "warning", "full": "busy", "open": "active", "idle": "idle",
	}[word])
	lines := widget.Hang(" "+e.Look(look, " "+word)+"  ", q.state, w-1)
	limit := "no limit"
	if d.Limit != nil {
		limit = "max " + e.Num(*d.Limit)
	}
	if from := d.LimitFrom.String(); from != "" && from != string(monitor.LimitNone) {
		limit += " by " + widget.Clean(from)
	}
	facts := []string{limit, q.drains(d), "enqueued " + e.Num(d.Enqueued), "done " + e.Num(d.Completed)}
	line, hint := " "+e.Dim(strings.Join(facts, " · ")), e.Dim("tab: limits, times; A there acts on the queue")
	if widget.Width(line)+widget.Width(hint) < w-2 {
		line = widget.Spread(line, hint, w-1)
	}
	return append(lines[:min(len(lines), 4)], widget.Cut(line, w-1))
}

// drains says how fast the queue can drain, and when it is empty.
func (q *Queue) drains(d *explain.QueueDetail) string {
	if d.Drain.PerMinute == nil {
		return "pace unknown"
	}
	pace := strconv.FormatFloat(*d.Drain.PerMinute, 'g', 3, 64)
	if *d.Drain.PerMinute >= 999.5 {
		pace = q.env.Num(int64(math.Round(*d.Drain.PerMinute)))
	}
	text := "up to " + pace + "/min"
	if at := d.Empties.At; at != nil && d.Queued > 0 {
		text += ", empty in " + widget.Age(at.Sub(d.At))
	}
	return text
}

// charts show the wait of the head and the depth over the last hour.
func (q *Queue) charts(d *explain.QueueDetail, w int) []string {
	e := q.env
	cw := w/2 - 1
	chart := func(title, now, series string, draw func([]float64, int, int, *theme.Theme) []string) []string {
		lines := []string{widget.Spread(" "+e.Head(screen.FeedQueue, title), e.Dim("now ")+now, cw)}
		return append(lines, draw(e.Data.History.Trend(series, time.Hour, e.Points(cw-8)), cw, 5, e.Theme)...)
	}
	gaps := ""
	if e.Data.History.Gaps(screen.QueueSeries(d.ID), time.Hour) {
		gaps = screen.Gaps
	}
	head := chart("HEAD WAIT, 60m"+gaps, e.AgeOf(d.Oldest), screen.QueueHead(d.ID), widget.DurationChart)
	depth := chart("QUEUED, 60m"+gaps, e.Num(d.Queued), screen.QueueSeries(d.ID), widget.Chart)
	return widget.Beside(head, depth, cw, cw, len(head), "  ")
}

// heading is the title of a part.
func (q *Queue) heading(part int, title, note string, w int) string {
	return q.env.PaneRule(q.part == part, title, note, w)
}

// lanes counts the executions outside the normal lane.
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

// foot says how many waiting executions were not read, and how long executions wait.
func (q *Queue) foot(d *explain.QueueDetail, w int) string {
	e := q.env
	text := ""
	if more := q.waiting.total - int64(q.waiting.Len()); more > 0 && q.waiting.showsEnd {
		text = "… " + e.Num(more) + " before those read, gg the first   "
	} else if more > 0 {
		text = "… " + e.Num(more) + " more than are read, G the last   "
	}
	if d.Ages != nil && d.Ages.Waited != nil {
		a := d.Ages.Waited
		if d.Ages.Estimated {
			text += "about "
		}
		text += "wait p50 " + widget.Age(a.P50) + "  p95 " + widget.Age(a.P95) + "  max " + widget.Age(a.Max)
	}
	gone := e.GoneNote(q.waiting.Table.Table, "the execution under the cursor")
	return " " + widget.Cut(e.Dim(text)+e.Mark(screen.FeedLine)+gone, w-1)
}

// aboutLines are the limits and times of the queue, and how many lines of them are visible.
func (q *Queue) aboutLines(w, h int) (lines []string, visible int) {
	for i, section := range q.about {
		if i > 0 {
			lines = append(lines, "", " "+q.env.Dim(widget.Clean(section.Title)))
		}
		lines = append(lines, aligned(section.Rows, w-2)...)
	}
	if len(lines) > h { // the last line says which lines are visible
		h--
	}
	return lines, h
}

func (q *Queue) aboutShown(w, h int) []string {
	lines, visible := q.aboutLines(w, h)
	shown, at := q.scroll.Shown(lines, visible)
	if len(lines) <= h {
		return shown
	}
	text := fmt.Sprintf(" lines %d-%d of %d · j and k scroll · enter shows its executions", at+1, at+len(shown),
		len(lines))
	return append(slices.Clip(shown), q.env.Dim(text))
}

// aligned aligns the cells of a section. Only the last cell of a row may wrap; the others take at most a quarter of
// the width.
func aligned(rows [][]string, w int) []string {
	var widths []int
	for _, cells := range rows {
		for i, cell := range cells[:len(cells)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = min(max(widths[i], widget.Width(widget.Clean(cell))), w/4)
		}
	}
	var lines []string
	for _, cells := range rows {
		start := " "
		for i, cell := range cells[:len(cells)-1] {
			start += widget.Left(widget.CutMiddle(widget.Clean(cell), widths[i]), widths[i]) + "  "
		}
		lines = append(lines, widget.Hang(start, widget.Clean(cells[len(cells)-1]), w)...)
	}
	return lines
}
