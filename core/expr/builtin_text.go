package expr

import "strings"

func mapped(by func(string) string) func(call, []any) (any, error) {
	return func(c call, v []any) (any, error) {
		s, err := c.str(v[0])
		if err != nil {
			return nil, err
		}
		if err := c.spend(c.node, len(s)/stepBytes); err != nil { // letters beyond ASCII take twice as long
			return nil, err
		}
		return c.built(by(s))
	}
}

func tested(by func(s, part string) bool) func(call, []any) (any, error) {
	return func(c call, v []any) (any, error) {
		texts, err := c.strs(v...)
		if err != nil {
			return nil, err
		}
		return by(texts[0], texts[1]), nil
	}
}

func split(c call, v []any) (any, error) {
	texts, err := c.strs(v...)
	if err != nil {
		return nil, err
	}
	s, separator := texts[0], texts[1]
	if err := c.spend(c.node, strings.Count(s, separator)); err != nil {
		return nil, err
	}
	parts := strings.Split(s, separator)
	if separator == "" { // between all characters, and at both ends
		parts = append(append([]string{""}, parts...), "")
	}
	return c.built(Value(parts))
}

// spelled converts a value to text, with the word null.
func spelled(v any) string {
	if v == nil {
		return "null"
	}
	return Text(v)
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
		parts[i] = spelled(item)
		size += len(parts[i])
	}
	if err := c.grow(c.node, size); err != nil {
		return nil, err
	}
	return strings.Join(parts, separator), nil
}

func replace(c call, v []any) (any, error) {
	text, err := c.strs(v...)
	if err != nil {
		return nil, err
	}
	found := strings.Count(text[0], text[1])
	if err := c.spend(c.node, found/16); err != nil {
		return nil, err
	}
	if err := c.grow(c.node, len(text[0])+found*len(text[2])); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(text[0], text[1], text[2]), nil
}
