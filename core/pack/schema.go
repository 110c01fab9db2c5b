package pack

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/schema"
)

// readSchema reads a description of parameters: name to description, or a JSON
// Schema object.
func readSchema(r *reader, f field) (any, bool) {
	value, ok := readObject(r, f)
	if !ok {
		return nil, false
	}
	before := len(r.mistakes)
	object, _ := value.(map[string]any)
	r.schema(f.value, object)
	if len(r.mistakes) == before {
		r.defaults(f, object)
	}
	return value, len(r.mistakes) == before
}

// defaults checks that the defaults of parameters fit what is said of them.
func (r *reader) defaults(f field, object map[string]any) {
	parsed, err := schema.FromValue(expr.Value(object))
	if err != nil {
		r.mistakef(r.at(f.value), "%s cannot be used: %s", f.key.Value, oneLine(err.Error()))
		return
	}
	given := parsed.Defaults()
	for _, mistake := range parsed.ValidateParams(given) {
		name, _, _ := strings.Cut(mistake.Path, ".")
		if _, ok := given[name]; !ok {
			continue // that it has none
		}
		at := below(f.value, name)
		if at == follow(f.value) {
			at = below(below(f.value, "properties"), name)
		}
		r.mistakef(r.at(below(at, "default")), "the default of the parameter %s does not fit: %s", name, mistake.String())
	}
}

// types are what a schema may call a value.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// schema checks the descriptions of parameters, of either form.
func (r *reader) schema(node *yaml.Node, schema map[string]any) {
	described, at := schema, node
	if isJSONSchema(schema) {
		properties, ok := schema["properties"].(map[string]any)
		if !ok {
			return // any object, or no object at all
		}
		described, at = properties, below(node, "properties")
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		one, ok := described[name].(map[string]any)
		inner := below(at, name)
		if !ok {
			r.mistakef(r.at(inner), "the parameter %s must be described by a mapping, as in {type: string}", name)
			continue
		}
		r.schemaType(below(inner, "type"), name, one["type"])
		if required, given := one["required"]; given && name != "properties" {
			switch required.(type) {
			case bool, []any:
			default:
				r.mistakef(r.at(below(inner, "required")), "required of the parameter %s must be true or false", name)
			}
		}
		if list, given := one["enum"]; given {
			if _, ok := list.([]any); !ok {
				r.mistakef(r.at(below(inner, "enum")), "enum of the parameter %s must be a list", name)
			}
		}
	}
}

// isJSONSchema tells the two forms apart: in the flat one every key has a mapping.
func isJSONSchema(schema map[string]any) bool {
	for name, value := range schema {
		switch value.(type) {
		case string:
			if name == "type" || strings.HasPrefix(name, "$") {
				return true
			}
		case []any:
			if slices.Contains([]string{"type", "required", "oneOf", "anyOf", "allOf", "enum"}, name) {
				return true
			}
		}
	}
	return false
}

func (r *reader) schemaType(node *yaml.Node, name string, kind any) {
	given, ok := kind.([]any)
	if !ok {
		given = []any{kind}
	}
	for _, one := range given {
		text, isText := one.(string)
		switch {
		case one == nil:
		case !isText || !slices.Contains(types, text):
			r.mistakef(r.at(node), "the parameter %s is of type %s; known are %s", name, show(node), strings.Join(types, ", "))
		}
	}
}

// below is the node of a key of a mapping, or the mapping if it has no such key.
func below(node *yaml.Node, name string) *yaml.Node {
	node = follow(node)
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return follow(node.Content[i+1])
			}
		}
	}
	return node
}
