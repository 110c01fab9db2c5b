package screen

import (
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
