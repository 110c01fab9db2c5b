package expr

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"
)

func (ev *evaluation) field(n node) (any, error) {
	of, err := ev.boxed(n.parts[0])
	if err != nil {
		return nil, err
	}
	if value, known, err := ev.fieldOfValued(n, of, n.text); known || err != nil {
		return value, err
	}
	of = unboxed(of)
	switch of.(type) {
	case map[string]any, Object:
		return ev.fieldOf(n, of, n.text)
	default:
		return nil, ev.fail(n, "%s has no field %s", a(of), n.text)
	}
}

func (ev *evaluation) fieldOfValued(n node, of any, key string) (value any, known bool, err error) {
	valued, ok := of.(Valued)
	if !ok {
		return nil, false, nil
	}
	if value, known, err = valued.Get(key); err != nil {
		err = ev.broken(node{at: n.at, text: key}, err)
	}
	return value, known, err
}

func (ev *evaluation) fieldOf(n node, of any, key string) (any, error) {
	value, known, err := fetch(of, key)
	if err != nil {
		return nil, ev.broken(node{at: n.at, text: key}, err)
	}
	if !known {
		return nil, ev.fail(n, "there is no field %s%s", key, present(of, key))
	}
	return value, nil
}

// maxPresent bounds the names of fields in an error, and maxName their length.
const (
	maxPresent = 8
	maxName    = 40
)

// present names the fields of an object, and the field below which the key exists. It never shows a value.
func present(of any, key string) string {
	var names []string
	below := ""
	switch of := of.(type) {
	case map[string]any:
		names = sortedKeys(of)
		for _, name := range names {
			if inner, ok := of[name].(map[string]any); ok && below == "" && plainName(name) {
				if _, ok := inner[key]; ok {
					below = "; did you mean " + name + "." + key + "?"
				}
			}
		}
	case Object:
		names = slices.Sorted(slices.Values(of.Keys()))
	}
	if len(names) == 0 {
		return ": it has no fields"
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !plainName(name) })
	if len(names) > maxPresent {
		names = append(names[:maxPresent], "…")
	}
	return "; fields: " + strings.Join(names, ", ") + below
}

// plainName reports whether a key is fit for an error.
func plainName(name string) bool {
	return name != "" && len(name) <= maxName &&
		!strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) || c == ' ' })
}

// fetch returns a field of either kind of object.
func fetch(of any, key string) (value any, known bool, err error) {
	switch of := of.(type) {
	case map[string]any:
		value, known = of[key]
	case Object:
		value, known, err = of.Get(key)
	}
	return value, known, err
}

func (ev *evaluation) index(n node) (any, error) {
	of, err := ev.boxed(n.parts[0])
	if err != nil {
		return nil, err
	}
	index, err := ev.value(n.parts[1])
	if err != nil {
		return nil, err
	}
	if key, ok := index.(string); ok {
		if value, known, err := ev.fieldOfValued(n, of, key); known || err != nil {
			return value, err
		}
	}
	switch of := unboxed(of).(type) {
	case map[string]any, Object:
		key, ok := index.(string)
		if !ok {
			return nil, ev.fail(n, "the key of an object is a string, not %s", a(index))
		}
		return ev.fieldOf(n, of, key)
	case []any:
		i, err := ev.position(n, index, len(of), "items of the list")
		if err != nil {
			return nil, err
		}
		return of[i], nil
	case string:
		runes := []rune(of)
		i, err := ev.position(n, index, len(runes), "characters of the string")
		if err != nil {
			return nil, err
		}
		return string(runes[i]), ev.spend(n, len(of)/stepBytes)
	default:
		return nil, ev.fail(n, "%s has no items", a(of))
	}
}

// position is the offset of an index, which counts from the end below zero.
func (ev *evaluation) position(n node, index any, size int, what string) (int, error) {
	i, ok := whole(index)
	if !ok {
		return 0, ev.fail(n, "the index of a %s is an integer, not %s", what[strings.LastIndexByte(what, ' ')+1:],
			a(index))
	}
	if i < 0 {
		i += int64(size)
	}
	if i < 0 || i >= int64(size) {
		return 0, ev.fail(n, "the index %s is beyond the %d %s", Text(index), size, what)
	}
	return int(i), nil
}

// whole converts an integer, also a float like 3.0.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case json.Number:
		return whole(Float(v))
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return int64(v), true
		}
	}
	return 0, false
}

func (ev *evaluation) within(n node, needle, hay any) (bool, error) {
	if err := ev.spend(n, weight(hay)); err != nil {
		return false, err
	}
	switch hay := hay.(type) {
	case []any:
		return slices.ContainsFunc(hay, func(item any) bool { return Equal(item, needle) }), nil
	case map[string]any:
		key, ok := needle.(string)
		if !ok {
			return false, ev.fail(n, "the key of an object is a string, not %s", a(needle))
		}
		_, ok = hay[key]
		return ok, nil
	case Object:
		key, ok := needle.(string)
		if !ok {
			return false, ev.fail(n, "the key of an object is a string, not %s", a(needle))
		}
		return slices.Contains(hay.Keys(), key), nil
	case string:
		part, ok := needle.(string)
		if !ok {
			return false, ev.fail(n, "%s cannot be part of a string", a(needle))
		}
		return strings.Contains(hay, part), nil
	default:
		return false, ev.fail(n, "nothing can be in %s", a(hay))
	}
}

// callOnKeys evaluates the functions that need only the keys of an Object.
func (ev *evaluation) callOnKeys(n node) (value any, done bool, err error) {
	if (n.text != "keys" && n.text != "length") || len(n.parts) != 1 || !canBeLazy(n.parts[0]) {
		return nil, false, nil
	}
	of, err := ev.lazy(n.parts[0])
	if err != nil {
		return nil, false, err
	}
	object, ok := of.(Object)
	if !ok {
		return nil, false, nil
	}
	names := slices.Sorted(slices.Values(object.Keys()))
	if n.text == "length" {
		return int64(len(names)), true, nil
	}
	return Value(names), true, ev.spend(n, len(names))
}

// canBeLazy reports whether the part may give an Object: it is a name or a field of one. It is cheap to evaluate twice.
func canBeLazy(n node) bool {
	switch n.kind {
	case nodeName:
		return true
	case nodeField:
		return canBeLazy(n.parts[0])
	case nodeIndex:
		return n.parts[1].kind == nodeValue && canBeLazy(n.parts[0])
	default:
		return false
	}
}
