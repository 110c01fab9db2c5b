package worker

import (
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// Thing is the worker, of which a value was read, or the queue that no worker owns.
func (s *Subject) Thing(value any) screen.Thing {
	if s.Orphan {
		if s.Queue == nil {
			return screen.BrokerQueueThing(monitor.BrokerQueue{Name: monitor.WorkerQueue(s.Worker.ID)})
		}
		return screen.BrokerQueueThing(*s.Queue)
	}
	return screen.WorkerThing(&s.Worker, value)
}

// Shows is the worker with all that was read of it.
func (v *Worker) Shows() (screen.Thing, bool) {
	s, d := Find(v.env, v.id), Detail(v.env, v.id)
	if d == nil && s.Worker.Name == "" {
		return screen.Thing{}, false
	}
	return s.Thing(struct {
		monitor.Worker

		Detail *monitor.WorkerDetail `json:"detail"`
	}{s.Worker, d}), true
}
