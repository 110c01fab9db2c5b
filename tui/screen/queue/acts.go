package queue

import (
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
)

// Acts is what may be done with the execution under the cursor, or with the queue where
// its limits and times are shown and where it has no rows.
func (q *Queue) Acts() (act.Menu, bool) {
	d := q.current()
	if d == nil {
		return act.Menu{}, false
	}
	if id := q.Subject(); id != 0 {
		x := monitor.Execution{ID: id, ActionRef: d.ActionRef, Status: string(attune.StatusRequested)}
		if h := q.holder(id); h != nil {
			x.ActionRef, x.Status = h.ActionRef, h.Status
		}
		return act.ForExecution(&x), true
	}
	return act.ForQueue(&d.Queue), true
}
