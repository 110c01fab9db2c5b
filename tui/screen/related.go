package screen

import (
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

// OpenExecution turns to an execution.
func OpenExecution(id int64) Effect {
	return Effect{Handled: true, Open: keymap.InExecution, Execution: id}
}

// OpenLetter turns to a letter of the ledger.
func OpenLetter(id int64) Effect {
	return Effect{Handled: true, Open: keymap.InLetter, Letter: id}
}

// OpenList turns to a list with a filter in place.
func OpenList(view View, filter string) Effect {
	return Effect{Handled: true, Open: view, Filter: filter}
}

// OpenWorker turns to a worker.
func OpenWorker(id int64) Effect {
	return Effect{Handled: true, Open: keymap.InWorker, Worker: id}
}

// ShownBy says which command of attune-executor shows what no view does.
func ShownBy(command, name string) Effect {
	return Effect{Handled: true, Note: carry.Shell("attune-executor", command, "show", name) + " shows it"}
}
