package execution

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

const (
	// maxActivity bounds the listed operations; minTree is the least height of the tree.
	maxActivity = 4
	minTree     = 7
)

// side is the right pane of a wide screen: relations, the tree around the execution, whether R can
// repeat it, and operator actions. The tree gives way first.
func (x *Execution) side(d *monitor.ExecutionDetail, w, h int) []string {
	lines, check := x.relatedLines(w), x.checkLines(w)
	rest := h - len(lines) - len(check)
	activity := x.activity(w, min(maxActivity, max(0, rest-minTree)))
	lines = append(lines, x.xray(w, rest-len(activity))...)
	lines = append(append(lines, check...), activity...)
	if len(lines)+5 > h {
		return lines
	}
	e, attempt := x.env, widget.Unknown
	if d.Attempt != nil {
		attempt = strconv.FormatInt(*d.Attempt, 10)
	}
	return append(lines, "", e.Dim("TIMES"),
		e.Label("created", 13)+d.Created.UTC().Format("2006-01-02 15:04:05.000Z"),
		e.Label("updated", 13)+d.Updated.UTC().Format("2006-01-02 15:04:05.000Z"),
		e.Label("dispatches", 13)+attempt)
}

func (x *Execution) heading(title, note string, w int) string {
	return widget.Spread(x.env.Dim(title), x.env.Dim(note), w-1)
}

func (x *Execution) relatedLines(w int) []string {
	lines := []string{x.heading("RELATED", "o then a letter", w), ""}
	_, list, _ := x.Relations()
	for _, r := range list {
		if r.Not == "" {
			label := x.env.Paint(theme.Accent, r.Key) + " " + x.env.Label(r.Label, 12) + " "
			lines = append(lines, label+x.target(&r, w-17))
		}
	}
	return lines
}

// target describes what a relation leads to, with its state if known.
func (x *Execution) target(r *screen.Relation, w int) string {
	e, d := x.env, x.current()
	text, state := widget.Clean(r.Help), ""
	switch r.Key {
	case "p":
		if f := x.family(); f != nil && f.Parent() != nil {
			text = strconv.FormatInt(f.Parent().ID, 10) + "  " + widget.Clean(f.Parent().ActionRef)
			state = e.State(f.Parent().Status)
		}
	case "c":
		text = e.Count(d.Children)
	case "q":
		if q := x.queue(d.ActionRef); q != nil {
			state = e.Num(q.Queued) + " queued  " + screen.Slots(q.Active, q.Limit)
		}
	case "w":
		if x.health != "" {
			state = e.State(string(x.health))
		}
	}
	if state == "" {
		return widget.Cut(text, max(1, w))
	}
	return widget.Left(text, max(8, w-widget.Width(state)-2)) + " " + state
}

// queue is the queue of an action in the last readings. It is nil if the action has several queues,
// because the execution may be in either.
func (x *Execution) queue(ref string) *monitor.Queue {
	of := func(q monitor.Queue) bool { return q.ActionRef == ref }
	var list []monitor.Queue
	if d := x.env.Data.Queues; d != nil {
		list = d.List
	}
	if d := x.env.Data.Overview; d != nil && !slices.ContainsFunc(list, of) {
		list = d.Top
	}
	at := slices.IndexFunc(list, of)
	if at < 0 || slices.ContainsFunc(list[at+1:], of) {
		return nil
	}
	return &list[at]
}

