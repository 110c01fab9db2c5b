package settings

import (
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/tui/keymap"
)

// Bookmark is a view as it was arranged once.
type Bookmark struct {
	Name string
	// Key is the letter that opens it after the key of bookmarks; empty for none.
	Key  string
	View keymap.Scope
	// Filter, Sort and Columns are as the view writes them; empty leaves the default.
	Filter  string
	Sort    string
	Columns []string
	// Problems leaves out what means no trouble.
	Problems bool
	// At is the file and the line that it begins in.
	At    string
	saved bool // by the program, in a file of its own
}

// makeKeymap holds the keys together to the rules of the key map.
func (s *Settings) makeKeymap() error {
	if len(s.Keys) == 0 {
		return nil
	}
	var err error
	if s.Keymap, err = keymap.New(s.Keys); err != nil {
		return fmt.Errorf("%s: %w", s.placeOf(err), err)
	}
	return nil
}

// placeOf is the line of the change that breaks a rule.
func (s *Settings) placeOf(err error) string {
	if problem, ok := errors.AsType[*keymap.ProblemError](err); ok {
		for _, action := range problem.Actions {
			if at, ok := s.keysAt[action]; ok {
				return at
			}
		}
	}
	return s.Path
}

// formerFreeze is what freezing was called before it was told apart from pausing queues.
const formerFreeze = "pause"

// readKeys reads the actions that get other keys.
func (s *Settings) readKeys(r *reader, node *yaml.Node) {
	var actions []string
	for _, b := range keymap.Table {
		actions = append(actions, string(b.Action))
	}
	r.entries(node, "keys", func(key, value *yaml.Node) {
		if !slices.Contains(actions, key.Value) && key.Value != formerFreeze {
			r.failf(key, "%s is not an action%s", key.Value, suggestion(key.Value, actions))
			return
		}
		change := keymap.Change{Action: keymap.Action(key.Value)}
		if key.Value == formerFreeze {
			change.Action = keymap.Freeze
		}
		for _, one := range r.list(value, key.Value, true) {
			change.Keys = append(change.Keys, r.key(one))
		}
		s.Keys = append(s.Keys, change)
		s.keysAt[change.Action] = r.at(key)
	})
}

// key reads one key as people write it.
func (r *reader) key(node *yaml.Node) string {
	key, err := keymap.Parse(node.Value)
	if err != nil {
		r.failf(node, "%s", err)
	}
	return key
}

// list is a list of texts, or one alone. Keys may be digits, which YAML takes for
// numbers.
func (r *reader) list(node *yaml.Node, name string, digits bool) []*yaml.Node {
	items := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		items = node.Content
	}
	if len(items) == 0 {
		r.failf(node, "%s is an empty list", name)
	}
	for i, item := range items {
		items[i] = resolved(item)
		isText := items[i].Tag == "!!str" || digits && items[i].Tag == "!!int"
		if items[i].Kind != yaml.ScalarNode || !isText {
			r.failf(item, "%s must be a text or a list of texts", name)
			return nil
		}
	}
	return items
}

func (r *reader) texts(name string, to *[]string) func(*yaml.Node) {
	return func(node *yaml.Node) {
		for _, item := range r.list(node, name, false) {
			*to = append(*to, item.Value)
		}
	}
}
