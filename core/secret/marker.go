package secret

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/expr"
)

// The owners of rows of execution_secret_value.
const (
	OfConfig      = "execution_config"   // the parameters of an execution
	OfResult      = "execution_result"   // the result of an execution
	OfEnforcement = "enforcement_config" // the parameters of an enforcement
)

// The kinds of origins.
const (
	FromPackConfig = "pack_config"
	FromKeystore   = "keystore"
	FromResult     = "execution_result"
	FromParameter  = "workflow_parameter"
	FromQueueItem  = "queue_item"
	FromSchema     = "parameter_schema"
)

// Marker returns the replacement of a secret.
func Marker() map[string]any {
	return map[string]any{expr.Secret: true, "redacted": true}
}

// IsMarker reports whether the value replaces a secret.
func IsMarker(value any) bool {
	object, ok := value.(map[string]any)
	return ok && object[expr.Secret] == true
}

// Has reports whether the JSON may contain a marker: false means that it has none.
func Has(raw []byte) bool { return bytes.Contains(raw, []byte(expr.Secret)) }

// Taken is a secret removed from a value.
type Taken struct {
	Path  string // JSON pointer
	Value any
}

// Take replaces the values at the given JSON pointers by markers and returns them. It skips missing values, null
// and markers. It does not change its argument.
func Take(value any, paths []string) (public any, taken []Taken) {
	for _, path := range paths {
		found, ok := At(value, path)
		if !ok || found == nil || IsMarker(found) {
			continue
		}
		if replaced, ok := replace(value, segments(path), Marker()); ok {
			value = replaced
			taken = append(taken, Taken{path, found})
		}
	}
	return value, taken
}

// Put replaces the values at the JSON pointers. It skips missing values. It does not change its argument.
func Put(value any, values []Taken) any {
	for _, one := range values {
		if replaced, ok := replace(value, segments(one.Path), one.Value); ok {
			value = replaced
		}
	}
	return value
}

// Paths returns the JSON pointers of all markers, sorted.
func Paths(value any) []string {
	var found []string
	each(value, "", func(path string, at any) bool {
		if IsMarker(at) {
			found = append(found, path)
			return false
		}
		return true
	})
	slices.Sort(found)
	return found
}

// At returns the value at a JSON pointer.
func At(value any, path string) (any, bool) {
	for _, segment := range segments(path) {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[segment]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// Join adds segments to a JSON pointer.
func Join(path string, more ...string) string {
	for _, segment := range more {
		path += "/" + escaper.Replace(segment)
	}
	return path
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

func segments(path string) []string {
	if path == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		parts[i] = unescaper.Replace(part)
	}
	return parts
}

// replace replaces the value at a path in a copy.
func replace(value any, path []string, by any) (any, bool) {
	if len(path) == 0 {
		return by, true
	}
	switch v := value.(type) {
	case map[string]any:
		child, ok := v[path[0]]
		if !ok {
			return nil, false
		}
		changed, ok := replace(child, path[1:], by)
		if !ok {
			return nil, false
		}
		out := maps.Clone(v)
		out[path[0]] = changed
		return out, true
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		changed, ok := replace(v[i], path[1:], by)
		if !ok {
			return nil, false
		}
		out := slices.Clone(v)
		out[i] = changed
		return out, true
	}
	return nil, false
}

// each visits a value and, if visit returns true, its members.
func each(value any, path string, visit func(path string, at any) bool) {
	if !visit(path, value) {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			each(item, Join(path, key), visit)
		}
	case []any:
		for i, item := range v {
			each(item, Join(path, strconv.Itoa(i)), visit)
		}
	}
}
