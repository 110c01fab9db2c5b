package expr

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// builtin is a built-in function.
type builtin struct {
	least, most int // number of arguments
	do          func(c call, arguments []any) (any, error)
}

func (b builtin) takes() string {
	switch {
	case b.least != b.most:
		return fmt.Sprintf("%d to %d arguments", b.least, b.most)
	case b.least == 1:
		return "1 argument"
	default:
		return fmt.Sprintf("%d arguments", b.least)
	}
}

type call struct {
	*evaluation

	node node
}

func (c call) bad(format string, args ...any) error {
	return c.fail(c.node, "%s: %s", c.node.text, fmt.Sprintf(format, args...))
}

func (c call) str(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", c.bad("a string is expected, not %s", a(v))
	}
	return s, nil
}

func (c call) strs(values ...any) ([]string, error) {
	texts := make([]string, len(values))
	for i, v := range values {
		var err error
		if texts[i], err = c.str(v); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func (c call) array(v any) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, c.bad("an array is expected, not %s", a(v))
	}
	return list, nil
}

func (c call) number(v any) error {
	if kindOf(v) != "number" {
		return c.bad("a number is expected, not %s", a(v))
	}
	return nil
}

func (c call) integer(v any) (int64, error) {
	n, ok := whole(v)
	if !ok {
		return 0, c.bad("an integer is expected, not %s", a(v))
	}
	return n, nil
}

// built counts the size of a function's value.
func (c call) built(v any) (any, error) {
	size := 0
	switch v := v.(type) {
	case string:
		size = len(v)
	case []any:
		size = 8 * len(v)
		for _, item := range v {
			if s, ok := item.(string); ok {
				size += len(s)
			}
		}
	case map[string]any:
		size = 16 * len(v)
	}
	return v, c.grow(c.node, size)
}

var builtins = map[string]builtin{
	"string":      {1, 1, func(c call, v []any) (any, error) { return c.built(spelled(v[0])) }},
	"number":      {1, 1, toNumber},
	"int":         {1, 1, toInt},
	"bool":        {1, 1, func(_ call, v []any) (any, error) { return Truthy(v[0]), nil }},
	"type_of":     {1, 1, func(_ call, v []any) (any, error) { return kindOf(v[0]), nil }},
	"length":      {1, 1, length},
	"keys":        {1, 1, listed(func(_ map[string]any, name string) any { return name })},
	"values":      {1, 1, listed(func(object map[string]any, name string) any { return object[name] })},
	"abs":         {1, 1, abs},
	"floor":       {1, 1, rounded(math.Floor)},
	"ceil":        {1, 1, rounded(math.Ceil)},
	"round":       {1, 1, rounded(math.Round)},
	"min":         {1, 100, extreme(-1)},
	"max":         {1, 100, extreme(1)},
	"sum":         {1, 1, sum},
	"lower":       {1, 1, mapped(strings.ToLower)},
	"upper":       {1, 1, mapped(strings.ToUpper)},
	"trim":        {1, 1, mapped(strings.TrimSpace)},
	"split":       {2, 2, split},
	"join":        {1, 2, join},
	"replace":     {3, 3, replace},
	"starts_with": {2, 2, tested(strings.HasPrefix)},
	"ends_with":   {2, 2, tested(strings.HasSuffix)},
	"match":       {2, 2, match},
	"contains":    {2, 2, func(c call, v []any) (any, error) { return c.within(c.node, v[1], v[0]) }},
	"reversed":    {1, 1, reversed},
	"sort":        {1, 1, sorted},
	"unique":      {1, 1, unique},
	"flat":        {1, 1, flat},
	"zip":         {2, 2, zip},
	"range":       {1, 2, span},
	"slice":       {2, 3, slice},
	"index_of":    {2, 2, found(slices.IndexFunc[[]any], strings.Index)}, // in a string in bytes, as length counts
	"count":       {2, 2, found(count, strings.Count)},
	"merge":       {2, 2, merge},
	"chunks":      {2, 2, chunks},
}

// Functions lists the names of the built-in functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(builtins)) }
