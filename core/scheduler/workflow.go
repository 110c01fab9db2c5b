package scheduler

import "github.com/attune-go/attune/core/store"

// SeenWorkflow is a workflow as a step has read it when it planned.
type SeenWorkflow = store.LockWorkflowsRow

// Task is an ended child of a workflow.
type Task struct{ Workflow, Child int64 }

// orchestration is what a batch learns about workflows.
type orchestration struct {
	starts []int64 // executions of workflow actions that ask to run
	tasks  []Task  // children that have ended for good
}

// NeedWorkflow asks for the row of a workflow to be locked, before everything else.
// The batch is planned anew if it is not as it was seen.
func (p *Plan) NeedWorkflow(seen SeenWorkflow) { p.workflows[seen.ID] = seen }

// StartWorkflow says that an execution of a workflow asks to run. Whoever ran the
// batch learns it from the result.
func (b *Batch) StartWorkflow(id int64) { b.starts = append(b.starts, id) }

// TaskEnded says that a child of a workflow has ended and is not repeated by the
// engine. Whoever ran the batch learns it from the result.
func (b *Batch) TaskEnded(workflow, child int64) {
	b.tasks = append(b.tasks, Task{Workflow: workflow, Child: child})
}

// moved reports whether a workflow is not as the steps have seen it.
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
