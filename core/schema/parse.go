package schema

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/expr"
)

// Bounds of a schema.
const (
	maxBytes   = 256 << 10
	maxNesting = 64
	maxPattern = 1000
	maxParts   = 10_000 // of a pattern with its repetitions expanded
)

// Schema is a parsed schema. It is safe for concurrent use.
type Schema struct {
	root    *node
	ignored []string
}

// node is the schema of one value.
type node struct {
	types        []string
	enum         []any // nil for no bound
	constant     *any
	bounds       map[string]any // numbers, by key
	multiple     any
	unique       bool
	pattern      *regexp.Regexp
	parts        int // of the pattern
	properties   map[string]*node
	required     []string
	additional   *node
	closed       bool // no further properties
	opened       bool // further properties are expected
	items        *node
	anyOf, oneOf []*node
	allOf        []*node
	not          *node
	secret       bool
	fallback     *any
}

// Parse parses a schema of either form. An empty text, null and anything but an object allow
// everything.
func Parse(raw []byte) (*Schema, error) {
	if len(raw) == 0 {
		return Any(), nil
	}
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("a schema of %d bytes is larger than %d", len(raw), maxBytes)
	}
	value, err := expr.FromJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("read a schema: %w", err)
	}
	return FromValue(value)
}

// Any is the schema that allows everything.
func Any() *Schema { return &Schema{root: &node{}} }

// FromValue parses a decoded schema.
func FromValue(value any) (*Schema, error) {
	r := reader{schema: Any()}
	object, ok := value.(map[string]any)
	switch {
	case !ok:
		if value != nil {
			r.ignoref("", "it is no object")
		}
		return r.schema, nil
	case isJSONSchema(object):
		r.schema.root = r.node(object, "", 0)
	default:
		r.schema.root = r.flat(object, "", 0)
	}
	if r.deep {
		return nil, errors.New("a schema is nested deeper than " + strconv.Itoa(maxNesting))
	}
	return r.schema, nil
}

// Ignored describes the parts of the schema that are not supported.
func (s *Schema) Ignored() []string { return slices.Clone(s.ignored) }

// IsFlat reports whether a schema has the flat form, in which every key is a field.
func IsFlat(object map[string]any) bool { return !isJSONSchema(object) }

// Names lists the fields of an object schema.
func (s *Schema) Names() []string { return slices.Sorted(maps.Keys(s.root.properties)) }

// Lacks follows a path of fields through the schema. It returns the position of the first missing
// field and the fields that exist there; -1 if all exist or the schema is open.
func (s *Schema) Lacks(path []string) (at int, known []string) {
	n := s.root
	for i, name := range path {
		next := n.properties[name]
		switch {
		case next == nil && n.open():
			return -1, nil
		case next == nil:
			return i, slices.Sorted(maps.Keys(n.properties))
		}
		n = next
	}
	return -1, nil
}

// Find follows a dotted path as far as the schema describes it. A path is found unless the schema excludes it; why
// explains an excluded path whose first name exists.
func (s *Schema) Find(path string) (found bool, why string) {
	segments := strings.Split(path, ".")
	n := s.root.properties[segments[0]]
	if n == nil {
		return false, ""
	}
	for i, segment := range segments[1:] {
		here := strings.Join(segments[:i+1], ".")
		next := n.properties[segment]
		switch {
		case len(n.types) == 1 && n.types[0] != "object":
			return false, fmt.Sprintf("%s is of type %s and has no fields", here, n.types[0])
		case len(n.types) > 0 && !slices.Contains(n.types, "object"):
			return false, fmt.Sprintf("%s is of type %s and has no fields", here, n.types)
		case next == nil && n.open():
			return true, ""
		case next == nil:
			return false, here + " has no field " + segment
		}
		n = next
	}
	return true, ""
}

// open reports whether an object may have further fields.
func (n *node) open() bool {
	return len(n.properties) == 0 || n.additional != nil || n.opened || len(n.variants()) > 0
}

// isJSONSchema separates the two forms: in the flat one every key has an object.
func isJSONSchema(object map[string]any) bool {
	for key, value := range object {
		switch value := value.(type) {
		case string:
			if key == "type" || key == "$schema" || key == "$id" || key == "$ref" {
				return true
			}
		case []any:
			switch key {
			case "type", "enum", "required", "anyOf", "oneOf", "allOf":
				return true
			}
		case map[string]any:
			if key == "properties" && allObjects(value) {
				return true
			}
		}
	}
	return false
}

func allObjects(object map[string]any) bool {
	for _, value := range object {
		if _, ok := value.(map[string]any); !ok {
			return false
		}
	}
	return len(object) > 0
}

type reader struct {
	schema *Schema
	deep   bool
}

func (r *reader) ignoref(path, format string, args ...any) {
	const most = 50
	if len(r.schema.ignored) >= most {
		return
	}
	what := fmt.Sprintf(format, args...)
	if path != "" {
		what = path + ": " + what
	}
	r.schema.ignored = append(r.schema.ignored, what)
}

// flat parses an object of fields, each with its own required.
func (r *reader) flat(object map[string]any, path string, depth int) *node {
	n := &node{types: []string{"object"}, properties: map[string]*node{}}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		field, ok := object[name].(map[string]any)
		if !ok {
			r.ignoref(under(path, name), "it is no object with a type")
			if object[name] == true {
				n.properties[name] = &node{} // it may be anything
			}
			continue
		}
		n.properties[name] = r.node(field, under(path, name), depth+1)
		if field["required"] == true {
			n.required = append(n.required, name)
		}
	}
	return n
}

