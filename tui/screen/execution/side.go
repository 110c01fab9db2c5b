package execution

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// side is the right pane of a wide screen: what it has to do with, the tree around
// it, what R would come upon, and what was done with it. The tree gives way first.
func (x *Execution) side(d *monitor.ExecutionDetail, w, h int) []string {
	related, check := x.relatedLines(w), x.checkLines(d, w)
	rest := h - len(related) - len(check)
	activity := x.activity(w, min(maxActivity, max(0, rest-minTree)))
	tree := x.xray(w, rest-len(activity))
	lines := append(append(append(related, tree...), check...), activity...)
	if times := x.times(d); len(lines)+len(times) <= h {
		lines = append(lines, times...)
	}
	return lines
}

const (
	// maxActivity is how many acts are listed at most, minTree what the tree needs.
	maxActivity = 4
	minTree     = 7
)

// heading is the title of a part of the pane.
func (x *Execution) heading(title, note string, w int) string {
	return widget.Spread(x.env.Paint(theme.Dim, title), x.env.Paint(theme.Dim, note), w-1)
}

// relatedLines are the things it has to do with that there are.
func (x *Execution) relatedLines(w int) []string {
	e := x.env
	lines := []string{x.heading("RELATED", "o then a letter", w), ""}
	_, list, _ := x.Relations()
	for _, r := range list {
		if r.Not != "" {
			continue
		}
		label := e.Paint(theme.Accent, r.Key) + " " + e.Paint(theme.Dim, widget.Left(r.Label, 12)) + " "
		lines = append(lines, label+x.standing(&r, w-17))
	}
	return lines
}

// standing is what a relation leads to, and how that is as far as it is known.
func (x *Execution) standing(r *screen.Relation, w int) string {
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
		if health := x.worker(d); health != "" {
			state = e.State(string(health))
		}
	}
	if state == "" {
		return widget.Cut(text, max(1, w))
	}
	return widget.Left(text, max(8, w-widget.Width(state)-2)) + " " + state
}

