package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// WorkflowDetail is everything about one workflow.
type WorkflowDetail struct {
	Reading
	Workflow
	// Within is the task that the workflow is in another one, if any.
	Within *WithinWorkflow `json:"within,omitempty"`
	// Definition is the ref of its definition.
	Definition string `json:"definition,omitempty"`
	// Version counts its decisions.
	Version int64 `json:"version"`
	// Deadline is the end of its time.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Cancellation is allow_finish or cancel_running; empty if the definition cannot be read.
	Cancellation string `json:"cancellation_policy,omitempty"`
	// Why are sentences about what it waits for, or why it ended. WorkflowTree sets it.
	Why []string `json:"why,omitempty"`
	// Variables are the present variables, with markers in place of secrets. A screen has none
	// above MaxDocument stored bytes; VariablesBytes is then their size.
	Variables      json.RawMessage `json:"variables,omitempty"`
	VariablesBytes int64           `json:"variables_bytes,omitempty"`
	// List are the tasks in the order of the definition, the members of a parallel task behind it.
	List []WorkflowTask `json:"tasks"`
	// Log are the decisions, the oldest first; of a long log the end.
	Log []WorkflowDecision `json:"log"`
	// Unreadable says why the tasks cannot be drawn.
	Unreadable string `json:"unreadable,omitempty"`

	open   bool
	drawn  *workflow.Definition
	states map[string]*workflow.TaskState
}

// WithinWorkflow names a task of a workflow.
type WithinWorkflow struct {
	Execution int64  `json:"execution"`
	Task      string `json:"task"`
}

// WorkflowTask is one task of a workflow.
type WorkflowTask struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Action string `json:"action,omitempty"`
	// Within is the parallel task around it.
	Within string `json:"within,omitempty"`
	// List says that it runs over a list, at most Concurrency children at a time.
	List        bool  `json:"with_items,omitempty"`
	Concurrency int64 `json:"concurrency,omitempty"`
	// Before are the tasks that lead to it, After the tasks that it leads to. Join is how many of
	// Before it waits for; 0 starts with the first.
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
	Join   int64    `json:"join,omitempty"`
	// Retry describes the retries of its children; empty for none.
	Retry string `json:"retry,omitempty"`
	// Publishes are the variables that its transitions set.
	Publishes []string `json:"publishes,omitempty"`
	// Status is empty while no transition has reached it.
	Status string `json:"status,omitempty"`
	// Says is the status in words, with the progress of a list or a join.
	Says string `json:"says"`
	// Handled says that a transition handled its failure.
	Handled bool `json:"handled,omitempty"`
	// Why says why it was skipped, failed or waits.
	Why   string         `json:"why,omitempty"`
	Items *WorkflowItems `json:"items,omitempty"`
	// Attempts is the highest number of attempts of a child.
	Attempts   int64      `json:"attempts,omitempty"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	// Children are its executions: unfinished ones, then failed ones, then the others. Made counts
	// them.
	Children []WorkflowChild `json:"children,omitempty"`
	Made     int64           `json:"children_made"`
}

// WorkflowItems is the progress of a task over a list.
type WorkflowItems struct {
	Total     int64 `json:"total"`
	Made      int64 `json:"made"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
	TimedOut  int64 `json:"timed_out"`
}

