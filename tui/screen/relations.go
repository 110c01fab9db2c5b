package screen

import (
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/widget"
)

// Related is a screen whose row or subject is related to other rows.
type Related interface {
	// Relations lists them in the order of the menu; false without a row.
	Relations() (title string, list []Relation, ok bool)
}

// RelatedExecution is a screen whose row is about an execution. The menu of relations reads more about
// it, and lists relations with keys of their own first.
type RelatedExecution interface {
	RelatedExecution() (*monitor.Execution, bool)
}

// Relation is an entry of the menu of relations.
type Relation struct {
	// Key is the letter that chooses it.
	Key         string
	Label, Help string
	// Not says why it leads nowhere; empty if it leads to To.
	Not string
	To  Effect
}

// Leads sets where a relation leads.
func (r *Relation) Leads(help string, to Effect) { r.Not, r.Help, r.To = "", help, to }

// Number parses an id; zero if it is none.
func Number(shown string) int64 {
	id, err := strconv.ParseInt(shown, 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// Open turns to a view as it was left.
func Open(view View) Effect { return Effect{Handled: true, Open: Nav{View: view}} }

// OpenOne turns to a Showing view and shows an id.
func OpenOne(view View, id int64) Effect {
	return Effect{Handled: true, Open: Nav{View: view, Shown: strconv.FormatInt(id, 10)}}
}

// OpenExecution turns to an execution.
func OpenExecution(id int64) Effect { return OpenOne(keymap.InExecution, id) }

// OpenWhy turns to an execution and shows all of why it waits.
func OpenWhy(id int64, status string) Effect {
	if lifecycle.Status(status).Terminal() {
		return WaitsForNothing(status)
	}
	effect := OpenExecution(id)
	effect.Open.Why = true
	return effect
}

// WaitsForNothing says so of an execution.
func WaitsForNothing(status string) Effect {
	return Effect{Handled: true, Note: "It waits for nothing: it is " + widget.Clean(status) + "."}
}

// OpenQueue turns to a queue.
func OpenQueue(id int64) Effect { return OpenOne(keymap.InQueue, id) }

// OpenWorker turns to a worker.
func OpenWorker(id int64) Effect { return OpenOne(keymap.InWorker, id) }

// OpenTree turns to the tree around an execution.
func OpenTree(id int64) Effect { return OpenOne(keymap.InXray, id) }

// OpenWorkflow turns to the workflow of an execution.
func OpenWorkflow(execution int64) Effect { return OpenOne(keymap.InWorkflows, execution) }

// OpenInquiry turns to an inquiry.
func OpenInquiry(id int64) Effect { return OpenOne(keymap.InInquiries, id) }

// OpenDeadLetter turns to a dead letter.
func OpenDeadLetter(id int64) Effect { return OpenOne(keymap.InDeadLetter, id) }

// OpenList turns to a list and sets its filter; an empty one leaves the filter.
func OpenList(view View, filter string) Effect {
	return Effect{Handled: true, Open: Nav{View: view, Filter: filter}}
}

// OpenRow turns to a row of a list.
func OpenRow(view View, key string) Effect {
	return Effect{Handled: true, Open: Nav{View: view, Row: key}}
}

// ShownBy names the command of attune-executor for a row that has no view.
func ShownBy(command, name string) Effect {
	return Effect{Handled: true, Note: act.Shell("attune-executor", command, "show", name) + " shows it"}
}

// ExecutionRelation leads to an execution.
func ExecutionRelation(x *monitor.Execution) Relation {
	id := strconv.FormatInt(x.ID, 10)
	return Relation{Key: "x", Label: "execution", Help: id + "  " + x.ActionRef, To: OpenExecution(x.ID)}
}

// ExecutionRelations are the relations of an execution, from its row and its family. The family may be
// nil if it was not read.
func ExecutionRelations(x *monitor.Execution, f *monitor.Family) []Relation {
	id := strconv.FormatInt(x.ID, 10)
	none, first, last := "there is none", "it is the first", "it was not repeated"
	if f == nil {
		const unread = "it has not been read yet"
		none, first, last = unread, unread, unread
	}
	parent := Relation{Key: "p", Label: "parent", Not: "nothing started it"}
	children := Relation{
		Key: "c", Label: "children", Help: "the executions that it started",
		To: OpenList(keymap.InExecutions, "parent:"+id),
	}
	queue := Relation{Key: "q", Label: "queue", Help: x.ActionRef, To: OpenList(keymap.InQueues, x.ActionRef)}
	worker := Relation{Key: "w", Label: "worker", Not: "it was handed to none"}
	tree := Relation{Key: "f", Label: "workflow", Help: "the tree that it is in", To: OpenTree(x.ID)}
	deadLetter := Relation{Key: "d", Label: "dead letter", Not: none}
	cause := Relation{Key: "e", Label: "enforcement", Not: none}
	event := Relation{Key: "v", Label: "event", Not: none}
	rule := Relation{Key: "u", Label: "rule", Not: none}
	inquiry := Relation{Key: "i", Label: "inquiry", Not: none}
	before := Relation{Key: "b", Label: "try before", Not: first}
	after := Relation{Key: "r", Label: "retry", Not: last}

	if x.WorkerID != nil {
		worker.Leads(monitor.WorkerName(x.WorkerID, x.WorkerName), OpenWorker(*x.WorkerID))
	}
	if x.Parent != nil {
		parent.Leads(Reference(x.Parent), OpenExecution(*x.Parent))
	} else if f == nil && x.Created.IsZero() { // another row names it; the execution was not read
		parent.Not = none
	}
	if f == nil {
		f = &monitor.Family{}
	}
	if p := f.Parent(); p != nil {
		parent.Leads(strconv.FormatInt(p.ID, 10)+"  "+p.ActionRef+"  "+p.Status, OpenExecution(p.ID))
	}
	if len(f.DeadLetters) > 0 {
		l := &f.DeadLetters[0]
		deadLetter.Leads(strconv.FormatInt(l.ID, 10)+"  "+l.Reason+"  "+l.Decision, OpenDeadLetter(l.ID))
	}
	if c := f.Enforcement; c != nil {
		cause.Leads(strconv.FormatInt(c.ID, 10)+"  "+c.Status, ShownBy("enforcement", strconv.FormatInt(c.ID, 10)))
		rule.Leads(c.RuleRef, ShownBy("rule", c.RuleRef))
		if number := strconv.FormatInt(c.Event, 10); c.Event != 0 {
			event.Leads(number+"  "+c.TriggerRef, ShownBy("event", number))
		}
	}
	if len(f.Inquiries) > 0 {
		inquiry.Leads(strconv.FormatInt(f.Inquiries[0], 10), OpenInquiry(f.Inquiries[0]))
	}
	for _, a := range f.Attempts {
		if a.ID == x.ID && a.Repeats != nil {
			before.Leads(Reference(a.Repeats), OpenExecution(*a.Repeats))
		}
		if a.ID == x.ID && a.RepeatedBy != nil {
			after.Leads(Reference(a.RepeatedBy), OpenExecution(*a.RepeatedBy))
		}
	}
	return []Relation{parent, children, queue, worker, tree, deadLetter, cause, event, rule, inquiry, before, after}
}

// WithoutExecution drops the relations of an execution from a menu.
func WithoutExecution(list []Relation, x *monitor.Execution) []Relation {
	of := ExecutionRelations(x, nil)
	return slices.DeleteFunc(slices.Clone(list), func(r Relation) bool {
		return slices.ContainsFunc(of, func(other Relation) bool { return other.Key == r.Key })
	})
}

// ActionRelations are the relations of the queues of an action.
func ActionRelations(ref string) []Relation {
	return executionLists("action:"+ref, "all executions of the action", "its unfinished executions",
		"requested,scheduling,scheduled,running,canceling", "its failed executions")
}

// WorkerRelations are the relations of a worker.
func WorkerRelations(id int64) []Relation {
	list := executionLists("worker:"+strconv.FormatInt(id, 10), "all its executions", "its present executions",
		"scheduled,running,canceling", "its failed executions")
	return append(list, Relation{
		Key: "d", Label: "dead letters", Help: "the view of dead letters", To: Open(keymap.InDeadLetters),
	})
}

func executionLists(filter, all, unfinished, statuses, failed string) []Relation {
	to := func(status string) Effect { return OpenList(keymap.InExecutions, filter+status) }
	return []Relation{
		{Key: "x", Label: "executions", Help: all, To: to("")},
		{Key: "n", Label: "unfinished", Help: unfinished, To: to(" status:" + statuses)},
		{Key: "f", Label: "failed", Help: failed, To: to(" status:failed,timeout,abandoned")},
	}
}
