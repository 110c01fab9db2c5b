package scheduler

import "github.com/attune-go/attune/core/store"

// SeenWorkflow is a workflow as a step read it while planning.
type SeenWorkflow = store.LockWorkflowsRow

// Task is an ended child of a workflow.
type Task struct{ Workflow, Child int64 }

// orchestration collects what a batch learns about workflows.
type orchestration struct {
	starts []int64 // executions of workflow actions to start
	tasks  []Task  // children that ended and are not repeated
}

// NeedWorkflow requests the lock of a workflow's row, before all other locks. The batch plans again
// if the row differs from seen.
func (p *Plan) NeedWorkflow(seen SeenWorkflow) { p.workflows[seen.ID] = seen }

// StartWorkflow reports an execution of a workflow to start; Result.Starts tells the caller.
func (b *Batch) StartWorkflow(id int64) { b.starts = append(b.starts, id) }

// TaskEnded reports an ended child that the engine does not repeat; Result.Tasks tells the caller.
func (b *Batch) TaskEnded(workflow, child int64) {
	b.tasks = append(b.tasks, Task{Workflow: workflow, Child: child})
}

// moved reports whether a locked workflow differs from what the steps saw.
func (p *Plan) moved(locked []store.LockWorkflowsRow) bool {
	if len(locked) != len(p.workflows) {
		return true
	}
	for _, row := range locked {
		if p.workflows[row.ID] != row {
			return true
		}
	}
	return false
}
