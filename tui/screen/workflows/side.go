package workflows

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// sideLines is the right pane: the selected task, why the workflow waits, and its variables.
func (v *Workflows) sideLines(w int) []string {
	d := v.detail()
	if d == nil {
		return nil
	}
	lines := append(append(v.taskLines(w), ""), v.reasonLines(d, w)...)
	return append(append(lines, ""), v.variableLines()...)
}

// whyLines is the page of W: every reason, the selected task, the variables and the decisions so far.
func (v *Workflows) whyLines(d *monitor.WorkflowDetail, w int) []string {
	e := v.env
	lines := append([]string{v.headline(d, w-2), ""}, v.reasonLines(d, w-2)...)
	lines = append(append(append(lines, ""), v.taskLines(w-2)...), "")
	lines = append(lines, v.variableLines()...)
	if len(d.Log) > 0 {
		lines = append(lines, "", e.Dim("DECISIONS"))
	}
	for _, decision := range d.Log {
		when := decision.At.UTC().Format("15:04:05.0")
		for _, text := range decision.Lines {
			for _, part := range widget.Wrap(text, max(8, w-14)) {
				lines, when = append(lines, e.Label(when, 10)+"  "+part), ""
			}
		}
	}
	return screen.Indented(lines)
}

func (v *Workflows) reasonLines(d *monitor.WorkflowDetail, w int) []string {
	e, title := v.env, "WHY IS THE WORKFLOW WAITING?"
	if d.FinishedAt != nil {
		title = "HOW DID THE WORKFLOW END?"
	}
	lines := []string{e.Dim(title)}
	if len(d.Why) == 0 {
		return append(lines, e.Dim(" the reason is unknown"))
	}
	for i, text := range d.Why {
		number := widget.Right(strconv.Itoa(i+1), 2) + " "
		for _, part := range widget.Wrap(text, max(8, w-4)) {
			lines, number = append(lines, e.Dim(number)+part), "   "
		}
	}
	return lines
}

func (v *Workflows) variableLines() []string {
	lines := []string{v.env.Dim("VARIABLES")}
	if len(v.variables) == 0 {
		return append(lines, v.env.Dim(" none, or too large to show"))
	}
	return append(lines, v.variables...)
}

func (v *Workflows) taskLines(w int) []string {
	e, n := v.env, v.tree.current()
	if n == nil {
		return []string{e.Dim("TASK")}
	}
	title, role := "TASK  "+n.task.Name, theme.Strong
	if v.focus == inSide {
		role = theme.Accent
	}
	if n.child != nil {
		title = "TASK  " + explain.ChildName(n.task, n.child)
	}
	return append([]string{e.Paint(role, widget.Cut(widget.Clean(title), w))}, e.Facts(v.facts(n), 10, w-1)...)
}

func (v *Workflows) facts(n *node) []screen.Fact {
	t, num := n.task, v.env.Num
	list := []screen.Fact{{Name: "task is", Text: t.Says}}
	if c := n.execution(); c != nil {
		list = append(list, v.executionFacts(c)...)
	}
	items := ""
	if t.Items != nil {
		items = num(t.Items.Total) + ": " + num(t.Items.Made) + " begun, " + num(t.Items.Succeeded) + " succeeded, " +
			num(t.Items.Failed+t.Items.TimedOut) + " failed"
		if t.Concurrency > 0 {
			items += ", " + strconv.FormatInt(t.Concurrency, 10) + " at once"
		}
	}
	join := strings.Join(t.Before, ", ") + " → " + t.Name
	switch {
	case len(t.Before) == 0:
		join = ""
	case t.Join <= 1:
		join += ", with the first"
	case int(t.Join) == len(t.Before):
		join += ", needs all " + strconv.FormatInt(t.Join, 10)
	default:
		join += ", needs " + strconv.FormatInt(t.Join, 10)
	}
	retry := t.Retry
	if retry != "" && t.Attempts > 1 {
		retry += "; " + strconv.FormatInt(t.Attempts-1, 10) + " so far"
	}
	return append(list,
		screen.Fact{Name: "why", Text: t.Why},
		screen.Fact{Name: "action", Text: t.Action},
		screen.Fact{Name: "items", Text: items},
		screen.Fact{Name: "join", Text: join},
		screen.Fact{Name: "leads to", Text: strings.Join(t.After, ", ")},
		screen.Fact{Name: "retry", Text: retry},
		screen.Fact{Name: "publish", Text: strings.Join(t.Publishes, ", ")},
		screen.Fact{Name: "began", Text: stamp(t.StartedAt)},
		screen.Fact{Name: "ended", Text: stamp(t.FinishedAt)},
	)
}

func (v *Workflows) executionFacts(c *monitor.WorkflowChild) []screen.Fact {
	id, attempt := strconv.FormatInt(c.Execution, 10), strconv.FormatInt(c.Attempt, 10)
	worker := ""
	if c.WorkerID != nil {
		worker = cmp.Or(c.WorkerName, strconv.FormatInt(*c.WorkerID, 10))
	}
	list := []screen.Fact{
		{Name: "execution", Text: id + " " + c.Status + ", attempt " + attempt},
		{Name: "worker", Text: worker},
		{Name: "error", Text: c.Error},
	}
	if c.Inquiry != 0 {
		text := "inquiry " + strconv.FormatInt(c.Inquiry, 10) + "; 8 answers it"
		list = append(list, screen.Fact{Name: "asks", Text: text})
	}
	if c.Nested {
		list = append(list, screen.Fact{Name: "workflow", Text: "its action is a workflow; enter shows it"})
	}
	if c.Due != nil {
		list = append(list, screen.Fact{Name: "repeated", Text: "in " + widget.Age(c.Due.Sub(v.env.Now))})
	}
	return list
}

func stamp(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05.0Z")
}
