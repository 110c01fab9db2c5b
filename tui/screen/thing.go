package screen

import (
	"cmp"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
)

// Thing is what can be taken out of the dashboard of a row, or of what a view shows.
type Thing struct {
	// Name is what people call it, ID what identifies it.
	Name, ID string
	// Value is what was read of it. Nothing changes it later.
	Value any
	// Command are the arguments with which attune-executor shows it, Table and Where
	// the rows of the database that it is; empty where there are none.
	Command      []string
	Table, Where string
	// Queue is the queue of the broker whose page a link leads to; empty for none.
	Queue string
	// Execution is the one whose tree it stands in; zero for none.
	Execution int64
	// Path and Text are where the cursor is in the document in sight, and the value
	// there, as far as that is shown; InDocument is false where there is no document.
	Path, Text string
	InDocument bool
}

// Listed is a list whose rows can be taken out, by the places of its table where it
// has one.
type Listed interface {
	Len() int
	// Key identifies a row.
	Key(row int) string
	// Thing is what a row is.
	Thing(row int) Thing
}

// Cut is a list that may hold only a part of what matches.
type Cut interface {
	// Beyond says what is not in the list; empty where all is.
	Beyond() string
}

// Shows is a view that shows one thing which can be taken out. In a list it is what
// has the focus in place of the row under the cursor.
type Shows interface {
	// Thing is what it shows; false while that was not read, or while the list has the
	// focus.
	Shows() (Thing, bool)
}

// LedgerExport is what is asked for to read every letter of the ledger that a list would
// show. Row and Any touch nothing of the view, so that they can be used beside it.
type LedgerExport struct {
	// Filter is what the database is asked; it leaves out no more than the list does.
	Filter monitor.DeadLetterFilter
	// Waiting says that letters are wanted which wait, Decided that others are.
	Waiting, Decided bool
	// Row is a letter as it leaves the dashboard, and whether the list would show it.
	// Any is the same of a letter that is wanted whatever the filter says.
	Row, Any func(l *monitor.LedgerEntry) (id int64, value any, wanted bool)
}

// ExecutionThing is an execution, of which a value was read.
func ExecutionThing(x *monitor.Execution, value any) Thing {
	id := strconv.FormatInt(x.ID, 10)
	t := Thing{Name: "execution " + id, ID: id, Value: value, Command: []string{"execution", "show", id},
		Table: "execution", Where: "id = " + id, Execution: x.ID}
	if x.WorkerID != nil {
		t.Queue = monitor.WorkerQueue(*x.WorkerID)
	}
	return t
}

// QueueThing is an admission queue, of which a value was read.
func QueueThing(q *monitor.Queue, value any) Thing {
	t := Thing{Name: "queue " + QueueName(q), ID: QueueName(q), Value: value,
		Command: []string{"queue", "show", q.ActionRef}}
	if q.Group != "" {
		t.Command = append(t.Command, "--group", q.Group)
	}
	if q.LimitFrom.Kind != "" { // where queues are recorded one by one
		t.Table, t.Where = "execution_admission_state", "id = "+strconv.FormatInt(q.ID, 10)
	}
	return t
}

// WorkerThing is a worker, of which a value was read.
func WorkerThing(w *monitor.Worker, value any) Thing {
	name := cmp.Or(w.Name, strconv.FormatInt(w.ID, 10))
	t := Numbered("worker", w.ID, "", "worker", value)
	t.Name, t.ID, t.Queue, t.Command = "worker "+
		name, name, monitor.WorkerQueue(w.ID), []string{"workers", "show", name}
	return t
}

// DeadLetterThing is a dead letter of the ledger, of which a value was read.
func DeadLetterThing(id int64, value any) Thing {
	number := strconv.FormatInt(id, 10)
	return Thing{
		Name: "dead letter " + number, ID: number, Value: value, Command: []string{"dlq", "show", number},
		Table: "dead_letter", Where: "id = " + number, Queue: monitor.DeadLetterQueue,
	}
}

// Numbered is something that a command shows by its number and a table has under it.
func Numbered(what string, id int64, command, table string, value any) Thing {
	number := strconv.FormatInt(id, 10)
	t := Thing{Name: what + " " + number, ID: number, Value: value, Table: table, Where: "id = " + number}
	if command != "" {
		t.Command = []string{command, "show", number}
	}
	return t
}

// BrokerQueueThing is a queue of the broker.
func BrokerQueueThing(q monitor.BrokerQueue) Thing {
	return Thing{Name: "queue " + q.Name, ID: q.Name, Value: q, Queue: q.Name}
}
