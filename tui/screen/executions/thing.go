package executions

import "github.com/attune-go/attune/tui/screen"

// Thing is the execution of a row.
func (x *Executions) Thing(row int) screen.Thing {
	r := x.rows[row]
	return screen.ExecutionThing(&r, r)
}
