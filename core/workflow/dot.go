package workflow

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/yamldoc"
)

var colours = map[TaskStatus]string{
	"": "white", TaskWaiting: "lightyellow", TaskReady: "lightyellow", TaskRunning: "lightblue",
	TaskCompleted: "palegreen",
	TaskFailed:    "lightcoral", TaskTimeout: "orange", TaskCancelled: "lightgrey", TaskSkipped: "whitesmoke",
}

// DOT writes the tasks and transitions in the language of Graphviz, with a colour for each status; nil draws the
// definition.
func (d *Definition) DOT(tasks map[string]*TaskState) string {
	var out strings.Builder
	fmt.Fprintf(&out, "digraph %s {\n", quoted(cmp.Or(d.Ref, "workflow")))
	out.WriteString(
		"  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\"];\n")
	out.WriteString("  edge [fontname=\"sans-serif\", fontsize=10];\n")
	for i, t := range d.Tasks {
		if t.Kind != KindParallel {
			out.WriteString("  " + dotNode(t, tasks))
			continue
		}
		fmt.Fprintf(&out, "  subgraph cluster_%d {\n    style=dashed;\n", i)
		out.WriteString("    " + dotNode(t, tasks))
		for _, sub := range t.Tasks {
			out.WriteString("    " + dotNode(sub, tasks))
			fmt.Fprintf(&out, "    %s -> %s [style=dashed, arrowhead=none];\n", quoted(t.Name), quoted(sub.Name))
		}
		out.WriteString("  }\n")
	}
	for _, t := range d.Tasks {
		for _, transition := range t.Next {
			label := ""
			if transition.When != nil {
				label = " [label=" + quoted(yamldoc.OneLine(transition.When.Expression())) + "]"
			}
			for _, to := range transition.Do {
				fmt.Fprintf(&out, "  %s -> %s%s;\n", quoted(t.Name), quoted(to), label)
			}
		}
	}
	out.WriteString("}\n")
	return out.String()
}

func dotNode(t *Task, tasks map[string]*TaskState) string {
	lines := []string{t.Name}
	if t.Action != "" {
		lines = append(lines, t.Action)
	}
	if t.WithItems != nil {
		lines = append(lines, "for each of "+yamldoc.Shorten(fmt.Sprint(t.WithItems.Raw())))
	}
	if t.Join > 0 {
		lines = append(lines, fmt.Sprintf("join %d", t.Join))
	}
	attributes := ""
	if tasks != nil {
		state := tasks[t.Name]
		if state == nil {
			state = &TaskState{}
		}
		lines = append(lines, StatusText(t, state))
		attributes = ", fillcolor=" + colours[state.Status]
		if state.Status == "" {
			attributes += ", style=\"rounded,dashed\""
		}
	}
	return fmt.Sprintf("%s [label=%s%s];\n", quoted(t.Name), quoted(strings.Join(lines, "\n")), attributes)
}

func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "").Replace(text) + `"`
}
