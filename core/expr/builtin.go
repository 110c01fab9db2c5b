package expr

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// builtin is a function of the language.
type builtin struct {
	least, most int // arguments
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

// call is where a function was called.
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

// built counts what a function has made.
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

// builtins are the functions by their names.
var builtins = map[string]builtin{
	"string":      {1, 1, func(c call, v []any) (any, error) { return c.built(Text(v[0])) }},
	"number":      {1, 1, toNumber},
	"int":         {1, 1, toInt},
	"bool":        {1, 1, func(_ call, v []any) (any, error) { return Truthy(v[0]), nil }},
	"type_of":     {1, 1, func(_ call, v []any) (any, error) { return kindOf(v[0]), nil }},
	"length":      {1, 1, length},
	"keys":        {1, 1, keys},
	"values":      {1, 1, values},
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
	"index_of":    {2, 2, indexOf},
	"count":       {2, 2, count},
	"merge":       {2, 2, merge},
	"chunks":      {2, 2, chunks},
}

// Functions lists the names of the functions that are built in, sorted.
func Functions() []string {
	names := make([]string, 0, len(builtins))
	for name := range builtins {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func toNumber(c call, v []any) (any, error) {
	switch value := v[0].(type) {
	case int64, float64:
		return value, nil
	case bool:
		if value {
			return int64(1), nil
		}
		return int64(0), nil
	case string:
		text := strings.TrimSpace(value)
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, c.bad("the string is no number")
		}
		return f, nil
	default:
		return nil, c.bad("%s cannot be a number", a(value))
	}
}

func toInt(c call, v []any) (any, error) {
	number, err := toNumber(c, v)
	if err != nil {
		return nil, err
	}
	if n, ok := number.(int64); ok {
		return n, nil
	}
	return c.truncated(math.Trunc(float(number)))
}

func (c call) truncated(f float64) (any, error) {
	if f >= math.MaxInt64 || f < math.MinInt64 || math.IsNaN(f) {
		return nil, c.bad("the number has more than 64 bits")
	}
	return int64(f), nil
}

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

func sortedKeys(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func keys(c call, v []any) (any, error) {
	object, ok := v[0].(map[string]any)
	if !ok {
		return nil, c.bad("an object is expected, not %s", a(v[0]))
	}
	list := make([]any, 0, len(object))
	for _, name := range sortedKeys(object) {
		list = append(list, name)
	}
	return c.built(list)
}

func values(c call, v []any) (any, error) {
	object, ok := v[0].(map[string]any)
	if !ok {
		return nil, c.bad("an object is expected, not %s", a(v[0]))
	}
	list := make([]any, 0, len(object))
	for _, name := range sortedKeys(object) {
		list = append(list, object[name])
	}
	return c.built(list)
}

func abs(c call, v []any) (any, error) {
	switch n := v[0].(type) {
	case int64:
		if n == math.MinInt64 {
			return nil, c.bad("the number has more than 64 bits")
		}
		return max(n, -n), nil
	case float64:
		return math.Abs(n), nil
	}
	return nil, c.number(v[0])
}

func rounded(by func(float64) float64) func(call, []any) (any, error) {
	return func(c call, v []any) (any, error) {
		switch n := v[0].(type) {
		case int64:
			return n, nil
		case float64:
			return c.truncated(by(n))
		}
		return nil, c.number(v[0])
	}
}

// extreme finds the least or the greatest of its arguments, or of the items of a
// single list.
func extreme(sign int) func(call, []any) (any, error) {
	return func(c call, v []any) (any, error) {
		if list, ok := v[0].([]any); ok && len(v) == 1 {
			v = list
		}
		if len(v) == 0 {
			return nil, c.bad("the array is empty")
		}
		best := v[0]
		for _, item := range v {
			order, ok := compare(item, best)
			if !ok {
				return nil, c.bad("%s and %s have no order", a(item), a(best))
			}
			if order*sign > 0 {
				best = item
			}
		}
		return best, nil
	}
}

func sum(c call, v []any) (any, error) {
	list, err := c.array(v[0])
	if err != nil {
		return nil, err
	}
	var total any = int64(0)
	for _, item := range list {
		if err := c.number(item); err != nil {
			return nil, err
		}
		if total, err = c.arithmetic(node{at: c.node.at, text: "+"}, total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func mapped(by func(string) string) func(call, []any) (any, error) {
	return func(c call, v []any) (any, error) {
		s, err := c.str(v[0])
		if err != nil {
			return nil, err
		}
		return c.built(by(s))
	}
}

func tested(by func(s, part string) bool) func(call, []any) (any, error) {
	return func(c call, v []any) (any, error) {
		s, err := c.str(v[0])
		if err != nil {
			return nil, err
		}
		part, err := c.str(v[1])
		if err != nil {
			return nil, err
		}
		return by(s, part), nil
	}
}

func split(c call, v []any) (any, error) {
	s, err := c.str(v[0])
	if err != nil {
		return nil, err
	}
	separator, err := c.str(v[1])
	if err != nil {
		return nil, err
	}
	if err := c.spend(c.node, strings.Count(s, separator)); err != nil {
		return nil, err
	}
	return c.built(Value(strings.Split(s, separator)))
}

func join(c call, v []any) (any, error) {
	list, err := c.array(v[0])
	if err != nil {
		return nil, err
	}
	separator := ""
	if len(v) == 2 {
		if separator, err = c.str(v[1]); err != nil {
			return nil, err
		}
	}
	parts, size := make([]string, len(list)), len(separator)*len(list)
	for i, item := range list {
		parts[i] = Text(item)
		size += len(parts[i])
	}
	if err := c.grow(c.node, size); err != nil {
		return nil, err
	}
	return strings.Join(parts, separator), nil
}

func replace(c call, v []any) (any, error) {
	var text [3]string
	for i := range text {
		var err error
		if text[i], err = c.str(v[i]); err != nil {
			return nil, err
		}
	}
	found := strings.Count(text[0], text[1])
	if err := c.grow(c.node, len(text[0])+found*len(text[2])); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(text[0], text[1], text[2]), nil
}

// match looks for a pattern anywhere in a string. The patterns are those of RE2,
// whose matching takes time in proportion to the string.
func match(c call, v []any) (any, error) {
	pattern, err := c.str(v[0])
	if err != nil {
		return nil, err
	}
	s, err := c.str(v[1])
	if err != nil {
		return nil, err
	}
	const most = 1000
	if len(pattern) > most {
		return nil, c.bad("the pattern is longer than %d bytes", most)
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, c.bad("%v", err)
	}
	return compiled.MatchString(s), c.spend(c.node, 100)
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

func sorted(c call, v []any) (any, error) {
	list, err := c.array(v[0])
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	var unordered error
	slices.SortStableFunc(list, func(x, y any) int {
		order, ok := compare(x, y)
		if !ok && unordered == nil {
			unordered = c.bad("%s and %s have no order", a(x), a(y))
		}
		return order
	})
	if unordered != nil {
		return nil, unordered
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

// mark is the same for values that are equal, and seldom for others.
func mark(v any) string {
	switch v := v.(type) {
	case int64, float64:
		return "n" + strconv.FormatFloat(float(v), 'g', -1, 64)
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

// slice is a part of a list or string; bounds below zero count from the end, and
// bounds beyond it are the end.
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

// indexOf is where an item or a part is found first, or -1.
func indexOf(c call, v []any) (any, error) {
	if list, ok := v[0].([]any); ok {
		return int64(slices.IndexFunc(list, func(item any) bool { return Equal(item, v[1]) })), nil
	}
	s, err := c.str(v[0])
	if err != nil {
		return nil, c.bad("an array or a string is expected, not %s", a(v[0]))
	}
	part, err := c.str(v[1])
	if err != nil {
		return nil, err
	}
	at := strings.Index(s, part)
	if at > 0 {
		at = len([]rune(s[:at]))
	}
	return int64(at), nil
}

func count(c call, v []any) (any, error) {
	if list, ok := v[0].([]any); ok {
		n := int64(0)
		for _, item := range list {
			if Equal(item, v[1]) {
				n++
			}
		}
		return n, nil
	}
	s, err := c.str(v[0])
	if err != nil {
		return nil, c.bad("an array or a string is expected, not %s", a(v[0]))
	}
	part, err := c.str(v[1])
	if err != nil {
		return nil, err
	}
	if part == "" {
		return nil, c.bad("an empty string is everywhere")
	}
	return int64(strings.Count(s, part)), nil
}

// merge is two objects in one; where both have a key the second counts.
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
