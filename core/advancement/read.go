package advancement

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// maxEnded bounds the ended children of one batch.
const maxEnded = 2000

// maxDepth bounds the nesting of workflows. A workflow that calls itself would otherwise create
// executions for ever.
const maxDepth = 16

func (s *Step) readStarts(ctx context.Context, plan *scheduler.Plan) error {
	ids := s.Executions()
	if len(ids) == 0 {
		return nil
	}
	rows, err := plan.Queries().ReadWorkflowStarts(ctx, s.cfg.ActionTimeouts, ids)
	if err != nil {
		return fmt.Errorf("read %d workflows to start: %w", len(ids), err)
	}
	numbers, err := plan.Queries().NewIDs(ctx, "workflow_execution", int32(len(rows)))
	if err != nil {
		return fmt.Errorf("allocate ids for %d workflows: %w", len(rows), err)
	}
	stuck := map[int64]string{}
	for _, request := range s.requests {
		stuck[request.Start] = request.Broken
	}
	for i, row := range rows {
		if row.Status != statusRequested {
			continue // another program started or ended it
		}
		if row.Workflow != 0 { // another engine began to start it
			s.later = append(s.later, Request{Workflow: row.Workflow})
			continue
		}
		var action int64
		if ran, ok := plan.Row(row.ID); ok && ran.Action != nil {
			action = *ran.Action
		}
		source, err := s.sources.store(ctx, plan.Queries(), s.cfg.Now(), row.Definition, row.ParamSchema)
		switch why := stuck[row.ID]; {
		case broken(err):
			return err
		case row.Depth > maxDepth:
			err = fmt.Errorf("it is nested in %d other workflows, and %d is the most: does a workflow call itself?",
				row.Depth, maxDepth)
		case err == nil && why != "":
			err = errors.New(why)
		}
		if err != nil {
			s.unfit = append(s.unfit,
				unfit{execution: row.ID, action: action, actionRef: row.ActionRef, why: err.Error()})
			continue
		}
		c := &advance{phase: begins, inputs: inputs{source: source, row: store.ReadWorkflowsRow{
			ID: numbers[i], Open: true, Execution: row.ID, Created: row.At, AllowedSeconds: row.TimeoutSeconds,
			ParentStatus: statusRunning, Config: row.Config, Priority: row.Priority, ActionRef: row.ActionRef,
			Action: action, At: row.At, Requested: row.Requested,
		}}}
		c.begun = begun{
			ID: c.row.ID, Execution: row.ID, Definition: *row.WorkflowDef, Source: source.id,
			Timeout: row.TimeoutSeconds,
		}
		if c.begun.Graph, err = source.definition.TaskGraph(); err != nil {
			c.begun.Graph = json.RawMessage("{}")
		}
		if row.Held {
			c.happen(workflow.Paused) // it starts, and continues with its parent workflow
		}
		c.happen(workflow.Started)
		s.advances = append(s.advances, c)
	}
	return nil
}

