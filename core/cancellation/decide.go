package cancellation

import (
	"time"

	"github.com/attune-go/attune/core/attune"
)

// Facts are what the decision about one execution depends on.
type Facts struct {
	Status  attune.Status
	Worker  bool          // it was handed to a worker
	Fences  bool          // which runs no attempt but the one its row names
	Started bool          // it has begun there
	Tends   bool          // it is a workflow of which children have not ended
	Since   time.Duration // how long ago its row changed last, by the database's clock
}

// Step is what is done about an execution that shall stop.
type Step string

// The steps.
const (
	StepEnd   Step = "end"   // it becomes cancelled now
	StepAsk   Step = "ask"   // it becomes canceling, and its worker, if it has one, is asked to stop it
	StepAgain Step = "again" // it is canceling; its worker is asked once more
	StepWait  Step = "wait"  // it is canceling, and ends with the last of its children
	StepNone  Step = "none"  // it has ended
)

// Rule is one line of the decision table.
type Rule struct {
	Status attune.Status
	If     func(f Facts, grace time.Duration) bool // nil: always
	Step   Step
	Tell   bool // the worker is sent a message
	Why    string
}

// Rules is the decision table; the first line that fits decides. Terminal
// statuses have no line.
var Rules = []Rule{
	{attune.StatusRequested, nil, StepEnd, false, "it waits, and is taken out of its line; a repetition whose time has not come stands in none"},
	{attune.StatusScheduling, nil, StepEnd, false, "its start is not finished, and the guard of the start fails"},
	{attune.StatusScheduled, noWorker, StepEnd, false, "nobody has it"},
	{attune.StatusScheduled, fenced, StepEnd, true, "its worker starts nothing whose row is not scheduled for it; the message spares it a look"},
	{attune.StatusScheduled, nil, StepAsk, true, "its worker may be starting it; such workers look for canceling before they start"},
	{attune.StatusRunning, tends, StepAsk, false, "a workflow: it ends with the last of its children"},
	{attune.StatusRunning, noWorker, StepEnd, false, "a parent or a question: no process runs it"},
	{attune.StatusRunning, nil, StepAsk, true, "its worker stops the process and writes the end"},
	{attune.StatusCanceling, tends, StepWait, false, "a workflow: it ends with the last of its children"},
	{attune.StatusCanceling, noWorker, StepEnd, false, "nobody is left to stop it"},
	{attune.StatusCanceling, fencedUnstarted, StepEnd, true, "it was not started, and its worker will not start it"},
	{attune.StatusCanceling, lateUnstarted, StepEnd, true, "its worker has not started it in all that time"},
	{attune.StatusCanceling, nil, StepAgain, true, "the message may have been lost"},
}

func tends(f Facts, _ time.Duration) bool           { return f.Tends }
func noWorker(f Facts, _ time.Duration) bool        { return !f.Worker }
func fenced(f Facts, _ time.Duration) bool          { return f.Fences }
func fencedUnstarted(f Facts, _ time.Duration) bool { return f.Fences && !f.Started }

func lateUnstarted(f Facts, grace time.Duration) bool { return !f.Started && f.Since > grace }

// Decide returns the line of the table that fits. What has ended is left.
func Decide(f Facts, grace time.Duration) Rule {
	for _, rule := range Rules {
		if rule.Status == f.Status && (rule.If == nil || rule.If(f, grace)) {
			return rule
		}
	}
	return Rule{Status: f.Status, Step: StepNone, Why: "it has ended"}
}

// Outcome is what has become of an execution that shall stop.
type Outcome string

// The outcomes.
const (
	Cancelled Outcome = "cancelled"    // it has ended
	Asked     Outcome = "stop asked"   // its worker was asked to stop it, or its children were
	Ended     Outcome = "has ended"    // it had ended before
	Missing   Outcome = "not found"    // there is no such execution
	Moving    Outcome = "keeps moving" // it was changed under every try
)

// outcomeOf is what a step comes to.
func outcomeOf(step Step) Outcome {
	switch step {
	case StepEnd:
		return Cancelled
	case StepAsk, StepAgain, StepWait:
		return Asked
	default:
		return Ended
	}
}
