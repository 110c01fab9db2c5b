package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// rest reads the children and the log.
func (d *WorkflowDetail) rest(ctx context.Context, tx *store.Tx, ask WorkflowAsk) error {
	tasks, err := store.Rows[taskRow](ctx, tx, store.ViewWorkflowTasks, d.ID, maxWorkflowChildren)
	if err != nil {
		return fmt.Errorf("read the tasks of workflow %d: %w", d.Execution, err)
	}
	children, err := store.Rows[childRow](ctx, tx, store.ViewWorkflowChildren, d.ID, maxWorkflowChildren, ask.Task,
		min(max(ask.Children, maxTaskChildren), MaxTaskChildren), maxTaskChildren)
	if err != nil {
		return fmt.Errorf("read the children of workflow %d: %w", d.Execution, err)
	}
	log, err := tx.ViewWorkflowLog(ctx, d.ID, maxWorkflowLog)
	if err != nil {
		return fmt.Errorf("read the log of workflow %d: %w", d.Execution, err)
	}
	d.list(tasks, children)
	for _, l := range slices.Backward(log) {
		d.Log = append(d.Log, WorkflowDecision(l))
	}
	return nil
}

// list lists the tasks of the definition in its order, then unknown tasks with children.
func (d *WorkflowDetail) list(rows []taskRow, children []childRow) {
	counts := map[string]*taskRow{}
	for i := range rows {
		counts[rows[i].TaskName] = &rows[i]
	}
	of := map[string][]WorkflowChild{}
	for _, c := range children {
		c.Error = cutText(c.Error, 300)
		of[c.TaskName] = append(of[c.TaskName], c.WorkflowChild)
	}
	if !d.open {
		d.afterTheEnd(counts, of)
	}
	known := map[string]bool{}
	add := func(t *workflow.Task) {
		known[t.Name] = true
		task := d.task(t, counts[t.Name])
		task.Children = of[t.Name]
		task.explain(t, d.states, d.At)
		d.List = append(d.List, task)
	}
	if d.drawn != nil {
		for _, t := range d.drawn.All() {
			add(t)
		}
		d.Tasks.Total = int64(len(d.drawn.All()))
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if !known[name] {
			add(&workflow.Task{Name: name, Kind: workflow.KindAction})
		}
	}
	d.span()
}

// afterTheEnd updates the tasks that ran when the workflow ended. Their later ends changed nothing
// in its state.
func (d *WorkflowDetail) afterTheEnd(counts map[string]*taskRow, of map[string][]WorkflowChild) {
	for name, state := range d.states {
		row := counts[name]
		if state.Status != workflow.TaskRunning || row == nil || row.Running+row.Waiting > 0 {
			continue
		}
		last := "" // of a task without a list
		if children := of[name]; len(children) == 1 && children[0].Index == nil {
			last = children[0].Status
		}
		now := *state
		now.Open, now.Succeeded, now.TimedOut, now.Failed = 0, int(row.Completed), int(row.TimedOut), int(row.Failed)
		switch {
		case row.Completed == row.Children && now.Total <= int(row.Children):
			now.Status = workflow.TaskCompleted
		case last == string(lifecycle.StatusTimeout):
			now.Status = workflow.TaskTimeout
		case last == string(lifecycle.StatusFailed), last == string(lifecycle.StatusAbandoned):
			now.Status = workflow.TaskFailed
		default:
			now.Status = workflow.TaskCancelled
		}
		d.states[name] = &now
	}
}

// span gives parallel tasks the times of their members.
func (d *WorkflowDetail) span() {
	at := map[string]*WorkflowTask{}
	for i := range d.List {
		at[d.List[i].Name] = &d.List[i]
	}
	for i := range d.List {
		task := &d.List[i]
		around := at[task.Within]
		if around == nil {
			continue
		}
		if task.StartedAt != nil && (around.StartedAt == nil || task.StartedAt.Before(*around.StartedAt)) {
			around.StartedAt = task.StartedAt
		}
		if task.FinishedAt != nil && (around.FinishedAt == nil || task.FinishedAt.After(*around.FinishedAt)) {
			around.FinishedAt = task.FinishedAt
		}
	}
	for i := range d.List {
		if task := &d.List[i]; !workflow.TaskStatus(task.Status).Ended() {
			task.FinishedAt = nil
		}
	}
}

