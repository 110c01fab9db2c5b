package queue

import (
	"strconv"

	"github.com/attune-go/attune/tui/screen"
)

// Relations is what the queue, and the execution under the cursor, have to do with.
func (q *Queue) Relations() (title string, list []screen.Relation, ok bool) {
	d := q.current()
	if d == nil {
		return "", nil, false
	}
	list = screen.ActionRelations(d.ActionRef)
	if id := q.Subject(); id != 0 {
		list = append(list, screen.Relation{Key: "e", Label: "execution", Help: strconv.FormatInt(id, 10), To: screen.OpenExecution(id)})
		list = append(list, q.workerOf(id), q.parentOf(id))
	}
	return "queue " + d.ActionRef, list, true
}

func (q *Queue) workerOf(id int64) screen.Relation {
	r := screen.Relation{Key: "w", Label: "worker", Not: "it was handed to none"}
	if h := q.holder(id); h != nil && h.WorkerID != nil {
		r.Not, r.Help, r.To = "", screen.WorkerName(h.WorkerID, h.WorkerName), screen.OpenWorker(*h.WorkerID)
	}
	return r
}

func (q *Queue) parentOf(id int64) screen.Relation {
	r := screen.Relation{Key: "p", Label: "parent", Not: "nothing started it"}
	if w := q.waiter(id); w != nil && w.Parent != nil {
		r.Not, r.Help, r.To = "", parent(w), screen.OpenExecution(*w.Parent)
	} else if w == nil {
		r.Not = "it is not known here: enter shows it"
	}
	return r
}
