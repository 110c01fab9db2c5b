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
	var due []workflow.Start
	for _, start := range c.plan.Start {
		if st := c.plan.State.Tasks[start.Task]; start.Made || st != nil && st.Found && start.Index != nil {
			due = append(due, start)
		}
	}
	rows, err := c.made(ctx, q, due)
	if err != nil {
		return err
	}
	made := map[workflow.Child]bool{}
	again := Request{Workflow: c.row.ID}
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

// made reads the existing ones of these children.
func (c *advance) made(ctx context.Context, q *store.Queries, of []workflow.Start) ([]store.ReadMadeTasksRow, error) {
	if len(of) == 0 {
		return nil, nil
	}
	tasks, indexes := make([]string, len(of)), make([]int32, len(of))
	for i, start := range of {
		tasks[i], indexes[i] = start.Task, int32(*start.Index)
	}
	rows, err := q.ReadMadeTasks(ctx, tasks, indexes, c.row.ID)
	if err != nil {
		return nil, fmt.Errorf("find %d children of workflow %d: %w", len(of), c.row.ID, err)
	}
	return rows, nil
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
