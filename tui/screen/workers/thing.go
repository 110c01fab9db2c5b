package workers

import "github.com/attune-go/attune/tui/screen"

// Thing is the worker of a row, or the queue that no worker owns.
func (v *Workers) Thing(row int) screen.Thing {
	s := v.subject(v.rows[row])
	return s.Thing(s.Worker)
}
