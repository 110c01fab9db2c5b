package queue

import "github.com/attune-go/attune/tui/screen"

// Relations is what the queue has to do with.
func (q *Queue) Relations() (title string, list []screen.Relation, ok bool) {
	d := q.current()
	if d == nil {
		return "", nil, false
	}
	return "queue " + d.ActionRef, screen.ActionRelations(d.ActionRef), true
}
