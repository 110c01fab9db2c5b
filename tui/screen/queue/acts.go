package queue

import "github.com/attune-go/attune/tui/act"

// Acts is what may be done with the queue in sight.
func (q *Queue) Acts() (act.Menu, bool) {
	d := q.current()
	if d == nil {
		return act.Menu{}, false
	}
	return act.ForQueue(&d.Queue), true
}
