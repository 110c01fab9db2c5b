package workflows

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

func thingOf(w *monitor.Workflow, value any) screen.Thing {
	id := strconv.FormatInt(w.Execution, 10)
	return screen.Thing{
		Name: "workflow " + id, ID: id, Value: value, Command: []string{"workflow", "show", id},
		Table: "workflow_execution", Where: "execution = " + id, Execution: w.Execution,
	}
}

// Shows is what has the focus beside the list: what runs the task under the cursor,
// else the workflow whose tree is in sight.
func (v *Workflows) Shows() (screen.Thing, bool) {
	d := v.detail()
	if d == nil || v.focus == inList && len(v.path) == 0 {
		return screen.Thing{}, false
	}
	if c := v.tree.current().execution(); c != nil {
		x := monitor.Execution{ID: c.Execution}
		return screen.ExecutionThing(&x, *c), true
	}
	return thingOf(&d.Workflow, d), true
}
