package executions

import (
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/screen"
)

// Acts is what may be done with the executions that are marked, or else with the
// one under the cursor.
func (x *Executions) Acts() (act.Menu, bool) {
	if keys := x.table.Marked(); len(keys) > 0 {
		return act.ForMarkedExecutions(screen.Targets(keys)), true
	}
	at := x.table.Cursor()
	if at < 0 {
		return act.Menu{}, false
	}
	return act.ForExecution(&x.rows[at]), true
}
