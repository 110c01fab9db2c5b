package screen

import (
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/carry"
	"github.com/attune-go/attune/tui/keymap"
)

// ExecutionRelations is what an execution has to do with, as far as its row and,
// where it was read, its family say.
func ExecutionRelations(x *monitor.Execution, f *monitor.Family) []Relation {
	id := strconv.FormatInt(x.ID, 10)
	list := []Relation{
		parentOf(x, f),
		{Key: "c", Label: "children", Help: "what it has started", To: OpenList(keymap.InExecutions, "parent:"+id)},
		{Key: "q", Label: "queue", Help: x.ActionRef, To: OpenList(keymap.InQueues, x.ActionRef)},
		{Key: "w", Label: "worker", Not: "it was handed to none"},
		{Key: "f", Label: "workflow", Help: "the tree that it is in", To: OpenTree(x.ID)},
	}
	if x.WorkerID != nil {
		list[3] = Relation{
			Key: "w", Label: "worker", Help: WorkerName(x.WorkerID, x.WorkerName),
			To: OpenWorker(*x.WorkerID),
		}
	}
	return append(append(list, recorded(f)...), retries(x, f)...)
}

// BesidesExecution is what of a menu is not about its execution.
func BesidesExecution(list []Relation, x *monitor.Execution) []Relation {
	of := ExecutionRelations(x, nil)
	return slices.DeleteFunc(slices.Clone(list), func(r Relation) bool {
		return slices.ContainsFunc(of, func(other Relation) bool { return other.Key == r.Key })
	})
}

func parentOf(x *monitor.Execution, f *monitor.Family) Relation {
	r := Relation{Key: "p", Label: "parent", Not: "nothing started it"}
	if f != nil {
		if p := f.Parent(); p != nil {
			r.Not, r.To = "", OpenExecution(p.ID)
			r.Help = strconv.FormatInt(p.ID, 10) + "  " + p.ActionRef + "  " + p.Status
			return r
		}
	}
	switch {
	case x.Parent != nil:
		r.Not, r.Help, r.To = "", strconv.FormatInt(*x.Parent, 10), OpenExecution(*x.Parent)
	case f == nil && x.Created.IsZero(): // it was only named by something else
		r.Not = "it has not been read yet"
	}
	return r
}

// recorded are the records behind an execution.
func recorded(f *monitor.Family) []Relation {
	unread := "it has not been read yet"
	if f != nil {
		unread = "there is none"
	}
	letter := Relation{Key: "d", Label: "dead letter", Not: unread}
	cause := Relation{Key: "e", Label: "enforcement", Not: unread}
	event := Relation{Key: "v", Label: "event", Not: unread}
	rule := Relation{Key: "u", Label: "rule", Not: unread}
	inquiry := Relation{Key: "i", Label: "inquiry", Not: unread}
	if f == nil {
		return []Relation{letter, cause, event, rule, inquiry}
	}
	if len(f.Letters) > 0 {
		l := &f.Letters[0]
		letter = Relation{Key: "d", Label: "dead letter", Help: strconv.FormatInt(l.ID, 10) + "  " + l.Reason + "  " + l.Decision, To: OpenLetter(l.ID)}
	}
	if c := f.Enforcement; c != nil {
		cause = Relation{Key: "e", Label: "enforcement", Help: strconv.FormatInt(c.ID, 10) + "  " + c.Status, To: ShownBy("enforcement", strconv.FormatInt(c.ID, 10))}
		rule = Relation{Key: "u", Label: "rule", Help: c.RuleRef, To: ShownBy("rule", c.RuleRef)}
		if c.Event != 0 {
			event = Relation{Key: "v", Label: "event", Help: strconv.FormatInt(c.Event, 10) + "  " + c.TriggerRef, To: ShownBy("event", strconv.FormatInt(c.Event, 10))}
		}
	}
	if len(f.Inquiries) > 0 {
		at := f.Inquiries[0]
		inquiry = Relation{Key: "i", Label: "inquiry", Help: strconv.FormatInt(at, 10), To: OpenInquiry(at)}
	}
	return []Relation{letter, cause, event, rule, inquiry}
}

// retries are the attempts around an execution.
func retries(x *monitor.Execution, f *monitor.Family) []Relation {
	before := Relation{Key: "b", Label: "try before", Not: "it is the first"}
	after := Relation{Key: "r", Label: "retry", Not: "it was not repeated"}
	if f == nil {
		before.Not, after.Not = "it has not been read yet", "it has not been read yet"
		return []Relation{before, after}
	}
	for _, a := range f.Attempts {
		if a.ID != x.ID {
			continue
		}
		if a.Repeats != nil {
			before = Relation{Key: "b", Label: "try before", Help: strconv.FormatInt(*a.Repeats, 10), To: OpenExecution(*a.Repeats)}
		}
		if a.RepeatedBy != nil {
			after = Relation{Key: "r", Label: "retry", Help: strconv.FormatInt(*a.RepeatedBy, 10), To: OpenExecution(*a.RepeatedBy)}
		}
	}
	return []Relation{before, after}
}

// ActionRelations is what the queues of an action have to do with.
func ActionRelations(ref string) []Relation {
	to := func(filter string) Effect {
		return OpenList(keymap.InExecutions, "action:"+ref+filter)
	}
	return []Relation{
		{Key: "x", Label: "executions", Help: "all of its action", To: to("")},
		{Key: "n", Label: "unfinished", Help: "those that have not ended", To: to(" status:requested,scheduling,scheduled,running,canceling")},
		{Key: "f", Label: "failed", Help: "those that went wrong", To: to(" status:failed,timeout,abandoned")},
	}
}

// WorkerRelations is what a worker has to do with.
func WorkerRelations(id int64) []Relation {
	worker := "worker:" + strconv.FormatInt(id, 10)
	to := func(filter string) Effect {
		return OpenList(keymap.InExecutions, filter)
	}
	return []Relation{
		{Key: "x", Label: "executions", Help: "all of it", To: to(worker)},
		{Key: "n", Label: "unfinished", Help: "what it has now", To: to(worker + " status:scheduled,running,canceling")},
		{Key: "f", Label: "failed", Help: "what went wrong on it", To: to(worker + " status:failed,timeout,abandoned")},
		{Key: "d", Label: "dead letters", Help: "the view of dead letters", To: Open(keymap.InDeadLetters)},
	}
}

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

// OpenLetter turns to a letter of the ledger.
func OpenLetter(id int64) Effect { return OpenOne(keymap.InLetter, id) }

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
