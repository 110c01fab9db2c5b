package screen

import (
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/carry"
	"github.com/attune-go/attune/tui/keymap"
)

// Related is a screen whose row, or what it shows, has to do with other things.
type Related interface {
	// Relations lists them, in the order of their letters; false when there is
	// nothing to ask about.
	Relations() (title string, list []Relation, ok bool)
}

// RelatedExecution is a screen whose row is an execution or is about one, of which
// more is read when it is asked what it has to do with. What Relations lists under
// letters of its own stands before that.
type RelatedExecution interface {
	RelatedExecution() (*monitor.Execution, bool)
}

// Relation leads to a thing.
type Relation struct {
	// Key is the letter that chooses it.
	Key         string
	Label, Help string
	// Not says why it cannot be turned to; empty for those that can.
	Not string
	// To is what turns to it.
	To Effect
}

// Leads makes it one that can be turned to.
func (r *Relation) Leads(help string, to Effect) { r.Not, r.Help, r.To = "", help, to }

// Number is the number that Shown names; zero where it names none.
func Number(shown string) int64 {
	id, err := strconv.ParseInt(shown, 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// Open turns to a view as it was left.
func Open(view View) Effect { return Effect{Handled: true, Open: Nav{View: view}} }

// OpenOne turns to one thing in a view that shows one out of many.
func OpenOne(view View, id int64) Effect {
	return Effect{Handled: true, Open: Nav{View: view, Shown: strconv.FormatInt(id, 10)}}
}

// OpenExecution turns to an execution.
func OpenExecution(id int64) Effect { return OpenOne(keymap.InExecution, id) }

// OpenQueue turns to a queue.
func OpenQueue(id int64) Effect { return OpenOne(keymap.InQueue, id) }

// OpenWorker turns to a worker.
func OpenWorker(id int64) Effect { return OpenOne(keymap.InWorker, id) }

// OpenTree turns to the tree of executions that one stands in.
func OpenTree(id int64) Effect { return OpenOne(keymap.InXray, id) }

// OpenWorkflow turns to the workflow that an execution runs for.
func OpenWorkflow(execution int64) Effect { return OpenOne(keymap.InWorkflows, execution) }

// OpenInquiry turns to a question.
func OpenInquiry(id int64) Effect { return OpenOne(keymap.InInquiries, id) }

// OpenDeadLetter turns to a letter of the ledger.
func OpenDeadLetter(id int64) Effect { return OpenOne(keymap.InLetter, id) }

// OpenList turns to a list with a filter in place; an empty one leaves the filter.
func OpenList(view View, filter string) Effect {
	return Effect{Handled: true, Open: Nav{View: view, Filter: filter}}
}

// OpenRow turns to a row of a list.
func OpenRow(view View, key string) Effect {
	return Effect{Handled: true, Open: Nav{View: view, Row: key}}
}

// ShownBy says which command of attune-executor shows what no view does.
func ShownBy(command, name string) Effect {
	return Effect{Handled: true, Note: carry.Shell("attune-executor", command, "show", name) + " shows it"}
}

// ExecutionRelation leads to an execution.
func ExecutionRelation(x *monitor.Execution) Relation {
	id := strconv.FormatInt(x.ID, 10)
	return Relation{Key: "x", Label: "execution", Help: id + "  " + x.ActionRef, To: OpenExecution(x.ID)}
}

// ExecutionRelations is what an execution has to do with, as far as its row and,
// where it was read, its family say.
func ExecutionRelations(x *monitor.Execution, f *monitor.Family) []Relation {
	id := strconv.FormatInt(x.ID, 10)
	none, first, last := "there is none", "it is the first", "it was not repeated"
	if f == nil {
		const unread = "it has not been read yet"
		none, first, last = unread, unread, unread
	}
	parent := Relation{Key: "p", Label: "parent", Not: "nothing started it"}
	children := Relation{Key: "c", Label: "children"}
	queue := Relation{Key: "q", Label: "queue"}
	worker := Relation{Key: "w", Label: "worker", Not: "it was handed to none"}
	tree := Relation{Key: "f", Label: "workflow"}
	letter := Relation{Key: "d", Label: "dead letter", Not: none}
	cause := Relation{Key: "e", Label: "enforcement", Not: none}
	event := Relation{Key: "v", Label: "event", Not: none}
	rule := Relation{Key: "u", Label: "rule", Not: none}
	inquiry := Relation{Key: "i", Label: "inquiry", Not: none}
	before := Relation{Key: "b", Label: "try before", Not: first}
	after := Relation{Key: "r", Label: "retry", Not: last}

	children.Leads("what it has started", OpenList(keymap.InExecutions, "parent:"+id))
	queue.Leads(x.ActionRef, OpenList(keymap.InQueues, x.ActionRef))
	tree.Leads("the tree that it is in", OpenTree(x.ID))
	if x.WorkerID != nil {
		worker.Leads(WorkerName(x.WorkerID, x.WorkerName), OpenWorker(*x.WorkerID))
	}
	if x.Parent != nil {
		parent.Leads(Reference(x.Parent), OpenExecution(*x.Parent))
	} else if f == nil && x.Created.IsZero() { // it was only named by something else
		parent.Not = none
	}
	if f == nil {
		f = &monitor.Family{}
	}
	if p := f.Parent(); p != nil {
		parent.Leads(strconv.FormatInt(p.ID, 10)+"  "+p.ActionRef+"  "+p.Status, OpenExecution(p.ID))
	}
	if len(f.Letters) > 0 {
		l := &f.Letters[0]
		letter.Leads(strconv.FormatInt(l.ID, 10)+"  "+l.Reason+"  "+l.Decision, OpenDeadLetter(l.ID))
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
	return []Relation{parent, children, queue, worker, tree, letter, cause, event, rule, inquiry, before, after}
}

// BesidesExecution is what of a menu is not about its execution.
func BesidesExecution(list []Relation, x *monitor.Execution) []Relation {
	of := ExecutionRelations(x, nil)
	return slices.DeleteFunc(slices.Clone(list), func(r Relation) bool {
		return slices.ContainsFunc(of, func(other Relation) bool { return other.Key == r.Key })
	})
}

// ActionRelations is what the queues of an action have to do with.
func ActionRelations(ref string) []Relation {
	to := func(filter string) Effect {
		return OpenList(keymap.InExecutions, "action:"+ref+filter)
	}
	return []Relation{
		{Key: "x", Label: "executions", Help: "all of its action", To: to("")},
		{
			Key: "n", Label: "unfinished", Help: "those that have not ended",
			To: to(" status:requested,scheduling,scheduled,running,canceling"),
		},
		{Key: "f", Label: "failed", Help: "those that went wrong", To: to(" status:failed,timeout,abandoned")},
	}
}

// WorkerRelations is what a worker has to do with.
func WorkerRelations(id int64) []Relation {
	to := func(filter string) Effect {
		return OpenList(keymap.InExecutions, "worker:"+strconv.FormatInt(id, 10)+filter)
	}
	return []Relation{
		{Key: "x", Label: "executions", Help: "all of it", To: to("")},
		{Key: "n", Label: "unfinished", Help: "what it has now", To: to(" status:scheduled,running,canceling")},
		{Key: "f", Label: "failed", Help: "what went wrong on it", To: to(" status:failed,timeout,abandoned")},
		{Key: "d", Label: "dead letters", Help: "the view of dead letters", To: Open(keymap.InDeadLetters)},
	}
}
