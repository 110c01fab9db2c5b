package workflows

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// RelatedExecution is the execution under the cursor: that of the workflow in the
// list, and in the tree the one that runs a task.
func (v *Workflows) RelatedExecution() (*monitor.Execution, bool) {
	if v.focus == inTree || len(v.path) > 0 {
		d, n := v.detail(), v.tree.current()
		if d == nil {
			return nil, false
		}
		if c := n.execution(); c != nil {
			return &monitor.Execution{
				ID: c.Execution, ActionRef: c.ActionRef, Status: c.Status, WorkerID: c.WorkerID, WorkerName: c.WorkerName, Parent: &d.Execution,
				Created: c.Created,
			}, true
		}
		return ofWorkflow(&d.Workflow), true
	}
	if w := v.Current(); w != nil {
		return ofWorkflow(w), true
	}
	return nil, false
}

// ofWorkflow is the execution that a workflow runs for.
func ofWorkflow(w *monitor.Workflow) *monitor.Execution {
	return &monitor.Execution{ID: w.Execution, ActionRef: w.ActionRef, Status: w.Status, Parent: w.Parent, Created: w.Created}
}

// Relations is what the execution under the cursor has to do with, as far as its line
// says.
func (v *Workflows) Relations() (title string, related []screen.Relation, ok bool) {
	x, ok := v.RelatedExecution()
	if !ok {
		return "", nil, false
	}
	id := strconv.FormatInt(x.ID, 10)
	related = []screen.Relation{
		{Key: "x", Label: "execution", Help: id + "  " + x.ActionRef, To: screen.OpenExecution(x.ID)},
		{Key: "l", Label: "failed below", Help: "tasks of it that went wrong", To: screen.OpenList(keymap.InExecutions, "parent:"+id+" status:failed,timeout,abandoned")},
	}
	return x.ActionRef + " " + id, append(related, screen.ExecutionRelations(x, nil)...), true
}