// readWorkflows reads the started workflows of the requests, and their happenings.
func (s *Step) readWorkflows(ctx context.Context, plan *scheduler.Plan) error {
	ids, reported, stuck := []int64{}, []int64{}, map[int64]string{}
	for _, request := range s.requests {
		if request.Workflow != 0 {
			ids, reported = append(ids, request.Workflow), append(reported, request.Children...)
			stuck[request.Workflow] = request.Broken
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := plan.Queries().ReadWorkflows(ctx, ids)
	if err != nil {
		return fmt.Errorf("read %d workflows: %w", len(ids), err)
	}
	ended, err := s.readEnded(ctx, plan, ids, reported)
	if err != nil {
		return err
	}
	for _, row := range rows {
		c := &advance{phase: continues, inputs: inputs{row: row, ended: ended[row.ID]}}
		if !row.Open {
			err = s.readLate(ctx, plan.Queries(), c)
		} else {
			s.advances = append(s.advances, c)
			err = s.readOpen(ctx, plan.Queries(), c, stuck[row.ID])
		}
		if err != nil {
			return err
		}
	}
	slices.SortFunc(s.advances, func(a, b *advance) int { // the order of their locks
		return cmp.Compare(a.row.ID, b.row.ID)
	})
	return s.readLost(ctx, plan)
}

func (s *Step) readEnded(ctx context.Context, plan *scheduler.Plan, ids,
	reported []int64,
) (map[int64][]store.ReadEndedTasksRow, error) {
	rows, err := plan.Queries().ReadEndedTasks(ctx, store.ReadEndedTasksParams{
		Workflows: ids, Reported: reported, UnreportedAfter: s.cfg.UnreportedAfter.Seconds(), Most: maxEnded,
	})
	if err != nil {
		return nil, fmt.Errorf("read the ended tasks of %d workflows: %w", len(ids), err)
	}
	byWorkflow := map[int64][]store.ReadEndedTasksRow{}
	for _, row := range rows {
		byWorkflow[row.WorkflowExecution] = append(byWorkflow[row.WorkflowExecution], row)
	}
	if len(rows) == maxEnded { // there may be more
		for _, request := range s.requests {
			if request.Workflow != 0 {
				s.later = append(s.later, request)
			}
		}
	}
	return byWorkflow, nil
}

// readLate processes children that ended after their workflow: they are counted for users and trigger nothing.
func (s *Step) readLate(ctx context.Context, q *store.Queries, c *advance) error {
	if len(c.ended) == 0 {
		return nil
	}
	c.phase = late
	if c.row.State != nil && c.row.Source != nil {
		if err := s.locate(ctx, q, c); broken(err) {
			return err
		} else if err == nil && c.before.Status.Terminal() {
			c.childrenEnded()
			s.advances = append(s.advances, c)
			return nil
		}
	}
	s.closed = append(s.closed, c.ended...)
	return nil
}

// readOpen reads the state of an open workflow, and the happenings since. stuck is why it cannot continue.
func (s *Step) readOpen(ctx context.Context, q *store.Queries, c *advance, stuck string) (err error) {
	if c.row.State == nil || c.row.Source == nil {
		c.phase = takenOver
		err = s.takeOver(ctx, q, c)
	} else if err = s.locate(ctx, q, c); err == nil {
		c.ended = dueOf(c.ended, c.before)
		c.readHappenings()
	}
	if broken(err) {
		return err
	}
	if err != nil {
		stuck = err.Error()
	}
	if stuck != "" {
		c.phase, c.why = fails, stuck
	}
	return nil
}

// locate reads the state and the definition of a workflow.
func (s *Step) locate(ctx context.Context, q *store.Queries, c *advance) (err error) {
	if c.before, err = workflow.ParseState(c.row.State); err != nil {
		return err
	}
	if c.before.Variables, err = variables(c.row.Variables); err != nil {
		return err
	}
	c.source, err = s.sources.get(ctx, q, *c.row.Source)
	return err
}

// readHappenings lists the happenings in their order. Cancel and pause come before the ends of children, which then
// trigger nothing, or not yet. The timeout comes after them, because they may end the workflow in time.
func (c *advance) readHappenings() {
	row := c.row
	switch {
	case row.ParentStatus.Terminal():
		c.happen(workflow.Cancelled)
	case c.before.Status == lifecycle.StatusCanceling: // it waits for its children
	case row.ParentStatus == lifecycle.StatusCanceling || row.CancelAsked || row.Status == lifecycle.StatusCancelled:
		c.happen(workflow.Canceling)
	case row.Status.Terminal():
		c.happen(workflow.Cancelled)
	case (row.Paused || row.Held) && !c.before.Paused:
		c.happen(workflow.Paused)
	case !row.Paused && !row.Held && c.before.Paused:
		c.happen(workflow.Resumed)
	}
	c.childrenEnded()
	if row.Overdue {
		c.happen(workflow.TimedOut)
	}
	if len(c.happened) == 0 {
		c.happen(workflow.Rechecked)
	}
}

func (c *advance) childrenEnded() {
	for _, one := range c.ended {
		c.happened = append(c.happened, workflow.Happening{
			Kind: workflow.ChildEnded, Task: one.TaskName, Index: int(one.TaskIndex), Status: statusOf(one),
			Retries: int(one.RetryCount),
		})
	}
}

// statusOf is the status of a child for its workflow: an inquiry's status comes from its question,
// and a failure after a cancel request counts as cancelled.
func statusOf(ended store.ReadEndedTasksRow) lifecycle.Status {
	if ended.CancelAsked && ended.Status == lifecycle.StatusFailed {
		return lifecycle.StatusCancelled // no retry, whatever the failure was
	}
	if ended.Status != lifecycle.StatusCompleted {
		return ended.Status
	}
	switch ended.Asked {
	case "timeout":
		return lifecycle.StatusTimeout
	case "cancelled":
		return lifecycle.StatusCancelled
	case "refused":
		return lifecycle.StatusFailed
	default:
		return lifecycle.StatusCompleted
	}
}

// variables reads the published column.
func variables(raw []byte) (map[string]any, error) {
	value, err := expr.FromJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("read the variables of a workflow: %w", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return map[string]any{}, nil
	}
	return object, nil
}

// text encodes values that always encode.
func text(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}
