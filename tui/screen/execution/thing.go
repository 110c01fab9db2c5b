package execution

import (
	"encoding/json"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// Document is all that was read of an execution, with its documents as such, so that
// what is secret in them can be told.
func Document(d *monitor.ExecutionDetail) json.RawMessage { return json.RawMessage(raw(d)) }

// Shows is the execution in sight, with the place in the document that the cursor is
// at.
func (x *Execution) Shows() (screen.Thing, bool) {
	d := x.current()
	if d == nil {
		return screen.Thing{}, false
	}
	thing := screen.ExecutionThing(&d.Execution, Document(d))
	if view := x.document(); view != nil {
		x.prepare()
		thing.Path, thing.Text, thing.InDocument = view.Value()
	}
	return thing, true
}
