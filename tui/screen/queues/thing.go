package queues

import "github.com/attune-go/attune/tui/screen"

// Thing is the queue of a row.
func (q *Queues) Thing(row int) screen.Thing {
	r := q.rows[row]
	return screen.QueueThing(&r, r)
}

// Beyond says that only the busiest queues are read.
func (q *Queues) Beyond() string {
	if d := q.env.Data.Queues; d != nil && d.More {
		return "there are more queues; the busiest are read"
	}
	return ""
}
