package xray

import "github.com/attune-go/attune/tui/screen"

// Thing is the execution of a row.
func (v *Xray) Thing(row int) screen.Thing {
	r := *v.rows[row].Relative
	return screen.ExecutionThing(&r.Execution, r)
}

// Beyond says that the tree was cut.
func (v *Xray) Beyond() string {
	if f := v.family(); f != nil && f.More {
		return "the tree is cut at a bound"
	}
	return ""
}
