package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/attune-go/attune/core/expr"
)

// Bounds of a check.
const (
	maxSteps    = 100_000
	maxMistakes = 20
	// unitsPerStep is how many bytes of a text times parts of its pattern cost one step, because
	// package regexp cannot be interrupted.
	unitsPerStep = 5000
)

// Mistake is a value that does not match.
type Mistake struct {
	Path string // such as target.ports[2]; empty for the whole value
	Text string // such as: is a string, not an integer
}

// String is the mistake as part of a sentence.
func (m Mistake) String() string {
	if m.Path == "" {
		return "the value " + m.Text
	}
	return m.Path + " " + m.Text
}

// Words writes mistakes on one line.
func Words(mistakes []Mistake) string {
	parts := make([]string, len(mistakes))
	for i, m := range mistakes {
		parts[i] = m.String()
	}
	return strings.Join(parts, "; ")
}

// Option changes a check.
type Option func(*check)

// AllowTemplates accepts every text with {{ }}, whose value is not known yet.
func AllowTemplates() Option { return func(c *check) { c.templates = true } }

// Validate lists the mistakes of a value.
func (s *Schema) Validate(value any, options ...Option) []Mistake {
	return s.run(value, false, options)
}

// ValidateParams lists the mistakes of parameters before defaults are filled in: null is missing,
// and a default satisfies required.
func (s *Schema) ValidateParams(params map[string]any, options ...Option) []Mistake {
	given := make(map[string]any, len(params))
	for name, value := range params {
		if value != nil {
			given[name] = value
		}
	}
	return s.run(given, true, options)
}

func (s *Schema) run(value any, params bool, options []Option) []Mistake {
	c := &check{params: params}
	for _, option := range options {
		option(c)
	}
	c.node(s.root, value, "")
	return c.mistakes
}

// check is one check with its cost and its mistakes.
type check struct {
	templates bool
	params    bool // of the outermost object, fields with a default are not required
	steps     int
	mistakes  []Mistake
}

func (c *check) wrongf(path, format string, args ...any) {
	if len(c.mistakes) < maxMistakes {
		c.mistakes = append(c.mistakes, Mistake{path, fmt.Sprintf(format, args...)})
	}
}

// spent reports whether the check cost too much or found enough.
func (c *check) spent() bool { return c.spend(1) }

// spend is spent for several steps.
func (c *check) spend(steps int) bool {
	if before := c.steps; before < maxSteps {
		if c.steps += steps; c.steps >= maxSteps {
			c.mistakes = append(c.mistakes, Mistake{Text: "is more than can be checked"})
		}
	}
	return c.steps >= maxSteps || len(c.mistakes) >= maxMistakes
}

// node adds the mistakes of a value.
func (c *check) node(n *node, value any, path string) {
	if c.spent() || c.fitsAnywhere(value) {
		return
	}
	if !c.kind(n, value, path) {
		return
	}
	c.among(n, value, path)
	switch v := value.(type) {
	case int64, float64, json.Number:
		c.bounds(n, "number", v, path)
		if n.multiple != nil && !multipleOf(value, n.multiple) {
			c.wrongf(path, "is no multiple of %s", figure(n.multiple))
		}
	case string:
		c.text(n, v, path)
	case []any:
		c.list(n, v, path)
	case map[string]any:
		c.object(n, v, path)
	}
	c.combined(n, value, path)
}

func (c *check) fitsAnywhere(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return v[expr.Secret] == true
	case string:
		return c.templates && strings.Contains(v, "{{") && strings.Contains(v, "}}")
	}
	return false
}

