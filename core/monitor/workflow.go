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
	// Within is the task of another workflow that it is; nil if it is none.
	Within *WithinWorkflow `json:"within,omitempty"`
	// Definition is the ref of its definition.
	Definition string `json:"definition,omitempty"`
	// Version counts the decisions that were made about it.
	Version int64 `json:"version"`
	// Deadline is when it has run for longer than it may.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Cancellation is what becomes of what runs when it is cancelled: allow_finish or
	// cancel_running; empty where its definition cannot be read.
	Cancellation string `json:"cancellation_policy,omitempty"`
	// Why says in sentences what it waits for, or why it ended as it did. It is asked
	// for by WorkflowTree.
	Why []string `json:"why,omitempty"`
	// Variables are its variables as they are now. Secrets are not in them: a marker
	// stands in place of each. They are absent when they are larger than MaxDocument.
	Variables json.RawMessage `json:"variables,omitempty"`
	// List are the tasks in the order of the definition, those within a parallel one
	// behind it.
	List []WorkflowTask `json:"tasks"`
	// Log is what was decided and why, the first first; of a long one the end.
	Log []WorkflowDecision `json:"log"`
	// Unreadable says why the tasks cannot be drawn; empty if they can.
	Unreadable string `json:"unreadable,omitempty"`

	open   bool
	drawn  *workflow.Definition
	states map[string]*workflow.TaskState
}

// WithinWorkflow says which task of which workflow something is.
type WithinWorkflow struct {
	Execution int64  `json:"execution"`
	Task      string `json:"task"`
}

// WorkflowTask is one task of a workflow.
type WorkflowTask struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Action string `json:"action,omitempty"`
	// Within is the parallel task that it belongs to.
	Within string `json:"within,omitempty"`
	// List says that it runs over a list, at most Concurrency children at a time.
	List        bool  `json:"with_items,omitempty"`
	Concurrency int64 `json:"concurrency,omitempty"`
	// Before are the tasks that can lead to it, After those that it can lead to. Join
	// is how many of Before it waits for; 0 starts it with the first.
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
	Join   int64    `json:"join,omitempty"`
	// Retry says how its children are repeated; empty is never.
	Retry string `json:"retry,omitempty"`
	// Publishes are the variables that its transitions may set.
	Publishes []string `json:"publishes,omitempty"`
	// Status is where it is; empty while nothing has led to it.
	Status string `json:"status,omitempty"`
	// Says is the same in words, with how far a list, or what waits at a join, is.
	Says string `json:"says"`
	// Handled says that its failure was answered by a transition.
	Handled bool `json:"handled,omitempty"`
	// Why says why it was skipped, has failed or waits.
	Why string `json:"why,omitempty"`
	// Items counts the children of a task over a list.
	Items *WorkflowItems `json:"items,omitempty"`
	// Attempts is how often the child was run that was repeated most.
	Attempts   int64      `json:"attempts,omitempty"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	// Children are the executions that run it, those that have not ended first, then
	// those that did not succeed. Made says how many there are.
	Children []WorkflowChild `json:"children,omitempty"`
	Made     int64           `json:"children_made"`
}

// WorkflowItems is how far a task over a list is.
type WorkflowItems struct {
	Total     int64 `json:"total"`
	Made      int64 `json:"made"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
	TimedOut  int64 `json:"timed_out"`
}

