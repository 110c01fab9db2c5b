package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
)

// TaskStatus is the status of a task in a running workflow.
type TaskStatus string

// The statuses of tasks. A task that was not reached has none.
const (
	TaskWaiting   TaskStatus = "waiting" // at its join, for more predecessors
	TaskReady     TaskStatus = "ready"   // starts when the workflow is resumed
	TaskRunning   TaskStatus = "running" // has unfinished children
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskTimeout   TaskStatus = "timeout"
	TaskCancelled TaskStatus = "cancelled"
	TaskSkipped   TaskStatus = "skipped" // its condition was false, or its join can no longer be satisfied
)

// Ended reports whether the status is final.
func (s TaskStatus) Ended() bool {
	switch s {
	case TaskCompleted, TaskFailed, TaskTimeout, TaskCancelled, TaskSkipped:
		return true
	default:
		return false
	}
}

// TaskState is the state of one task. It has counts and no results of items, so that its size does not depend on them.
type TaskState struct {
	Status TaskStatus `json:"status"`
	// Handled says that a transition led on from a failure.
	Handled bool `json:"handled,omitempty"`
	// Arrived are its arrived predecessors, until it has ended.
	Arrived []string `json:"arrived,omitempty"`
	// Why is the reason for a skip, or for a failure without a child.
	Why string `json:"why,omitempty"`

	// A task over a list has Total children; the first Next of them exist, and Open of these are unfinished. A task
	// without a list has one child.
	Items     int `json:"items,omitempty"` // of the list; a batch takes several
	Total     int `json:"total,omitempty"`
	Next      int `json:"next,omitempty"`
	Open      int `json:"open,omitempty"`
	Succeeded int `json:"succeeded,omitempty"`
	Failed    int `json:"failed,omitempty"` // failed, abandoned or cancelled
	TimedOut  int `json:"timed_out,omitempty"`
	Cancelled int `json:"cancelled,omitempty"` // of the failed ones
	// Found says that another engine has created children of the list beyond its concurrency. Made is the number of
	// children that it has certainly created: they are requested, not rendered.
	Found bool `json:"found,omitempty"`
	Made  int  `json:"made,omitempty"`
}

// State is the state of a workflow. Decide never changes a given one. MarshalState writes its stored form.
type State struct {
	Status lifecycle.Status // running, canceling, or final
	Paused bool
	// Variables are in their published column.
	Variables map[string]any
	// Tasks are the reached tasks.
	Tasks map[string]*TaskState
	// Held are retries whose delay begins when the workflow is resumed.
	Held []Repeat
}

// Happening is an input of Decide.
type Happening struct {
	Kind HappeningKind

	// Of an ended child:
	Task    string
	Index   int // of its item or batch; 0 for a task without a list
	Status  lifecycle.Status
	Retries int // before this end
}

// HappeningKind is the kind of a happening.
type HappeningKind int

// The kinds of happenings.
const (
	Started    HappeningKind = iota + 1 // the workflow begins
	ChildEnded                          // a child has ended
	Paused                              // start no more tasks
	Resumed
	Cancelled // another program has ended its execution
	TimedOut  // it has exceeded its timeout
	Rechecked // no change: continue lists, and end the workflow if it is idle
	Canceling // start nothing more and end with the last child
)

// Result is the result of a task, made by ResultOf. Decide makes that of a parallel task from the tasks within.
type Result struct {
	// Value is the value of result() in the transitions of the task: the view of its child's result (see ViewOf), or
	// the list of those of its items.
	Value any
	// View is task.NAME: the same, but an object for a list, which Decide makes (see ViewOfItems).
	View any
}

