package workflows

import (
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/screen"
)

// Acts is what may be done with the workflows that are marked, else with the row under
// the cursor: with the workflow in the list, and in the tree with what runs a task.
func (v *Workflows) Acts() (act.Menu, bool) {
	if keys := v.list.Marked(); v.focus == inList && len(v.path) == 0 && len(keys) > 0 {
		return act.ForMarkedWorkflows(screen.Targets(keys)), true
	}
	if v.focus == inTree || len(v.path) > 0 {
		d, n := v.detail(), v.tree.current()
		if d == nil {
			return act.Menu{}, false
		}
		if c := n.execution(); c != nil {
			return act.ForTask(n.task, c), true
		}
		return act.ForWorkflow(&d.Workflow), true
	}
	at := v.list.Cursor()
	if at < 0 || at >= len(v.rows) {
		return act.Menu{}, false
	}
	return act.ForWorkflow(&v.rows[at]), true
}
