package cancellation

import (
	"time"

	"github.com/attune-go/attune/core/lifecycle"
)

// Facts are the inputs of the decision about one execution.
type Facts struct {
	Status  lifecycle.Status
	Worker  bool          // it has a worker
	Fences  bool          // the worker fences attempts
	Started bool          // the worker has started it
	Tends   bool          // it is a workflow with running children
	Since   time.Duration // how long ago its row changed last, by the database's clock
}

// Step is the reaction to a cancel request.
type Step string

// The steps.
const (
	StepEnd   Step = "end"   // it becomes cancelled now
	StepAsk   Step = "ask"   // it becomes canceling, and its worker, if any, gets a cancel request
	StepAgain Step = "again" // it is canceling, and its worker gets another cancel request
	StepWait  Step = "wait"  // it is canceling, and ends with the last of its children
	StepNone  Step = "none"  // it has already ended
)

// Rule is one row of the decision table.
type Rule struct {
	Status lifecycle.Status
	If     func(f Facts, grace time.Duration) bool // nil: always
	Step   Step
	Tell   bool // the worker gets a message
	Why    string
}

// Rules is the decision table; the first matching row decides. Terminal statuses have no row.
var Rules = []Rule{
	{lifecycle.StatusRequested, nil, StepEnd, false, "it is removed from its queue; a scheduled retry is in no queue"},
	{lifecycle.StatusScheduling, nil, StepEnd, false, "its start is not finished, and the guard of the start fails"},
	{lifecycle.StatusScheduled, noWorker, StepEnd, false, "no worker has it"},
	{
		lifecycle.StatusScheduled, fenced, StepEnd, true,
		"its worker starts only rows that are scheduled for it; the message saves it a query",
	},
	{
		lifecycle.StatusScheduled, nil, StepAsk, true,
		"its worker may be starting it; such workers check for canceling before they start",
	},
	{lifecycle.StatusRunning, tends, StepAsk, false, "a workflow: it ends with the last of its children"},
	{lifecycle.StatusRunning, noWorker, StepEnd, false, "a parent or an inquiry: no process runs it"},
	{lifecycle.StatusRunning, nil, StepAsk, true, "its worker stops the process and writes the end"},
	{lifecycle.StatusCanceling, tends, StepWait, false, "a workflow: it ends with the last of its children"},
	{lifecycle.StatusCanceling, noWorker, StepEnd, false, "no worker is left to stop it"},
	{lifecycle.StatusCanceling, fencedUnstarted, StepEnd, true, "it was not started, and its worker will not start it"},
	{lifecycle.StatusCanceling, lateUnstarted, StepEnd, true, "its worker has not started it within the grace"},
	{lifecycle.StatusCanceling, nil, StepAgain, true, "the message may have been lost"},
}

func tends(f Facts, _ time.Duration) bool           { return f.Tends }
func noWorker(f Facts, _ time.Duration) bool        { return !f.Worker }
func fenced(f Facts, _ time.Duration) bool          { return f.Fences }
func fencedUnstarted(f Facts, _ time.Duration) bool { return f.Fences && !f.Started }

func lateUnstarted(f Facts, grace time.Duration) bool { return !f.Started && f.Since > grace }

// Decide returns the first matching row of the table. Ended executions match none.
func Decide(f Facts, grace time.Duration) Rule {
	for _, rule := range Rules {
		if rule.Status == f.Status && (rule.If == nil || rule.If(f, grace)) {
			return rule
		}
	}
	return Rule{Status: f.Status, Step: StepNone, Why: "it has ended"}
}

// Outcome is the outcome of a cancellation.
type Outcome string

// The outcomes.
const (
	Cancelled Outcome = "cancelled"    // it has ended
	Asked     Outcome = "stop asked"   // its worker, or its children's workers, got a cancel request
	Ended     Outcome = "has ended"    // it had already ended
	Missing   Outcome = "not found"    // the execution does not exist
	Moving    Outcome = "keeps moving" // it changed during every attempt
)
