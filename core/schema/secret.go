package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// variants are alternative schemas of a value: a mark in one of them suffices.
func (n *node) variants() []*node {
	return slices.Concat(n.allOf, n.anyOf, n.oneOf)
}

// SecretPaths lists the JSON pointers of the secrets of a value, sorted, without pointers inside a
// secret.
func (s *Schema) SecretPaths(value any) []string {
	f := &finder{}
	f.look(s.root, value, "")
	slices.Sort(f.paths)
	f.paths = slices.Compact(f.paths)
	whole := make(map[string]bool, len(f.paths))
	for _, path := range f.paths {
		whole[path] = true
	}
	return slices.DeleteFunc(f.paths, func(path string) bool { return within(path, whole) })
}

// within reports whether the set has a path around this one.
func within(path string, set map[string]bool) bool {
	for end := strings.LastIndexByte(path, '/'); end > 0; end = strings.LastIndexByte(path[:end], '/') {
		if set[path[:end]] {
			return true
		}
	}
	return false
}

type finder struct {
	paths []string
	steps int
	known map[*node]bool // whether a node has marks
}

func (f *finder) marks(n *node) bool {
	marks, ok := f.known[n]
	if !ok {
		marks = n.marks(0)
		if f.known == nil {
			f.known = map[*node]bool{}
		}
		f.known[n] = marks
	}
	return marks
}

// look never skips for cost: a value too large to search is secret as a whole.
func (f *finder) look(n *node, value any, path string) {
	if f.steps++; f.steps > maxSteps {
		if f.marks(n) {
			f.paths = append(f.paths, path)
		}
		return
	}
	if n.secret && path != "" {
		f.paths = append(f.paths, path)
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			if field := n.properties[name]; field != nil {
				f.look(field, item, path+pointer(name))
			} else if n.additional != nil {
				f.look(n.additional, item, path+pointer(name))
			}
		}
	case []any:
		if n.items == nil {
			break
		}
		for i, item := range v {
			f.look(n.items, item, path+"/"+strconv.Itoa(i))
		}
	}
	for _, one := range n.variants() {
		f.look(one, value, path)
	}
}

// marks reports whether the schema marks a secret.
func (n *node) marks(depth int) bool {
	if n == nil || depth > maxNesting {
		return false
	}
	inner := slices.Concat(n.variants(), slices.Collect(maps.Values(n.properties)), []*node{n.items, n.additional})
	return n.secret || slices.ContainsFunc(inner, func(one *node) bool { return one.marks(depth + 1) })
}

// HasSecrets reports whether the schema marks a secret.
func (s *Schema) HasSecrets() bool { return s.root.marks(0) }

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is a name as a segment of a JSON pointer.
func pointer(name string) string { return "/" + escaper.Replace(name) }
