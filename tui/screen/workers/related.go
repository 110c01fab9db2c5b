package workers

import "github.com/attune-go/attune/tui/screen"

// Relations is what the worker under the cursor has to do with.
func (v *Workers) Relations() (title string, list []screen.Relation, ok bool) {
	at := v.table.Cursor()
	if at < 0 {
		return "", nil, false
	}
	r := &v.rows[at]
	return "worker " + r.Name, append([]screen.Relation{
		{Key: "w", Label: "worker", Help: "its heartbeats, what it has, its queue", To: screen.OpenWorker(r.ID)},
	}, screen.WorkerRelations(r.ID)...), true
}