// node parses the schema of one value.
func (r *reader) node(object map[string]any, path string, depth int) *node {
	n := &node{}
	if depth > maxNesting {
		r.deep = true
		return n
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		known := r.scalar(n, key, value, path) || r.number(n, key, value) || r.nested(n, key, value, path, depth)
		if !known {
			r.ignoref(path, "%s is not understood", key)
		}
	}
	return n
}

// annotations do not restrict values.
var annotations = []string{
	"$comment", "$id", "$schema", "default", "deprecated", "description", "example", "examples", "immutable", "label",
	"position", "readOnly", "secret", "title", "writeOnly",
}

// kinds are the names of types.
var kinds = []string{"any", "array", "boolean", "integer", "null", "number", "object", "string"}

// scalar parses keys that are neither numbers nor schemas. It reports whether it knew the key and
// its value.
func (r *reader) scalar(n *node, key string, value any, path string) bool {
	switch key {
	case "type":
		n.types = r.types(value, path)
	case "enum":
		list, ok := value.([]any)
		if ok {
			n.enum = list
		}
		return ok
	case "const":
		n.constant = &value
	case "required":
		return r.requires(n, value)
	case "pattern":
		text, ok := value.(string)
		if !ok || len(text) > maxPattern {
			return false
		}
		tree, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return false
		}
		program, err := syntax.Compile(tree.Simplify())
		if err != nil || len(program.Inst) > maxParts {
			return false
		}
		n.parts = len(program.Inst)
		n.pattern, err = regexp.Compile(text)
		return err == nil
	case "uniqueItems":
		n.unique = value == true
	default:
		if !slices.Contains(annotations, key) {
			return false
		}
		if key == "secret" {
			n.secret = value == true
		}
		if key == "default" && value != nil {
			n.fallback = &value
		}
	}
	return true
}

// requires parses required: a flag of a flat field, which its parent has read, or a list of names.
func (r *reader) requires(n *node, value any) bool {
	if _, ok := value.(bool); ok {
		return true
	}
	list, ok := value.([]any)
	for _, item := range list {
		name, isText := item.(string)
		if isText {
			n.required = append(n.required, name)
		}
		ok = ok && isText
	}
	return ok
}

func (r *reader) types(value any, path string) []string {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var types []string
	for _, item := range list {
		name, _ := item.(string)
		if !slices.Contains(kinds, name) {
			r.ignoref(path, "type %s is not understood", expr.Text(item))
			return nil
		}
		if name == "any" {
			return nil
		}
		types = append(types, name)
	}
	return types
}

// bounds are the bounds of a number, or of the size of another value, in the order in which they are checked.
var bounds = []struct {
	key, kind string
	holds     func(order int) bool // of the value and the bound
	text      string
}{
	{"minimum", "number", atLeast, "is below %s"},
	{"maximum", "number", atMost, "is above %s"},
	{"exclusiveMinimum", "number", func(order int) bool { return order > 0 }, "is not above %s"},
	{"exclusiveMaximum", "number", func(order int) bool { return order < 0 }, "is not below %s"},
	{"minLength", "string", atLeast, "has fewer than %s characters"},
	{"maxLength", "string", atMost, "has more than %s characters"},
	{"minItems", "array", atLeast, "has fewer than %s items"},
	{"maxItems", "array", atMost, "has more than %s items"},
	{"minProperties", "object", atLeast, "has fewer than %s fields"},
	{"maxProperties", "object", atMost, "has more than %s fields"},
}

func atLeast(order int) bool { return order >= 0 }
func atMost(order int) bool  { return order <= 0 }

// number parses a bound.
func (r *reader) number(n *node, key string, value any) bool {
	if _, ok := expr.CompareNumbers(value, int64(0)); !ok {
		return false
	}
	if key == "multipleOf" {
		n.multiple = value
		return expr.Float(value) > 0
	}
	for _, b := range bounds {
		if b.key != key {
			continue
		}
		if b.kind != "number" {
			value = int64(min(max(expr.Float(value), 0), maxBytes*1024))
		}
		if n.bounds == nil {
			n.bounds = map[string]any{}
		}
		n.bounds[key] = value
		return true
	}
	return false
}

// nested parses keys with further schemas.
func (r *reader) nested(n *node, key string, value any, path string, depth int) bool {
	object, isObject := value.(map[string]any)
	switch key {
	case "properties":
		if !isObject {
			return false
		}
		inner := r.flat(object, path, depth)
		n.properties, n.required = inner.properties, append(n.required, inner.required...)
	case "additionalProperties":
		n.closed, n.opened = value == false, value == true
		if isObject {
			n.additional = r.node(object, under(path, "*"), depth+1)
		}
		_, isFlag := value.(bool)
		return isObject || isFlag
	case "items":
		if isObject {
			n.items = r.node(object, path+"[]", depth+1)
		}
		return isObject
	case "not":
		if isObject {
			n.not = r.node(object, path, depth+1)
		}
		return isObject
	case "anyOf", "oneOf", "allOf":
		list, ok := value.([]any)
		of := make([]*node, 0, len(list))
		for _, item := range list {
			object, isObject := item.(map[string]any)
			ok = ok && isObject
			of = append(of, r.node(object, path, depth+1))
		}
		if !ok {
			return false
		}
		*map[string]*[]*node{"anyOf": &n.anyOf, "oneOf": &n.oneOf, "allOf": &n.allOf}[key] = of
	default:
		return false
	}
	return true
}

func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
