// Package queue shows one admission queue: its limits and who set them, who
// holds the slots, who waits and for how long, and how fast it drains.
package queue

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Queue is the view of one queue.
type Queue struct {
	env *screen.Env
	id  int64
	// name is how the queue was called where it was opened from.
	name    string
	scroll  int
	total   int
	visible int
}

// New makes the view.
func New(env *screen.Env) *Queue { return &Queue{env: env} }

// View is the name of the screen.
func (q *Queue) View() screen.View { return keymap.InQueue }

// Feeds is what the view needs polled.
func (q *Queue) Feeds() []screen.Feed { return []screen.Feed{screen.FeedQueue} }

// ID is the queue in sight.
func (q *Queue) ID() int64 { return q.id }

// Show turns to another queue.
func (q *Queue) Show(id int64) {
	if id == q.id {
		return
	}
	q.id, q.scroll, q.name = id, 0, strconv.FormatInt(id, 10)
	if list := q.env.Data.Queues; list != nil {
		for _, row := range list.List {
			if row.ID == id {
				q.name = screen.QueueName(&row)
			}
		}
	}
	q.env.Data.Queue = nil
}

// Title is the text of the title rule.
func (q *Queue) Title() (left, right string) {
	left = "Queues › " + widget.Clean(q.name)
	if d := q.current(); d != nil {
		state := "open"
		switch {
		case d.Paused:
			state = "paused"
		case d.Blocked != "":
			state = "blocked"
		case d.Full():
			state = "full"
		}
		right = state + " · queue " + strconv.FormatInt(q.id, 10) + q.env.Mark(screen.FeedQueue)
	}
	return left, right
}

// current is the detail, unless it belongs to a queue left behind.
func (q *Queue) current() *monitor.QueueDetail {
	if d := q.env.Data.Queue; d != nil && d.ID == q.id {
		return d
	}
	return nil
}

// Changed has nothing to prepare.
func (q *Queue) Changed(screen.Feed) {}

// Do carries out an action.
func (q *Queue) Do(action keymap.Action) screen.Effect {
	switch action {
	case keymap.RowDown:
		q.scroll++
	case keymap.RowUp:
		q.scroll--
	case keymap.HalfDown:
		q.scroll += max(1, q.visible/2)
	case keymap.HalfUp:
		q.scroll -= max(1, q.visible/2)
	case keymap.Top:
		q.scroll = 0
	case keymap.Bottom:
		q.scroll = q.total
	case keymap.Open:
		if d := q.current(); d != nil {
			return screen.Effect{Handled: true, Open: keymap.InExecutions, Filter: "action:" + d.ActionRef}
		}
		return screen.Effect{}
	default:
		return screen.Effect{}
	}
	q.scroll = max(0, min(q.scroll, q.total-q.visible))
	return screen.Effect{Handled: true}
}

// Render draws the view.
func (q *Queue) Render(w, h int) []string {
	e, d := q.env, q.current()
	if d == nil {
		return e.Missing(screen.FeedQueue, "queue "+widget.Clean(q.name))
	}
	var lines []string
	for i, section := range d.Sections() {
		if i > 0 {
			lines = append(lines, "", " "+e.Paint(theme.Dim, widget.Clean(section.Title)))
		}
		lines = append(lines, q.rows(section.Rows, w-2)...)
	}
	q.total, q.visible = len(lines), h
	if q.total > h { // the last line says that there is more
		q.visible = h - 1
	}
	q.scroll = max(0, min(q.scroll, q.total-q.visible))
	out := lines[q.scroll:min(q.total, q.scroll+q.visible)]
	if q.total > h {
		at := strconv.Itoa(q.scroll+1) + "-" + strconv.Itoa(min(q.total, q.scroll+q.visible)) + " of " + strconv.Itoa(q.total)
		out = append(append([]string{}, out...), e.Paint(theme.Dim, " lines "+at+" · j and k scroll · enter shows its executions"))
	}
	return out
}

// rows aligns the cells of a section. The last cell of a row goes on below
// itself where it is too long.
func (q *Queue) rows(rows [][]string, w int) []string {
	widths := columnWidths(rows, w/4)
	var lines []string
	for _, cells := range rows {
		parts := make([]string, 0, len(cells))
		for i, cell := range cells[:len(cells)-1] {
			parts = append(parts, widget.Left(widget.CutMiddle(widget.Clean(cell), widths[i]), widths[i])+"  ")
		}
		lines = append(lines, hang(" "+strings.Join(parts, ""), widget.Clean(cells[len(cells)-1]), w)...)
	}
	return lines
}

// hang writes a text behind a start, and what does not fit below it.
func hang(start, text string, w int) []string {
	indent := widget.Width(start)
	room := w - indent
	if room < 12 {
		return []string{widget.Cut(start+text, w)}
	}
	var lines []string
	for i, part := range widget.Wrap(text, room) {
		if i > 0 {
			start = widget.Blank(indent)
		}
		lines = append(lines, start+part)
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
