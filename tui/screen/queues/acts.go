package queues

import "github.com/attune-go/attune/tui/act"

// Acts is what may be done with the queue under the cursor.
func (q *Queues) Acts() (act.Menu, bool) {
	at := q.table.Cursor()
	if at < 0 {
		return act.Menu{}, false
	}
	return act.ForQueue(&q.rows[at]), true
}
