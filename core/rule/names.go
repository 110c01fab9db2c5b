package rule

import (
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
)

// Misname is a path in the parameters of a rule that has no value for any event.
type Misname struct {
	At      string // in the parameters
	Path    string
	Unknown string // the path up to the unknown name
	Name    string // that name
	Known   []string
}

// names are the valid names of paths; nil means any name.
type names map[string]names

var known = names{
	"event":  {"id": {}, "trigger": {}, "created": {}, "payload": nil},
	"pack":   {"config": nil},
	"system": {"timestamp": {}, "rule": {"id": {}, "ref": {}}},
}

// Misnamed lists the paths in parameters that can have no value. payload are the fields of the
// events; nil if unknown.
func Misnamed(params any, payload []string) []Misname {
	var wrong []Misname
	for _, found := range expr.Paths(expr.Value(params)) {
		at := known
		segments := strings.Split(found.Path, ".")
		for i, segment := range segments {
			next, ok := at[segment]
			if !ok {
				wrong = append(wrong, misname(found, segments, i, slices.Sorted(maps.Keys(at))))
				break
			}
			if next == nil { // any name may follow
				if segments[0] == "event" && i+1 < len(segments) && payload != nil &&
					!slices.Contains(payload, segments[i+1]) {
					wrong = append(wrong, misname(found, segments, i+1, payload))
				}
				break
			}
			at = next
		}
	}
	return wrong
}

func misname(found expr.FoundPath, segments []string, i int, known []string) Misname {
	return Misname{
		At: found.At, Path: found.Path, Unknown: strings.Join(segments[:i+1], "."), Name: segments[i], Known: known,
	}
}

// Absent lists the paths without a value for this event: they are null.
func (p *Params) Absent(event Event, subject Subject) []string {
	var absent []string
	scope := Scope(event, subject)
	for _, found := range expr.Paths(p.values) {
		if !expr.Leads(scope, found.Path) {
			absent = append(absent, found.At+": {{ "+found.Path+" }}")
		}
	}
	return absent
}