// xray is the part of the tree around the execution, in at most h lines.
func (x *Execution) xray(w, h int) []string {
	e, f := x.env, x.family()
	if f == nil || len(f.Tree) < 2 || h < 4 {
		return nil
	}
	lines := []string{"", x.heading("XRAY", "x opens it", w)}
	at := max(0, slices.IndexFunc(f.Tree, func(r monitor.Relative) bool { return r.ID == x.id }))
	room := h - 2
	if len(f.Tree) > room {
		room--
	}
	from := max(0, min(at-room/2, len(f.Tree)-room))
	for i := from; i < min(len(f.Tree), from+room); i++ {
		r, branch := &f.Tree[i], ""
		if r.Depth > 0 {
			branch = widget.Blank(2*min(r.Depth-1, 8)) + map[bool]string{false: "├ ", true: "└ "}[lastChild(f.Tree, i)]
		}
		name := strconv.FormatInt(r.ID, 10) + " " + widget.Clean(cmp.Or(r.TaskName(), r.ActionRef))
		lines = append(lines, x.mark(r.ID)+e.Dim(branch)+widget.Left(name, max(10, w-22-widget.Width(branch)))+" "+
			e.Look(e.Theme.Of(r.Status), " "+widget.Left(widget.Clean(r.Status), 10))+
			widget.Right(widget.Age(e.Lasted(&r.Execution)), 7))
	}
	if n := len(f.Tree) - room; n > 0 {
		lines = append(lines, e.Dim(" "+strconv.Itoa(n)+" more"))
	}
	return lines
}

// lastChild reports whether a line of a tree is the last one of its parent.
func lastChild(tree []monitor.Relative, i int) bool {
	for _, r := range tree[i+1:] {
		if r.Depth <= tree[i].Depth {
			return r.Depth < tree[i].Depth
		}
	}
	return true
}

// unrecorded reports that the engine's tables are missing: R then works for dead letters only.
func (x *Execution) unrecorded() bool {
	a := x.env.Data.Audit
	return a != nil && !a.Recorded
}

func (x *Execution) checkLines(w int) []string {
	e := x.env
	lines := []string{"", x.heading("REQUEUE CHECK", "R to plan", w)}
	if x.unrecorded() {
		return append(lines, " Without the engine's tables R works", " for dead letters only: 5")
	}
	for _, c := range x.checks {
		look := theme.State{Glyph: e.Theme.Glyphs.Done, Role: theme.Good}
		switch c.Standing {
		case explain.RetryMinded:
			look = theme.State{Glyph: e.Theme.Glyphs.Warning, Role: theme.Warn}
		case explain.RetryRefused:
			look = theme.State{Glyph: e.Theme.Glyphs.Failed, Role: theme.Bad}
		case explain.RetryUnknown:
			look = theme.State{Glyph: "?", Role: theme.Dim}
		}
		sign := e.Look(look, "")
		for _, part := range widget.Wrap(widget.Clean(c.Text), max(20, w-5)) {
			lines, sign = append(lines, " "+sign+" "+part), " "
		}
	}
	return lines
}

// verdictLine says whether R can repeat the execution.
func (x *Execution) verdictLine() string {
	e := x.env
	if x.unrecorded() {
		return e.Dim(" R works for dead letters only here: 5")
	}
	if refusal := explain.Refusal(x.checks); refusal != "" {
		return e.Dim(" R not now: " + widget.Clean(refusal))
	}
	for _, c := range x.checks {
		if c.Standing == explain.RetryMinded {
			return " R is possible: " + e.Paint(theme.Warn, e.Theme.Glyphs.Warning+" "+widget.Clean(c.Text))
		}
	}
	return " R is possible: " + widget.Clean(x.checks[0].Text+", "+x.checks[1].Text)
}

// activity lists the operator actions on it, the newest first, in at most h lines.
func (x *Execution) activity(w, h int) []string {
	e, f := x.env, x.family()
	if f == nil || len(f.Acts) == 0 || h < 1 {
		return nil
	}
	lines := []string{"", x.heading("ACTIVITY", "L all of it", w)}
	for i := range f.Acts[:min(len(f.Acts), h)] {
		a := &f.Acts[i]
		_, what, _ := strings.Cut(a.Action, ".")
		text := a.Actor + " " + what + " " + a.Target
		if a.Outcome != "done" {
			text += ": " + a.Outcome
		}
		if a.Reason != "" {
			text += " (" + a.Reason + ")"
		}
		lines = append(lines, " "+e.Dim(screen.TimeOfDay(a.At))+" "+
			widget.Cut(widget.Clean(text), max(1, w-11)))
	}
	return lines
}