// WorkflowChild is the last attempt at one task, or at one item of its list.
type WorkflowChild struct {
	Execution int64 `json:"execution"`
	// Index is the one of its item or batch; nil without a list.
	Index      *int64     `json:"index,omitempty"`
	Status     string     `json:"status"`
	Attempt    int64      `json:"attempt"`
	WorkerID   *int64     `json:"worker_id,omitempty"`
	WorkerName string     `json:"worker_name,omitempty"`
	Created    time.Time  `json:"created"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	// Due is when it is repeated, while it waits for that.
	Due *time.Time `json:"due,omitempty"`
	// Inquiry is the question that it waits for an answer to.
	Inquiry int64 `json:"inquiry,omitempty"`
	// Error is what it ended with, cut short; empty when there is none.
	Error     string `json:"error,omitempty"`
	ActionRef string `json:"action_ref"`
	// Nested says that it is a workflow itself.
	Nested bool `json:"nested,omitempty"`
	// Drawn says that the workflow has gone on from its end: what repeats it by hand
	// does not change that any more.
	Drawn bool `json:"drawn,omitempty"`
}

// WorkflowDecision is what was decided at a time.
type WorkflowDecision struct {
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	Lines   []string  `json:"lines"`
}

// NoWorkflowError says that an execution is no workflow, and what it is.
type NoWorkflowError struct {
	Execution int64
	ActionRef string
	// Within is the workflow that it is a task of; nil if it is none.
	Within *WithinWorkflow
	// Waiting says that it is a workflow that has not begun.
	Waiting bool
	Status  string
}

// Error says it in one sentence.
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

// Bounds of what is read of one workflow.
const (
	maxWorkflowChildren = 20_000
	maxTaskChildren     = 10
	maxWorkflowLog      = 500
)

// MaxTaskChildren is the most children of one task that are read.
const MaxTaskChildren = 1000

// WorkflowAsk is what to read of one workflow.
type WorkflowAsk struct {
	// Execution is the one that the workflow runs for.
	Execution int64
	// Task is one of which more children are read than of the others, up to Children
	// and MaxTaskChildren; empty reads ten of each.
	Task     string
	Children int
}

// Workflow reads everything about one workflow, known by the execution that it runs
// for. One that does not exist is ErrNotFound, one that is no workflow a
// *NoWorkflowError.
func (m *Monitor) Workflow(ctx context.Context, execution int64) (*WorkflowDetail, error) {
	return m.ReadWorkflow(ctx, WorkflowAsk{Execution: execution}, nil)
}

// ReadWorkflow reads one workflow, and what else is asked for in the same transaction.
func (m *Monitor) ReadWorkflow(ctx context.Context, ask WorkflowAsk,
	more func(ctx context.Context, tx *store.Tx, s Shape, d *WorkflowDetail) error,
) (*WorkflowDetail, error) {
	d, execution := &WorkflowDetail{}, ask.Execution
	err := m.Read(ctx, "workflow "+strconv.FormatInt(execution, 10), &d.Reading,
		func(ctx context.Context, tx *store.Tx, s Shape) error {
			if err := RecordsWorkflows(ctx, tx, s); err != nil {
				return err
			}
			row, err := tx.ViewWorkflow(ctx, MaxDocument, execution)
			if errors.Is(err, sql.ErrNoRows) {
				return noWorkflow(ctx, tx, execution)
			}
			if err != nil {
				return fmt.Errorf("read workflow %d: %w", execution, err)
			}
			// the transaction may be repeated
			*d = WorkflowDetail{Reading: d.Reading, List: []WorkflowTask{}, Log: []WorkflowDecision{}}
			d.take(&row)
			if err := d.rest(ctx, tx, ask); err != nil || more == nil {
				return err
			}
			return more(ctx, tx, s, d)
		})
	return d, err
}

// noWorkflow says what an execution is that no workflow is known by.
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

// take fills in what stands in the row of the workflow.
func (d *WorkflowDetail) take(r *store.ViewWorkflowRow) {
	d.Workflow = Workflow{
		Execution: r.Execution, ID: r.ID, ActionRef: r.ActionRef, Status: r.Status, Paused: r.Paused,
		PauseReason: r.PauseReason, PausedAbove: r.PausedAbove,
		Tasks: WorkflowCounts{
			Completed: int64(len(r.CompletedTasks)), Failed: int64(len(r.FailedTasks)),
			Skipped: int64(len(r.SkippedTasks)),
		},
		Current: r.CurrentTasks, Error: r.Error, Parent: r.Parent, Created: r.Created, StartedAt: r.StartedAt,
		FinishedAt: r.FinishedAt,
	}
	d.open = r.Open
	d.Definition, d.Version, d.Deadline = r.DefinitionRef, r.Version, r.Deadline
	if r.Within != 0 {
		d.Within = &WithinWorkflow{r.Within, r.WithinTask}
	}
	if r.Variables != "" {
		d.Variables = json.RawMessage(r.Variables)
	}
	d.states = statesOf(r)
	rest, _ := workflow.ParseJSON(r.Definition) // nil where none is kept
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
}

// statesOf reads where the tasks are. Of a workflow that another engine leads only
// the published lists are known.
func statesOf(r *store.ViewWorkflowRow) map[string]*workflow.TaskState {
	if state, err := workflow.ParseState(r.State); err == nil && len(state.Tasks) > 0 {
		return state.Tasks
	}
	states := map[string]*workflow.TaskState{}
	for status, names := range map[workflow.TaskStatus][]string{
		workflow.TaskRunning: r.CurrentTasks, workflow.TaskCompleted: r.CompletedTasks,
		workflow.TaskFailed:  r.FailedTasks,
		workflow.TaskSkipped: r.SkippedTasks,
	} {
		for _, name := range names {
			states[name] = &workflow.TaskState{Status: status}
		}
	}
	return states
}

// Draw draws the tasks with where they are; false if they cannot be drawn.
func (d *WorkflowDetail) Draw(width int, ascii bool) (string, bool) {
	if d.drawn == nil {
		return "", false
	}
	return d.drawn.Draw(workflow.Drawing{Tasks: d.states, Width: width, ASCII: ascii}), true
}

// DOT draws them in the language of Graphviz; false if they cannot be drawn.
func (d *WorkflowDetail) DOT() (string, bool) {
	if d.drawn == nil {
		return "", false
	}
	return d.drawn.DOT(d.states), true
}
