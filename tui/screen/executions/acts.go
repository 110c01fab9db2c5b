package executions

import "github.com/attune-go/attune/tui/act"

// Acts is what may be done with the execution under the cursor.
func (x *Executions) Acts() (act.Menu, bool) {
	at := x.table.Cursor()
	if at < 0 {
		return act.Menu{}, false
	}
	return act.ForExecution(&x.rows[at]), true
}
