package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
)

// TaskStatus is where a task of a running workflow is.
type TaskStatus string

// The statuses of tasks. A task that nobody has reached has none.
const (
	TaskWaiting   TaskStatus = "waiting" // at its join, for more predecessors
	TaskReady     TaskStatus = "ready"   // would be started, were the workflow not paused
	TaskRunning   TaskStatus = "running" // has children that have not ended
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskTimeout   TaskStatus = "timeout"
	TaskCancelled TaskStatus = "cancelled"
	TaskSkipped   TaskStatus = "skipped" // its condition was false, or its join can no longer be satisfied
)

// Ended reports whether nothing more happens to the task.
func (s TaskStatus) Ended() bool {
	switch s {
	case TaskCompleted, TaskFailed, TaskTimeout, TaskCancelled, TaskSkipped:
		return true
	default:
		return false
	}
}

// TaskState is what is known of one task. It holds counts and never what its items
// gave, so that it stays small however many there are.
type TaskState struct {
	Status TaskStatus `json:"status"`
	// Handled says that a failure was answered: a transition led on from it.
	Handled bool `json:"handled,omitempty"`
	// Arrived are the predecessors that have led to it, until it has ended.
	Arrived []string `json:"arrived,omitempty"`
	// Why says in words why it was skipped or failed before it had a child.
	Why string `json:"why,omitempty"`

	// Of a task over a list: Total children, the first Next of which were made;
	// Open of these have not ended. A task without a list has one child.
	Items     int `json:"items,omitempty"` // of the list; a batch takes several
	Total     int `json:"total,omitempty"`
	Next      int `json:"next,omitempty"`
	Open      int `json:"open,omitempty"`
	Succeeded int `json:"succeeded,omitempty"`
	Failed    int `json:"failed,omitempty"` // failed, abandoned or cancelled
	TimedOut  int `json:"timed_out,omitempty"`
	Cancelled int `json:"cancelled,omitempty"` // of the failed ones
	// Found says that another engine has made children of the list which are not due yet.
	Found bool `json:"found,omitempty"`
}

// State is where a workflow is. Decide never changes the one it is given. It is kept
// as MarshalState writes it.
type State struct {
	Status attune.Status // running, canceling, or how it has ended
	Paused bool
	// Variables are the workflow's own, in their published column.
	Variables map[string]any
	// Tasks are those that were reached.
	Tasks map[string]*TaskState
	// Held are repetitions whose time is not counted while the workflow is paused.
	Held []Repeat
}

// Happening is something that a plan answers.
type Happening struct {
	Kind HappeningKind
	// Of a child that has ended.
	Task    string
	Index   int // of its item or batch; 0 for a task without a list
	Status  attune.Status
	Retries int // how often it had been repeated
}

// HappeningKind is what a happening is about.
type HappeningKind int

// The kinds of happenings.
const (
	Started    HappeningKind = iota + 1 // the workflow begins
	ChildEnded                          // a child has ended
	Paused                              // no more tasks are to be started
	Resumed
	Cancelled // its execution has been ended by others
	TimedOut  // it has run for longer than it may
	Looked    // nothing; whether it can go on, or has ended, is asked anew, and lists go on
	Canceling // its end is asked for: nothing more starts, and it ends with its last child
)

// Result is what the children of a task have given; ResultOf makes it of theirs. Of
// a parallel task those of the tasks within are asked for.
type Result struct {
	// Value is what result() gives right after the task has ended: the view of its
	// child's result (see ViewOf), or the list of those of its items.
	Value any
	// View is task.NAME: the same, but of a list an object, which Decide makes of it (see
	// ViewOfItems).
	View any
}

// Facts is what Decide may look at besides the state.
type Facts struct {
	// Parameters are those of the workflow's execution, with defaults.
	Parameters map[string]any
	// Execution is the id of the workflow's execution.
	Execution int64
	// Begun is when the workflow was started, Now the moment of the decision.
	Begun, Now time.Time
	// Allowed is how long the workflow may run; 0 is for ever.
	Allowed time.Duration
	// Results are those of ended tasks, by name, as far as they were asked for.
	Results map[string]Result
	// Children are what single children have given, the last repetition of each, as
	// far as they were asked for: retry.on_error looks at them.
	Children map[Child]any
	// Items are the lists that were kept, by task, from the index From on.
	Items map[string]Slice
	// Config and Keystore are what expressions find under these names; nil is null.
	Config, Keystore any
}

// Child is a child of a workflow, whichever of its repetitions.
type Child struct {
	Task  string
	Index int // of its item or batch; 0 for a task without a list
}

// Slice is a part of a kept list.
type Slice struct {
	From  int
	Items []any
}

// NeedError says which facts Decide wants to look at and was not given. The same
// call with these added goes further; it may need more then.
type NeedError struct {
	Results  []string         // tasks
	Children []Child          // single ones
	Items    map[string]Range // by task
}

// Range is a part of a list: from From on as many as Count.
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

// Plan is what follows.
type Plan struct {
	// State is the state that follows; it replaces the one that was given.
	State *State
	// Start are the children to be made, in order.
	Start []Start
	// Bytes is about what their parameters take as JSON.
	Bytes int
	// More says that children of lists may be made which this plan had no room for.
	// A decision on Looked, at once, makes more of them.
	More bool
	// Repeat are ended children to be repeated after a pause.
	Repeat []Repeat
	// Keep are lists whose items will be needed later.
	Keep []Kept
	// Stop says that children which have not ended shall be stopped: those of these
	// tasks. It is set when a workflow ends before its tasks do.
	Stop []string
	// StopUnstarted says that of these only children are stopped that have not begun
	// to run, and repetitions that still wait; the others go on to their end.
	StopUnstarted bool
	// End is set when the workflow has ended.
	End *End
	// Log says in words what was decided and why, one line each, for people.
	Log []string
}

// Start is a child to be made.
type Start struct {
	Task  string
	Index *int // of its item or batch; nil for a task without a list
	Batch *int // the same for a batch
	// Action is the ref of its action.
	Action string
	// Config is its parameters, rendered.
	Config map[string]any
	// PermissionSets are those of the task; nil inherits the action's.
	PermissionSets []string
	// Selector, Tolerations and Affinity are where it may run; nil inherits.
	Selector, Tolerations, Affinity any
	// Timeout is how many seconds it may run; 0 is what its action says.
	Timeout int
	// MaxRetries is how often the workflow repeats it.
	MaxRetries int
	// TriggeredBy is the task that led to it; empty for an entry.
	TriggeredBy string
}

// Repeat is an ended child to be made once more.
type Repeat struct {
	Task  string        `json:"task"`
	Index int           `json:"index"`
	Delay time.Duration `json:"delay"`
	// Reason is failed or timeout, for people.
	Reason string `json:"reason"`
}

// Kept is a list to be kept, item by item.
type Kept struct {
	Task  string
	Items []any
}

// End is how a workflow has ended.
type End struct {
	Status attune.Status
	// Result is the result of its execution.
	Result map[string]any
	// Error is why, in words; empty when it completed.
	Error string
}

// Lists are the names of tasks as the published columns show them.
type Lists struct{ Current, Completed, Failed, Skipped []string }
