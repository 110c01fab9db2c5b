package queue

import "github.com/attune-go/attune/tui/screen"

// Shows is the queue in sight.
func (q *Queue) Shows() (screen.Thing, bool) {
	d := q.current()
	if d == nil {
		return screen.Thing{}, false
	}
	return screen.QueueThing(&d.Queue, d), true
}
