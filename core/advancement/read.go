package advancement

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

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
	numbers, err := plan.Queries().NewWorkflowIDs(ctx, int32(len(rows)))
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
		if row.Depth > maxDepth {
			s.unfit = append(s.unfit,
				unfit{execution: row.ID, action: action, actionRef: row.ActionRef, why: fmt.Sprintf(
					"it is nested in %d other workflows, and %d is the most: does a workflow call itself?", row.Depth,
					maxDepth)})
			continue
		}
		source, err := s.sources.store(ctx, plan.Queries(), s.cfg.Now(), row.Definition, row.ParamSchema)
		if broken(err) {
			return err
		}
		if why := stuck[row.ID]; err == nil && why != "" {
			err = errors.New(why)
		}
		if err != nil {
			s.unfit = append(s.unfit,
				unfit{execution: row.ID, action: action, actionRef: row.ActionRef, why: err.Error()})
			continue
		}
		c := &advance{
			id: numbers[i], execution: row.ID, source: source, config: row.Config, created: row.At, now: row.At,
			begun: &beginning{definition: *row.WorkflowDef, timeout: row.TimeoutSeconds},
			parent: parent{
				status: statusRunning, action: action, actionRef: row.ActionRef, priority: row.Priority,
				requested: row.Requested,
			},
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
		if !row.Open {
			if err := s.readLate(ctx, plan, row, ended[row.ID]); err != nil {
				return err
			}
			continue
		}
		c := &advance{
			id: row.ID, execution: row.Execution, version: row.Version, ended: ended[row.ID],
			broken: stuck[row.ID],
		}
		if err := s.readOpen(ctx, plan, c, row); err != nil {
			return err
		}
		c.seen = &scheduler.SeenWorkflow{
			ID: row.ID, Version: row.Version, Status: row.Status, Paused: row.Paused,
			Open: row.Open,
		}
		s.advances = append(s.advances, c)
	}
	slices.SortFunc(s.advances, func(a, b *advance) int { return cmp.Compare(a.id, b.id) }) // the order of their locks
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
func (s *Step) readLate(ctx context.Context, plan *scheduler.Plan, row store.ReadWorkflowsRow,
	ended []store.ReadEndedTasksRow,
) error {
	if len(ended) == 0 {
		return nil
	}
	c := &advance{id: row.ID, execution: row.Execution, version: row.Version, late: row.Status, ended: ended}
	c.config, c.created, c.now = row.Config, row.Created, row.At
	c.parent = parent{status: row.ParentStatus, action: row.Action, actionRef: row.ActionRef}
	if row.State == nil || row.Source == nil {
		c.closed, c.settle = true, settledBy(ended)
	} else if err := s.locate(ctx, plan, c, row); broken(err) {
		return err
	} else if err != nil || !c.before.Status.Terminal() {
		c.closed, c.settle = true, settledBy(ended)
	} else {
		c.childrenEnded(ended)
		c.seen = &scheduler.SeenWorkflow{
			ID: row.ID, Version: row.Version, Status: row.Status, Paused: row.Paused,
			Open: row.Open,
		}
	}
	s.advances = append(s.advances, c)
	return nil
}

func settledBy(rows []store.ReadEndedTasksRow) []settled {
	all := make([]settled, len(rows))
	for i, row := range rows {
		all[i] = settled{task: row.ID, execution: row.Execution}
	}
	return all
}

// readOpen reads the state of an open workflow, and the happenings since.
func (s *Step) readOpen(ctx context.Context, plan *scheduler.Plan, c *advance, row store.ReadWorkflowsRow) error {
	c.config, c.created, c.now = row.Config, row.Created, row.At
	c.allowed = time.Duration(row.AllowedSeconds * float64(time.Second))
	c.parent = parent{
		status: row.ParentStatus, action: row.Action, actionRef: row.ActionRef, priority: row.Priority,
		requested: row.Requested,
	}
	if row.State == nil || row.Source == nil {
		return s.takeOver(ctx, plan, c, row)
	}
	err := s.locate(ctx, plan, c, row)
	switch {
	case broken(err):
		return err
	case err != nil:
		c.broken = err.Error()
	default:
		c.ended = dueOf(c.ended, c.before)
		c.readHappenings(row)
	}
	return nil
}

// locate reads the state and the definition of a workflow.
func (s *Step) locate(ctx context.Context, plan *scheduler.Plan, c *advance, row store.ReadWorkflowsRow) (err error) {
	if c.before, err = workflow.ParseState(row.State); err != nil {
		return err
	}
	if c.before.Variables, err = variables(row.Variables); err != nil {
		return err
	}
	c.source, err = s.sources.get(ctx, plan.Queries(), *row.Source)
	return err
}

// readHappenings lists the happenings in their order. Cancel and pause come before the ends of children, which then
// trigger nothing, or not yet. The timeout comes after them, because they may end the workflow in time.
func (c *advance) readHappenings(row store.ReadWorkflowsRow) {
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
	c.childrenEnded(c.ended)
	if row.Overdue {
		c.happen(workflow.TimedOut)
	}
	if len(c.happened) == 0 {
		c.happen(workflow.Rechecked)
	}
}

func (c *advance) childrenEnded(ended []store.ReadEndedTasksRow) {
	for _, one := range ended {
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