// task is the state of a task with the results of its children.
func (d *WorkflowDetail) task(t *workflow.Task, row *taskRow) WorkflowTask {
	state := d.states[t.Name]
	task := WorkflowTask{Name: t.Name, Type: string(t.Kind), Action: t.Action, Says: workflow.StatusText(t, state)}
	task.define(t)
	if state != nil {
		task.Status, task.Handled, task.Why = string(state.Status), state.Handled, state.Why
		if t.WithItems != nil && state.Total > 0 {
			task.Items = &WorkflowItems{
				Total: int64(state.Total), Made: int64(state.Next), Succeeded: int64(state.Succeeded),
				Failed: int64(state.Failed), TimedOut: int64(state.TimedOut),
			}
		}
	}
	if row == nil {
		return task
	}
	task.Made, task.Attempts = row.Children, row.Repeated+1
	task.StartedAt = row.Started
	if state != nil && state.Status.Ended() {
		task.FinishedAt = row.Finished
	}
	return task
}

// define copies the definition of a task.
func (w *WorkflowTask) define(t *workflow.Task) {
	if t.Within != nil {
		w.Within = t.Within.Name
	}
	w.List, w.Before, w.After, w.Join = t.WithItems != nil, t.Inbound, t.Outbound, int64(t.Join)
	if w.List {
		w.Concurrency = int64(t.Concurrency)
	}
	if t.Retry != nil {
		w.Retry = retryWords(t.Retry)
	}
	for _, transition := range t.Next {
		for _, assigned := range transition.Publish {
			if !slices.Contains(w.Publishes, assigned.Name) {
				w.Publishes = append(w.Publishes, assigned.Name)
			}
		}
	}
}

// retryWords describes the retries of a task's children.
func retryWords(r *workflow.Retry) string {
	text := "up to " + phrase.Plural(int64(r.Count), "time", "times")
	if r.Delay > 0 {
		text += ", after " + r.Delay.String()
		if r.Backoff != workflow.BackoffConstant && r.Backoff != "" {
			text += " and " + string(r.Backoff) + " more"
		}
	}
	if r.OnError != nil {
		text += ", if its condition says so"
	}
	return text
}

type childRow struct {
	TaskName string
	WorkflowChild
}

// taskRow counts the children of a task by their outcomes.
type taskRow struct {
	TaskName                                                          string
	Children, Completed, Failed, TimedOut, Running, Waiting, Repeated int64
	Started, Finished                                                 *time.Time
}

// explain says why a task has its status, unless the decision said so.
func (w *WorkflowTask) explain(t *workflow.Task, states map[string]*workflow.TaskState, now time.Time) {
	if w.Why != "" {
		return
	}
	switch workflow.TaskStatus(w.Status) {
	case workflow.TaskWaiting:
		w.Why = waitsFor(t, states)
	case workflow.TaskReady:
		w.Why = "it is started when the workflow is resumed"
	case workflow.TaskFailed, workflow.TaskTimeout, workflow.TaskCancelled:
		for _, child := range w.Children {
			if child.Error != "" {
				w.Why = child.Error
				return
			}
		}
	case workflow.TaskRunning:
		for _, child := range w.Children {
			switch {
			case child.Inquiry != 0:
				w.Why = fmt.Sprintf("waits for the answer to inquiry %d", child.Inquiry)
				return
			case child.Due != nil:
				w.Why = "is repeated " + phrase.In(child.Due.Sub(now)) + ", attempt " +
					strconv.FormatInt(child.Attempt, 10)
			}
		}
	default:
	}
}

// waitsFor names what a join has and what it can still get.
func waitsFor(t *workflow.Task, states map[string]*workflow.TaskState) string {
	state := states[t.Name]
	var open []string
	for _, name := range t.Inbound {
		before := states[name]
		if !slices.Contains(state.Arrived, name) && (before == nil || !before.Status.Ended()) {
			open = append(open, name)
		}
	}
	text := fmt.Sprintf("has %d of %d", len(state.Arrived), t.Join)
	if len(state.Arrived) > 0 {
		text += " (" + strings.Join(state.Arrived, ", ") + ")"
	}
	if len(open) > 0 {
		text += ", may come: " + strings.Join(open, ", ")
	}
	return text
}
