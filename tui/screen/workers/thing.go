package workers

import (
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// Thing is the worker of a row, or the queue that no worker owns.
func (v *Workers) Thing(row int) screen.Thing {
	r := v.rows[row]
	if r.orphan {
		return screen.BrokerQueueThing(*r.queue)
	}
	thing := screen.Numbered("worker", r.ID, "", "worker", r.Worker)
	thing.Name, thing.ID, thing.Queue = "worker "+r.Name, r.Name, monitor.WorkerQueue(r.ID)
	thing.Command = []string{"workers", "show", r.Name}
	return thing
}
