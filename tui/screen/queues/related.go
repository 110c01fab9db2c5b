package queues

import (
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// Relations is what the queue under the cursor has to do with.
func (q *Queues) Relations() (title string, list []screen.Relation, ok bool) {
	at := q.table.Cursor()
	if at < 0 {
		return "", nil, false
	}
	r := &q.rows[at]
	return "queue " + screen.QueueName(r), append([]screen.Relation{
		{Key: "q", Label: "queue", Help: "who holds its slots and who waits", To: screen.Effect{Handled: true, Open: keymap.InQueue, Queue: r.ID}},
	}, screen.ActionRelations(r.ActionRef)...), true
}
