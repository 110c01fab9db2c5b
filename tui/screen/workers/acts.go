package workers

import (
	"strconv"

	"github.com/attune-go/attune/tui/act"
)

// Acts is what may be done with the workers that are marked, or else with the one
// under the cursor. A queue that no worker owns is nobody's to act on; among
// marked ones it is skipped when that is planned.
func (v *Workers) Acts() (act.Menu, bool) {
	if keys := v.table.Marked(); len(keys) > 0 {
		targets := make([]act.Target, 0, len(keys))
		for _, key := range keys {
			if id, err := strconv.ParseInt(key, 10, 64); err == nil {
				targets = append(targets, act.Target{ID: id, Name: v.table.MarkName(key)})
			}
		}
		return act.ForMarkedWorkers(targets), true
	}
	at := v.table.Cursor()
	if at < 0 || v.rows[at].orphan {
		return act.Menu{}, false
	}
	return act.ForWorker(&v.rows[at].Worker, v.env.Data.Workers.At, v.env.Data.StaleAfter()), true
}
