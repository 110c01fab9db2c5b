package queue

import (
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/execution"
)

// Shows is the execution under the cursor, as far as it was read, or else the queue in
// sight.
func (q *Queue) Shows() (screen.Thing, bool) {
	d := q.current()
	if d == nil {
		return screen.Thing{}, false
	}
	id := q.Subject()
	if x := q.glance(id); x != nil {
		return screen.ExecutionThing(&x.Execution, execution.Document(x)), true
	}
	if h := q.holder(id); h != nil && q.part == inHolders {
		return screen.ExecutionThing(&monitor.Execution{ID: id, WorkerID: h.WorkerID}, h), true
	}
	if w := q.waiter(id); w != nil && q.part == inLine {
		return screen.ExecutionThing(&monitor.Execution{ID: id}, w), true
	}
	return screen.QueueThing(&d.Queue, d), true
}
