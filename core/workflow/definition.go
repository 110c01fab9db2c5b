package workflow

import (
	"slices"
	"time"
)

// Definition is a workflow as it was written. One that Parse gave without mistakes
// can be run. Nobody changes it; many may use it at once.
type Definition struct {
	Ref         string   `yaml:"ref" length:"0..255"`
	Label       string   `yaml:"label" length:"0..255"`
	Description string   `yaml:"description"`
	Version     string   `yaml:"version" length:"1..50"`
	Tags        []string `yaml:"tags"`
	// Parameters and Output are schemas as they were written; nil if there is none.
	Parameters map[string]any `yaml:"parameters"`
	Output     map[string]any `yaml:"output"`
	// Vars are the variables that a workflow begins with, taken as they stand.
	Vars map[string]any
	// Tasks are those on the upper level, in the order in which they were written.
	Tasks []*Task
	// OutputMap is what the result of a workflow that succeeds is made of. It is in
	// the order in which it was written.
	OutputMap []Assignment
	// Strict has errors in expressions refused where they show, and fail the task or
	// the workflow where they occur; see errorRules.
	Strict bool `yaml:"strict"`
	// Cancellation is what becomes of tasks that run when the workflow is cancelled.
	Cancellation Cancellation `yaml:"cancellation_policy" oneof:"allow_finish cancel_running"`

	// Reads are the fields of parameters and results that its expressions read. Only a
	// definition that Parse gave has them.
	Reads []Read

	names   map[string]*Task // with those within parallel ones
	entries []*Task
	order   []*Task
	sorted  []*Task // of the upper level, each behind those that lead to it
	portion int     // how many children a plan makes of lists; 0 is the default
}

// Read is a field that an expression reads.
type Read struct {
	// Action is the one whose result it is; empty for parameters of the workflow.
	Action string
	Of     string   // the task, of task.NAME; empty: it is result() or parameters
	Path   []string // below parameters, result() or task.NAME
	Task   string   // that the expression belongs to; empty: none
	At     Place
}

// Cancellation is what a cancelled workflow does with what runs.
type Cancellation string

// The ways to end a cancelled workflow.
const (
	AllowFinish   Cancellation = "allow_finish" // what runs goes on to its end; the default
	CancelRunning Cancellation = "cancel_running"
)

// Task is one task of a definition.
type Task struct {
	Name string
	Kind Kind `yaml:"type" oneof:"action parallel workflow"`
	// Action is the ref of its action; empty for a parallel one. Any other task without
	// an action is skipped.
	Action string `yaml:"action"`
	// Input are the parameters of its children. Nil passes on those of the workflow.
	Input *Value
	// PermissionSets, Selector, Tolerations and Affinity: nil inherits those of the
	// action. A value that is null was given, and takes them away.
	PermissionSets, Selector, Tolerations, Affinity *Value
	// When decides whether it is run at all; nil is always.
	When *Condition
	// WithItems is the list that it is run over; nil for a task without one.
	WithItems *Value
	// BatchSize is how many items a child gets; 0 gives each the item itself.
	BatchSize int `yaml:"batch_size" range:"1.."`
	// Concurrency is how many children may run at a time, at least 1.
	Concurrency int `yaml:"concurrency" range:"1.."`
	// Retry says how often children are repeated; nil is never.
	Retry *Retry
	// Timeout is how many seconds a child may run; 0 is what its action says.
	Timeout int `yaml:"timeout" range:"1.."`
	// Next are its transitions, in the order in which they are evaluated.
	Next []Transition
	// Join is how many predecessors have to arrive. 0 starts it with the first one.
	// For join: all it is the number of Inbound.
	Join int
	// JoinAll says that join: all was written.
	JoinAll bool
	// Tasks are those that a parallel one runs, in order.
	Tasks []*Task
	// Within is the parallel task that it belongs to; nil on the upper level.
	Within *Task
	// Inbound are the tasks that can lead to it, each once, in the order of the definition.
	Inbound []string
	// Outbound are the tasks that it can lead to, each once, in the order of its transitions.
	Outbound []string
	// Chart is what drawing programs keep about it.
	Chart any
	// At is where it is written.
	At Place
}

