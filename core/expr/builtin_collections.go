package expr

import (
	"encoding/json"
	"maps"
	"math/bits"
	"slices"
	"strconv"
)

func length(c call, v []any) (any, error) {
	switch value := v[0].(type) {
	case string:
		return int64(len(value)), nil // in bytes, as existing engines count
	case []any:
		return int64(len(value)), nil
	case map[string]any:
		return int64(len(value)), nil
	default:
		return nil, c.bad("%s has no length", a(value))
	}
}

func sortedKeys(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

// listed makes a list of an object's fields, in the order of their names.
func listed(item func(object map[string]any, name string) any) func(call, []any) (any, error) {
	return func(c call, v []any) (any, error) {
		object, ok := v[0].(map[string]any)
		if !ok {
			return nil, c.bad("an object is expected, not %s", a(v[0]))
		}
		if err := c.spend(c.node, len(object)*bits.Len(uint(len(object)))/sortedPerStep); err != nil {
			return nil, err
		}
		list := make([]any, 0, len(object))
		for _, name := range sortedKeys(object) {
			list = append(list, item(object, name))
		}
		return c.built(list)
	}
}

func reversed(c call, v []any) (any, error) {
	switch value := v[0].(type) {
	case string:
		runes := []rune(value)
		slices.Reverse(runes)
		return c.built(string(runes))
	case []any:
		list := slices.Clone(value)
		slices.Reverse(list)
		return c.built(list)
	default:
		return nil, c.bad("%s cannot be reversed", a(value))
	}
}

// sortedPerStep is the number of comparisons of a sort in one step.
const sortedPerStep = 8

func sorted(c call, v []any) (any, error) {
	list, err := c.array(v[0])
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	var failed error
	compared := 0
	slices.SortStableFunc(list, func(x, y any) int {
		if failed != nil {
			return 0
		}
		if compared++; compared%sortedPerStep == 0 {
			failed = c.spend(c.node, 1)
		}
		if heavy := min(weight(x), weight(y)); heavy > 0 && failed == nil {
			failed = c.spend(c.node, heavy)
		}
		order, ok := compare(x, y)
		if !ok && failed == nil {
			failed = c.bad("%s and %s have no order", a(x), a(y))
		}
		return order
	})
	if failed != nil {
		return nil, failed
	}
	return c.built(list)
}

func unique(c call, v []any) (any, error) {
	list, err := c.array(v[0])
	if err != nil {
		return nil, err
	}
	kept, index := []any{}, map[string][]any{}
	for _, item := range list {
		key := mark(item)
		if err := c.spend(c.node, len(index[key])*(1+weight(item))); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(index[key], func(other any) bool { return Equal(item, other) }) {
			continue
		}
		index[key] = append(index[key], item)
		kept = append(kept, item)
	}
	return c.built(kept)
}

// mark is equal for equal values, and rarely for others.
func mark(v any) string {
	switch v := v.(type) {
	case int64, float64, json.Number:
		return "n" + strconv.FormatFloat(Float(v), 'g', -1, 64)
	case []any, map[string]any:
		return kindOf(v) + strconv.Itoa(weight(v))
	default:
		return kindOf(v) + Text(v)
	}
}

func flat(c call, v []any) (any, error) {
	list, err := c.array(v[0])
	if err != nil {
		return nil, err
	}
	out := make([]any, 0, len(list))
	for _, item := range list {
		if inner, ok := item.([]any); ok {
			out = append(out, inner...)
		} else {
			out = append(out, item)
		}
	}
	return c.built(out)
}

func zip(c call, v []any) (any, error) {
	x, err := c.array(v[0])
	if err != nil {
		return nil, err
	}
	y, err := c.array(v[1])
	if err != nil {
		return nil, err
	}
	pairs := make([]any, min(len(x), len(y)))
	for i := range pairs {
		pairs[i] = []any{x[i], y[i]}
	}
	return c.built(pairs)
}

func span(c call, v []any) (any, error) {
	begin := int64(0)
	end, err := c.integer(v[len(v)-1])
	if err != nil {
		return nil, err
	}
	if len(v) == 2 {
		if begin, err = c.integer(v[0]); err != nil {
			return nil, err
		}
	}
	if end <= begin {
		return []any{}, nil
	}
	if end-begin > maxSteps || end-begin < 0 {
		return nil, c.bad("more than %d numbers", maxSteps)
	}
	if err := c.spend(c.node, int(end-begin)); err != nil {
		return nil, err
	}
	list := make([]any, 0, end-begin)
	for n := begin; n < end; n++ {
		list = append(list, n)
	}
	return c.built(list)
}

// slice is a part of a list or string. Bounds below zero count from the end; bounds beyond the end are the end.
func slice(c call, v []any) (any, error) {
	begin, err := c.integer(v[1])
	if err != nil {
		return nil, err
	}
	list, isList := v[0].([]any)
	text, isText := v[0].(string)
	if !isList && !isText {
		return nil, c.bad("an array or a string is expected, not %s", a(v[0]))
	}
	runes := []rune(text)
	size := len(list) + len(runes)
	end := int64(size)
	if len(v) == 3 {
		if end, err = c.integer(v[2]); err != nil {
			return nil, err
		}
	}
	from, to := bound(begin, size), bound(end, size)
	to = max(from, to)
	if isList {
		return c.built(slices.Clone(list[from:to]))
	}
	return c.built(string(runes[from:to]))
}

func bound(n int64, size int) int {
	if n < 0 {
		n += int64(size)
	}
	return int(min(max(n, 0), int64(size)))
}

// found applies one of two functions: to a list and an item, or to a string and its part.
func found(items func([]any, func(any) bool) int, text func(s, part string) int) func(call, []any) (any, error) {
	return func(c call, v []any) (any, error) {
		if list, ok := v[0].([]any); ok {
			return int64(items(list, func(item any) bool { return Equal(item, v[1]) })), nil
		}
		s, err := c.str(v[0])
		if err != nil {
			return nil, c.bad("an array or a string is expected, not %s", a(v[0]))
		}
		part, err := c.str(v[1])
		if err != nil {
			return nil, err
		}
		return int64(text(s, part)), nil
	}
}

func count(list []any, wanted func(any) bool) (n int) {
	for _, item := range list {
		if wanted(item) {
			n++
		}
	}
	return n
}

// merge joins two objects; the second one overrides keys of the first.
func merge(c call, v []any) (any, error) {
	merged := map[string]any{}
	for _, argument := range v {
		object, ok := argument.(map[string]any)
		if !ok {
			return nil, c.bad("an object is expected, not %s", a(argument))
		}
		maps.Copy(merged, object)
	}
	return c.built(merged)
}

func chunks(c call, v []any) (any, error) {
	list, err := c.array(v[0])
	if err != nil {
		return nil, err
	}
	size, err := c.integer(v[1])
	if err != nil {
		return nil, err
	}
	if size <= 0 {
		return nil, c.bad("the size is to be above zero")
	}
	parts := []any{}
	for part := range slices.Chunk(list, int(min(size, int64(max(len(list), 1))))) {
		parts = append(parts, slices.Clone(part))
	}
	return c.built(parts)
}
