package workflows

import (
	"github.com/attune-go/attune/tui/act"
)

// Acts is what may be done with the workflows that are marked, else with the row under
// the cursor: with the workflow in the list, and in the tree with what runs a task.
func (v *Workflows) Acts() (act.Menu, bool) {
	if v.focus != inTree && len(v.path) == 0 {
		if v.focus == inSide && v.Current() != nil {
			return act.ForWorkflow(v.Current()), true
		}
		return v.List.Acts()
	}
	d, n := v.detail(), v.tree.current()
	if d == nil {
		return act.Menu{}, false
	}
	if c := n.execution(); c != nil {
		return act.ForTask(n.task, c), true
	}
	return act.ForWorkflow(&d.Workflow), true
}
