package execution

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

const (
	// timelineLines are reserved for the timeline: its title, its last step and a gap.
	timelineLines = 3
	// lowHeight is the height below which only the timeline or a section fits.
	lowHeight = 14
	// reasonLines bounds why an execution ended; the whole error is in its result.
	reasonLines = 2
	// deadLetterSlack is the longest time between the end of an execution and its dead letter.
	deadLetterSlack = time.Minute
)

func low(w, h int) bool { return w < 120 && h < lowHeight }

// Render draws the view.
func (x *Execution) Render(w, h int) []string {
	e, d := x.env, x.current()
	switch {
	case d == nil:
		return e.Missing(screen.FeedExecution, "execution "+strconv.FormatInt(x.id, 10), w)
	case x.why:
		return x.scroll.Page(e, x.whyLines(d, w), w, h)
	}
	lines, sw, sh := x.above(d, w, h)
	section := x.sectionLines(d, sw, sh)
	if w >= 120 {
		_, rw := screen.Halves(w)
		return e.Beside(append(lines, section...), x.side(d, rw, h), w, h)
	}
	foot := x.footLines(d)
	if low(w, h) && x.turned {
		foot = foot[len(foot)-1:]
	}
	return append(append(lines, widget.Fit(section, w, max(0, sh))...), foot...)
}

// above is what stands above the section, and the width and height that are left for the section.
func (x *Execution) above(d *monitor.ExecutionDetail, w, h int) (lines []string, sw, sh int) {
	if w >= 120 {
		lw, _ := screen.Halves(w)
		lines = append(x.head(d, lw-1, h-timelineLines), x.timeline(d, max(4, h/3))...)
		return lines, lw - 1, h - len(lines)
	}
	foot := len(x.footLines(d))
	lines = x.head(d, w, h-timelineLines-foot)
	if low(w, h) && x.turned {
		return lines, w, h - len(lines) - 1
	}
	lines = append(lines, x.timeline(d, min(max(1, h-len(lines)-foot-2), max(3, h/3)))...)
	return lines, w, h - len(lines) - foot
}

func (x *Execution) headline(d *monitor.ExecutionDetail, rest string) string {
	return " " + x.env.State(d.Status) + "  " + widget.Clean(d.ActionRef) + "   try " + d.Try() +
		"   " + rest
}

func (x *Execution) head(d *monitor.ExecutionDetail, w, h int) []string {
	worker := widget.Clean(monitor.WorkerName(d.WorkerID, d.WorkerName))
	lines := []string{x.headline(d, worker+"   for "+widget.Age(x.env.Lasted(&d.Execution)))}
	if len(d.Why) > 0 {
		return append(append(lines, x.sentences(d.Why, w, max(3, h-2))...), "")
	}
	said := widget.Hang(" reason  ", reason(d), w)
	if len(said) > reasonLines {
		said = append(said[:reasonLines-1:reasonLines-1], widget.Cut(said[reasonLines-1]+" …", w))
	}
	return append(append(lines, said...), "")
}

// reason says why it ended, or what it waits for after it left its queue.
func reason(d *monitor.ExecutionDetail) string {
	if d.Status == string(lifecycle.StatusScheduled) {
		return "handed to its worker, which has not started it yet"
	}
	return cmp.Or(widget.Clean(d.Reason), "-")
}

// sentences say why it waits, in at most h lines.
func (x *Execution) sentences(list []string, w, h int) []string {
	texts := make([]widget.Text, len(list))
	for i := range list {
		texts[i].Text = list[i]
	}
	lines := screen.Indented(widget.Paragraphs(texts, w-2, x.env.Theme))
	if len(lines) <= h {
		return lines
	}
	tail := min(3, h/3) // the end says when it starts
	for h-1-tail > 1 && strings.HasSuffix(strings.TrimSpace(lines[h-1-tail-1]), ":") {
		h-- // no heading without its lines
	}
	more := strconv.Itoa(len(lines)-h+1) + " more lines: W shows all"
	out := append(slices.Clone(lines[:h-1-tail]), " "+x.env.Dim(more))
	return append(out, lines[len(lines)-tail:]...)
}

func (x *Execution) whyLines(d *monitor.ExecutionDetail, w int) []string {
	lines := []string{" " + x.env.State(d.Status) + "  " + widget.Clean(d.ActionRef), ""}
	if len(d.Why) == 0 {
		lines = append(lines, " It waits for nothing any more.")
	}
	return append(lines, x.sentences(d.Why, w, 1<<20)...)
}

