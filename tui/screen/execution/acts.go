package execution

import "github.com/attune-go/attune/tui/act"

// Acts is what may be done with the execution in sight.
func (x *Execution) Acts() (act.Menu, bool) {
	d := x.current()
	if d == nil {
		return act.Menu{}, false
	}
	return act.ForExecution(&d.Execution), true
}