// WorkflowChild is the last attempt of a task, or of an item of its list.
type WorkflowChild struct {
	Execution int64 `json:"execution"`
	// Index is that of its item or batch; nil without a list.
	Index      *int64     `json:"index,omitempty"`
	Status     string     `json:"status"`
	Attempt    int64      `json:"attempt"`
	WorkerID   *int64     `json:"worker_id,omitempty"`
	WorkerName string     `json:"worker_name,omitempty"`
	Created    time.Time  `json:"created"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	// Due is set while a retry waits for its time.
	Due *time.Time `json:"due,omitempty"`
	// Inquiry is the open inquiry, if any.
	Inquiry int64 `json:"inquiry,omitempty"`
	// Error is the error of the result, cut short.
	Error     string `json:"error,omitempty"`
	ActionRef string `json:"action_ref"`
	// Nested says that it is a workflow.
	Nested bool `json:"nested,omitempty"`
	// Drawn says that the workflow has processed its end: a retry by hand has no effect on it.
	Drawn bool `json:"drawn,omitempty"`
}

// WorkflowDecision is one entry of the log.
type WorkflowDecision struct {
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	Lines   []string  `json:"lines"`
}

// NoWorkflowError says that an execution is no workflow, and what it is.
type NoWorkflowError struct {
	Execution int64
	ActionRef string
	// Within is the workflow that it is a task of, if any.
	Within *WithinWorkflow
	// Waiting says that it is a workflow that has not begun.
	Waiting bool
	Status  string
}

// Error says what the execution is.
func (e *NoWorkflowError) Error() string {
	name := fmt.Sprintf("execution %d (%s)", e.Execution, e.ActionRef)
	switch {
	case e.Waiting:
		return name + " is a workflow that was not begun: it is " + e.Status
	case e.Within != nil:
		return fmt.Sprintf("%s is no workflow but task %s of workflow %d", name, e.Within.Task, e.Within.Execution)
	default:
		return name + " is no workflow"
	}
}

// The bounds of a read of one workflow.
const (
	maxWorkflowChildren = 20_000
	maxTaskChildren     = 10
	maxWorkflowLog      = 500
)

// MaxTaskChildren bounds the children of one task.
const MaxTaskChildren = 1000

// WorkflowAsk selects what to read of one workflow.
type WorkflowAsk struct {
	// Execution is the workflow's execution.
	Execution int64
	// Task is the task of which up to Children children are read; of the others ten.
	Task     string
	Children int
	// Whole reads the variables however large they are.
	Whole bool
}

// Workflow reads everything about the workflow of an execution. A missing execution is ErrNotFound,
// another one a *NoWorkflowError.
func (m *Monitor) Workflow(ctx context.Context, execution int64) (*WorkflowDetail, error) {
	return m.ReadWorkflow(ctx, WorkflowAsk{Execution: execution, Whole: true}, nil)
}

// ReadWorkflow reads one workflow, and calls more in the same transaction.
func (m *Monitor) ReadWorkflow(ctx context.Context, ask WorkflowAsk,
	more func(ctx context.Context, tx *store.Tx, s Shape, d *WorkflowDetail) error,
) (*WorkflowDetail, error) {
	d, execution := &WorkflowDetail{}, ask.Execution
	err := m.Read(ctx, "workflow "+strconv.FormatInt(execution, 10), &d.Reading,
		func(ctx context.Context, tx *store.Tx, s Shape) error {
			if !s.Ours {
				return ErrUnmigrated
			}
			most := int32(MaxDocument)
			if ask.Whole {
				most = WholeDocument
			}
			rows, err := store.Rows[workflowRow](ctx, tx, store.ViewWorkflow, most, execution)
			if err != nil {
				return fmt.Errorf("read workflow %d: %w", execution, err)
			}
			if len(rows) == 0 {
				return noWorkflow(ctx, tx, execution)
			}
			rows[0].Reading = d.Reading // the transaction may be repeated
			*d = rows[0].detail()
			if err := d.rest(ctx, tx, ask); err != nil || more == nil {
				return err
			}
			return more(ctx, tx, s, d)
		})
	return d, err
}

// noWorkflow says what an execution without a workflow is.
func noWorkflow(ctx context.Context, tx *store.Tx, execution int64) error {
	row, err := tx.ViewWorkflowOf(ctx, execution)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("read execution %d: %w", execution, err)
	}
	e := &NoWorkflowError{Execution: execution, ActionRef: row.ActionRef, Waiting: row.Workflow, Status: row.Status}
	if row.Parent != 0 && row.Task != "" {
		e.Within = &WithinWorkflow{row.Parent, row.Task}
	}
	return e
}

type workflowRow struct {
	WorkflowDetail
	Open                                      bool
	CompletedTasks, FailedTasks, SkippedTasks []string
	TaskGraph, State, Source                  []byte
	WithinExecution                           int64
	WithinTask                                string
}

// detail adds the definition and the states of the tasks.
func (r *workflowRow) detail() WorkflowDetail {
	d := r.WorkflowDetail
	d.List, d.Log, d.open = []WorkflowTask{}, []WorkflowDecision{}, r.Open
	d.Tasks = WorkflowCounts{
		Completed: int64(len(r.CompletedTasks)), Failed: int64(len(r.FailedTasks)), Skipped: int64(len(r.SkippedTasks)),
	}
	if r.WithinExecution != 0 {
		d.Within = &WithinWorkflow{r.WithinExecution, r.WithinTask}
	}
	d.states = r.states()
	rest, _ := workflow.ParseJSON(r.Source) // nil without a definition
	drawn, err := workflow.ParseTaskGraph(r.TaskGraph, rest)
	switch {
	case err == nil:
		d.drawn = drawn
	case rest != nil:
		d.drawn = rest
	default:
		d.Unreadable = err.Error()
	}
	if d.drawn != nil {
		d.Cancellation = string(cmp.Or(d.drawn.Cancellation, workflow.AllowFinish))
	}
	return d
}

// states reads the states of the tasks. Of a workflow of another engine only the published lists
// are known.
func (r *workflowRow) states() map[string]*workflow.TaskState {
	if state, err := workflow.ParseState(r.State); err == nil && len(state.Tasks) > 0 {
		return state.Tasks
	}
	states := map[string]*workflow.TaskState{}
	for status, names := range map[workflow.TaskStatus][]string{
		workflow.TaskRunning: r.Current, workflow.TaskCompleted: r.CompletedTasks, workflow.TaskFailed: r.FailedTasks,
		workflow.TaskSkipped: r.SkippedTasks,
	} {
		for _, name := range names {
			states[name] = &workflow.TaskState{Status: status}
		}
	}
	return states
}

// Draw draws the tasks with their states; false if it cannot.
func (d *WorkflowDetail) Draw(width int, ascii bool) (string, bool) {
	if d.drawn == nil {
		return "", false
	}
	return d.drawn.Draw(workflow.Drawing{Tasks: d.states, Width: width, ASCII: ascii}), true
}

// DOT writes the tasks for Graphviz; false if it cannot.
func (d *WorkflowDetail) DOT() (string, bool) {
	if d.drawn == nil {
		return "", false
	}
	return d.drawn.DOT(d.states), true
}
