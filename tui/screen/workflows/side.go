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

// sideLines is what the right pane says: of the task under the cursor, of why the
// workflow waits, and its variables.
func (v *Workflows) sideLines(w int) []string {
	d := v.detail()
	if d == nil {
		return nil
	}
	lines := append(v.taskLines(w), "", v.env.Dim(whyTitle(d)))
	lines = append(lines, v.whyTexts(d, w)...)
	return append(append(lines, "", v.env.Dim("VARIABLES")), v.variableLines()...)
}

func whyTitle(d *monitor.WorkflowDetail) string {
	if d.FinishedAt != nil {
		return "HOW DID THE WORKFLOW END?"
	}
	return "WHY IS THE WORKFLOW WAITING?"
}

// whyTexts are the reasons, numbered and wrapped.
func (v *Workflows) whyTexts(d *monitor.WorkflowDetail, w int) []string {
	if len(d.Why) == 0 {
		return []string{v.env.Dim(" nothing is known of that")}
	}
	var lines []string
	for i, text := range d.Why {
		for j, part := range widget.Wrap(text, max(8, w-4)) {
			number := "   "
			if j == 0 {
				number = widget.Right(strconv.Itoa(i+1), 2) + " "
			}
			lines = append(lines, v.env.Dim(number)+part)
		}
	}
	return lines
}

func (v *Workflows) variableLines() []string {
	if len(v.variables) == 0 {
		return []string{v.env.Dim(" none, or more than is shown")}
	}
	return v.variables
}

// taskLines are the facts about the line under the cursor.
func (v *Workflows) taskLines(w int) []string {
	e, n := v.env, v.tree.current()
	if n == nil {
		return []string{e.Dim("TASK")}
	}
	title := "TASK  " + n.task.Name
	if n.child != nil {
		title = "TASK  " + explain.ChildName(n.task, n.child)
	}
	return append([]string{e.Paint(theme.Strong, widget.Cut(widget.Clean(title), w))}, e.Facts(v.facts(n), 10, w-1)...)
}

// facts are what is known of a line of the tree.
func (v *Workflows) facts(n *node) []screen.Fact {
	t, num := n.task, v.env.Num
	list := []screen.Fact{{Name: "task is", Text: t.Says}}
	if c := n.execution(); c != nil {
		list = append(list, v.childFacts(c)...)
	}
	items := ""
	if t.Items != nil {
		items = num(t.Items.Total) + ": " + num(t.Items.Made) + " begun, " + num(t.Items.Succeeded) + " succeeded, " +
			num(t.Items.Failed+t.Items.TimedOut) + " failed"
		if t.Concurrency > 0 {
			items += ", " + strconv.FormatInt(t.Concurrency, 10) + " at once"
		}
	}
	retry := t.Retry
	if retry != "" && t.Attempts > 1 {
		retry += "; " + strconv.FormatInt(t.Attempts-1, 10) + " so far"
	}
	return append(list,
		screen.Fact{Name: "why", Text: t.Why},
		screen.Fact{Name: "action", Text: t.Action},
		screen.Fact{Name: "items", Text: items},
		screen.Fact{Name: "join", Text: joinWords(t)},
		screen.Fact{Name: "leads to", Text: strings.Join(t.After, ", ")},
		screen.Fact{Name: "retry", Text: retry},
		screen.Fact{Name: "publish", Text: strings.Join(t.Publishes, ", ")},
		screen.Fact{Name: "began", Text: stamp(t.StartedAt)},
		screen.Fact{Name: "ended", Text: stamp(t.FinishedAt)},
	)
}

// childFacts are those of the execution that a line stands for.
func (v *Workflows) childFacts(c *monitor.WorkflowChild) []screen.Fact {
	worker := ""
	if c.WorkerID != nil {
		worker = cmp.Or(c.WorkerName, strconv.FormatInt(*c.WorkerID, 10))
	}
	attempt := strconv.FormatInt(c.Execution, 10) + " " + c.Status + ", attempt " + strconv.FormatInt(c.Attempt, 10)
	list := []screen.Fact{
		{Name: "execution", Text: attempt}, {Name: "worker", Text: worker}, {Name: "error", Text: c.Error},
	}
	if c.Inquiry != 0 {
		text := "inquiry " + strconv.FormatInt(c.Inquiry, 10) + "; 8 answers it"
		list = append(list, screen.Fact{Name: "asks", Text: text})
	}
	if c.Nested {
		list = append(list, screen.Fact{Name: "workflow", Text: "it is one itself; enter shows it"})
	}
	if c.Due != nil {
		list = append(list, screen.Fact{Name: "repeated", Text: "in " + widget.Age(c.Due.Sub(v.env.Now))})
	}
	return list
}

func joinWords(t *monitor.WorkflowTask) string {
	text := strings.Join(t.Before, ", ") + " → " + t.Name
	switch {
	case len(t.Before) == 0:
		return ""
	case t.Join <= 1:
		return text + ", with the first"
	case int(t.Join) == len(t.Before):
		return text + ", needs all " + strconv.FormatInt(t.Join, 10)
	default:
		return text + ", needs " + strconv.FormatInt(t.Join, 10)
	}
}

func stamp(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05.0Z")
}

// whyLines is every reason, the task under the cursor, and what was decided.
func (v *Workflows) whyLines(d *monitor.WorkflowDetail, w int) []string {
	e := v.env
	lines := append([]string{v.headline(d, w-2), "", e.Dim(whyTitle(d))}, v.whyTexts(d, w-2)...)
	lines = append(append(append(lines, ""), v.taskLines(w-2)...), "", e.Dim("VARIABLES"))
	lines = append(lines, v.variableLines()...)
	if len(d.Log) > 0 {
		lines = append(lines, "", e.Dim("WHAT WAS DECIDED"))
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