// Facts are the inputs of Decide other than the state.
type Facts struct {
	// Parameters are those of the workflow's execution, with defaults.
	Parameters map[string]any
	// Execution is the id of the workflow's execution.
	Execution int64
	// Begun is the start of the workflow, Now the time of the decision.
	Begun, Now time.Time
	// Allowed is the timeout of the workflow; 0 is for ever.
	Allowed time.Duration
	// Results are those of ended tasks, by name, as far as a NeedError asked for them.
	Results map[string]Result
	// Children are the results of single children, each the last retry, as far as a NeedError asked for them;
	// retry.on_error needs them.
	Children map[Child]any
	// Items are parts of the kept lists, by task.
	Items map[string]Slice
	// Config and Keystore are the values of these names in expressions; nil is null.
	Config, Keystore any
}

// Child identifies a child of a workflow with all its retries.
type Child struct {
	Task  string
	Index int // of its item or batch; 0 for a task without a list
}

// Slice is a part of a kept list, from index From on.
type Slice struct {
	From  int
	Items []any
}

// NeedError names facts that Decide needs. The same call with these added gets further, and may need more.
type NeedError struct {
	Results  []string // of these tasks
	Children []Child
	Items    map[string]Range // by task
}

// Range is a part of a list.
type Range struct{ From, Count int }

// Error implements error.
func (e *NeedError) Error() string {
	var parts []string
	if len(e.Results) > 0 {
		parts = append(parts, "the results of "+strings.Join(e.Results, ", "))
	}
	for _, child := range e.Children {
		parts = append(parts, fmt.Sprintf("the result of child %d of %s", child.Index, child.Task))
	}
	for _, task := range slices.Sorted(maps.Keys(e.Items)) {
		r := e.Items[task]
		parts = append(parts, fmt.Sprintf("%d items of %s from %d on", r.Count, task, r.From))
	}
	return "decide a workflow: not given " + strings.Join(parts, "; ")
}

// Plan has the consequences of happenings.
type Plan struct {
	// State replaces the given state.
	State *State
	// Start are the children to create, in order.
	Start []Start
	// Bytes is the approximate size of their parameters as JSON.
	Bytes int
	// More says that the plan had no room for further children of lists. The caller decides on Rechecked at once.
	More bool
	// Repeat are ended children to retry after a delay.
	Repeat []Repeat
	// Keep are lists whose items later decisions need.
	Keep []Kept
	// Stop names the tasks whose unfinished children must be stopped, when a workflow ends before its tasks.
	Stop []string
	// StopUnstarted limits Stop to children that do not run yet, and to waiting retries; the others finish.
	StopUnstarted bool
	// End is set when the workflow has ended.
	End *End
	// Log explains the decisions, one line each, for people.
	Log []string
}

// Start is a child to create.
type Start struct {
	Task  string
	Index *int // of its item or batch; nil for a task without a list
	Batch *int // the same for a batch
	// Made says that another engine has created the child: it is requested, and the fields below are empty.
	Made bool
	// Action is a ref.
	Action string
	// Config are its rendered parameters.
	Config map[string]any
	// PermissionSets are those of the task; nil inherits them from the action.
	PermissionSets []string
	// Selector, Tolerations and Affinity are its placement; nil inherits it from the action.
	Selector, Tolerations, Affinity any
	// Timeout is in seconds; 0 inherits it from the action.
	Timeout int
	// MaxRetries is the number of retries by the workflow.
	MaxRetries int
	// TriggeredBy is its predecessor; empty for an entry.
	TriggeredBy string
}

// Repeat is an ended child to retry.
type Repeat struct {
	Task  string        `json:"task"`
	Index int           `json:"index"`
	Delay time.Duration `json:"delay"`
	// Reason is failed or timeout, for people.
	Reason string `json:"reason"`
}

// Kept is a list to store, item by item.
type Kept struct {
	Task  string
	Items []any
}

// End is the end of a workflow.
type End struct {
	Status lifecycle.Status
	// Result is the result of its execution.
	Result map[string]any
	// Error is the reason; empty if the workflow completed.
	Error string
}

// Lists are the names of tasks for the published columns.
type Lists struct{ Current, Completed, Failed, Skipped []string }
