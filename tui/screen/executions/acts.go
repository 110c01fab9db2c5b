package executions

import (
	"strconv"

	"github.com/attune-go/attune/tui/act"
)

// Acts is what may be done with the executions that are marked, or else with the
// one under the cursor.
func (x *Executions) Acts() (act.Menu, bool) {
	if keys := x.table.Marked(); len(keys) > 0 {
		targets := make([]act.Target, 0, len(keys))
		for _, key := range keys {
			if id, err := strconv.ParseInt(key, 10, 64); err == nil {
				targets = append(targets, act.Target{ID: id, Name: key})
			}
		}
		return act.ForMarkedExecutions(targets), true
	}
	at := x.table.Cursor()
	if at < 0 {
		return act.Menu{}, false
	}
	return act.ForExecution(&x.rows[at]), true
}
