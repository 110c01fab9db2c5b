package screen

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/monitor"
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

// RecordKind names a kind of record.
type RecordKind string

// The kinds of records that have no view of their own.
const (
	RecordEnforcement RecordKind = "enforcement"
	RecordEvent       RecordKind = "event"
	RecordRule        RecordKind = "rule"
)

// RecordRef names a record.
type RecordRef struct {
	Kind RecordKind `json:"kind"`
	Name string     `json:"name"`
}

// Record is a record as it was read.
type Record struct {
	RecordRef

	At   time.Time       `json:"at"`
	Body json.RawMessage `json:"body"`
}

// OpenExecution turns to an execution, and OpenRecord to a record.
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

// OpenRecord turns to a record.
func OpenRecord(kind RecordKind, name string) Effect {
	return Effect{Handled: true, Open: keymap.InRecord, Record: RecordRef{kind, name}}
}

// OpenWorker turns to a worker.
func OpenWorker(id int64) Effect {
	return Effect{Handled: true, Open: keymap.InWorker, Worker: id}
}

// OpenRecordID turns to a record by its number.
func OpenRecordID(kind RecordKind, id int64) Effect {
	return OpenRecord(kind, strconv.FormatInt(id, 10))
}
