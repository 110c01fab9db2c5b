package workflows

import (
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// chartWidth is the width of the chart of the times.
const chartWidth = 26

// columns are the columns of the tree; a wide screen has room for a chart of the times.
func (t *tree) columns() []widget.Column {
	if !t.charted() {
		return []widget.Column{
			{Title: "TASK", Width: 28, Middle: true},
			{Title: "FOR", Width: 7, Right: true},
			{Title: "WHERE IT IS", Width: 20, Grow: true},
		}
	}
	from, to := t.frame()
	layout := "15:04"
	if to.Sub(from) < 10*time.Minute {
		layout = "15:04:05"
	}
	return []widget.Column{
		{Title: "TASK", Width: 22, Grow: true, Middle: true},
		{Title: "WHERE IT IS", Width: 19},
		{Title: "FOR", Width: 7, Right: true},
		{Title: from.UTC().Format(layout) + " → " + to.UTC().Format(layout), Width: chartWidth},
	}
}

// Len is the number of lines.
func (t *tree) Len() int { return len(t.nodes) }

// Key identifies a line.
func (t *tree) Key(row int) string {
	n := &t.nodes[row]
	switch {
	case n.child != nil:
		return n.task.Name + "/" + strconv.FormatInt(n.child.Execution, 10)
	case n.more > 0:
		return n.task.Name + "/more"
	default:
		return n.task.Name
	}
}

// Cells are the texts of a line.
func (t *tree) Cells(row int, into []widget.Cell) []widget.Cell {
	n := &t.nodes[row]
	name, where, lasts := t.name(n), t.where(n), widget.Cell{}
	if from, to := t.span(n); !from.IsZero() {
		lasts.Text = widget.Age(to.Sub(from))
	}
	if !t.charted() {
		return append(into, name, lasts, where)
	}
	return append(into, name, where, lasts, widget.Cell{Text: t.bar(n, chartWidth), Role: theme.Dim})
}

func (t *tree) name(n *node) widget.Cell {
	indent := strings.Repeat("  ", n.depth)
	if n.more > 0 {
		return widget.Cell{Text: indent + "  … " + strconv.FormatInt(n.more, 10) + " more", Role: theme.Dim}
	}
	look, mark := t.env.Theme.Of(n.status()), "  "
	if n.folds {
		mark = map[bool]string{true: "▾ ", false: "▸ "}[n.open]
	}
	text := n.task.Name
	if n.child != nil {
		text = strconv.FormatInt(n.child.Execution, 10)
		if n.child.Index != nil {
			text = "[" + strconv.FormatInt(*n.child.Index, 10) + "] " + text
		}
	}
	return widget.Cell{Text: indent + mark + look.Glyph + " " + text, Role: look.Role}
}

// span is when a line began and ended. The beginning is zero if it has not begun, or if the end of
// an ended execution is unknown.
func (t *tree) span(n *node) (from, to time.Time) {
	began, ended := n.task.StartedAt, n.task.FinishedAt
	c := n.execution()
	if c != nil {
		began, ended = &c.Created, c.FinishedAt
		if c.StartedAt != nil {
			began = c.StartedAt
		}
	}
	switch {
	case n.more > 0, began == nil, c != nil && ended == nil && !unfinished(c):
		return time.Time{}, t.env.Now
	case ended == nil:
		return *began, t.env.Now
	default:
		return *began, *ended
	}
}

// where says what a line waits for or where it runs.
func (t *tree) where(n *node) widget.Cell {
	task := n.task
	switch {
	case n.more > 0:
		return widget.Cell{Text: "enter shows more", Role: theme.Dim}
	case n.child != nil:
		return t.whereExecution(n.child)
	case task.Items != nil:
		return t.itemCounts(task.Items)
	case task.Status == "":
		return widget.Cell{Text: t.predecessors(task), Role: theme.Dim}
	case task.Status == "waiting", task.Status == "skipped", task.Status == "ready":
		return widget.Cell{Text: task.Says, Role: theme.Dim}
	case n.execution() != nil:
		return t.whereExecution(n.execution())
	default:
		return widget.Cell{Text: task.Says}
	}
}

func (t *tree) whereExecution(c *monitor.WorkflowChild) widget.Cell {
	text, attempt := c.Status, ""
	if c.Attempt > 1 {
		attempt = " try " + strconv.FormatInt(c.Attempt, 10)
	}
	switch {
	case c.Inquiry != 0:
		return widget.Cell{Text: "asks: inquiry " + strconv.FormatInt(c.Inquiry, 10), Role: theme.Accent}
	case c.Nested:
		text += " workflow"
	case c.Due != nil:
		text = "repeated in " + widget.Age(c.Due.Sub(t.env.Now))
	case c.Error != "":
		text = c.Error
	case unfinished(c) && c.WorkerID != nil:
		text = monitor.WorkerName(c.WorkerID, c.WorkerName)
		if c.Status != "running" {
			text = c.Status + " " + text
		}
	}
	cell := widget.Cell{Text: text + attempt}
	if t.env.Theme.Of(c.Status).Role == theme.Bad {
		cell.Role = theme.Bad
	}
	return cell
}

// itemCounts counts the items of a task by their state.
func (t *tree) itemCounts(items *monitor.WorkflowItems) widget.Cell {
	g, num := &t.env.Theme.Glyphs, t.env.Num
	var parts []string
	count := func(glyph string, n int64, text string) {
		if n > 0 {
			parts = append(parts, glyph+" "+num(n)+" "+text)
		}
	}
	count(g.Failed, items.Failed, "failed")
	count(g.Timeout, items.TimedOut, "timeout")
	count(g.OK, items.Made-items.Succeeded-items.Failed-items.TimedOut, "on their way")
	count(g.Done, items.Succeeded, "of "+num(items.Total))
	cell := widget.Cell{Text: strings.Join(parts, "  ")}
	if len(parts) == 0 {
		cell.Text = num(items.Total) + " items"
	}
	if items.Failed+items.TimedOut > 0 {
		cell.Role = theme.Bad
	}
	return cell
}

// predecessors names the tasks that an unreached task waits for. In an ended workflow it waits for none.
func (t *tree) predecessors(task *monitor.WorkflowTask) string {
	switch names := strings.Join(task.Before, ", "); {
	case names == "", t.of != nil && lifecycle.Status(t.of.Status).Terminal():
		return task.Says
	case task.Join <= 1 && len(task.Before) > 1:
		return "waits for one of " + names
	default:
		return "waits for " + names
	}
}

// frame is the time that the chart covers: from the start of the workflow until its end or now.
func (t *tree) frame() (from, to time.Time) {
	from, to = t.of.Created, t.env.Now
	if t.of.StartedAt != nil {
		from = *t.of.StartedAt
	}
	if t.of.FinishedAt != nil {
		to = *t.of.FinishedAt
	}
	return from, to
}

// bar draws when a line waited and ran. A running line ends in an arrow, a failed one in a cross.
func (t *tree) bar(n *node, w int) string {
	from, to := t.span(n)
	if from.IsZero() {
		return ""
	}
	begin, end := t.frame()
	whole := max(end.Sub(begin), time.Second)
	at := func(when time.Time) int {
		return min(max(int(int64(when.Sub(begin))*int64(w)/int64(whole)), 0), w)
	}
	start := min(at(from), w-1)
	stop := max(at(to), start+1)
	waited, full := start, "█"
	c := n.execution()
	if c != nil {
		waited = min(at(c.Created), start)
		if c.StartedAt == nil {
			full = "░"
		}
	}
	sign := ""
	switch {
	case c != nil && unfinished(c), c == nil && n.task.FinishedAt == nil:
		sign = t.env.Theme.Glyphs.Cursor
	case n.status() == "failed", n.status() == "timeout", n.status() == "abandoned":
		sign = t.env.Theme.Glyphs.Failed
	}
	solid := stop - start
	if sign != "" {
		solid--
	}
	return strings.Repeat(" ", waited) + strings.Repeat("░", start-waited) + strings.Repeat(full, solid) + sign
}
