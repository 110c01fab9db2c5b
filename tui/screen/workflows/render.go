package workflows

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// wide reports whether the right pane is drawn.
func (v *Workflows) wide() bool { return v.PreviewShown() && v.env.Width >= 120 && v.env.Height >= 20 }

// layout is the width of list and tree, their heights, and the first line of the tree. The height is 0
// if one is not drawn.
type layout struct{ w, list, tree, treeHeight int }

// layout places list and tree below each other. A low window has room for the focused one only.
func (v *Workflows) layout(w, h int) layout {
	if v.wide() {
		lw, _ := screen.Halves(w)
		list := min(v.Len()+1, max(h/4, 5), h)
		return layout{w: lw - 1, list: list, tree: list + 1, treeHeight: h - list - 1}
	}
	limit := 4
	switch {
	case !v.treeShown(), h < 12 && v.focus == inList:
		return layout{w: w, list: h, tree: h}
	case h < 12:
		return layout{w: w, treeHeight: h}
	case v.focus == inList:
		limit = max(h*2/5, 5)
	}
	list := min(v.Len()+1, limit, h)
	return layout{w: w, list: list, tree: list + 1, treeHeight: h - list - 1 - len(v.foot(w))}
}

// Render draws the view.
func (v *Workflows) Render(w, h int) []string {
	e, d, at := v.env, v.detail(), v.layout(w, h)
	switch {
	case v.why && d == nil:
		return v.missing(w)
	case v.why:
		return v.reasons.Page(e, v.whyLines(d, w), w, h)
	case e.Data.Workflows == nil && len(v.path) == 0:
		return e.Missing(screen.FeedWorkflows, "the workflows", w)
	case v.Len() == 0 && len(v.path) == 0:
		return v.Nothing()
	case at.treeHeight == 0:
		return v.listLines(w, h)
	case at.list == 0:
		return v.treeLines(w, h)
	}
	left := append(append(v.listLines(at.w, at.list), e.PaneRule(v.focus == inTree, "tasks", "", at.w)),
		v.treeLines(at.w, at.treeHeight)...)
	if at.w == w {
		foot := v.foot(w)
		return append(widget.Fit(left, w, h-len(foot)), foot...)
	}
	lw, rw := screen.Halves(w)
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
	text := e.Paint(theme.Strong, name) + "  " + e.State(d.State())
	switch {
	case d.Paused && d.PauseReason != "":
		text += " " + widget.Clean(d.PauseReason)
	case d.PausedAbove != 0:
		text += " with workflow " + strconv.FormatInt(d.PausedAbove, 10) + " above it"
	}
	if d.Within != nil {
		text += e.Dim("  task " + widget.Clean(d.Within.Task) + " of " + strconv.FormatInt(d.Within.Execution, 10))
	}
	return widget.Spread(text, d.Tasks.Ended()+" tasks "+e.Mark(screen.FeedWorkflow), w)
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