// Kind is what a task is.
type Kind string

// The kinds of tasks. Whether an action is itself a workflow shows when it is run,
// whatever the kind says.
const (
	KindAction   Kind = "action"
	KindParallel Kind = "parallel"
	KindWorkflow Kind = "workflow"
)

// Transition is what follows when a task has ended.
type Transition struct {
	// When decides whether it fires; nil is always.
	When *Condition
	// Publish are the variables it assigns, all together.
	Publish []Assignment
	// Do are the tasks that it leads to.
	Do []string
	// Chart is what drawing programs keep about it.
	Chart any
	// At is where it is written.
	At Place
}

// Assignment gives a name a value.
type Assignment struct {
	Name  string
	Value *Value
}

// Retry is how the children of a task are repeated.
type Retry struct {
	Count    int // 1 to 100
	Delay    time.Duration
	MaxDelay time.Duration // 0 is no limit
	Backoff  Backoff
	// OnError decides whether an end is repeated; nil repeats each.
	OnError *Condition
}

// Backoff is how the delay grows from one repetition to the next.
type Backoff string

// The ways to grow.
const (
	BackoffConstant    Backoff = "constant"
	BackoffLinear      Backoff = "linear"
	BackoffExponential Backoff = "exponential"
)

// longest bounds delays without a limit of their own, so that none overflows.
const longest = 30 * 24 * time.Hour

// Wait is how long the nth repetition waits, counted from 1.
func (r *Retry) Wait(n int) time.Duration {
	n = max(n, 1)
	most := longest
	if r.MaxDelay > 0 {
		most = r.MaxDelay
	}
	wait := min(r.Delay, most)
	switch r.Backoff {
	case BackoffLinear:
		if r.Delay > 0 && int64(n) > int64(most/r.Delay) {
			return most
		}
		wait = r.Delay * time.Duration(n)
	case BackoffExponential:
		for i := 1; i < n && wait > 0; i++ {
			if wait > most/2 {
				return most
			}
			wait *= 2
		}
	case BackoffConstant:
	}
	return min(wait, most)
}

// Task returns the task of this name, also one within a parallel; nil if there is none.
func (d *Definition) Task(name string) *Task { return d.names[name] }

// Entries are the tasks that nothing leads to, in order: a workflow begins with them.
func (d *Definition) Entries() []*Task { return d.entries }

// All are all tasks in order, those within a parallel one behind it.
func (d *Definition) All() []*Task { return d.order }

// link fills in what follows from the tasks: names, neighbours, entries, and how many
// join: all waits for. Names that lead nowhere are left out.
func (d *Definition) link() {
	d.names, d.order, d.entries = map[string]*Task{}, nil, nil
	add := func(t *Task) {
		t.Inbound, t.Outbound = nil, nil
		d.order = append(d.order, t)
		if d.names[t.Name] == nil {
			d.names[t.Name] = t
		}
	}
	for _, t := range d.Tasks {
		add(t)
		for _, sub := range t.Tasks {
			sub.Within = t
			add(sub)
		}
	}
	for _, t := range d.Tasks {
		for _, transition := range t.Next {
			for _, name := range transition.Do {
				to := d.names[name]
				if to == nil || slices.Contains(t.Outbound, name) {
					continue
				}
				t.Outbound = append(t.Outbound, name)
				to.Inbound = append(to.Inbound, t.Name)
			}
		}
	}
	for _, t := range d.Tasks {
		if len(t.Inbound) == 0 {
			d.entries = append(d.entries, t)
		}
		if t.JoinAll {
			t.Join = len(t.Inbound)
		}
	}
	d.sorted = nil
	d.sorted = d.topological()
}
