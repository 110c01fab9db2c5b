package screen

import (
	"cmp"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
)

// Thing is a row, or the subject of a view, as it is copied and exported.
type Thing struct {
	// Name is for people, ID identifies it.
	Name, ID string
	// Value is the reading. It never changes.
	Value any
	// Cut is true if the value lacks parts of documents, which the export reads.
	Cut bool
	// Command are the arguments with which attune-executor shows it; Table and Where are its row in the
	// database. All may be empty.
	Command      []string
	Table, Where string
	// Queue is the broker queue that a link leads to; empty for none.
	Queue string
	// Execution is the execution whose tree contains it; zero for none.
	Execution int64
	// Path and Text are the place of the cursor in the document, and the visible value there. InDocument
	// is false without a document.
	Path, Text string
	InDocument bool
}

// Listed is a list whose rows can be exported.
type Listed interface {
	Len() int
	// Key identifies a row.
	Key(row int) string
	// Thing is a row for the export.
	Thing(row int) Thing
}

// Cut is a list that may hold only some of the matches.
type Cut interface {
	// Beyond says which matches are missing; empty if none.
	Beyond() string
}

// Shows is a view with a subject that can be exported. In a list it replaces the selected row.
type Shows interface {
	// Shows is the subject; false until it was read, or while the list has the focus.
	Shows() (Thing, bool)
}

// LedgerExport is a request for every dead letter that a list would show. Row and Any do not use the
// view, so another goroutine may call them.
type LedgerExport struct {
	// Filter is the filter of the database. It matches all rows of the list, and maybe more.
	Filter monitor.DeadLetterFilter
	// Waiting asks for waiting dead letters, Decided for decided ones.
	Waiting, Decided bool
	// Row converts a dead letter for the export and reports whether the list would show it. Any converts
	// it whatever the filter is.
	Row, Any func(l *monitor.LedgerEntry) (id int64, value any, wanted bool)
}

// ExecutionThing is an execution with its reading.
func ExecutionThing(x *monitor.Execution, value any) Thing {
	id := strconv.FormatInt(x.ID, 10)
	t := Thing{
		Name: "execution " + id, ID: id, Value: value, Command: []string{"execution", "show", id},
		Table: "execution", Where: "id = " + id, Execution: x.ID,
	}
	if x.WorkerID != nil {
		t.Queue = monitor.WorkerQueue(*x.WorkerID)
	}
	return t
}

// QueueThing is an admission queue with its reading.
func QueueThing(q *monitor.Queue, value any) Thing {
	t := Thing{
		Name: "queue " + QueueName(q), ID: QueueName(q), Value: value,
		Command: []string{"queue", "show", q.ActionRef},
	}
	if q.Group != "" {
		t.Command = append(t.Command, "--group", q.Group)
	}
	if q.LimitFrom.Kind != "" { // the queue has a row of its own
		t.Table, t.Where = "execution_admission_state", "id = "+strconv.FormatInt(q.ID, 10)
	}
	return t
}

// WorkerThing is a worker with its reading.
func WorkerThing(w *monitor.Worker, value any) Thing {
	name := cmp.Or(w.Name, strconv.FormatInt(w.ID, 10))
	t := Numbered("worker", w.ID, "", "worker", value)
	t.Name, t.ID = "worker "+name, name
	t.Queue, t.Command = monitor.WorkerQueue(w.ID), []string{"workers", "show", name}
	return t
}

// DeadLetterThing is a dead letter with its reading.
func DeadLetterThing(id int64, value any) Thing {
	t := Numbered("dead letter", id, "dlq", "dead_letter", value)
	t.Queue = monitor.DeadLetterQueue
	return t
}

// Numbered is a row of a table by its id, with the command that shows it; an empty command shows none.
func Numbered(what string, id int64, command, table string, value any) Thing {
	number := strconv.FormatInt(id, 10)
	t := Thing{Name: what + " " + number, ID: number, Value: value, Table: table, Where: "id = " + number}
	if command != "" {
		t.Command = []string{command, "show", number}
	}
	return t
}

// BrokerQueueThing is a broker queue with its reading.
func BrokerQueueThing(q monitor.BrokerQueue) Thing {
	return Thing{Name: "queue " + q.Name, ID: q.Name, Value: q, Queue: q.Name}
}
