// Package yamldoc reads YAML documents that people write, such as packs, workflows
// and the settings of the dashboard, into structs. It is pure: it opens no file.
//
// A Reader collects everything that is wrong with a document, each mistake with
// file, line and column and with the value that it is about: people correct files
// faster than they run commands. Unknown keys are refused, with the nearest known
// one. A value that cannot be used leaves its field as it was, so that the rest can
// be checked; a document with a mistake is not to be used.
//
// Decode knows the keys of a mapping by the tags of a struct:
//
//	Name    string         `yaml:"name" length:"0..255"`
//	Runtime string         `yaml:"runner_type" also:"runtime"` // two names of one key
//	Kind    policy.Kind    `yaml:"kind" oneof:"rate quota"`    // one of a few words
//	Count   int            `yaml:"count" range:"1..100"`       // a whole number
//	Window  int32          `yaml:"window" unit:"1s"`           // a duration in whole units
//	Tags    []string       `yaml:"tags"`
//	Output  map[string]any `yaml:"output"`                     // values as JSON has them
//	When    yamldoc.Field  `yaml:"when"`                       // left to the caller
//
// A field of another type is an Unmarshaler.
//
// Null counts as not given, but for keys with the tag null:"keep". Aliases and merged
// mappings (<<) are followed; what they stand for is bounded by MaxValues and by
// depth, so that a short file cannot stand for a large one.
package yamldoc

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/phrase"
)

// Reader reads the documents of one file.
type Reader struct {
	Report
	File string
	// What names the contents of the file in texts; empty: file.
	What string
	// Depth is the deepest nesting of values; 0: jsonvalue.Depth.
	Depth int
	// Stored documents were written by a program: nothing is merged, and 0 counts as missing.
	Stored bool
	// Strict documents are written by hand and may hold secrets: null is no value, a number no text,
	// and no mistake repeats a value.
	Strict bool
	// OnText is called with every text that Value reads.
	OnText func(node *yaml.Node)

	values   int  // values read, aliases counted each time
	most     int  // the bound of values; 0: MaxValues
	infinite bool // floats may be infinite, or NaN
}

// Documents are the roots of the documents of a file before the first syntax error.
func (r *Reader) Documents(content []byte) []*yaml.Node {
	content = bytes.TrimPrefix(content, []byte(BOM))
	roots, err := documents(content)
	if _, bound := errors.AsType[*jsonvalue.Error](err); bound {
		r.Mistakef(Place{File: r.File}, "%s", err)
		return nil
	}
	if err != nil {
		line, text := Syntax(content, err)
		r.Mistakef(Place{File: r.File, Line: line}, "this is not YAML: %s", text)
	}
	return roots
}

// Parse reads the one value of a document in YAML or JSON, as Value does. No document is nil. The error is a
// *MistakesError. NaN and infinities are float64.
func Parse(file string, content []byte) (value any, err error) {
	r := Reader{File: file, most: max(MaxValues, len(content)), infinite: true}
	roots := r.Documents(content)
	if len(roots) > 1 {
		r.Mistakef(r.At(roots[1]), "more than one document")
	} else if len(roots) == 1 {
		value = r.Value(roots[0])
	}
	if len(r.Mistakes) > 0 {
		return nil, &MistakesError{Sort(r.Mistakes)}
	}
	return value, nil
}

// At is the place of a node.
func (r *Reader) At(node *yaml.Node) Place {
	if r.Strict {
		return Place{File: r.File, Line: node.Line}
	}
	return Place{r.File, node.Line, node.Column}
}

// Field is one key of a mapping with its value. The zero value is a missing key.
type Field struct {
	Name       string // the known key, also for an alternative name
	Key, Value *yaml.Node
	// Broken: the value is unusable and was reported.
	Broken bool
}

// Given reports whether the key is given.
func (f Field) Given() bool { return f.Key != nil }

// Fields are the given keys of a mapping by name.
type Fields map[string]Field

// Sound reports whether the key is given and its value is usable.
func (f Fields) Sound(name string) bool { return f[name].Given() && !f[name].Broken }

// Key is one key that a mapping may have.
type Key struct {
	Name string
	Also []string // other names
	Null bool     // null is a value
	Tag  reflect.StructTag
}

// Names are the names of keys, without alternatives.
func Names(keys []Key) []string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.Name
	}
	return names
}