func (c *check) kind(n *node, value any, path string) bool {
	if len(n.types) == 0 {
		return true
	}
	have := kindOf(value)
	for _, want := range n.types {
		if want == have || want == "number" && have == "integer" || want == "integer" && expr.IsWhole(value) {
			return true
		}
	}
	want := make([]string, len(n.types))
	for i, name := range n.types {
		want[i] = article(name)
	}
	c.wrongf(path, "is %s, not %s", article(have), strings.Join(want, " or "))
	return false
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64, json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func article(kind string) string {
	switch kind {
	case "null":
		return kind
	case "array", "integer", "object":
		return "an " + kind
	default:
		return "a " + kind
	}
}

func (c *check) among(n *node, value any, path string) {
	if n.constant != nil && !expr.Equal(*n.constant, value) {
		c.wrongf(path, "is not the one value that it may be")
	}
	if n.enum == nil || slices.ContainsFunc(n.enum, func(one any) bool { return expr.Equal(one, value) }) {
		return
	}
	const most = 8
	names := make([]string, 0, most)
	for _, one := range n.enum[:min(most, len(n.enum))] {
		names = append(names, expr.Text(one))
	}
	if len(n.enum) > most {
		names = append(names, "…")
	}
	c.wrongf(path, "is none of %s", strings.Join(names, ", "))
}

// bounds checks a number, or the size of another value.
func (c *check) bounds(n *node, kind string, value any, path string) {
	for _, b := range bounds {
		limit := n.bounds[b.key]
		if limit == nil || b.kind != kind {
			continue
		}
		if order, _ := expr.CompareNumbers(value, limit); !b.holds(order) {
			c.wrongf(path, b.text, figure(limit))
			return
		}
	}
}

// multipleOf is exact for integers of 64 bits. Other numbers are floats, which are not.
func multipleOf(value, of any) bool {
	if whole, ok := value.(int64); ok {
		if of, ok := of.(int64); ok {
			return of <= 0 || whole%of == 0
		}
	}
	times := expr.Float(value) / expr.Float(of)
	return expr.Float(of) <= 0 || math.IsInf(times, 0) || math.Abs(times-math.Round(times)) <= 1e-9
}

func figure(bound any) string { return strings.TrimSuffix(expr.Text(bound), ".0") }

func (c *check) text(n *node, value, path string) {
	c.bounds(n, "string", int64(utf8.RuneCountInString(value)), path)
	if n.pattern != nil && !c.spend(len(value)*n.parts/unitsPerStep) && !n.pattern.MatchString(value) {
		c.wrongf(path, "does not match %s", n.pattern)
	}
}

func (c *check) list(n *node, list []any, path string) {
	c.bounds(n, "array", int64(len(list)), path)
	seen := map[string]bool{}
	for i, item := range list {
		at := path + "[" + strconv.Itoa(i) + "]"
		if n.unique {
			raw, err := json.Marshal(item)
			if err == nil && seen[string(raw)] {
				c.wrongf(at, "is there twice")
			}
			seen[string(raw)] = true
		}
		if n.items != nil {
			c.node(n.items, item, at)
		}
		if c.spent() {
			return
		}
	}
}

func (c *check) object(n *node, object map[string]any, path string) {
	c.bounds(n, "object", int64(len(object)), path)
	for _, name := range n.required {
		field := n.properties[name]
		if _, ok := object[name]; !ok && (!c.params || path != "" || field == nil || field.fallback == nil) {
			c.wrongf(under(path, name), "is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		field := n.properties[name]
		if field == nil {
			field = n.additional
		}
		if field == nil && n.closed {
			c.wrongf(under(path, name), "is unknown")
		}
		if field != nil {
			c.node(field, object[name], under(path, name))
		}
		if c.spent() {
			return
		}
	}
}

// combined checks anyOf, oneOf, allOf and not.
func (c *check) combined(n *node, value any, path string) {
	for _, all := range n.allOf {
		c.node(all, value, path)
	}
	if n.anyOf != nil && c.fitting(n.anyOf, value, path) == 0 {
		c.wrongf(path, "is nothing of what it may be")
	}
	if n.oneOf != nil {
		switch c.fitting(n.oneOf, value, path) {
		case 0:
			c.wrongf(path, "is nothing of what it may be")
		case 1:
		default:
			c.wrongf(path, "can be understood in several ways")
		}
	}
	if n.not != nil && c.fitting([]*node{n.not}, value, path) == 1 {
		c.wrongf(path, "is what it must not be")
	}
}

// fitting counts the schemas that match a value.
func (c *check) fitting(of []*node, value any, path string) int {
	count := 0
	for _, one := range of {
		probe := &check{templates: c.templates, steps: c.steps}
		probe.node(one, value, path)
		c.spend(probe.steps - c.steps)
		if len(probe.mistakes) == 0 {
			count++
		}
	}
	return count
}
