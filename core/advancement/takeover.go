package advancement

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// inherited are the rows of a workflow that another engine started.
type inherited struct {
	store.ReadWorkflowOriginRow

	children []store.ReadWorkflowChildrenRow // the last retry of each task and item
	settled  map[workflow.Child]bool
	keep     []workflow.Kept
}

// takeOver derives the state of a workflow that another engine started from its rows. It continues with the task graph
// that it started with, whatever its definition says now.
func (s *Step) takeOver(ctx context.Context, q *store.Queries, c *advance) error {
	origin, err := q.ReadWorkflowOrigin(ctx, c.row.ID)
	if err != nil {
		return &readError{fmt.Errorf("read the task graph of workflow %d: %w", c.row.ID, err)}
	}
	children, err := q.ReadWorkflowChildren(ctx, c.row.ID)
	if err != nil {
		return &readError{fmt.Errorf("read the children of workflow %d: %w", c.row.ID, err)}
	}
	c.inherited = &inherited{ReadWorkflowOriginRow: origin, children: children}
	c.ended = nil // only the last retries count
	if err := s.inherit(ctx, q, c); err != nil {
		c.source, c.before = nil, &workflow.State{
			Status: lifecycle.StatusRunning, Variables: map[string]any{}, Tasks: map[string]*workflow.TaskState{},
		}
		for _, child := range children {
			if !child.Ended {
				c.before.Tasks[child.TaskName] = &workflow.TaskState{Status: workflow.TaskRunning}
			}
		}
		return fmt.Errorf("it was started by another engine and cannot be taken over: %w. Start it again", err)
	}
	c.readHappenings()
	c.happen(workflow.Started, workflow.Rechecked)
	return nil
}

// inherit reads the definition and the state of a workflow that is taken over.
func (s *Step) inherit(ctx context.Context, q *store.Queries, c *advance) error {
	present, _ := workflow.ParseJSON(c.inherited.Definition) // without it there are no outputs
	definition, err := workflow.ParseTaskGraph(c.inherited.TaskGraph, present)
	if err != nil {
		return fmt.Errorf("its task graph is unreadable: %w", err)
	}
	raw, err := definition.JSON()
	if err != nil {
		return err
	}
	if c.source, err = s.sources.store(ctx, q, s.cfg.Now(), raw, c.inherited.ParamSchema); err != nil {
		return err
	}
	from := workflow.Inherited{
		Paused: c.row.Paused, Canceling: c.row.ParentStatus == lifecycle.StatusCanceling || c.row.CancelAsked,
		Lists: workflow.Lists{
			Current: c.inherited.CurrentTasks, Completed: c.inherited.CompletedTasks, Failed: c.inherited.FailedTasks,
			Skipped: c.inherited.SkippedTasks,
		},
	}
	if from.Variables, err = variables(c.row.Variables); err != nil {
		return err
	}
	heads := map[workflow.Child]admission.Head{}
	for _, child := range c.inherited.children {
		key := keyOfChild(child)
		from.Children = append(from.Children, workflow.InheritedChild{
			Child: key, Status: child.Status, At: child.Updated, Retries: int(child.RetryCount), Ended: child.Ended,
			Waits: child.Waits, TriggeredBy: child.TriggeredBy,
		})
		heads[key] = admission.Head{
			ExecutionID: child.Execution, ActionID: child.Action, ActionRef: child.ActionRef, Parent: child.Parent,
			Enforcement: child.Enforcement, Config: child.Config,
		}
	}
	c.facts = newFacts()
	var h *workflow.Inheritance
	err = c.withFacts(ctx, q, func(facts workflow.Facts) (err error) {
		h, err = c.source.definition.Inherit(from, facts)
		return err
	})
	switch {
	case errors.Is(err, errTooMuch):
		return err
	case err != nil:
		return &readError{fmt.Errorf("take over workflow %d: %w", c.row.ID, err)}
	}
	c.before, c.inherited.settled, c.inherited.keep = h.State, h.Settled, h.Keep
	if !from.Canceling {
		for _, due := range h.Due {
			c.existing = append(c.existing, heads[due])
		}
	}
	again := Request{Workflow: c.row.ID}
	for _, child := range c.inherited.children {
		if child.Ended && !h.Settled[keyOfChild(child)] {
			again.Children = append(again.Children, child.Execution)
		}
	}
	if len(again.Children) > 0 {
		s.later = append(s.later, again)
	}
	return nil
}

func keyOfChild(child store.ReadWorkflowChildrenRow) workflow.Child {
	return workflow.Child{Task: child.TaskName, Index: max(int(child.TaskIndex), 0)}
}

// complete adds the lists that later decisions need, and the beginning of the log.
func (i *inherited) complete(plan *workflow.Plan) {
	for _, list := range i.keep {
		if st := plan.State.Tasks[list.Task]; st.Status == workflow.TaskRunning && st.Next < st.Total {
			plan.Keep = append(plan.Keep, list)
		}
	}
	plan.Log = append([]string{
		"taken over from another engine, with " + phrase.Plural(len(i.children), "child", "children") + " that it had",
	}, plan.Log...)
}

// write stores the definition and the children of a workflow that is taken over.
func (i *inherited) write(batch *scheduler.Batch, c *advance) {
	var tasks []string
	var indexes []int32
	var executions []int64
	var settled []bool
	for _, child := range i.children {
		tasks, indexes = append(tasks, child.TaskName), append(indexes, child.TaskIndex)
		executions, settled = append(executions, child.Execution), append(settled, i.settled[keyOfChild(child)])
	}
	var source *int64
	if c.source != nil {
		source = &c.source.id
	}
	batch.Also(store.AdoptWorkflow, c.row.ID, tasks, indexes, executions, settled, source)
}
