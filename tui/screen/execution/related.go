package execution

import (
	"strconv"

	"github.com/attune-go/attune/tui/screen"
)

// Relations is what the execution has to do with.
func (x *Execution) Relations() (title string, list []screen.Relation, ok bool) {
	d := x.current()
	if d == nil {
		return "", nil, false
	}
	list = screen.ExecutionRelations(&d.Execution, x.family())
	for i := range list {
		if list[i].Label == "enforcement" && list[i].Not != "" && d.Enforcement != nil {
			list[i].Not, list[i].Help = "", strconv.FormatInt(*d.Enforcement, 10)
			list[i].To = screen.ShownBy("enforcement", list[i].Help)
		}
	}
	return "execution " + strconv.FormatInt(d.ID, 10), list, true
}
