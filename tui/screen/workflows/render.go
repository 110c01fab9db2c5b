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

// place is how high the list is drawn, and on which line the header of the tree.
type place struct{ list, tree int }

// Render draws the view.
func (v *Workflows) Render(w, h int) []string {
	lines, _ := v.draw(w, h)
	return lines
}

// draw draws the view and says where its panes are.
func (v *Workflows) draw(w, h int) ([]string, place) {
	e, d := v.env, v.detail()
	listed := len(v.path) == 0
	switch {
	case v.why && d != nil:
		lines := v.whyLines(d, w)
		shown, _ := v.reasons.Shown(lines, h-1)
		foot := e.Dim(" " + strconv.Itoa(len(lines)) + " lines · W or esc closes")
		return append(widget.Fit(shown, w, h-1), foot), place{}
	case v.why:
		return v.missing(w), place{}
	case e.Data.Workflows == nil && listed:
		return e.Missing(screen.FeedWorkflows, "the workflows", w), place{tree: h}
	case v.Len() == 0 && listed:
		return v.empty(), place{tree: h}
	case !v.treed() || !v.wide() && h < 12 && v.focus == inList: // there is room for one of them
		return v.listPart(w, h), place{list: h, tree: h}
	case !v.wide() && h < 12:
		lines, head := v.treePart(w, h, false)
		return lines, place{tree: 1 + head}
	}
	// The list over the tree, and beside them the right pane, or below them in a line or two why
	// the workflow waits.
	lw, rw := screen.Halves(w)
	lw, most := lw-1, max(h/4, 5)
	var foot []string
	if !v.wide() {
		lw, most, foot = w, max(h*2/5, 5), v.foot(w)
		if v.focus != inList {
			most = 4
		}
	}
	at := place{list: min(v.Len()+1, most, h)}
	lines := append(v.listPart(lw, at.list), "")
	room := h - len(lines) - len(foot)
	tree, head := v.treePart(lw, room, v.wide())
	at.tree = len(lines) + 1 + head
	if !v.wide() {
		return append(append(lines, widget.Fit(tree, w, room)...), foot...), at
	}
	bar := e.Dim("│") + " "
	if v.focus == inSide {
		bar = widget.Left(e.Paint(theme.Accent, "│")+e.Paint(theme.Accent, e.Theme.Glyphs.Cursor), 2)
	}
	right := v.side.Window(v.sideLines(rw), h, e.Theme)
	return widget.Beside(append(lines, tree...), right, lw+1, rw, h, bar), at
}

func (v *Workflows) missing(w int) []string {
	return v.env.Missing(screen.FeedWorkflow, "workflow "+strconv.FormatInt(v.Subject(), 10), w)
}

func (v *Workflows) listPart(w, h int) []string {
	lines := v.Table().Lines(w, h, v.env.Theme)
	if note := v.Gone(); note != "" && h > 2 {
		lines = append(lines[:min(len(lines), h-1)], note)
	}
	return widget.Fit(lines, w, h)
}

// headline names the workflow in the tree and how it is.
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

// treePart is the tree with its headline, below which that is so many lines more.
func (v *Workflows) treePart(w, h int, chart bool) (lines []string, head int) {
	e, d := v.env, v.detail()
	switch {
	case h < 2, d == nil && v.Subject() == 0:
		return nil, 0
	case d == nil:
		return v.missing(w), 0
	}
	lines = []string{" " + v.headline(d, w-2)}
	if d.Unreadable != "" {
		text := "▲ its definition cannot be read: " + widget.Clean(d.Unreadable)
		lines = append(lines, " "+e.Paint(theme.Warn, widget.Cut(text, w-2)))
	}
	if len(d.List) == 0 {
		return append(lines, " "+e.Dim("Nothing is known of its tasks yet.")), 0
	}
	v.tree.table.SetColumns(v.tree.columns(chart))
	head = len(lines) - 1
	return append(lines, v.tree.table.Lines(w, h-len(lines), e.Theme)...), head
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
		return []string{
			"", " No workflow has failed, is paused, or has a task that failed.", " z shows all of them again.",
		}
	}
	also := ""
	if v.Problems() {
		also = " among those in trouble (z shows all)"
	}
	lines := []string{
		"", " No workflow matches /" + widget.Clean(v.Filter()) + also + ".",
		" esc clears the filter; terms: " + strings.Join(filter.Workflows.Examples(), "  "),
	}
	if b.Bounded {
		lines = append(lines, " The search stopped at its bound; older matches may exist.")
	}
	return lines
}