// Mapping lists the known keys of a mapping. A duplicate key is a mistake. unknown decides about
// unknown keys; without it RefuseUnknown does.
func (r *Reader) Mapping(node *yaml.Node, keys []Key, unknown func(Field)) Fields {
	given, seen := Fields{}, Fields{}
	for _, f := range r.Pairs(node) {
		if f.Key.Kind != yaml.ScalarNode {
			r.Mistakef(r.At(f.Key), "a key must be a word")
			continue
		}
		i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == f.Name || slices.Contains(k.Also, f.Name) })
		switch {
		case i >= 0:
		case unknown != nil:
			unknown(f)
			continue
		default:
			r.RefuseUnknown(f.Key, Names(keys), "")
			continue
		}
		f.Name = keys[i].Name
		if first, twice := seen[f.Name]; twice {
			r.twice(first, f)
			continue
		}
		seen[f.Name] = f
		if r.Strict || keys[i].Null || !IsNull(f.Value) {
			given[f.Name] = f
		}
	}
	return given
}

func (r *Reader) twice(first, second Field) {
	at, line := r.At(second.Key), first.Key.Line
	switch {
	case r.Strict:
		r.Mistakef(at, "%s stands twice; first in line %d", second.Key.Value, line)
	case first.Key.Value == second.Key.Value:
		r.Mistakef(at, "%s is given twice, also in line %d", second.Key.Value, line)
	default:
		r.Mistakef(at, "%s and %s in line %d both give %s: keep one", second.Key.Value, first.Key.Value, line,
			second.Name)
	}
}

// RefuseUnknown reports an unknown key with the nearest known one, behind the prefix.
func (r *Reader) RefuseUnknown(key *yaml.Node, known []string, prefix string) {
	near := phrase.Nearest(key.Value, known)
	switch {
	case r.Strict:
		r.Mistakef(r.At(key), "%s is not a known key%s", KeyName(key), Meant(key.Value,
			slices.Sorted(slices.Values(known))))
	case near != "":
		r.Mistakef(r.At(key), "%s is not a known key; the nearest is %s", KeyName(key), prefix+near)
	default:
		r.Mistakef(r.At(key), "%s is not a known key; known are %s", KeyName(key), strings.Join(known, ", "))
	}
}

// Meant is the end of a text about a word: the nearest known word, or all of them.
func Meant(word string, known []string) string {
	if near := phrase.Nearest(word, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return "; known are " + strings.Join(known, ", ")
}

// Pairs lists keys and values of a mapping, with those merged by << that it does not have itself. A
// mapping is merged only once, which also ends cycles.
func (r *Reader) Pairs(node *yaml.Node) []Field { return r.pairs(node, map[*yaml.Node]bool{}) }

func (r *Reader) pairs(node *yaml.Node, done map[*yaml.Node]bool) []Field {
	done[node] = true
	if !r.afford(node, len(node.Content)/2) {
		return nil
	}
	var own, merged []Field
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := Follow(node.Content[i]), Follow(node.Content[i+1])
		if key.Value != "<<" || key.Kind != yaml.ScalarNode || r.Stored {
			own = append(own, Field{Name: key.Value, Key: key, Value: value})
			continue
		}
		sources := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			sources = value.Content
		}
		for _, source := range sources {
			switch source = Follow(source); {
			case source.Kind != yaml.MappingNode:
				r.Mistakef(r.At(key), "<< takes the keys of a mapping, and this is none")
			case !done[source]:
				merged = append(merged, r.pairs(source, done)...)
			}
		}
	}
	if len(merged) == 0 {
		return own
	}
	had := map[string]bool{}
	for _, f := range own {
		had[f.Name] = true
	}
	for _, f := range merged { // of several mappings the first wins
		if !had[f.Name] {
			had[f.Name] = true
			own = append(own, f)
		}
	}
	return own
}

// Follow resolves an alias. The target of an alias is never an alias.
func Follow(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

// Below is the value of a key of a mapping, or the mapping without that key.
func Below(node *yaml.Node, name string) *yaml.Node {
	node = Follow(node)
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return Follow(node.Content[i+1])
			}
		}
	}
	return node
}

// IsNull reports whether a node is empty.
func IsNull(node *yaml.Node) bool {
	return node.Kind == 0 || node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// maxShown bounds how much of a value a mistake repeats.
const maxShown = 40

// Shorten cuts a text.
func Shorten(text string) string {
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return text
}

// Show is a value as written, short and on one line.
func Show(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
	}
	switch node.ShortTag() {
	case "!!null":
		return "null"
	case "!!int", "!!float", "!!bool":
		return Shorten(node.Value)
	}
	return strconv.Quote(Shorten(node.Value))
}

// Unprintable reports whether a character changes more of a line than its cell.
func Unprintable(c rune) bool { return !unicode.IsPrint(c) }

// KeyName shows a key on one line.
func KeyName(key *yaml.Node) string {
	if key.Kind == yaml.ScalarNode && !strings.ContainsFunc(key.Value,
		Unprintable) && key.Value != "" && len(key.Value) <= maxShown {
		return key.Value
	}
	return strconv.Quote(Shorten(key.Value))
}
