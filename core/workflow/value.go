package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/jsonvalue"
)

// Value is a value of a definition with parsed templates.
type Value struct {
	raw      any
	compiled compiled
}

// compiled is a plain value, or one with templates, in which exactly one of the first four fields is set.
type compiled struct {
	template *expr.Template
	broken   error // of an unreadable template
	list     []compiled
	object   []compiledField
	literal  any // of a plain value
	plain    bool
}

type compiledField struct {
	key   string
	value compiled
}

const maxDepth = 64

// NewValue reads the templates of a value. The error has the path of the text and is or wraps an *expr.Error. The value
// that comes with an error returns it at every evaluation; it is nil if it is nested too deeply.
func NewValue(raw any) (*Value, error) {
	raw = expr.Value(raw)
	c, err := compile(raw, "", 0)
	if err != nil {
		return nil, err
	}
	return &Value{raw: raw, compiled: c}, c.firstError("")
}

// firstError is the error of the first unreadable template.
func (c compiled) firstError(path string) error {
	if c.broken != nil {
		return inPath(path, c.broken)
	}
	for i, item := range c.list {
		if err := item.firstError(path + "[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
	}
	for _, field := range c.object {
		if err := field.value.firstError(strings.TrimPrefix(path+"."+field.key, ".")); err != nil {
			return err
		}
	}
	return nil
}

func compile(raw any, path string, depth int) (compiled, error) {
	if depth > maxDepth {
		return compiled{}, inPath(path, fmt.Errorf("nested deeper than %d", maxDepth))
	}
	switch v := raw.(type) {
	case string:
		return compileText(v), nil
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
			c.object = append(c.object, compiledField{key: key, value: inner})
			c.plain = c.plain && inner.plain
		}
		return c, nil
	default:
		return compiled{plain: true, literal: raw}, nil
	}
}

func compileText(text string) compiled {
	if !strings.Contains(text, "{{") {
		return compiled{plain: true, literal: text}
	}
	template, err := expr.ParseTemplate(text)
	if err != nil {
		return compiled{broken: err}
	}
	return compiled{template: template}
}

func inPath(path string, err error) error {
	if path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Raw is the value with its templates as in the file.
func (v *Value) Raw() any { return v.raw }

// Plain reports whether the value has no templates.
func (v *Value) Plain() bool { return v.compiled.plain }

// evalWithin evaluates all templates within one budget. The error has the path of the text and wraps an *expr.Error, or
// has the path of a too deeply nested part and is a *jsonvalue.Error. The result shares its plain parts with the
// definition: do not change it.
func (v *Value) evalWithin(scope expr.Scope, all *expr.Budget) (any, error) {
	value, err := v.compiled.eval("", scope, all)
	if err != nil || v.compiled.plain {
		return value, err
	}
	return value, jsonvalue.CheckValue("", value)
}

func (c compiled) eval(path string, scope expr.Scope, all *expr.Budget) (any, error) {
	switch {
	case c.plain:
		return c.literal, nil
	case c.broken != nil:
		return nil, inPath(path, c.broken)
	case c.template != nil:
		value, err := c.template.EvalWithin(scope, all)
		if err != nil {
			return nil, inPath(path, err)
		}
		return value, nil
	case c.list != nil:
		list := make([]any, len(c.list))
		for i, item := range c.list {
			var err error
			if list[i], err = item.eval(path+"["+strconv.Itoa(i)+"]", scope, all); err != nil {
				return nil, err
			}
		}
		return list, nil
	default:
		object := make(map[string]any, len(c.object))
		for _, field := range c.object {
			value, err := field.value.eval(strings.TrimPrefix(path+"."+field.key, "."), scope, all)
			if err != nil {
				return nil, err
			}
			object[field.key] = value
		}
		return object, nil
	}
}
