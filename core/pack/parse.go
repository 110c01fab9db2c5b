package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
)

// Parse reads the policies of one file: YAML (and so JSON), one policy a
// document or a list below the key `policies`. Name is the file's name in the
// places.
//
// It returns every policy that could be recognised, and all mistakes in order.
func Parse(name string, content []byte) ([]Policy, []Mistake) {
	r := &reader{file: name}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.mistakes = append(r.mistakes, r.syntaxMistake(content, err))
			break // where the next document begins is not known
		}
		if len(document.Content) == 1 {
			r.document(document.Content[0])
		}
	}
	return r.policies, Sort(r.mistakes)
}

// reader collects what a file says.
type reader struct {
	file     string
	policies []Policy
	mistakes []Mistake
	warnings []Mistake
	// packUnread: the pack.yaml of the folder could not be read.
	packUnread bool
	unused     []unusedKey
	values     int // that were made of aliases and all
}

func (r *reader) at(node *yaml.Node) Place { return Place{r.file, node.Line, node.Column} }

func (r *reader) mistakef(at Place, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{at, fmt.Sprintf(format, args...)})
}

// syntaxMistake turns an error of the YAML parser into a mistake.
func (r *reader) syntaxMistake(content []byte, err error) Mistake {
	line, text := config.YAMLMistake(content, err)
	return Mistake{Place{File: r.file, Line: line}, "this is not YAML: " + text}
}

// document reads one YAML document.
func (r *reader) document(node *yaml.Node) {
	switch {
	case isNull(node):
		return // an empty document says nothing
	case node.Kind == yaml.SequenceNode:
		r.mistakef(r.at(node), "this is a list: write it below the key policies")
		return
	case node.Kind != yaml.MappingNode:
		r.mistakef(r.at(node), "this is not a policy: write a mapping with ref, threshold and so on")
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "policies" {
			r.list(node)
			return
		}
	}
	r.policy(node)
}

// list reads a document that holds a list of policies.
func (r *reader) list(document *yaml.Node) {
	for i := 0; i+1 < len(document.Content); i += 2 {
		key, value := document.Content[i], follow(document.Content[i+1])
		switch {
		case key.Value != "policies":
			r.mistakef(r.at(key), "%s cannot stand beside policies: a document is a list of policies or one policy", word(key))
		case isNull(value):
		case value.Kind != yaml.SequenceNode:
			r.mistakef(r.at(value), "policies must be a list")
		default:
			for _, item := range value.Content {
				if item = follow(item); item.Kind == yaml.MappingNode {
					r.policy(item)
					continue
				}
				r.mistakef(r.at(item), "this is not a policy: write a mapping with ref, threshold and so on")
			}
		}
	}
}

// field is one key of a mapping.
type field struct {
	name  string // the known key, whatever the file calls it
	key   *yaml.Node
	value *yaml.Node
}

// policyKeys are the keys of a policy.
var policyKeys = []string{
	"ref", "name", "description", "tags", "pack", "action", "kind", "threshold", "method", "parameters", "window", "burst",
	"max_queue_length", "queue_timeout", "retry_place", "adaptive",
}

// adaptiveKeys are the keys below adaptive.
var adaptiveKeys = []string{"min", "latency", "latency_ms"}

// columns are the names of the columns of the table, which are accepted where
// they differ from the keys.
var columns = map[string]string{
	"action_ref": "action", "pack_ref": "pack", "window_seconds": "window", "queue_timeout_seconds": "queue_timeout",
	"adaptive_min": "adaptive.min", "adaptive_latency_ms": "adaptive.latency_ms",
}

// fields lists the keys of a mapping that are known and given, and reports the
// others. Null counts as not given, but not for a scope, which would then be
// wider than somebody meant.
func (r *reader) fields(node *yaml.Node, known []string, prefix string) []field {
	var list []field
	seen := map[string]*yaml.Node{}
	for _, f := range r.pairs(node, map[*yaml.Node]bool{}) {
		name, column := columns[f.key.Value]
		switch {
		case f.key.Kind != yaml.ScalarNode:
			r.mistakef(r.at(f.key), "a key must be a word")
			continue
		case column && prefix == "":
		case slices.Contains(known, f.key.Value):
			name = prefix + f.key.Value
		default:
			r.unknown(f.key, known, prefix)
			continue
		}
		if first, twice := seen[name]; twice {
			r.twice(name, first, f.key)
			continue
		}
		seen[name] = f.key
		value := follow(f.value)
		if scope := name == "action" || name == "pack"; !isNull(value) || scope {
			list = append(list, field{name, f.key, value})
		}
	}
	return list
}

// twice reports a key that a mapping has more than once.
func (r *reader) twice(name string, first, second *yaml.Node) {
	if first.Value == second.Value {
		r.mistakef(r.at(second), "%s is given twice, also in line %d", second.Value, first.Line)
		return
	}
	r.mistakef(r.at(second), "%s and %s in line %d both give %s: keep one", second.Value, first.Value, first.Line, name)
}

func (r *reader) unknown(key *yaml.Node, known []string, prefix string) {
	if near := config.Nearest(key.Value, known); near != "" {
		r.mistakef(r.at(key), "%s is not a known key; the nearest is %s", word(key), prefix+near)
		return
	}
	r.mistakef(r.at(key), "%s is not a known key; known are %s", word(key), strings.Join(known, ", "))
}

// pairs lists keys and values of a mapping, with those it merges by `<<` that
// it does not have itself. Mappings that have been merged already have nothing
// to add, which also ends those that merge themselves.
func (r *reader) pairs(node *yaml.Node, done map[*yaml.Node]bool) []field {
	done[node] = true
	var own, merged []field
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := follow(node.Content[i]), follow(node.Content[i+1])
		if key.Value != "<<" || key.Kind != yaml.ScalarNode {
			own = append(own, field{key: key, value: value})
			continue
		}
		sources := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			sources = value.Content
		}
		for _, source := range sources {
			switch source = follow(source); {
			case source.Kind != yaml.MappingNode:
				r.mistakef(r.at(key), "<< takes the keys of a mapping, and this is none")
			case !done[source]:
				merged = append(merged, r.pairs(source, done)...)
			}
		}
	}
	had := map[string]bool{}
	for _, f := range own {
		had[f.key.Value] = true
	}
	for _, f := range merged { // of several mappings the first wins
		if !had[f.key.Value] {
			had[f.key.Value] = true
			own = append(own, f)
		}
	}
	return own
}

// follow is the node that an alias stands for. What an alias names is never an
// alias itself.
func follow(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool {
	return node.Kind == 0 || node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// word shows a key in a text of one line.
func word(key *yaml.Node) string {
	if key.Kind == yaml.ScalarNode && !strings.ContainsFunc(key.Value, unprintable) && key.Value != "" {
		return key.Value
	}
	return strconv.Quote(key.Value)
}
