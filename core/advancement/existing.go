package advancement

import (
	"context"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// findExisting removes children from the plan that another engine created before they were due. It
// requests the waiting ones; the next batch reads the ended ones.
func (s *Step) findExisting(ctx context.Context, q *store.Queries, c *advance) error {
	if c.plan == nil {
		return nil
	}
	var tasks []string
	var indexes []int32
	for _, start := range c.plan.Start {
		if st := c.plan.State.Tasks[start.Task]; start.Made || st != nil && st.Found && start.Index != nil {
			tasks, indexes = append(tasks, start.Task), append(indexes, int32(*start.Index))
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	rows, err := q.ReadMadeTasks(ctx, tasks, indexes, c.id)
	if err != nil {
		return fmt.Errorf("find %d children of workflow %d: %w", len(tasks), c.id, err)
	}
	made := map[workflow.Child]bool{}
	again := Request{Workflow: c.id}
	for _, row := range rows {
		made[workflow.Child{Task: row.TaskName, Index: int(row.TaskIndex)}] = true
		switch {
		case row.Status == statusRequested:
			c.existing = append(c.existing, admission.Head{
				ExecutionID: row.Execution, ActionID: row.Action, ActionRef: row.ActionRef, Parent: row.Parent,
				Enforcement: row.Enforcement, Config: row.Config,
			})
		case row.Status.Terminal():
			again.Children = append(again.Children, row.Execution)
		}
	}
	c.plan.Start = slices.DeleteFunc(c.plan.Start, func(start workflow.Start) bool {
		return start.Made || made[workflow.Child{Task: start.Task, Index: value(start.Index)}] // a missing one is lost
	})
	if len(again.Children) > 0 {
		s.later = append(s.later, again)
	}
	return nil
}

func value(index *int) int {
	if index == nil {
		return 0
	}
	return *index
}

// requestExisting requests the children of another engine when they are due.
func (c *advance) requestExisting(batch *scheduler.Batch) {
	for _, head := range c.existing {
		// database rows always encode
		if m, err := admission.NudgeMessage(head, batch.Now(), batch.Source()); err == nil {
			batch.Send(m)
		}
	}
}

// dueOf removes the ends of children that are not due yet: they count later.
func dueOf(ended []store.ReadEndedTasksRow, state *workflow.State) []store.ReadEndedTasksRow {
	return slices.DeleteFunc(ended, func(row store.ReadEndedTasksRow) bool {
		st := state.Tasks[row.TaskName]
		return st != nil && st.Found && st.Status == workflow.TaskRunning && state.Status == lifecycle.StatusRunning &&
			int(row.TaskIndex) >= st.Next
	})
}
