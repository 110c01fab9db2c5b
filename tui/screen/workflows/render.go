package workflows

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Render draws the view.
func (v *Workflows) Render(w, h int) []string {
	e := v.env
	v.wide = v.Previewed() && w >= 120 && h >= 20
	v.listLines, v.treeTop = 0, h
	v.focusTables(v.Table(), v.tree.table)
	if v.why {
		if d := v.detail(); d != nil {
			return v.whyLines(d, w, h)
		}
		return e.Missing(screen.FeedWorkflow, "workflow "+strconv.FormatInt(v.Subject(), 10), w)
	}
	if e.Data.Workflows == nil && len(v.path) == 0 {
		return e.Missing(screen.FeedWorkflows, "the workflows", w)
	}
	if v.Len() == 0 && len(v.path) == 0 {
		return v.empty()
	}
	switch {
	case !v.treed():
		return v.listPart(w, h)
	case v.wide:
		return v.beside(w, h)
	default:
		return v.below(w, h)
	}
}

// beside draws the list over the tree, and the right pane.
func (v *Workflows) beside(w, h int) []string {
	lw := w * 82 / 140
	rw := w - lw - 2
	left := v.listPart(lw-1, v.listHeight(h, max(h/4, 5)))
	left = append(left, "")
	v.treeTop = len(left) + 1
	left = append(left, v.treePart(lw-1, h-len(left), true)...)
	var right []string
	if d := v.detail(); d != nil {
		right = v.sideLines(d, rw)
	}
	v.sideHeight = h
	right, v.side = widget.Window(right, v.side, h, v.env.Theme)
	bar := v.env.Paint(theme.Dim, "│") + " "
	if v.focus == inSide {
		bar = v.env.Paint(theme.Accent, "│") + v.env.Paint(theme.Accent, v.env.Theme.Glyphs.Cursor)
		bar = widget.Left(bar, 2)
	}
	return widget.Beside(left, right, lw, rw, h, bar)
}

// below draws the list over the tree, and in a line or two why the workflow waits.
func (v *Workflows) below(w, h int) []string {
	if h < 12 { // there is room for one of them
		if v.focus == inList {
			return v.listPart(w, h)
		}
		v.treeTop = 1
		return v.treePart(w, h, false)
	}
	most := max(h*2/5, 5)
	if v.focus != inList {
		most = 4
	}
	lines := append(v.listPart(w, v.listHeight(h, most)), "")
	foot := v.foot(w)
	v.treeTop = len(lines) + 1
	room := h - len(lines) - len(foot)
	lines = append(lines, widget.Fit(v.treePart(w, room, false), w, room)...)
	return append(lines, foot...)
}

// listHeight is how many lines the list takes: what it needs, and no more than it may.
func (v *Workflows) listHeight(h, most int) int {
	return min(v.Len()+1, most, h)
}

func (v *Workflows) listPart(w, h int) []string {
	v.listLines = h
	lines := v.Table().Lines(w, h, v.env.Theme)
	if note := v.Gone(); note != "" && h > 2 {
		lines = append(lines[:min(len(lines), h-1)], note)
	}
	return widget.Fit(lines, w, h)
}

// headline names the workflow in the tree and how it is.
func (v *Workflows) headline(d *monitor.WorkflowDetail, w int) string {
	e := v.env
	text := e.Paint(theme.Strong, strconv.FormatInt(d.Execution, 10)+" "+widget.CutMiddle(widget.Clean(d.ActionRef), 40)) + "  " + e.State(state(&d.Workflow))
	switch {
	case d.Paused && d.PauseReason != "":
		text += " " + widget.Clean(d.PauseReason)
	case d.PausedAbove != 0:
		text += " with workflow " + strconv.FormatInt(d.PausedAbove, 10) + " above it"
	}
	if d.Within != nil {
		text += e.Paint(theme.Dim, "  task "+widget.Clean(d.Within.Task)+" of "+strconv.FormatInt(d.Within.Execution, 10))
	}
	return widget.Spread(text, tasks(&d.Workflow)+" tasks "+e.Mark(screen.FeedWorkflow), w)
}

// treePart is the tree with its headline.
func (v *Workflows) treePart(w, h int, chart bool) []string {
	e, d := v.env, v.detail()
	if h < 2 {
		return nil
	}
	if d == nil {
		if v.Subject() == 0 {
			return nil
		}
		return e.Missing(screen.FeedWorkflow, "workflow "+strconv.FormatInt(v.Subject(), 10), w)
	}
	lines := []string{" " + v.headline(d, w-2)}
	if d.Unreadable != "" {
		lines = append(lines, " "+e.Paint(theme.Warn, widget.Cut("▲ its definition cannot be read: "+widget.Clean(d.Unreadable), w-2)))
	}
	if len(d.List) == 0 {
		return append(lines, " "+e.Paint(theme.Dim, "Nothing is known of its tasks yet."))
	}
	v.tree.charted = chart
	v.tree.table.SetColumns(v.tree.columns(chart))
	v.treeTop += len(lines) - 1
	return append(lines, v.tree.table.Lines(w, h-len(lines), e.Theme)...)
}

// foot says in a line or two why the workflow waits.
func (v *Workflows) foot(w int) []string {
	d := v.detail()
	if d == nil || len(d.Why) == 0 {
		return []string{""}
	}
	parts := widget.Wrap(strings.Join(d.Why, " "), max(8, w-4))
	more := ""
	if len(parts) > 2 {
		parts, more = parts[:2], "… W "
	}
	lines := make([]string, 0, len(parts))
	for i, part := range parts {
		sign := "   "
		if i == 0 {
			sign = " ▲ "
			if d.FinishedAt != nil {
				sign = " " + v.env.Theme.Glyphs.Dot + " "
			}
		}
		if i == len(parts)-1 && more != "" {
			part = widget.Spread(widget.Cut(part, w-10), v.env.Paint(theme.Accent, more), w-4)
		}
		lines = append(lines, sign+part)
	}
	return lines
}

func (v *Workflows) empty() []string {
	b := v.env.Data.Workflows
	if v.Filter() == "" && !v.Problems() {
		return []string{
			"", " No workflow has been begun yet. A workflow is an action that is made of tasks; start one:",
			"   attune-executor run PACK.WORKFLOW", " docs/workflows.md says how to write one.",
		}
	}
	if v.Problems() && v.Filter() == "" {
		return []string{"", " No workflow has failed, is paused, or has a task that failed.", " z shows all of them again."}
	}
	lines := []string{
		"", " No workflow matches /" + widget.Clean(v.Filter()) + v.alsoProblems() + ".",
		" esc clears the filter; terms: " + strings.Join(filter.Workflows.Examples(), "  "),
	}
	if b.Bounded {
		lines = append(lines, " The search stopped at its bound; older matches may exist.")
	}
	return lines
}

func (v *Workflows) alsoProblems() string {
	if v.Problems() {
		return " among those in trouble (z shows all)"
	}
	return ""
}
