package advancement

import (
	"encoding/json"
	"slices"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// begun is a started workflow as InsertWorkflows takes it.
type begun struct {
	ID         int64           `json:"id"`
	Execution  int64           `json:"execution"`
	Definition int64           `json:"definition"`
	Source     int64           `json:"source"`
	Graph      json.RawMessage `json:"graph"`
	Timeout    float64         `json:"timeout"`
}

// advanced is the new state of a workflow as AdvanceWorkflows takes it.
type advanced struct {
	ID        int64           `json:"id"`
	Version   int64           `json:"version"`
	State     json.RawMessage `json:"state"`
	Variables json.RawMessage `json:"variables"`
	Status    string          `json:"status"`
	Error     string          `json:"error,omitempty"`
	Open      bool            `json:"open"`
	WasOpen   bool            `json:"was_open"`
	Current   []string        `json:"current"`
	Completed []string        `json:"completed"`
	Failed    []string        `json:"failed"`
	Skipped   []string        `json:"skipped"`
	Log       []string        `json:"log"`
}

// write queues the changes of the workflows in the order of their foreign keys.
func (s *Step) write(batch *scheduler.Batch) {
	var starts []begun
	var states []advanced
	var ids, settle, children, reopen, enter, listsOf []int64
	var statuses, results, lists []string
	var tasks store.InsertTasksParams
	settled := s.closed
	for _, c := range s.advances {
		reopen, settled = append(reopen, c.reopen...), append(settled, c.settle...)
		if status := c.row.ParentStatus; status == statusRequested || status == lifecycle.StatusScheduling {
			enter = append(enter, c.row.Execution) // another engine created the workflow and did not continue
		}
		if c.inherited != nil {
			c.inherited.write(batch, c)
		}
		if c.phase == begins {
			starts = append(starts, c.begun)
		}
		states = append(states, c.state())
		c.tasks(&tasks)
		for _, task := range c.dropped() {
			listsOf, lists = append(listsOf, c.row.ID), append(lists, task)
		}
		if c.ends() {
			ids, results = append(ids, c.row.Execution), append(results, string(c.result))
			statuses = append(statuses, string(c.plan.End.Status))
		}
	}
	for _, one := range settled {
		settle, children = append(settle, one.ID), append(children, one.Execution)
	}
	also := func(wanted bool, sql string, args ...any) {
		if wanted {
			batch.Also(sql, args...)
		}
	}
	also(len(starts) > 0, store.InsertWorkflows, text(starts))
	also(len(states) > 0, store.AdvanceWorkflows, text(states))
	also(len(enter) > 0, store.RunWorkflowParents, enter)
	also(len(settle) > 0, store.SettleTasks, settle, children)
	also(len(reopen) > 0, store.ReopenTasks, reopen)
	also(len(reopen) > 0, store.FollowRetries, reopen)
	also(len(tasks.Executions) > 0, store.InsertTasks, tasks.Executions, tasks.Workflows, tasks.Tasks, tasks.Indexes)
	also(len(lists) > 0, store.DropWorkflowItems, listsOf, lists)
	for _, c := range s.advances {
		c.follow(batch)
	}
	also(len(ids) > 0, store.EndWorkflowParents, ids, statuses, results)
}

// state is the workflow's row after the decision. A workflow that another program ended keeps its
// status.
func (c *advance) state() advanced {
	state := c.plan.State
	row := advanced{
		ID: c.row.ID, Version: c.row.Version, Variables: text(state.Variables), Status: string(state.Status),
		Open: !state.Status.Terminal(), WasOpen: c.row.Open,
		Log: list(c.plan.Log),
	}
	if c.phase == late {
		row.Status = string(c.row.Status)
	}
	if state.Status == lifecycle.StatusCanceling { // as published: only its execution still waits
		row.Status, row.Error = string(lifecycle.StatusCancelled), "Workflow cancelled"
	}
	if c.plan.End != nil {
		row.Error = c.plan.End.Error
		if c.row.ParentStatus.Terminal() {
			row.Status = string(c.row.ParentStatus)
		}
	}
	row.State, _ = workflow.MarshalState(state)
	if c.source != nil {
		lists := state.Lists(c.source.definition)
		row.Current, row.Completed = list(lists.Current), list(lists.Completed)
		row.Failed, row.Skipped = list(lists.Failed), list(lists.Skipped)
	} else {
		row.Current, row.Completed, row.Failed, row.Skipped = []string{}, []string{}, []string{}, []string{}
		if c.inherited != nil { // its definition is unreadable
			row.Completed, row.Failed = list(c.inherited.CompletedTasks), list(c.inherited.FailedTasks)
		}
	}
	return row
}

// list is never null in JSON.
func list(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

// tasks adds the new children to the open tasks.
func (c *advance) tasks(to *store.InsertTasksParams) {
	for i, b := range c.newExecutions {
		start, index := c.plan.Start[i], int32(-1)
		if start.Index != nil {
			index = int32(*start.Index)
		}
		to.Workflows, to.Tasks = append(to.Workflows, c.row.ID), append(to.Tasks, start.Task)
		to.Indexes, to.Executions = append(to.Indexes, index), append(to.Executions, b.ID)
	}
}

// follow queues the statements of one workflow.
func (c *advance) follow(batch *scheduler.Batch) {
	for _, kept := range c.plan.Keep {
		batch.Also(store.KeepWorkflowItems, c.row.ID, kept.Task, text(kept.Items))
	}
	if v := c.secrets; len(v.JsonPaths) > 0 {
		batch.Also(store.InsertSecretValues, v.EntityTypes, v.EntityIds, v.JsonPaths, v.SourceKinds, v.SourceRefs,
			v.EncryptedValues, v.KeyHashes)
	}
	if !c.opening.Empty() {
		for _, statement := range c.opening.Statements() {
			batch.Also(statement.SQL, statement.Args...)
		}
	}
	if len(c.plan.Stop) > 0 {
		reason := "its workflow is cancelled"
		if c.plan.End != nil {
			reason = c.plan.End.Error
		}
		batch.Also(store.StopTasks, reason, c.row.ID, c.plan.Stop, c.plan.StopUnstarted)
	}
}

// stops reports whether the batch requests the end of tasks.
func (s *Step) stops() bool {
	return slices.ContainsFunc(s.advances, func(c *advance) bool { return len(c.plan.Stop) > 0 })
}

// ends reports whether the batch ends the execution of the workflow, unless another program has ended it.
func (c *advance) ends() bool {
	return c.plan.End != nil && !c.row.ParentStatus.Terminal()
}

// announce sends the end of a workflow and its new inquiries.
func (c *advance) announce(batch *scheduler.Batch) {
	if c.ends() {
		batch.Announce(store.ReadOutcomesRow{
			ID: c.row.Execution, Action: &c.row.Action, ActionRef: c.row.ActionRef, Status: c.plan.End.Status,
			Result: c.result, FinishedAt: batch.Now(),
		})
	}
	if c.opening.Empty() {
		return
	}
	messages, err := c.opening.Messages(batch.Now(), batch.Source())
	if err == nil { // texts and numbers always encode
		batch.Send(messages...)
	}
}

// dropped names the tasks whose stored lists are not needed any more.
func (c *advance) dropped() (tasks []string) {
	if c.before == nil || c.source == nil {
		return nil
	}
	for _, task := range c.source.definition.All() {
		before, after := c.before.Tasks[task.Name], c.plan.State.Tasks[task.Name]
		kept := before != nil && before.Next < before.Total && task.WithItems != nil
		if kept && after != nil && (after.Next >= after.Total || after.Status.Ended()) {
			tasks = append(tasks, task.Name)
		}
	}
	return tasks
}
