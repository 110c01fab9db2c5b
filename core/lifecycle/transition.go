package lifecycle

import "slices"

// Writer names who may perform a transition. A transition is always a guarded
// update of one row; the writer that finds the guard false stops.
type Writer string

// The writers of execution status.
const (
	WriterEngine   Writer = "engine"   // admission, dispatch, completion, recovery
	WriterWorker   Writer = "worker"   // the process that runs the action
	WriterOperator Writer = "operator" // cancel from the API, command line or dashboard
)

// Transition is one legal move of an execution's status.
type Transition struct {
	From, To Status
	By       Writer
	Why      string
}

// Transitions is the whole transition table: any other transition violates invariant S8. Terminal
// statuses have no successor. requested→scheduled counts as the claim; requested→scheduling is
// written only if the work needs more than one transaction (a workflow start).
var Transitions = []Transition{
	{StatusRequested, StatusScheduled, WriterEngine, "admitted and handed to a worker"},
	{StatusRequested, StatusScheduling, WriterEngine, "claimed; the start needs more than one transaction"},
	{StatusRequested, StatusRunning, WriterEngine, "a workflow, or a question to a person: no worker runs it"},
	{StatusRequested, StatusFailed, WriterEngine, "cannot be placed, or its action was deleted"},
	{StatusRequested, StatusCancelled, WriterOperator, "cancelled while waiting, or refused by policy"},
	{StatusRequested, StatusTimeout, WriterEngine, "waited longer than its queue allows"},
	{StatusRequested, StatusAbandoned, WriterEngine, "given up by maintenance"},

	{StatusScheduling, StatusRequested, WriterEngine, "a claim that could not be finished is put back"},
	{StatusScheduling, StatusScheduled, WriterEngine, "handed to a worker"},
	{StatusScheduling, StatusRunning, WriterEngine, "a workflow parent starts"},
	{StatusScheduling, StatusFailed, WriterEngine, "cannot be started"},
	{StatusScheduling, StatusCancelled, WriterOperator, "cancelled while being started"},
	{StatusScheduling, StatusAbandoned, WriterEngine, "given up by maintenance"},

	{StatusScheduled, StatusScheduled, WriterEngine, "moved to another worker that fences attempts"},
	{StatusScheduled, StatusRequested, WriterEngine, "taken back before any worker could have it"},
	{StatusScheduled, StatusRunning, WriterWorker, "the worker starts it"},
	{StatusScheduled, StatusCompleted, WriterWorker, "a worker that reports only the end"},
	{StatusScheduled, StatusFailed, WriterEngine, "not picked up in time, or refused by the worker"},
	{StatusScheduled, StatusCanceling, WriterOperator, "cancellation requested"},
	{StatusScheduled, StatusCancelled, WriterOperator, "cancelled before it started"},
	{StatusScheduled, StatusAbandoned, WriterEngine, "given up by maintenance"},

	{StatusRunning, StatusCompleted, WriterWorker, "the action succeeded"},
	{StatusRunning, StatusFailed, WriterWorker, "the action failed"},
	{StatusRunning, StatusTimeout, WriterWorker, "the action ran longer than allowed"},
	{StatusRunning, StatusScheduled, WriterWorker, "the worker could not start a process for it: nothing ran"},
	{StatusRunning, StatusCanceling, WriterOperator, "cancellation requested"},
	{StatusRunning, StatusCancelled, WriterWorker, "the action was stopped"},
	{StatusRunning, StatusAbandoned, WriterEngine, "its worker is lost"},

	{StatusCanceling, StatusCancelled, WriterWorker, "the action was stopped"},
	{StatusCanceling, StatusCompleted, WriterWorker, "the action ended before the cancel reached it"},
	{StatusCanceling, StatusFailed, WriterWorker, "the action ended before the cancel reached it"},
	{StatusCanceling, StatusTimeout, WriterWorker, "the action ended before the cancel reached it"},
	{StatusCanceling, StatusAbandoned, WriterEngine, "its worker is lost"},
}

// CanMove reports whether some writer may move an execution from one status to the other.
func CanMove(from, to Status) bool {
	return slices.ContainsFunc(Transitions, func(t Transition) bool { return t.From == from && t.To == to })
}

// Successors lists the statuses an execution may move to from s, in the order
// of the table. It is empty exactly for terminal statuses.
func Successors(s Status) []Status {
	var out []Status
	for _, t := range Transitions {
		if t.From == s && !slices.Contains(out, t.To) {
			out = append(out, t.To)
		}
	}
	return out
}