// timeline is the newest steps in h lines, each with the time since the one before it.
func (x *Execution) timeline(d *monitor.ExecutionDetail, h int) []string {
	e := x.env
	lines := []string{" " + e.Dim("TIMELINE                                 Δ")}
	if !d.TimelineKnown {
		return append(lines, " No history is kept here: created "+d.Created.UTC().Format("15:04:05.0")+
			", updated "+d.Updated.UTC().Format("15:04:05.0"), "")
	}
	start := max(0, len(d.Timeline)-h)
	if start > 0 {
		lines = append(lines, e.Dim("  … "+strconv.Itoa(start)+" earlier"))
	}
	for i := start; i < len(d.Timeline); i++ {
		s, delta := &d.Timeline[i], "-"
		if i > 0 {
			delta = widget.Age(s.At.Sub(d.Timeline[i-1].At))
		}
		step := cmp.Or(s.Status, strings.Join(s.Changed, ", ")+" recorded")
		lines = append(lines, "  "+s.At.UTC().Format("15:04:05.0")+"  "+
			e.Look(e.Theme.Of(s.Status), " "+widget.Left(widget.Clean(step), 16))+widget.Right(delta, 8)+"   "+
			x.remark(d, i))
	}
	return append(lines, "")
}

// remark explains a step: who requested it, which worker has it, why it ended.
func (x *Execution) remark(d *monitor.ExecutionDetail, i int) string {
	s := d.Timeline[i]
	switch {
	case i == 0 && s.Status == string(lifecycle.StatusRequested):
		return x.requester(d)
	case lifecycle.Status(s.Status).Terminal():
		return x.ending(d, i)
	case s.Worker == nil:
		return ""
	case d.WorkerID != nil && *d.WorkerID == *s.Worker && d.WorkerName != "":
		return "on " + widget.Clean(d.WorkerName) + " (id " + strconv.FormatInt(*s.Worker, 10) + ")"
	default:
		return "on worker " + strconv.FormatInt(*s.Worker, 10)
	}
}

// requester is what requested an execution; empty if that was not read, or for an API request.
func (x *Execution) requester(d *monitor.ExecutionDetail) string {
	f := x.family()
	switch {
	case d.Original != nil && d.RetryReason != "":
		return "retry of " + screen.Reference(d.Original) + ": " + widget.Clean(d.RetryReason)
	case d.Original != nil:
		return "retry of " + screen.Reference(d.Original)
	case f != nil && f.Of(x.id) != nil && f.Of(x.id).Task != "":
		return "task " + widget.Clean(f.Of(x.id).TaskName()) + " of " + screen.Reference(d.Parent)
	case d.Parent != nil:
		return "started by " + screen.Reference(d.Parent)
	case f != nil && f.Enforcement != nil:
		return "rule " + widget.Clean(f.Enforcement.RuleRef)
	case d.Enforcement != nil:
		return "enforcement " + screen.Reference(d.Enforcement)
	default:
		return ""
	}
}

// ending says that an ended execution was never started, and whether its dispatch expired.
func (x *Execution) ending(d *monitor.ExecutionDetail, i int) string {
	e, s := x.env, d.Timeline[i]
	if i == 0 || d.Timeline[i-1].Status != string(lifecycle.StatusScheduled) {
		return ""
	}
	expired := strings.Contains(strings.ToLower(d.Reason), "expired")
	if f := x.family(); f != nil {
		for _, l := range f.DeadLetters {
			expired = expired || l.Reason == "expired" && l.At.Sub(s.At).Abs() < deadLetterSlack
		}
	}
	if !expired || s.Status != string(lifecycle.StatusFailed) {
		return e.Dim("never started")
	}
	return e.Paint(theme.Warn, e.Theme.Glyphs.Warning+" waited the full TTL, never started")
}

func (x *Execution) footLines(d *monitor.ExecutionDetail) []string {
	e := x.env
	return []string{
		e.Dim(" parent ") + screen.Reference(d.Parent) + e.Dim("   children ") + e.Count(d.Children) +
			e.Dim("   retry of ") + screen.Reference(d.Original) +
			e.Dim("   enforcement ") + screen.Reference(d.Enforcement),
		x.verdictLine(),
	}
}
