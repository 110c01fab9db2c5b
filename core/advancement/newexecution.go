package advancement

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// planNewExecutions creates the children of all workflows in memory, and requests the locks of
// their admission.
func (s *Step) planNewExecutions(ctx context.Context, plan *scheduler.Plan) error {
	for _, c := range s.advances {
		if err := s.findExisting(ctx, plan.Queries(), c); err != nil {
			return err
		}
	}
	n := 0
	refs := []string{}
	for _, c := range s.advances {
		for _, start := range c.plan.Start {
			n, refs = n+1, append(refs, start.Action)
		}
	}
	ids, err := plan.NewIDs(ctx, n)
	if err != nil || n == 0 {
		return err
	}
	if err := plan.LoadRules(ctx, nil, refs); err != nil {
		return err
	}
	for _, c := range s.advances {
		for _, start := range c.plan.Start {
			b := c.child(start, ids[0])
			ids = ids[1:]
			c.newExecutions = append(c.newExecutions, b)
			plan.NeedNewExecution(b)
		}
		if err := s.conceal(ctx, plan, c); err != nil {
			return err
		}
		if err := s.prepareInquiries(ctx, plan.Queries(), c); err != nil {
			return err
		}
	}
	return nil
}

// task is the published workflow_task of a child.
type task struct {
	Workflow    int64  `json:"workflow_execution"`
	Name        string `json:"task_name"`
	TriggeredBy string `json:"triggered_by,omitempty"`
	Index       *int   `json:"task_index"`
	Batch       *int   `json:"task_batch"`
	RetryCount  int    `json:"retry_count"`
	MaxRetries  int    `json:"max_retries"`
	Timeout     *int   `json:"timeout_seconds"`
	TimedOut    bool   `json:"timed_out"`
}

// child builds the execution of a task.
func (c *advance) child(start workflow.Start, id int64) *scheduler.NewExecution {
	about := task{
		Workflow: c.row.ID, Name: start.Task, TriggeredBy: start.TriggeredBy, Index: start.Index, Batch: start.Batch,
		MaxRetries: start.MaxRetries,
	}
	if start.Timeout > 0 {
		about.Timeout = &start.Timeout
	}
	b := &scheduler.NewExecution{
		ID: id, ActionRef: start.Action, Parent: c.row.Execution, Priority: c.row.Priority,
		Requested:      c.row.Requested,
		PermissionSets: start.PermissionSets, WorkflowTask: text(about),
		Own: placement.Own{
			Selector: given(start.Selector), Tolerations: given(start.Tolerations), Affinity: given(start.Affinity),
		},
	}
	if len(start.Config) > 0 {
		raw, err := json.Marshal(start.Config)
		if err != nil { // for example an infinite number
			b.Refuse = "its parameters: " + err.Error()
		}
		b.Config = raw
	}
	if start.MaxRetries > 0 {
		b.MaxRetries = &start.MaxRetries
	}
	if start.Action == inquiry.Action && b.Refuse == "" {
		b.Status = statusRunning
	}
	return b
}

// given encodes a task's own setting; nil if it has none.
func given(value any) json.RawMessage {
	if value == nil {
		return nil
	}
	return text(value)
}

// prepareInquiries prepares the inquiries among the children.
func (s *Step) prepareInquiries(ctx context.Context, q *store.Queries, c *advance) error {
	var questions []inquiry.Question
	for i, b := range c.newExecutions {
		if b.Status != statusRunning {
			continue
		}
		config := b.Config
		if t := c.source.definition.Task(c.plan.Start[i].Task); t != nil && t.Input == nil {
			config = inquiry.Inherited(config)
		}
		question, err := inquiry.FromConfig(config, time.Duration(c.plan.Start[i].Timeout)*time.Second)
		if err != nil {
			b.Status, b.Refuse = "", err.Error()
			continue
		}
		question.Execution = b.ID
		questions = append(questions, question)
	}
	if len(questions) == 0 {
		return nil
	}
	var err error
	if c.opening, err = inquiry.Prepare(ctx, q, questions); err != nil {
		return err
	}
	children := map[int64]*scheduler.NewExecution{}
	for _, b := range c.newExecutions {
		children[b.ID] = b
	}
	for _, question := range c.opening.Questions {
		children[question.Execution].Result = text(map[string]any{"inquiry_id": question.ID, "status": "pending"})
	}
	for _, fault := range c.opening.Faults {
		b := children[fault.Execution]
		b.Status, b.Refuse = "", fault.Reason
	}
	c.opening.Faults = nil // their executions end with the reason
	return nil
}

// complete finds the existing rows that a decision changes, and builds the result of an ended workflow.
func (s *Step) complete(ctx context.Context, q *store.Queries, c *advance) error {
	if c.plan.End != nil { // an ended workflow starts and retries nothing
		c.plan.Start, c.plan.Repeat = nil, nil
	}
	again := map[workflow.Child]workflow.Repeat{}
	for _, r := range c.plan.Repeat {
		again[workflow.Child{Task: r.Task, Index: r.Index}] = r
	}
	for _, ended := range c.ended {
		key := workflow.Child{Task: ended.TaskName, Index: int(ended.TaskIndex)}
		if r, repeated := again[key]; repeated {
			c.repeats = append(c.repeats,
				repeat{execution: ended.Execution, reason: lifecycle.RetryReason(r.Reason), delay: r.Delay})
			delete(again, key)
			continue
		}
		c.settle = append(c.settle, ended)
	}
	if err := c.held(ctx, q, again); err != nil {
		return err
	}
	if c.plan.End == nil {
		return nil
	}
	public, err := s.hide(ctx, q, c, expr.Value(c.plan.End.Result), nil, secret.OfResult, c.row.Execution)
	if broken(err) {
		return fmt.Errorf("the result of workflow %d: %w", c.row.ID, err)
	}
	if err != nil {
		why := "its result: " + err.Error()
		c.plan.End = &workflow.End{Status: lifecycle.StatusFailed, Error: why}
		c.plan.State.Status = lifecycle.StatusFailed
		public = map[string]any{"error": why, "succeeded": false}
	}
	c.result = text(public)
	return nil
}

// held finds the children whose retry was postponed while the workflow was paused. They were settled then, and count as
// open again.
func (c *advance) held(ctx context.Context, q *store.Queries, again map[workflow.Child]workflow.Repeat) error {
	if len(again) == 0 {
		return nil
	}
	var names []string
	for child := range again {
		names = append(names, child.Task)
	}
	rows, err := q.ReadSettledTasks(ctx, c.row.ID, names)
	if err != nil {
		return fmt.Errorf("read the held retries of workflow %d: %w", c.row.ID, err)
	}
	for _, row := range rows {
		r, wanted := again[workflow.Child{Task: row.TaskName, Index: int(row.TaskIndex)}]
		if !wanted || row.Execution == nil {
			continue
		}
		c.repeats = append(c.repeats,
			repeat{execution: *row.Execution, reason: lifecycle.RetryReason(r.Reason), delay: r.Delay})
		c.reopen = append(c.reopen, row.ID)
	}
	return nil
}
