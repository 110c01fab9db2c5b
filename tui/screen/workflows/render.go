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

// wide reports whether the right pane is drawn.
func (v *Workflows) wide() bool { return v.PreviewShown() && v.env.Width >= 120 && v.env.Height >= 20 }

// layout is the height of the list, and the first line of the tree. An undrawn list has the height 0,
// an undrawn tree begins below the body.
type layout struct{ list, tree int }

// layout places list and tree in h lines: below each other, or only the focused one in a low window.
func (v *Workflows) layout(h int) layout {
	limit := max(h/4, 5)
	switch low := !v.wide() && h < 12; {
	case !v.treeShown(), low && v.focus == inList:
		return layout{list: h, tree: h}
	case low:
		return layout{}
	case !v.wide() && v.focus != inList:
		limit = 4
	case !v.wide():
		limit = max(h*2/5, 5)
	}
	list := min(v.Len()+1, limit, h)
	return layout{list: list, tree: list + 1}
}

// SetSize fits list and tree into a body of w by h cells.
func (v *Workflows) SetSize(w, h int) {
	if d := v.detail(); d != nil && len(d.List) > 0 {
		v.tree.table.SetColumns(v.tree.columns())
	}
	if v.why {
		return
	}
	at, room := v.layout(h), h
	if at.list > 0 && at.tree < h {
		room = h - at.tree
		if v.wide() {
			w, _ = screen.Halves(w)
			w--
		} else {
			room -= len(v.foot(w))
		}
	}
	v.Table().SetSize(w, at.list)
	if at.tree < h {
		v.tree.table.SetSize(w, room-len(v.treeHead(w)))
	}
}

// Render draws the view.
func (v *Workflows) Render(w, h int) []string {
	e, d, at := v.env, v.detail(), v.layout(h)
	switch {
	case v.why && d == nil:
		return v.missing(w)
	case v.why:
		return v.reasons.Page(e, v.whyLines(d, w), w, h)
	case e.Data.Workflows == nil && len(v.path) == 0:
		return e.Missing(screen.FeedWorkflows, "the workflows", w)
	case v.Len() == 0 && len(v.path) == 0:
		return v.empty()
	case at.tree == h:
		return v.listLines(w, h)
	case at.list == 0:
		return v.treeLines(w, h)
	case !v.wide():
		foot := v.foot(w)
		room := h - at.tree - len(foot)
		lines := append(v.listLines(w, at.list), "")
		return append(append(lines, widget.Fit(v.treeLines(w, room), w, room)...), foot...)
	}
	lw, rw := screen.Halves(w)
	left := append(v.listLines(lw-1, at.list), "")
	left = append(left, v.treeLines(lw-1, h-at.tree)...)
	bar := e.Dim("│") + " "
	if v.focus == inSide {
		bar = e.Paint(theme.Accent, "│") + e.Paint(theme.Accent, e.Theme.Glyphs.Cursor)
	}
	return widget.Beside(left, v.side.Window(v.sideLines(rw), h, e.Theme), lw, rw, h, bar)
}

func (v *Workflows) missing(w int) []string {
	return v.env.Missing(screen.FeedWorkflow, "workflow "+strconv.FormatInt(v.Subject(), 10), w)
}

func (v *Workflows) listLines(w, h int) []string {
	lines := v.Table().Lines(w, h, v.env.Theme)
	if note := v.Gone(); note != "" && h > 2 {
		lines = append(lines[:min(len(lines), h-1)], note)
	}
	return widget.Fit(lines, w, h)
}

// headline names the workflow in the tree and its state.
func (v *Workflows) headline(d *monitor.WorkflowDetail, w int) string {
	e := v.env
	name := strconv.FormatInt(d.Execution, 10) + " " + widget.CutMiddle(widget.Clean(d.ActionRef), 40)
	text := e.Paint(theme.Strong, name) + "  " + e.State(state(&d.Workflow))
	switch {
	case d.Paused && d.PauseReason != "":
		text += " " + widget.Clean(d.PauseReason)
	case d.PausedAbove != 0:
		text += " with workflow " + strconv.FormatInt(d.PausedAbove, 10) + " above it"
	}
	if d.Within != nil {
		text += e.Dim("  task " + widget.Clean(d.Within.Task) + " of " + strconv.FormatInt(d.Within.Execution, 10))
	}
	return widget.Spread(text, tasks(&d.Workflow)+" tasks "+e.Mark(screen.FeedWorkflow), w)
}

// treeHead is what stands above the table of the tree; nil until the workflow was read.
func (v *Workflows) treeHead(w int) []string {
	d := v.detail()
	if d == nil {
		return nil
	}
	lines := []string{" " + v.headline(d, w-2)}
	if d.Unreadable != "" {
		text := "▲ its definition cannot be read: " + widget.Clean(d.Unreadable)
		lines = append(lines, " "+v.env.Paint(theme.Warn, widget.Cut(text, w-2)))
	}
	return lines
}

func (v *Workflows) treeLines(w, h int) []string {
	d := v.detail()
	switch {
	case h < 2, d == nil && v.Subject() == 0:
		return nil
	case d == nil:
		return v.missing(w)
	}
	lines := v.treeHead(w)
	if len(d.List) == 0 {
		return append(lines, " "+v.env.Dim("No task is known yet."))
	}
	return append(lines, v.tree.table.Lines(w, h-len(lines), v.env.Theme)...)
}

// foot is the first two lines of why the workflow waits.
func (v *Workflows) foot(w int) []string {
	d := v.detail()
	if d == nil || len(d.Why) == 0 {
		return []string{""}
	}
	sign := " ▲ "
	if d.FinishedAt != nil {
		sign = " " + v.env.Theme.Glyphs.Dot + " "
	}
	parts := widget.Wrap(strings.Join(d.Why, " "), max(8, w-4))
	if len(parts) > 2 {
		parts = parts[:2]
		parts[1] = widget.Spread(widget.Cut(parts[1], w-10), v.env.Paint(theme.Accent, "… W "), w-4)
	}
	lines := make([]string, len(parts))
	for i, part := range parts {
		lines[i], sign = sign+part, "   "
	}
	return lines
}

func (v *Workflows) empty() []string {
	switch {
	case v.Filter() == "" && !v.Problems():
		return []string{
			"", " No workflow has been started yet. A workflow is an action made of tasks; start one:",
			"   attune-executor run PACK.WORKFLOW", " docs/workflows.md says how to write one.",
		}
	case v.Filter() == "":
		return []string{
			"", " No workflow has failed, is paused, or has a task that failed.", " z shows all of them again.",
		}
	}
	lines := screen.NoMatch("workflow", v.Filter(), v.Problems(), filter.Workflows)
	if v.env.Data.Workflows.Bounded {
		lines = append(lines, " The search stopped at its bound; older matches may exist.")
	}
	return lines
}
