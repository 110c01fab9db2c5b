package pack

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/yamldoc"
)

// readSchema reads a description of parameters: name to description, or a JSON Schema object.
func readSchema(r *reader, f yamldoc.Field) (any, bool) {
	value, ok := readObject(r, f)
	if !ok {
		return nil, false
	}
	before := len(r.Mistakes)
	object, _ := value.(map[string]any)
	r.schema(f.Value, object)
	if len(r.Mistakes) == before {
		r.defaults(f, object)
	}
	return value, len(r.Mistakes) == before
}

// defaults checks that the defaults of parameters fit their descriptions.
func (r *reader) defaults(f yamldoc.Field, object map[string]any) {
	parsed, err := schema.FromValue(expr.Value(object))
	if err != nil {
		r.Mistakef(r.At(f.Value), "%s cannot be used: %s", f.Key.Value, yamldoc.OneLine(err.Error()))
		return
	}
	given := parsed.Defaults()
	for _, mistake := range parsed.ValidateParams(given) {
		name, _, _ := strings.Cut(mistake.Path, ".")
		if _, ok := given[name]; !ok {
			continue // a required parameter without a default
		}
		at := yamldoc.Below(f.Value, name)
		if at == yamldoc.Follow(f.Value) {
			at = yamldoc.Below(yamldoc.Below(f.Value, "properties"), name)
		}
		r.Mistakef(r.At(yamldoc.Below(at, "default")), "the default of the parameter %s does not fit: %s", name,
			mistake.String())
	}
}

var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// schema checks the descriptions of parameters, of either form.
func (r *reader) schema(node *yaml.Node, object map[string]any) {
	described, at := object, node
	if !schema.IsFlat(object) {
		properties, ok := object["properties"].(map[string]any)
		if !ok {
			return // any object, or no object at all
		}
		described, at = properties, yamldoc.Below(node, "properties")
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		one, ok := described[name].(map[string]any)
		inner := yamldoc.Below(at, name)
		if !ok {
			r.Mistakef(r.At(inner), "the parameter %s must be described by a mapping, as in {type: string}", name)
			continue
		}
		r.schemaType(yamldoc.Below(inner, "type"), name, one["type"])
		if required, given := one["required"]; given {
			switch required.(type) {
			case bool, []any:
			default:
				r.Mistakef(r.At(yamldoc.Below(inner, "required")), "required of the parameter %s must be true or false",
					name)
			}
		}
		if list, given := one["enum"]; given {
			if _, ok := list.([]any); !ok {
				r.Mistakef(r.At(yamldoc.Below(inner, "enum")), "enum of the parameter %s must be a list", name)
			}
		}
	}
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
			r.Mistakef(r.At(node), "the parameter %s is of type %s; known are %s", name, yamldoc.Show(node),
				strings.Join(types, ", "))
		}
	}
}
