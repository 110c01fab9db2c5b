package queues

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
)

// Acts is what may be done with the queues that are marked, or else with the one
// under the cursor.
func (q *Queues) Acts() (act.Menu, bool) {
	if q.table.Marks() > 0 {
		return act.ForMarkedQueues(q.marked()), true
	}
	at := q.table.Cursor()
	if at < 0 {
		return act.Menu{}, false
	}
	return act.ForQueue(&q.rows[at]), true
}

// marked are the marked queues. Of one that has left the data only the number and
// the name are known.
func (q *Queues) marked() []act.Target {
	byKey := map[string]*monitor.Queue{}
	if d := q.env.Data.Queues; d != nil {
		for i := range d.List {
			byKey[strconv.FormatInt(d.List[i].ID, 10)] = &d.List[i]
		}
	}
	var targets []act.Target
	for _, key := range q.table.Marked() {
		target := act.Target{Name: q.table.MarkName(key)}
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			target.ID = id
		}
		if row, ok := byKey[key]; ok {
			target.Action, target.Group = row.ActionRef, row.Group
		}
		targets = append(targets, target)
	}
	return targets
}
