package execution

import (
	"encoding/json"

	"github.com/attune-go/attune/tui/screen"
)

// Shows is the execution in sight, with the place in the document that the cursor is
// at.
func (x *Execution) Shows() (screen.Thing, bool) {
	d := x.current()
	if d == nil {
		return screen.Thing{}, false
	}
	thing := screen.ExecutionThing(&d.Execution, json.RawMessage(raw(d)))
	if view := x.document(); view != nil {
		x.prepare()
		thing.Path, thing.Text, thing.InDocument = view.Value()
	}
	return thing, true
}
