package advancement

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// takeOver derives the state of a workflow that another engine started: it repeats all decisions from the beginning,
// with the existing children. Missing children are created. Variables follow from its publish entries.
func (s *Step) takeOver(ctx context.Context, plan *scheduler.Plan, c *advance, row store.ReadWorkflowsRow) error {
	stop := func(why string) error {
		c.broken = "it was started by another engine and cannot be taken over: " + why
		return nil
	}
	kept, err := plan.Queries().ReadWorkflowOrigin(ctx, c.id)
	if err != nil {
		return fmt.Errorf("read the definition of workflow %d: %w", c.id, err)
	}
	c.source, err = s.sources.store(ctx, plan.Queries(), s.cfg.Now(), kept.Definition, kept.ParamSchema)
	switch {
	case broken(err):
		return err
	case err != nil:
		return stop(err.Error())
	}
	if row.ParentStatus.Terminal() || row.Status.Terminal() {
		return stop("it has ended meanwhile")
	}
	rows, err := plan.Queries().ReadWorkflowChildren(ctx, c.id)
	if err != nil {
		return fmt.Errorf("read the children of workflow %d: %w", c.id, err)
	}
	c.inherited = make(map[workflow.Child]store.ReadWorkflowChildrenRow, len(rows))
	for _, child := range rows {
		c.inherited[workflow.Child{Task: child.TaskName, Index: int(child.TaskIndex)}] = child
	}
	c.ended = nil
	c.adopted = kept.Source == nil
	c.canceling = row.ParentStatus == attune.StatusCanceling || row.CancelAsked
	c.happen(workflow.Started)
	return nil
}

// replay advances a workflow that is taken over until all ends of its children are processed.
func (c *advance) replay(decide func() error) error {
	whole := *c.plan
	for {
		for _, list := range c.plan.Keep { // not stored yet
			c.items[list.Task] = workflow.Slice{Items: list.Items}
		}
		happened := c.endsOfStarted()
		switch {
		case len(happened) > 0:
		case c.plan.More: // the rest may exist already
			happened = []workflow.Happening{{Kind: workflow.Rechecked}}
		case c.canceling:
			happened = c.cancelled(&whole)
		default:
			c.joinPlans(&whole)
			return nil
		}
		c.before, c.happened = c.plan.State, happened
		if err := decide(); err != nil {
			return err
		}
		whole.Start, whole.Keep = append(whole.Start, c.plan.Start...), append(whole.Keep, c.plan.Keep...)
		whole.Stop, whole.Repeat = append(whole.Stop, c.plan.Stop...), append(whole.Repeat, c.plan.Repeat...)
		whole.Log = append(whole.Log, c.plan.Log...)
		whole.State, whole.End, whole.StopUnstarted = c.plan.State, c.plan.End, c.plan.StopUnstarted
	}
}

// cancelled limits a cancelled workflow that is taken over to its existing children: no others are
// created.
func (c *advance) cancelled(whole *workflow.Plan) []workflow.Happening {
	c.canceling = false
	happened := []workflow.Happening{{Kind: workflow.Canceling}}
	whole.Start = slices.DeleteFunc(whole.Start, func(start workflow.Start) bool {
		child := childOf(start)
		existing, there := c.inherited[child]
		if !there {
			happened = append(happened, workflow.Happening{
				Kind: workflow.ChildEnded, Task: child.Task, Index: child.Index, Status: attune.StatusCancelled,
				Retries: maxRetries,
			})
		}
		return !there || existing.Status == statusRequested // it is stopped, not requested
	})
	c.plan.Start, c.plan.More = nil, false
	return happened
}

// joinPlans makes one plan of all decisions, without existing rows. It requests existing children that may not have
// been dispatched.
func (c *advance) joinPlans(whole *workflow.Plan) {
	whole.More = false
	whole.Start = slices.DeleteFunc(whole.Start, func(start workflow.Start) bool {
		child, there := c.inherited[childOf(start)]
		if there && child.Status == statusRequested {
			c.existing = append(c.existing, admission.Head{
				ExecutionID: child.Execution, ActionID: child.Action, ActionRef: child.ActionRef, Parent: child.Parent,
				Enforcement: child.Enforcement, Config: child.Config,
			})
		}
		return there
	})
	for child := range c.inherited {
		if st := whole.State.Tasks[child.Task]; st != nil && !st.Found && st.Status == workflow.TaskRunning &&
			child.Index >= st.Next {
			found := *st
			found.Found = true
			whole.State.Tasks[child.Task] = &found
		}
	}
	whole.Keep = slices.DeleteFunc(whole.Keep, func(list workflow.Kept) bool {
		st := whole.State.Tasks[list.Task]
		return st == nil || st.Next >= st.Total || st.Status.Ended()
	})
	children := "the child"
	if n := len(c.inherited); n != 1 {
		children = fmt.Sprintf("%d children", n)
	}
	whole.Log = append([]string{"taken over from another engine, with " + children + " that it had"}, whole.Log...)
	c.plan = whole
}

// endsOfStarted lists the ends of children that the last decision starts and that have ended already, in the order of
// their ends.
func (c *advance) endsOfStarted() []workflow.Happening {
	var ends []store.ReadWorkflowChildrenRow
	for _, start := range c.plan.Start {
		child, there := c.inherited[childOf(start)]
		if one := (settled{task: child.ID, execution: child.Execution}); there && child.Ended &&
			!slices.Contains(c.settle, one) {
			ends = append(ends, child)
			c.settle = append(c.settle, one)
		}
	}
	slices.SortFunc(ends, func(a, b store.ReadWorkflowChildrenRow) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.ID, b.ID))
	})
	happened := make([]workflow.Happening, len(ends))
	for i, child := range ends {
		happened[i] = workflow.Happening{
			Kind: workflow.ChildEnded, Task: child.TaskName, Index: int(child.TaskIndex), Status: child.Status,
			Retries: maxRetries, // its own engine has handled its retries
		}
	}
	return happened
}

// maxRetries exceeds the retries of any task.
const maxRetries = 1 << 20

func childOf(start workflow.Start) workflow.Child {
	child := workflow.Child{Task: start.Task}
	if start.Index != nil {
		child.Index = *start.Index
	}
	return child
}
