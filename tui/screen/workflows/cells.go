package workflows

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// The columns of the tree: with a chart of the times where there is room for it.
func (t *tree) columns(chart bool) []widget.Column {
	if !chart {
		return []widget.Column{
			{Title: "TASK", Width: 28, Middle: true},
			{Title: "FOR", Width: 7, Right: true},
			{Title: "WHERE IT IS", Width: 20, Grow: true},
		}
	}
	return []widget.Column{
		{Title: "TASK", Width: 22, Grow: true, Middle: true},
		{Title: "WHERE IT IS", Width: 19},
		{Title: "FOR", Width: 7, Right: true},
		{Title: t.scale(), Width: chartWidth},
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

// Cells are the texts of a line. A chart is drawn last or not at all.
func (t *tree) Cells(row int, into []widget.Cell) []widget.Cell {
	n := &t.nodes[row]
	name, where, lasts := t.name(n), t.where(n), widget.Cell{Text: t.lasts(n)}
	if !t.charted() {
		return append(into, name, lasts, where)
	}
	return append(into, name, where, lasts, widget.Cell{Text: t.bar(n, chartWidth), Role: theme.Dim})
}

// name is the sign and the name of a line.
func (t *tree) name(n *node) widget.Cell {
	indent := strings.Repeat("  ", n.depth)
	if n.more > 0 {
		return widget.Cell{Text: indent + "  … " + strconv.FormatInt(n.more, 10) + " more", Role: theme.Dim}
	}
	look := t.env.Theme.Of(n.status())
	mark := "  "
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

// lasts is how long what a line stands for ran, or waits.
func (t *tree) lasts(n *node) string {
	from, to := t.span(n)
	if from.IsZero() {
		return ""
	}
	return widget.Age(to.Sub(from))
}

// span is from when to when what a line stands for was on its way. A zero time means
// that it was not.
func (t *tree) span(n *node) (from, to time.Time) {
	if n.more > 0 {
		return from, to
	}
	to = t.env.Now
	if c := n.execution(); c != nil {
		from = c.Created
		if c.StartedAt != nil {
			from = *c.StartedAt
		}
		switch {
		case c.FinishedAt != nil:
			to = *c.FinishedAt
		case !running(c):
			return time.Time{}, to // when it ended is not known
		}
		return from, to
	}
	if n.task.StartedAt == nil {
		return from, to
	}
	if n.task.FinishedAt != nil {
		to = *n.task.FinishedAt
	}
	return *n.task.StartedAt, to
}

// where says in a few words where a line is.
func (t *tree) where(n *node) widget.Cell {
	switch {
	case n.more > 0:
		return widget.Cell{Text: "enter shows more", Role: theme.Dim}
	case n.child != nil:
		return t.whereChild(n.child)
	}
	task := n.task
	switch {
	case task.Items != nil:
		return t.counts(task)
	case task.Status == "":
		return widget.Cell{Text: t.unreached(task), Role: theme.Dim}
	case task.Status == "waiting", task.Status == "skipped", task.Status == "ready":
		return widget.Cell{Text: task.Says, Role: theme.Dim}
	}
	if c := n.execution(); c != nil {
		return t.whereChild(c)
	}
	return widget.Cell{Text: task.Says}
}

// whereChild says who runs a child, or what it waits for.
func (t *tree) whereChild(c *monitor.WorkflowChild) widget.Cell {
	look := t.env.Theme.Of(c.Status)
	text, again := c.Status, ""
	if c.Attempt > 1 {
		again = " try " + strconv.FormatInt(c.Attempt, 10)
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
	case running(c) && c.WorkerID != nil:
		text = screen.WorkerName(c.WorkerID, c.WorkerName)
		if c.Status != "running" {
			text = c.Status + " " + text
		}
	}
	role := theme.Plain
	if look.Role == theme.Bad {
		role = theme.Bad
	}
	return widget.Cell{Text: text + again, Role: role}
}

// counts says what the items of a task have come to.
func (t *tree) counts(task *monitor.WorkflowTask) widget.Cell {
	g, items := &t.env.Theme.Glyphs, task.Items
	var parts []string
	say := func(glyph string, n int64, word string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s %s", glyph, t.env.Num(n), word))
		}
	}
	say(g.Failed, items.Failed, "failed")
	say(g.Timeout, items.TimedOut, "timeout")
	say(g.OK, items.Made-items.Succeeded-items.Failed-items.TimedOut, "on their way")
	say(g.Done, items.Succeeded, "of "+t.env.Num(items.Total))
	if len(parts) == 0 {
		parts = append(parts, t.env.Num(items.Total)+" items")
	}
	cell := widget.Cell{Text: strings.Join(parts, "  ")}
	if items.Failed+items.TimedOut > 0 {
		cell.Role = theme.Bad
	}
	return cell
}

// unreached names what a task waits for that nothing has led to. In a workflow that has ended
// it waits for nothing.
func (t *tree) unreached(task *monitor.WorkflowTask) string {
	if len(task.Before) == 0 || t.of != nil && attune.Status(t.of.Status).Terminal() {
		return task.Says
	}
	word := "waits for "
	if task.Join <= 1 && len(task.Before) > 1 {
		word = "waits for one of "
	}
	return word + strings.Join(task.Before, ", ")
}

// chartWidth is how many cells the times of a workflow are drawn in.
const chartWidth = 26

// frame is from when to when the chart reaches: the life of the workflow so far.
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

// scale is the title of the chart.
func (t *tree) scale() string {
	from, to := t.frame()
	layout := "15:04"
	if to.Sub(from) < 10*time.Minute {
		layout = "15:04:05"
	}
	return from.UTC().Format(layout) + " → " + to.UTC().Format(layout)
}

// bar draws when what a line stands for waited and ran. What still goes on ends in an
// arrow, what failed in its sign.
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
	start, stop := at(from), at(to)
	start = min(start, w-1)
	stop = max(stop, start+1)
	waited, full := start, "█"
	if c := n.execution(); c != nil {
		waited = min(at(c.Created), start)
		if c.StartedAt == nil {
			full = "░"
		}
	}
	body := strings.Repeat("░", start-waited) + strings.Repeat(full, stop-start)
	sign := ""
	switch c := n.execution(); {
	case c != nil && running(c), c == nil && n.task.FinishedAt == nil:
		sign = t.env.Theme.Glyphs.Cursor
	case n.status() == "failed", n.status() == "timeout", n.status() == "abandoned":
		sign = t.env.Theme.Glyphs.Failed
	}
	if sign != "" {
		runes := []rune(body)
		body = string(runes[:len(runes)-1]) + sign
	}
	return strings.Repeat(" ", waited) + body
}
