package workflows

import (
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// sideLines is what the right pane says: of the task under the cursor, of why the
// workflow waits, and its variables.
func (v *Workflows) sideLines(d *monitor.WorkflowDetail, w int) []string {
	e := v.env
	lines := v.taskLines(w)
	lines = append(lines, "", e.Paint(theme.Dim, whyTitle(d)))
	lines = append(lines, v.whyTexts(d, w)...)
	lines = append(lines, "", e.Paint(theme.Dim, "VARIABLES"))
	return append(lines, v.variables(d)...)
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
		return []string{v.env.Paint(theme.Dim, " nothing is known of that")}
	}
	var lines []string
	for i, text := range d.Why {
		for j, part := range widget.Wrap(text, max(8, w-4)) {
			number := "   "
			if j == 0 {
				number = widget.Right(strconv.Itoa(i+1), 2) + " "
			}
			lines = append(lines, v.env.Paint(theme.Dim, number)+part)
		}
	}
	return lines
}

func (v *Workflows) variables(d *monitor.WorkflowDetail) []string {
	if len(d.Variables) == 0 {
		return []string{v.env.Paint(theme.Dim, " none, or more than is shown")}
	}
	if v.documentOf != d {
		v.documentOf, v.document = d, jsonview.Text(string(d.Variables))
		for i := range v.document {
			v.document[i] = " " + v.document[i]
		}
	}
	return v.document
}

// taskLines are the facts about the line under the cursor.
func (v *Workflows) taskLines(w int) []string {
	e, n := v.env, v.tree.current()
	if n == nil {
		return []string{e.Paint(theme.Dim, "TASK")}
	}
	title := "TASK  " + n.task.Name
	if n.child != nil {
		title = "TASK  " + explain.ChildName(n.task, n.child)
	}
	lines := []string{e.Paint(theme.Strong, widget.Cut(widget.Clean(title), w))}
	say := func(name, text string) {
		if text == "" {
			return
		}
		for i, part := range widget.Wrap(text, max(8, w-11)) {
			label := ""
			if i == 0 {
				label = name
			}
			lines = append(lines, e.Paint(theme.Dim, widget.Left(label, 10))+part)
		}
	}
	for _, fact := range v.facts(n) {
		say(fact[0], fact[1])
	}
	return lines
}

// facts are names and values of a line of the tree.
func (v *Workflows) facts(n *node) [][2]string {
	t := n.task
	list := [][2]string{{"task is", t.Says}}
	if c := n.execution(); c != nil {
		list = append(list, v.childFacts(c)...)
	}
	list = append(list, [2]string{"why", t.Why}, [2]string{"action", t.Action})
	if items := t.Items; items != nil {
		limit := ""
		if t.Concurrency > 0 {
			limit = ", " + strconv.FormatInt(t.Concurrency, 10) + " at once"
		}
		list = append(list, [2]string{"items", v.env.Num(items.Total) + ": " + v.env.Num(items.Made) + " begun, " +
			v.env.Num(items.Succeeded) + " succeeded, " + v.env.Num(items.Failed+items.TimedOut) + " failed" + limit})
	}
	return append(list,
		[2]string{"join", joinWords(t)},
		[2]string{"leads to", strings.Join(t.After, ", ")},
		[2]string{"retry", retryWords(t)},
		[2]string{"publish", strings.Join(t.Publishes, ", ")},
		[2]string{"began", stamp(t.StartedAt)},
		[2]string{"ended", stamp(t.FinishedAt)},
	)
}

// childFacts are those of the execution that a line stands for.
func (v *Workflows) childFacts(c *monitor.WorkflowChild) [][2]string {
	worker := ""
	if c.WorkerID != nil {
		worker = c.WorkerName
		if worker == "" {
			worker = strconv.FormatInt(*c.WorkerID, 10)
		}
	}
	list := [][2]string{
		{"execution", strconv.FormatInt(c.Execution, 10) + " " + c.Status + ", attempt " + strconv.FormatInt(c.Attempt, 10)},
		{"worker", worker},
		{"error", c.Error},
	}
	if c.Inquiry != 0 {
		list = append(list, [2]string{"asks", "inquiry " + strconv.FormatInt(c.Inquiry, 10) + "; 8 answers it"})
	}
	if c.Nested {
		list = append(list, [2]string{"workflow", "it is one itself; enter shows it"})
	}
	if c.Due != nil {
		list = append(list, [2]string{"repeated", "in " + widget.Age(c.Due.Sub(v.env.Now))})
	}
	return list
}

func joinWords(t *monitor.WorkflowTask) string {
	switch {
	case len(t.Before) == 0:
		return ""
	case t.Join <= 1:
		return strings.Join(t.Before, ", ") + " → " + t.Name + ", with the first"
	case int(t.Join) == len(t.Before):
		return strings.Join(t.Before, ", ") + " → " + t.Name + ", needs all " + strconv.FormatInt(t.Join, 10)
	default:
		return strings.Join(t.Before, ", ") + " → " + t.Name + ", needs " + strconv.FormatInt(t.Join, 10)
	}
}

func retryWords(t *monitor.WorkflowTask) string {
	if t.Retry == "" {
		return ""
	}
	if t.Attempts > 1 {
		return t.Retry + "; " + strconv.FormatInt(t.Attempts-1, 10) + " so far"
	}
	return t.Retry
}

func stamp(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05.0Z")
}

// whyLines is every reason, the task under the cursor, and what was decided.
func (v *Workflows) whyLines(d *monitor.WorkflowDetail, w, h int) []string {
	e := v.env
	lines := []string{" " + v.headline(d, w-2), "", " " + e.Paint(theme.Dim, whyTitle(d))}
	add := func(more []string) {
		for _, line := range more {
			lines = append(lines, " "+line)
		}
	}
	add(v.whyTexts(d, w-2))
	lines = append(lines, "")
	add(v.taskLines(w - 2))
	lines = append(lines, "", " "+e.Paint(theme.Dim, "VARIABLES"))
	add(v.variables(d))
	if len(d.Log) > 0 {
		lines = append(lines, "", " "+e.Paint(theme.Dim, "WHAT WAS DECIDED"))
	}
	for _, decision := range d.Log {
		for i, text := range decision.Lines {
			when := widget.Blank(10)
			if i == 0 {
				when = decision.At.UTC().Format("15:04:05.0")
			}
			for j, part := range widget.Wrap(text, max(8, w-14)) {
				if j > 0 {
					when = widget.Blank(10)
				}
				lines = append(lines, " "+e.Paint(theme.Dim, when)+"  "+part)
			}
		}
	}
	v.sideHeight = h - 1
	v.whyScroll = max(0, min(v.whyScroll, len(lines)-v.sideHeight))
	shown := lines[v.whyScroll:min(len(lines), v.whyScroll+v.sideHeight)]
	return append(widget.Fit(shown, w, v.sideHeight), e.Paint(theme.Dim, " "+strconv.Itoa(len(lines))+" lines · W or esc closes"))
}
