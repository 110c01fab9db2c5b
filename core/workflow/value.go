package workflow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/expr"
)

// Value is a value of a definition with templates in it, which were read once and
// are evaluated as often as wanted.
type Value struct {
	raw      any
	compiled compiled
}

// compiled is a value without its templates, or with them: exactly one of the
// three is set where templates are.
type compiled struct {
	template *expr.Template
	list     []compiled
	object   []compiledField
	literal  any // if nothing below has a template
	plain    bool
}

type compiledField struct {
	key   string
	value compiled
}

// maxDepth bounds how deep values of a definition may be.
const maxDepth = 64

// NewValue reads the templates of a value. The error names the path to the text
// in the value and is or wraps an *expr.Error.
func NewValue(raw any) (*Value, error) {
	raw = expr.Value(raw)
	c, err := compile(raw, "", 0)
	if err != nil {
		return nil, err
	}
	return &Value{raw: raw, compiled: c}, nil
}

func compile(raw any, path string, depth int) (compiled, error) {
	if depth > maxDepth {
		return compiled{}, inPath(path, fmt.Errorf("nested deeper than %d", maxDepth))
	}
	switch v := raw.(type) {
	case string:
		return compileText(v, path)
	case []any:
		c := compiled{plain: true, literal: raw}
		for i, item := range v {
			inner, err := compile(item, path+"["+strconv.Itoa(i)+"]", depth+1)
			if err != nil {
				return compiled{}, err
			}
			c.list = append(c.list, inner)
			c.plain = c.plain && inner.plain
		}
		return c, nil
	case map[string]any:
		c := compiled{plain: true, literal: raw}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inner, err := compile(v[key], strings.TrimPrefix(path+"."+key, "."), depth+1)
			if err != nil {
				return compiled{}, err
			}
			c.object = append(c.object, compiledField{key, inner})
			c.plain = c.plain && inner.plain
		}
		return c, nil
	default:
		return compiled{plain: true, literal: raw}, nil
	}
}

func compileText(text, path string) (compiled, error) {
	if !strings.Contains(text, "{{") {
		return compiled{plain: true, literal: text}, nil
	}
	template, err := expr.ParseTemplate(text)
	if err != nil {
		return compiled{}, inPath(path, err)
	}
	return compiled{template: template}, nil
}

func inPath(path string, err error) error {
	if path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Raw is the value as it was written, templates included.
func (v *Value) Raw() any { return v.raw }

// Plain reports whether there are no templates in it.
func (v *Value) Plain() bool { return v.compiled.plain }

// Eval is the value with its templates evaluated. The error names the path to the
// text in the value and wraps an *expr.Error. What it returns shares those parts
// with the definition that have no templates, so it is not to be changed.
func (v *Value) Eval(scope expr.Scope) (any, error) { return v.compiled.eval("", scope) }

func (c compiled) eval(path string, scope expr.Scope) (any, error) {
	switch {
	case c.plain:
		return c.literal, nil
	case c.template != nil:
		value, err := c.template.Eval(scope)
		if err != nil {
			return nil, inPath(path, err)
		}
		return value, nil
	case c.list != nil:
		list := make([]any, len(c.list))
		for i, item := range c.list {
			var err error
			if list[i], err = item.eval(path+"["+strconv.Itoa(i)+"]", scope); err != nil {
				return nil, err
			}
		}
		return list, nil
	default:
		object := make(map[string]any, len(c.object))
		for _, field := range c.object {
			value, err := field.value.eval(strings.TrimPrefix(path+"."+field.key, "."), scope)
			if err != nil {
				return nil, err
			}
			object[field.key] = value
		}
		return object, nil
	}
}

// Condition is an expression that is asked for its truth. It is written as an
// expression, or as a template that is nothing but one.
type Condition struct {
	source     string
	inner      string // without the braces
	expression *expr.Expression
}

var errMixed = errors.New("a condition is one expression, alone or as {{ expression }}")

// NewCondition reads a condition. The error is an *expr.Error, with the position in
// the source, wherever one can be given.
func NewCondition(source string) (*Condition, error) {
	inner, from := source, 0
	trimmed := strings.TrimSpace(source)
	if strings.HasPrefix(trimmed, "{{") && strings.HasSuffix(trimmed, "}}") && len(trimmed) >= 4 {
		from = strings.Index(source, "{{") + 2
		inner = source[from:strings.LastIndex(source, "}}")]
	}
	if strings.Contains(unquoted(source), "{{") {
		if _, err := expr.ParseTemplate(source); err != nil {
			return nil, err
		}
	}
	if strings.Contains(unquoted(inner), "{{") {
		return nil, &expr.Error{Source: source, Offset: 0, Text: errMixed.Error()}
	}
	expression, err := expr.Parse(inner)
	if e := (*expr.Error)(nil); errors.As(err, &e) {
		return nil, &expr.Error{Source: source, Offset: from + e.Offset, Text: e.Text}
	}
	if err != nil {
		return nil, err
	}
	return &Condition{source: source, inner: strings.TrimSpace(inner), expression: expression}, nil
}

// Source is the condition as it was written.
func (c *Condition) Source() string { return c.source }

// Expression is the expression without braces and blanks around it.
func (c *Condition) Expression() string { return c.inner }

// Holds reports whether the condition is true.
func (c *Condition) Holds(scope expr.Scope) (bool, error) {
	value, err := c.expression.Eval(scope)
	if err != nil {
		return false, err
	}
	return expr.Truthy(value), nil
}

// unquoted is an expression with blanks where its strings were.
func unquoted(s string) string {
	out := []byte(s)
	quote := byte(0)
	for i := 0; i < len(out); i++ {
		c := out[i]
		switch {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == '\\' && i+1 < len(out):
			out[i], out[i+1] = ' ', ' '
			i++
			continue
		case c == quote:
			quote = 0
		case quote == 0:
			continue
		}
		out[i] = ' '
	}
	return string(out)
}
