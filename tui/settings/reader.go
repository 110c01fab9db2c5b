package settings

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/tui/theme"
)

// reader walks the document and keeps the first error, after which it does
// nothing more.
type reader struct {
	path string
	err  error
}

// fields says what to do with the value of each key that may stand in a mapping.
type fields map[string]func(value *yaml.Node)

func (r *reader) at(node *yaml.Node) string { return fmt.Sprintf("%s:%d", r.path, node.Line) }

func (r *reader) failf(node *yaml.Node, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s", r.at(node), fmt.Sprintf(format, args...))
	}
}

// resolved follows an alias to what it stands for.
func resolved(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// entries calls take with every key of a mapping and its value, in the order of
// the file.
func (r *reader) entries(node *yaml.Node, what string, take func(key, value *yaml.Node)) {
	node = resolved(node)
	if node.Tag == "!!null" {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.failf(node, "%s is a section: write its keys below it", what)
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content) && r.err == nil; i += 2 {
		key := resolved(node.Content[i])
		if line, twice := seen[key.Value]; twice {
			r.failf(node.Content[i], "%s stands twice; first in line %d", key.Value, line)
			return
		}
		seen[key.Value] = node.Content[i].Line
		take(node.Content[i], resolved(node.Content[i+1]))
	}
}

// mapping reads a mapping of known keys.
func (r *reader) mapping(node *yaml.Node, what string, known fields) {
	r.entries(node, what, func(key, value *yaml.Node) {
		read, ok := known[key.Value]
		if !ok {
			names := slices.Sorted(maps.Keys(known))
			r.failf(key, "%s is not a known key%s", key.Value, suggestion(key.Value, names))
			return
		}
		read(value)
	})
}

// suggestion names what was probably meant, or all there is.
func suggestion(word string, known []string) string {
	if near := config.Nearest(word, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return "; known are " + strings.Join(known, ", ")
}

func (r *reader) text(name string, to *string) func(*yaml.Node) {
	return func(node *yaml.Node) {
		if node.Kind != yaml.ScalarNode || node.Tag != "!!str" || strings.TrimSpace(node.Value) == "" {
			r.failf(node, "%s must be a text", name)
			return
		}
		*to = node.Value
	}
}

// choice is a text that must be one of a few.
func (r *reader) choice(name string, to *string, of []string) func(*yaml.Node) {
	read := r.text(name, to)
	return func(node *yaml.Node) {
		if read(node); r.err == nil && !slices.Contains(of, *to) {
			r.failf(node, "%s is not a %s%s", *to, name, suggestion(*to, of))
		}
	}
}

func (r *reader) flag(name string, set func(bool)) func(*yaml.Node) {
	return func(node *yaml.Node) {
		var value bool
		if node.Tag != "!!bool" || node.Decode(&value) != nil {
			r.failf(node, "%s must be true or false", name)
			return
		}
		set(value)
	}
}

// duration takes Go syntax, and a plain number for seconds, as configurations do.
func (r *reader) duration(name string, to *time.Duration) func(*yaml.Node) {
	return func(node *yaml.Node) {
		text := node.Value
		if node.Tag == "!!int" || node.Tag == "!!float" {
			text += "s"
		}
		d, err := time.ParseDuration(text)
		if node.Kind != yaml.ScalarNode || err != nil || d <= 0 {
			r.failf(node, "%s must be a duration above zero, such as 2s", name)
			return
		}
		*to = d
	}
}

// reference is the address of a server, or what refers to it.
func (r *reader) reference(name string, to *Reference, schemes ...string) func(*yaml.Node) {
	return func(node *yaml.Node) {
		ref := Reference{at: r.at(node) + ": " + name, folder: filepath.Dir(r.path), schemes: schemes}
		r.text(name, &ref.text)(node)
		if r.err != nil {
			return
		}
		if problem := ref.check(); problem != "" {
			r.failf(node, "%s %s", name, problem)
			return
		}
		*to = ref
	}
}

// read takes over the whole file.
func (s *Settings) read(r *reader, root *yaml.Node) {
	r.mapping(root, "the file", fields{
		"default_context": r.text("default_context", &s.DefaultContext),
		"theme":           r.choice("theme", &s.Theme, theme.Names),
		"refresh":         r.duration("refresh", &s.Refresh),
		"ascii":           r.flag("ascii", func(on bool) { s.ASCII = on }),
		"mouse":           r.flag("mouse", func(on bool) { s.NoMouse = !on }),
		"hints":           r.flag("hints", func(on bool) { s.NoHints = !on }),
		"contexts": func(node *yaml.Node) {
			r.entries(node, "contexts", func(key, value *yaml.Node) { s.readContext(r, key, value) })
		},
		"keys": func(node *yaml.Node) { s.readKeys(r, node) },
		"bookmarks": func(node *yaml.Node) {
			r.entries(node, "bookmarks", func(key, value *yaml.Node) { s.addBookmark(r, key, r.readBookmark(key, value)) })
		},
	})
	if r.err != nil || s.DefaultContext == "" {
		return
	}
	if _, err := s.Find(s.DefaultContext); err != nil {
		r.failf(valueOf(root, "default_context"), "default_context: there is no context %s%s", s.DefaultContext, suggestion(s.DefaultContext, s.Names()))
	}
}

// valueOf is the node of a key that is known to be there.
func valueOf(root *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == name {
			return root.Content[i+1]
		}
	}
	return root
}

func (s *Settings) readContext(r *reader, key, value *yaml.Node) {
	c := Context{Name: key.Value, At: r.at(key)}
	if problem := NameProblem(c.Name); problem != "" {
		r.failf(key, "the name of a context %s", problem)
		return
	}
	r.mapping(value, "context "+c.Name, fields{
		"database_url":   r.reference("database_url", &c.Database, "postgresql", "postgres"),
		"broker_url":     r.reference("broker_url", &c.Broker, "amqp", "amqps"),
		"management_url": r.reference("management_url", &c.Management, "http", "https"),
		"schema":         r.text("schema", &c.Schema),
		"read_only":      r.flag("read_only", func(on bool) { c.ReadOnly = on }),
		"protected":      r.flag("protected", func(on bool) { c.Protected = on }),
		"colour":         r.choice("colour", &c.Colour, theme.Colours),
	})
	if !c.Database.Given() {
		r.failf(key, "context %s has no database_url", c.Name)
	}
	s.Contexts = append(s.Contexts, c)
}

// maxName bounds the names that people type.
const maxName = 40

// NameProblem says why a text cannot be a name that people type.
func NameProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxName:
		return fmt.Sprintf("is longer than %d characters", maxName)
	case strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) }):
		return "must not hold spaces or control characters"
	default:
		return ""
	}
}
