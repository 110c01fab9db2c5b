package pack

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shape has the description of each parameter of a schema.
type shape map[string]json.RawMessage

// shapeOf reads either form of a schema: name to description, or a JSON Schema object with properties. Any other JSON
// has no parameter.
func shapeOf(schema []byte) shape {
	var top struct {
		Type       json.RawMessage            `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var flat shape
	if json.Unmarshal(schema, &flat) != nil {
		return nil
	}
	if json.Unmarshal(schema, &top) == nil && (string(top.Type) == `"object"` || describes(top.Properties)) {
		return top.Properties
	}
	return flat
}

// describes distinguishes the properties of a JSON Schema from the description of a parameter named properties.
func describes(properties map[string]json.RawMessage) bool {
	for _, text := range properties {
		if !strings.HasPrefix(string(text), "{") {
			return false
		}
	}
	return len(properties) > 0
}

func (s shape) names() []string { return slices.Collect(maps.Keys(s)) }

// find follows a dotted path as far as the schema describes it. A path is found unless the schema excludes it; why
// explains an excluded path whose first name exists.
func (s shape) find(path string) (found bool, why string) {
	segments := strings.Split(path, ".")
	text, ok := s[segments[0]]
	if !ok {
		return false, ""
	}
	for i, segment := range segments[1:] {
		here := strings.Join(segments[:i+1], ".")
		var described struct {
			Type       any                        `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
			Additional any                        `json:"additionalProperties"`
		}
		if json.Unmarshal(text, &described) != nil {
			return true, "" // the description is of an unknown form
		}
		if !mayBeObject(described.Type) {
			return false, fmt.Sprintf("%s is of type %v and has no fields", here, described.Type)
		}
		text, ok = described.Properties[segment]
		switch {
		case ok:
		case len(described.Properties) == 0 || described.Additional != nil && described.Additional != false:
			return true, "" // it may have any field
		default:
			return false, here + " has no field " + segment
		}
	}
	return true, ""
}

// mayBeObject reports whether a value of the type can have fields. A missing type allows all.
func mayBeObject(kind any) bool {
	switch kind := kind.(type) {
	case string:
		return !slices.Contains([]string{"string", "number", "integer", "boolean", "array", "null"}, kind)
	case []any:
		return len(kind) == 0 || slices.ContainsFunc(kind, mayBeObject)
	}
	return true
}
