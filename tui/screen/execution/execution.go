// Package execution shows one execution: its state, what it waits for, its
// timeline, and its documents with secrets masked.
package execution

import (
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

var sections = []string{"config", "result", "env"}

// Execution is the view of one execution.
type Execution struct {
	env     *screen.Env
	id      int64
	section int
	scroll  int
	// document is the prepared text of the section in sight.
	document []string
	visible  int
	// why is true while the reasons why it waits take the whole view.
	why bool
}

// New makes the view.
func New(env *screen.Env) *Execution { return &Execution{env: env} }

// View is the name of the screen.
func (x *Execution) View() screen.View { return keymap.InExecution }

// Feeds is what the view needs polled.
func (x *Execution) Feeds() []screen.Feed { return []screen.Feed{screen.FeedExecution} }

// ID is the execution in sight.
func (x *Execution) ID() int64 { return x.id }

// Show turns to another execution.
func (x *Execution) Show(id int64) {
	if id == x.id {
		return
	}
	x.id, x.scroll, x.section, x.document, x.why = id, 0, 0, nil, false
	x.env.Data.Execution = nil
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

func (x *Execution) prepare() {
	d := x.current()
	if d == nil {
		return
	}
	text := [...]string{d.Config, d.Result, d.Env}[x.section]
	if text == "" {
		x.document = []string{x.env.Paint(theme.Dim, "no "+sections[x.section])}
		return
	}
	x.document = widget.JSON(text)
}

// Do carries out an action.
func (x *Execution) Do(action keymap.Action) screen.Effect {
	switch action {
	case keymap.Why:
		return x.explain()
	case keymap.NextPane:
		x.turn(1)
	case keymap.PrevPane:
		x.turn(-1)
	case keymap.RowDown:
		x.scroll++
	case keymap.RowUp:
		x.scroll--
	case keymap.HalfDown:
		x.scroll += max(1, x.visible/2)
	case keymap.HalfUp:
		x.scroll -= max(1, x.visible/2)
	case keymap.Top:
		x.scroll = 0
	case keymap.Bottom:
		x.scroll = len(x.document)
	default:
		return screen.Effect{}
	}
	if !x.why { // what is drawn then keeps the scroll inside
		x.scroll = max(0, min(x.scroll, len(x.document)-x.visible))
	}
	return screen.Effect{Handled: true}
}

func (x *Execution) turn(n int) {
	x.section = (x.section + n + len(sections)) % len(sections)
	x.scroll, x.why = 0, false
	x.prepare()
}

// timelineLines is the least room that the timeline is left when there is much
// to say of why an execution waits: its title, its last step and a gap.
const timelineLines = 3

// Render draws the view.
func (x *Execution) Render(w, h int) []string {
	e, d := x.env, x.current()
	if d == nil {
		return e.Missing(screen.FeedExecution, "execution "+strconv.FormatInt(x.id, 10))
	}
	if x.why {
		return x.whyLines(d, w, h)
	}
	if w >= 120 {
		lw := w * 82 / 140
		left := append(x.head(d, lw-1, h-timelineLines), x.timeline(d, max(4, h/3))...)
		left = append(left, x.documentLines(lw-1, h-len(left))...)
		return widget.Beside(left, x.related(d), lw, w-lw-2, h, e.Paint(theme.Dim, "│")+" ")
	}
	foot := x.footLines(d)
	lines := x.head(d, w, h-timelineLines-len(foot))
	lines = append(lines, x.timeline(d, min(max(1, h-len(lines)-len(foot)-2), max(3, h/3)))...)
	lines = append(lines, widget.Fit(x.documentLines(w, h-len(lines)-len(foot)), w, max(0, h-len(lines)-len(foot)))...)
	return append(lines, foot...)
}

func (x *Execution) head(d *monitor.ExecutionDetail, w, h int) []string {
	e := x.env
	reason := widget.Clean(d.Reason)
	if reason == "" {
		reason = "-"
	}
	first := []string{
		" " + e.State(d.Status) + "  " + widget.Clean(d.ActionRef) + "   try " + tries(d) + "   " +
			widget.Clean(screen.WorkerName(d.WorkerID, d.WorkerName)) + "   for " + widget.Age(e.Lasted(&d.Execution)),
	}
	if len(d.Why) > 0 {
		return append(append(first, x.sentences(d.Why, w, max(3, h-2))...), "")
	}
	return append(first, " reason  "+x.waits(d, reason), "")
}

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

func tries(d *monitor.ExecutionDetail) string {
	limit := "-"
	if d.MaxRetries != nil {
		limit = strconv.FormatInt(*d.MaxRetries, 10)
	}
	return strconv.FormatInt(d.RetryCount, 10) + "/" + limit
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
		lines = append(lines, x.step(d.Timeline[i], delta))
	}
	return append(lines, "")
}

func (x *Execution) step(s monitor.Step, delta string) string {
	what := s.Status
	if what == "" {
		what = strings.Join(s.Changed, ", ") + " recorded"
	}
	look := x.env.Theme.Of(s.Status)
	worker := ""
	if s.Worker != nil {
		worker = "worker " + strconv.FormatInt(*s.Worker, 10)
	}
	return "  " + s.At.UTC().Format("15:04:05.0") + "  " + x.env.Paint(look.Role, look.Glyph+" "+widget.Left(widget.Clean(what), 16)) +
		widget.Right(delta, 8) + "   " + worker
}

func (x *Execution) documentLines(w, h int) []string {
	if h < 2 {
		return nil
	}
	var tabs []string
	for i, name := range sections {
		if i == x.section {
			name = x.env.Paint(theme.Accent, "["+name+"]")
		}
		tabs = append(tabs, name)
	}
	x.visible = h - 1
	x.scroll = max(0, min(x.scroll, len(x.document)-x.visible))
	title := " " + strings.Join(tabs, " · ")
	if len(x.document) > x.visible {
		title = widget.Spread(title, strconv.Itoa(len(x.document))+" lines", w-1)
	}
	lines := []string{title}
	for _, line := range x.document[x.scroll:min(len(x.document), x.scroll+x.visible)] {
		lines = append(lines, " "+line)
	}
	return lines
}

func (x *Execution) footLines(d *monitor.ExecutionDetail) []string {
	return []string{x.env.Paint(theme.Dim, " parent ") + reference(d.Parent) + x.env.Paint(theme.Dim, "   children ") + x.env.Count(d.Children) +
		x.env.Paint(theme.Dim, "   retry of ") + reference(d.Original) + x.env.Paint(theme.Dim, "   enforcement ") + reference(d.Enforcement)}
}

func reference(id *int64) string {
	if id == nil {
		return "-"
	}
	return strconv.FormatInt(*id, 10)
}

// related is the right pane of a wide screen.
func (x *Execution) related(d *monitor.ExecutionDetail) []string {
	e := x.env
	line := func(name, value string) string { return e.Paint(theme.Dim, widget.Left(name, 13)) + value }
	attempt := widget.Unknown
	if d.Attempt != nil {
		attempt = strconv.FormatInt(*d.Attempt, 10)
	}
	return []string{
		e.Paint(theme.Dim, "RELATED"), "",
		line("parent", reference(d.Parent)),
		line("children", e.Count(d.Children)),
		line("retry of", reference(d.Original)+"  "+widget.Clean(d.RetryReason)),
		line("enforcement", reference(d.Enforcement)),
		line("worker", widget.Clean(screen.WorkerName(d.WorkerID, d.WorkerName))),
		line("hand-overs", attempt), "",
		e.Paint(theme.Dim, "TIMES"), "",
		line("created", d.Created.UTC().Format("2006-01-02 15:04:05.000Z")),
		line("updated", d.Updated.UTC().Format("2006-01-02 15:04:05.000Z")),
	}
}
