// Package execution shows one execution: its state, what it waits for, its
// timeline, and its documents with secrets masked.
package execution

import (
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Execution is the view of one execution.
type Execution struct {
	env     *screen.Env
	id      int64
	section int
	scroll  int
	// documents are the views of the sections that are documents.
	documents [6]*jsonview.View
	visible   int
	// why is true while the reasons why it waits take the whole view.
	why bool
	// low is true when it was drawn last where there is no room for both the timeline
	// and a section, turned once the sections were turned to.
	low, turned bool
	// glance is what was read of it where it is only looked at, in a preview.
	glance *monitor.ExecutionDetail
}

// New makes the view.
func New(env *screen.Env) *Execution { return &Execution{env: env} }

// View is the name of the screen.
func (x *Execution) View() screen.View { return keymap.InExecution }

// Feeds is what the view needs polled.
func (x *Execution) Feeds() []screen.Feed {
	return []screen.Feed{screen.FeedExecution, screen.FeedFamily}
}

// ID is the execution in sight.
func (x *Execution) ID() int64 { return x.id }

// Shown names the execution in sight.
func (x *Execution) Shown() string { return strconv.FormatInt(x.id, 10) }

// Show turns to another execution.
func (x *Execution) Show(name string) {
	id := screen.Number(name)
	if id == x.id {
		return
	}
	x.id, x.scroll, x.section, x.why, x.turned = id, 0, 0, false, false
	x.documents = [6]*jsonview.View{}
	x.env.Data.Execution, x.env.Data.Family = nil, nil
}

// Title is the text of the title rule.
func (x *Execution) Title() (left, right string) {
	left = "Executions › " + strconv.FormatInt(x.id, 10)
	if d := x.current(); d != nil {
		right = "updated " + d.Updated.UTC().Format("15:04:05.000Z") + x.env.Mark(screen.FeedExecution)
	}
	return left, right
}

// current is the detail, unless it belongs to an execution left behind.
func (x *Execution) current() *monitor.ExecutionDetail {
	if x.glance != nil {
		return x.glance
	}
	if d := x.env.Data.Execution; d != nil && d.ID == x.id {
		return d
	}
	return nil
}

// Changed prepares the document again.
func (x *Execution) Changed(feed screen.Feed) {
	if feed == screen.FeedExecution {
		x.prepare()
	}
}

// Do carries out an action.
func (x *Execution) Do(action keymap.Action) screen.Effect {
	if x.documentAction(action) {
		return screen.Effect{Handled: true}
	}
	switch action {
	case keymap.Xray:
		return screen.OpenTree(x.id)
	case keymap.Why:
		return x.explain()
	case keymap.NextPane:
		x.turn(1)
	case keymap.PrevPane:
		x.turn(-1)
	default:
		return screen.Effect{Handled: screen.Scroll(&x.scroll, action, x.visible)}
	}
	return screen.Effect{Handled: true}
}

// timelineLines is the least room that the timeline is left when there is much
// to say of why an execution waits: its title, its last step and a gap.
const timelineLines = 3

// lowest is the height below which there is room for the timeline or for a section, and
// not for both.
const lowest = 14

// Render draws the view.
func (x *Execution) Render(w, h int) []string {
	e, d := x.env, x.current()
	if d == nil {
		return e.Missing(screen.FeedExecution, "execution "+strconv.FormatInt(x.id, 10), w)
	}
	if x.why {
		return x.whyLines(d, w, h)
	}
	if w >= 120 {
		lw := w * 82 / 140
		left := append(x.head(d, lw-1, h-timelineLines), x.timeline(d, max(4, h/3))...)
		left = append(left, x.sectionLines(d, lw-1, h-len(left))...)
		return widget.Beside(left, x.side(d, w-lw-2, h), lw, w-lw-2, h, e.Paint(theme.Dim, "│")+" ")
	}
	foot := x.footLines(d)
	lines := x.head(d, w, h-timelineLines-len(foot))
	if x.low = h < lowest; x.low && x.turned {
		lines = append(lines, widget.Fit(x.sectionLines(d, w, h-len(lines)-1), w, h-len(lines)-1)...)
		return append(lines, foot[len(foot)-1])
	}
	lines = append(lines, x.timeline(d, min(max(1, h-len(lines)-len(foot)-2), max(3, h/3)))...)
	lines = append(lines, widget.Fit(x.sectionLines(d, w, h-len(lines)-len(foot)), w, max(0, h-len(lines)-len(foot)))...)
	return append(lines, foot...)
}

func (x *Execution) head(d *monitor.ExecutionDetail, w, h int) []string {
	e := x.env
	reason := widget.Clean(d.Reason)
	if reason == "" {
		reason = "-"
	}
	first := []string{
		" " + e.State(d.Status) + "  " + widget.Clean(d.ActionRef) + "   try " + monitor.Tries(d.RetryCount, d.MaxRetries) + "   " +
			widget.Clean(screen.WorkerName(d.WorkerID, d.WorkerName)) + "   for " + widget.Age(e.Lasted(&d.Execution)),
	}
	if len(d.Why) > 0 {
		return append(append(first, x.sentences(d.Why, w, max(3, h-2))...), "")
	}
	said := widget.Hang(" reason  ", x.waits(d, reason), w)
	if len(said) > mostReason {
		said = append(said[:mostReason-1:mostReason-1], widget.Cut(said[mostReason-1]+" …", w))
	}
	return append(append(first, said...), "")
}

// mostReason is the most lines for why an execution ended; the error itself is among
// its documents.
const mostReason = 2

// sentences says why it waits, in the words of the command line, on at most h
// lines.
func (x *Execution) sentences(list []string, w, h int) []string {
	var lines []string
	for _, text := range list {
		body := strings.TrimLeft(text, " ")
		indent := " " + widget.Blank(len(text)-len(body))
		for i, part := range widget.Wrap(body, max(20, w-1-len(indent)-2)) {
			if i > 0 {
				part = "  " + part
			}
			lines = append(lines, indent+part)
		}
	}
	if len(lines) <= h {
		return lines
	}
	tail := min(3, h/3) // the end says when it starts
	for h-1-tail > 1 && strings.HasSuffix(strings.TrimSpace(lines[h-1-tail-1]), ":") {
		h-- // a heading is worth nothing without what it heads
	}
	more := strconv.Itoa(len(lines)-h+1) + " more lines: W shows all"
	out := append(slices.Clone(lines[:h-1-tail]), " "+x.env.Paint(theme.Dim, more))
	return append(out, lines[len(lines)-tail:]...)
}

// waits says what an execution waits for that has got further than its queue.
func (x *Execution) waits(d *monitor.ExecutionDetail, reason string) string {
	switch {
	case attune.Status(d.Status).Terminal():
		return reason
	case d.Status == string(attune.StatusScheduled):
		return "handed to its worker, which has not started it yet"
	default:
		return reason
	}
}

// timeline shows the newest steps that fit, each with the time since the one
// before it.
func (x *Execution) timeline(d *monitor.ExecutionDetail, h int) []string {
	e := x.env
	lines := []string{" " + e.Paint(theme.Dim, "TIMELINE                                 Δ")}
	if !d.TimelineKnown {
		return append(lines, " No history is kept here: created "+d.Created.UTC().Format("15:04:05.0")+
			", updated "+d.Updated.UTC().Format("15:04:05.0"), "")
	}
	start := max(0, len(d.Timeline)-h)
	if start > 0 {
		lines = append(lines, e.Paint(theme.Dim, "  … "+strconv.Itoa(start)+" earlier"))
	}
	for i := start; i < len(d.Timeline); i++ {
		delta := "-"
		if i > 0 {
			delta = widget.Age(d.Timeline[i].At.Sub(d.Timeline[i-1].At))
		}
		lines = append(lines, x.step(d, i, delta))
	}
	return append(lines, "")
}

func (x *Execution) step(d *monitor.ExecutionDetail, i int, delta string) string {
	s := d.Timeline[i]
	what := s.Status
	if what == "" {
		what = strings.Join(s.Changed, ", ") + " recorded"
	}
	look := x.env.Theme.Of(s.Status)
	return "  " + s.At.UTC().Format("15:04:05.0") + "  " + x.env.Paint(look.Role, look.Glyph+" "+widget.Left(widget.Clean(what), 16)) +
		widget.Right(delta, 8) + "   " + x.remark(d, i)
}

func (x *Execution) footLines(d *monitor.ExecutionDetail) []string {
	return []string{x.env.Paint(theme.Dim, " parent ") + reference(d.Parent) + x.env.Paint(theme.Dim, "   children ") + x.env.Count(d.Children) +
		x.env.Paint(theme.Dim, "   retry of ") + reference(d.Original) + x.env.Paint(theme.Dim, "   enforcement ") + reference(d.Enforcement), x.verdictLine(d)}
}

func reference(id *int64) string {
	if id == nil {
		return "-"
	}
	return strconv.FormatInt(*id, 10)
}
