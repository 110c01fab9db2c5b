package workflow

import (
	"slices"
	"time"
)

// Definition is a parsed workflow. It can run if Parse returned no mistakes. It is immutable and safe for concurrent
// use.
type Definition struct {
	Ref         string   `yaml:"ref" length:"0..255"`
	Label       string   `yaml:"label" length:"0..255"`
	Description string   `yaml:"description"`
	Version     string   `yaml:"version" length:"1..50"`
	Tags        []string `yaml:"tags"`
	// Parameters and Output are the schemas; nil if there is none.
	Parameters map[string]any `yaml:"parameters"`
	Output     map[string]any `yaml:"output"`
	// Vars are the initial variables; their templates are not evaluated.
	Vars map[string]any
	// Tasks are the tasks of the upper level, in the order of the file.
	Tasks []*Task
	// OutputMap makes the result of a completed workflow, in the order of the file.
	OutputMap []Assignment
	// Strict selects the strict errorRules.
	Strict bool `yaml:"strict"`
	// Cancellation decides about running tasks of a cancelled workflow.
	Cancellation Cancellation `yaml:"cancellation_policy" oneof:"allow_finish cancel_running"`

	// Reads are the fields of parameters and results in the expressions. Only Parse sets them.
	Reads []Read

	names   map[string]*Task // also tasks within parallel tasks
	entries []*Task
	order   []*Task
	sorted  []*Task // see topological
	portion int     // children of lists in one plan; 0 is the default
}

// errorRules decides about errors in expressions. The two values below, and that only a strict workflow evaluates the
// when of its tasks, are the differences between lenient and strict workflows.
type errorRules struct {
	// refuse makes an error that is visible in the file a mistake. Otherwise it is a warning, and an error at the
	// evaluation.
	refuse bool
	// fail makes an error in when or publish fail the task, unless another transition fires, and an error in
	// output_map the workflow. Otherwise it is logged and affects only this condition, variable or output.
	fail bool
}

var (
	lenient = errorRules{}
	strict  = errorRules{refuse: true, fail: true}
)

// onError returns the published lenient rules, unless the definition has strict: true.
func (d *Definition) onError() errorRules {
	if d.Strict {
		return strict
	}
	return lenient
}

// Read is a field that an expression reads.
type Read struct {
	// Action has the result; empty for parameters of the workflow.
	Action string
	Of     string   // NAME of task.NAME; empty for result() and parameters
	Path   []string // below parameters, result() or task.NAME
	Task   string   // of the expression, empty for none
	At     Place
}

// Cancellation decides about running tasks of a cancelled workflow.
type Cancellation string

// The ways to end a cancelled workflow.
const (
	AllowFinish   Cancellation = "allow_finish" // the default
	CancelRunning Cancellation = "cancel_running"
)

// Task is one task of a definition.
type Task struct {
	Name string
	Kind Kind `yaml:"type" oneof:"action parallel workflow"`
	// Action is a ref; empty for a parallel task. Any other task without an action is skipped.
	Action string `yaml:"action"`
	// Input are the parameters of its children. Nil passes on those of the workflow.
	Input *Value
	// PermissionSets, Selector, Tolerations and Affinity override those of the action. Nil inherits them, a null value
	// removes them.
	PermissionSets, Selector, Tolerations, Affinity *Value
	// When skips the task if it is false; nil is true.
	When *Condition
	// WithItems is the list of a task over a list; nil for other tasks.
	WithItems *Value
	// BatchSize is the number of items of a child; 0 gives each child the item itself.
	BatchSize int `yaml:"batch_size" range:"1.."`
	// Concurrency limits the running children, at least 1.
	Concurrency int `yaml:"concurrency" range:"1.."`
	// Retry configures the retries of children; nil for none.
	Retry *Retry
	// Timeout is that of a child in seconds; 0 inherits it from the action.
	Timeout int `yaml:"timeout" range:"1.."`
	// Next are its transitions, in the order of their evaluation.
	Next []Transition
	// Join is the number of predecessors that must arrive; with 0 the first one starts the task. For join: all it is
	// the number of Inbound.
	Join int
	// JoinAll stands for join: all.
	JoinAll bool
	// Tasks are the tasks within a parallel task, in order.
	Tasks []*Task
	// Within is the parallel task around it; nil on the upper level.
	Within *Task
	// Inbound are its predecessors, each once, in the order of the definition.
	Inbound []string
	// Outbound are its successors, each once, in the order of its transitions.
	Outbound []string
	// Chart is the data of drawing programs.
	Chart any
	// At is its place in the file.
	At Place
}

// Kind is the kind of a task.
type Kind string

// The kinds of tasks. An action may be a workflow whatever the kind of its task.
const (
	KindAction   Kind = "action"
	KindParallel Kind = "parallel"
	KindWorkflow Kind = "workflow"
)

// Transition leads from an ended task to the next tasks.
type Transition struct {
	// When is its condition; nil is true.
	When *Condition
	// Publish are the variables that it assigns at once.
	Publish []Assignment
	// Do are the next tasks.
	Do []string
	// Chart is the data of drawing programs.
	Chart any
	// At is its place in the file.
	At Place
}

// Assignment assigns a value to a name.
type Assignment struct {
	Name  string
	Value *Value
}

// Retry configures the retries of a task's children.
type Retry struct {
	Count    int // 1 to 100
	Delay    time.Duration
	MaxDelay time.Duration // 0 is no limit
	Backoff  Backoff
	// OnError is the condition for a retry; nil is true.
	OnError *Condition
}

// Backoff is the growth of the delay from retry to retry.
type Backoff string

// The kinds of growth.
const (
	BackoffConstant    Backoff = "constant"
	BackoffLinear      Backoff = "linear"
	BackoffExponential Backoff = "exponential"
)

// longest bounds delays without a max_delay, so that none overflows.
const longest = 30 * 24 * time.Hour

// Wait is the delay of the nth retry, counted from 1.
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

// Task returns the task of a name, also one within a parallel task; nil if there is none.
func (d *Definition) Task(name string) *Task { return d.names[name] }

// Entries are the tasks without predecessors, in order: a workflow begins with them.
func (d *Definition) Entries() []*Task { return d.entries }

// All are all tasks in order; those within a parallel task follow it.
func (d *Definition) All() []*Task { return d.order }

// link derives names, neighbours, entries and the number of join: all from the tasks. It ignores unknown names.
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
	d.sorted = d.topological()
}
