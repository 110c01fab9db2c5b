package record

import (
	"strconv"

	"github.com/attune-go/attune/tui/carry"
	"github.com/attune-go/attune/tui/screen"
)

// Shows is the record in sight, with the place in it that the cursor is at.
func (r *Record) Shows() (screen.Thing, bool) {
	d := r.env.Data.Record
	if d == nil || d.RecordRef != r.ref {
		return screen.Thing{}, false
	}
	thing := named(r.ref, d.Body)
	thing.Path, thing.Text, thing.InDocument = r.view.Value()
	return thing, true
}

func named(ref screen.RecordRef, value any) screen.Thing {
	id, _ := strconv.ParseInt(ref.Name, 10, 64) // A rule has a name in place of a number.
	switch ref.Kind {
	case screen.RecordRule:
		return screen.Thing{
			Name: "rule " + ref.Name, ID: ref.Name, Value: value, Command: []string{"rule", "show", ref.Name},
			Table: "rule", Where: "ref = " + carry.Literal(ref.Name),
		}
	default:
		return screen.Numbered(string(ref.Kind), id, string(ref.Kind), string(ref.Kind), value)
	}
}