// queue is the only queue of an action among those that were read; nil where there
// are several, since it may be in either.
func (x *Execution) queue(ref string) *monitor.Queue {
	var lists [][]monitor.Queue
	if d := x.env.Data.Queues; d != nil {
		lists = append(lists, d.List)
	}
	if d := x.env.Data.Overview; d != nil {
		lists = append(lists, d.Top)
	}
	for _, list := range lists {
		var found *monitor.Queue
		for i := range list {
			if list[i].ActionRef != ref {
				continue
			}
			if found != nil {
				return nil
			}
			found = &list[i]
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// worker is how its worker is; empty where that was not read.
func (x *Execution) worker(d *monitor.ExecutionDetail) monitor.WorkerHealth {
	o := x.env.Data.Overview
	if o == nil || d.WorkerID == nil {
		return ""
	}
	list, at := o.WorkerList, o.At
	if all := x.env.Data.Workers; all != nil {
		list, at = all.List, all.At
	}
	for i := range list {
		if list[i].ID == *d.WorkerID {
			return x.env.Judge(&list[i], at).Health
		}
	}
	return ""
}

// xray is the part of the tree around the execution that has room.
func (x *Execution) xray(w, h int) []string {
	e, f := x.env, x.family()
	if f == nil || len(f.Tree) < 2 || h < 4 {
		return nil
	}
	lines := []string{"", x.heading("XRAY", "x opens it", w)}
	at := 0
	for i := range f.Tree {
		if f.Tree[i].ID == x.id {
			at = i
		}
	}
	room := h - 2
	if len(f.Tree) > room {
		room--
	}
	from := max(0, min(at-room/2, len(f.Tree)-room))
	for i := from; i < min(len(f.Tree), from+room); i++ {
		lines = append(lines, x.relative(f.Tree, i, w))
	}
	if n := len(f.Tree) - room; n > 0 {
		lines = append(lines, e.Paint(theme.Dim, " "+strconv.Itoa(n)+" more"))
	}
	return lines
}

// relative is a line of the tree: who it is, as which task, and how it is.
func (x *Execution) relative(tree []monitor.Relative, i, w int) string {
	e, r := x.env, &tree[i]
	mark := " "
	if r.ID == x.id {
		mark = e.Theme.Glyphs.Cursor
	}
	branch := ""
	if r.Depth > 0 {
		branch = widget.Blank(2*min(r.Depth-1, 8)) + "├ "
		if last(tree, i) {
			branch = widget.Blank(2*min(r.Depth-1, 8)) + "└ "
		}
	}
	look := e.Theme.Of(r.Status)
	name := strconv.FormatInt(r.ID, 10) + " " + widget.Clean(cmp.Or(r.TaskName(), r.ActionRef))
	return mark + e.Paint(theme.Dim, branch) + widget.Left(name, max(10, w-22-widget.Width(branch))) + " " +
		e.Paint(look.Role, look.Glyph+" "+widget.Left(widget.Clean(r.Status), 10)) + widget.Right(widget.Age(e.Lasted(&r.Execution)), 7)
}

// last reports whether nothing of the same parent comes below a line of a tree.
func last(tree []monitor.Relative, i int) bool {
	for _, r := range tree[i+1:] {
		if r.Depth <= tree[i].Depth {
			return r.Depth < tree[i].Depth
		}
	}
	return true
}

// checks is the verdict on a repetition, from the code that plans it.
func (x *Execution) checks(d *monitor.ExecutionDetail) []explain.RetryCheck {
	facts := explain.RetryFacts{Execution: &d.Execution, Worker: x.worker(d)}
	if f := x.family(); f != nil {
		facts.Attempts = f.Attempts
		if p := f.Parent(); p != nil {
			facts.Parent = &p.Execution
		}
	}
	return explain.JudgeRetry(facts)
}

// unrecorded reports that the engine's tables are not here, so that nothing is
// repeated from here.
func (x *Execution) unrecorded() bool {
	a := x.env.Data.Audit
	return a != nil && !a.Recorded
}

func (x *Execution) checkLines(d *monitor.ExecutionDetail, w int) []string {
	e := x.env
	lines := []string{"", x.heading("REQUEUE CHECK", "R to plan", w)}
	if x.unrecorded() {
		return append(lines, " Without the engine's tables only dead letters", " are acted upon: 5")
	}
	for _, c := range x.checks(d) {
		sign, role := e.Theme.Glyphs.Done, theme.Good
		switch c.Standing {
		case explain.RetryMinded:
			sign, role = e.Theme.Glyphs.Warning, theme.Warn
		case explain.RetryRefused:
			sign, role = e.Theme.Glyphs.Failed, theme.Bad
		case explain.RetryUnknown:
			sign, role = "?", theme.Dim
		}
		for i, part := range widget.Wrap(widget.Clean(c.Text), max(20, w-5)) {
			if i == 0 {
				lines = append(lines, " "+e.Paint(role, sign)+" "+part)
			} else {
				lines = append(lines, "   "+part)
			}
		}
	}
	return lines
}

// verdictLine says in a line whether R does anything.
func (x *Execution) verdictLine(d *monitor.ExecutionDetail) string {
	e := x.env
	if x.unrecorded() {
		return e.Paint(theme.Dim, " R acts on dead letters only here: 5")
	}
	checks := x.checks(d)
	if refusal := explain.Refusal(checks); refusal != "" {
		return e.Paint(theme.Dim, " R not now: "+widget.Clean(refusal))
	}
	for _, c := range checks {
		if c.Standing == explain.RetryMinded {
			return " R is possible: " + e.Paint(theme.Warn, e.Theme.Glyphs.Warning+" "+widget.Clean(c.Text))
		}
	}
	return " R is possible: " + widget.Clean(checks[0].Text+", "+checks[1].Text)
}

// activity is what operators did with it, the newest first.
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
		lines = append(lines, " "+e.Paint(theme.Dim, a.At.UTC().Format("15:04:05"))+" "+widget.Cut(widget.Clean(text), max(1, w-11)))
	}
	return lines
}

func (x *Execution) times(d *monitor.ExecutionDetail) []string {
	e := x.env
	line := func(name, value string) string { return e.Paint(theme.Dim, widget.Left(name, 13)) + value }
	attempt := widget.Unknown
	if d.Attempt != nil {
		attempt = strconv.FormatInt(*d.Attempt, 10)
	}
	return []string{
		"", e.Paint(theme.Dim, "TIMES"),
		line("created", d.Created.UTC().Format("2006-01-02 15:04:05.000Z")),
		line("updated", d.Updated.UTC().Format("2006-01-02 15:04:05.000Z")),
		line("hand-overs", attempt),
	}
}
