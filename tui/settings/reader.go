package settings

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/yamldoc"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
)

// choices are the values that keys allow.
var choices = map[string][]string{"theme": theme.Names, "colour": theme.Colours, "view": views()}

type reader struct{ yamldoc.Reader }

// readFile reads a YAML file and reports whether it exists. A file in a folder without access counts as missing. The
// error has a line for each mistake.
func readFile(path string, read func(r *reader, root *yaml.Node)) (found bool, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		if _, missing := os.Stat(path); missing != nil {
			return false, nil //nolint:nilerr // see above
		}
		return false, fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		line, text := yamldoc.Syntax(content, err)
		return true, fmt.Errorf("%s: line %d: %s", path, max(line, 1), text)
	}
	r := &reader{yamldoc.Reader{File: path, Strict: true}}
	if len(document.Content) > 0 && !yamldoc.IsNull(document.Content[0]) {
		read(r, document.Content[0])
	}
	var mistakes []error
	for _, mistake := range yamldoc.Sort(r.Mistakes) {
		mistakes = append(mistakes, errors.New(mistake.String()))
	}
	return true, errors.Join(mistakes...)
}

// decode reads a mapping with known keys, and reports whether it is a mapping.
func (r *reader) decode(node *yaml.Node, what string, into any) (given yamldoc.Fields, ok bool) {
	if node.Kind != yaml.MappingNode && !yamldoc.IsNull(node) {
		r.Mistakef(r.At(node), "%s is a section: write its keys below it", what)
		return nil, false
	}
	given = r.Decode(node, into, nil)
	for name, f := range given {
		if allowed := choices[name]; allowed != nil && !f.Broken && !slices.Contains(allowed, f.Value.Value) {
			r.Mistakef(r.At(f.Value), "%s is not a %s%s", f.Value.Value, name, yamldoc.Meant(f.Value.Value, allowed))
		}
	}
	return given, true
}

// entries are the entries of a mapping by name, in the order of the file. A repeated name is an error.
func (r *reader) entries(node *yaml.Node, what string) []yamldoc.Field {
	var entries []yamldoc.Field
	switch {
	case node == nil || yamldoc.IsNull(node):
	case node.Kind != yaml.MappingNode:
		r.Mistakef(r.At(node), "%s is a section: write its keys below it", what)
	default:
		r.Mapping(node, nil, func(f yamldoc.Field) {
			i := slices.IndexFunc(entries, func(other yamldoc.Field) bool { return other.Name == f.Name })
			if i >= 0 {
				r.Mistakef(r.At(f.Key), "%s stands twice; first in line %d", f.Name, entries[i].Key.Line)
				return
			}
			entries = append(entries, f)
		})
	}
	return entries
}

// read reads the whole file.
func (s *Settings) read(r *reader, root *yaml.Node) {
	f := &file{Settings: s, Mouse: true, Hints: true}
	given, _ := r.decode(root, "the file", f)
	s.NoMouse, s.NoHints = !f.Mouse, !f.Hints
	if f.Refresh.Given() {
		seconds, ok := yamldoc.Seconds(f.Refresh.Value)
		if s.Refresh = time.Duration(seconds * float64(time.Second)); !ok || s.Refresh <= 0 {
			r.Mistakef(r.At(f.Refresh.Value), "refresh must be a duration above zero, such as 2s")
		}
	}
	for _, entry := range r.entries(f.Contexts.Value, "contexts") {
		c := Context{Name: entry.Name, At: r.At(entry.Key).String()}
		if problem := NameProblem(c.Name); problem != "" {
			r.Mistakef(r.At(entry.Key), "the name of a context %s", problem)
			continue
		}
		of, ok := r.decode(entry.Value, "context "+c.Name, &c)
		if ok && !of["database_url"].Given() {
			r.Mistakef(r.At(entry.Key), "context %s has no database_url", c.Name)
		}
		s.Contexts = append(s.Contexts, c)
	}
	s.readKeys(r, f.Keys.Value)
	for _, entry := range r.entries(f.Bookmarks.Value, "bookmarks") {
		s.addBookmark(r, entry, false)
	}
	if given.Sound("default_context") && !slices.Contains(s.Names(), s.DefaultContext) {
		r.Mistakef(r.At(given["default_context"].Value), "default_context: there is no context %s%s",
			s.DefaultContext, yamldoc.Meant(s.DefaultContext, s.Names()))
	}
}

// formerFreeze is the former name of the action freeze.
const formerFreeze = "pause"

// readKeys reads the keys of actions.
func (s *Settings) readKeys(r *reader, node *yaml.Node) {
	var actions []string
	for _, b := range keymap.Table {
		actions = append(actions, string(b.Action))
	}
	for _, entry := range r.entries(node, "keys") {
		if !slices.Contains(actions, entry.Name) && entry.Name != formerFreeze {
			r.Mistakef(r.At(entry.Key), "%s is not an action%s", entry.Name, yamldoc.Meant(entry.Name, actions))
			continue
		}
		change := keymap.Change{Action: keymap.Action(entry.Name)}
		if entry.Name == formerFreeze {
			change.Action = keymap.Freeze
		}
		digitsAreTexts(append(entry.Value.Content, entry.Value)...)
		keys, _ := r.Texts(entry)
		for _, one := range keys {
			key, err := keymap.Parse(one)
			if err != nil {
				r.Mistakef(r.At(entry.Value), "%s", err)
			}
			change.Keys = append(change.Keys, key)
		}
		s.Keys = append(s.Keys, change)
		s.keysAt[change.Action] = r.At(entry.Key).String()
	}
}

// digitsAreTexts makes YAML read keys that are digits as texts.
func digitsAreTexts(nodes ...*yaml.Node) {
	for _, node := range nodes {
		if node.Tag == "!!int" {
			node.Tag = "!!str"
		}
	}
}

// maxName bounds the length of names.
const maxName = 40

// NameProblem says why a text cannot be a name; empty if it can.
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
