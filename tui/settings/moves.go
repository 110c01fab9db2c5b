package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/tui/keymap"
)

// Command is a program that the operator has put on a key.
type Command struct {
	Name string
	// Key is as the terminal sends it, Scopes are the views it works in.
	Key    string
	Scopes []keymap.Scope
	// Args are the program and its arguments, in which placeholders are replaced
	// one argument at a time. Shell is a script that finds the values in its
	// environment. One of the two is given.
	Args  []string
	Shell string
	// Help is its line in the help.
	Help string
	// Confirm asks before it runs, Background keeps it out of the terminal, and
	// Acts refuses it where nothing may be acted upon.
	Confirm, Background, Acts bool
	// At is the file and the line that it begins in.
	At string
}

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

// Placeholders are the values of a row that a command can be given: {id} in an
// argument, ATTUNE_ID in the environment.
var Placeholders = []string{"id", "name", "action", "group", "view", "context", "filter"}

// Variable is the name under which a placeholder stands in the environment.
func Variable(placeholder string) string { return "ATTUNE_" + strings.ToUpper(placeholder) }

// Action is what the key of a command means.
func (c *Command) Action() keymap.Action { return keymap.Action("command:" + c.Name) }

// makeKeymap holds the keys together to the rules of the key map.
func (s *Settings) makeKeymap() error {
	if len(s.Keys) == 0 && len(s.Commands) == 0 {
		return nil
	}
	added := make([]keymap.Binding, len(s.Commands))
	for i := range s.Commands {
		c := &s.Commands[i]
		added[i] = keymap.Binding{
			Action: c.Action(), Keys: []string{c.Key}, Show: keymap.Show([]string{c.Key}), Help: c.Help, Group: keymap.GroupOwn,
			Scopes: c.Scopes, Acts: c.Acts || c.Confirm,
		}
	}
	var err error
	if s.Keymap, err = keymap.New(s.Keys, added); err != nil {
		return fmt.Errorf("%s: %w", s.placeOf(err), err)
	}
	return nil
}

// placeOf is the line of the change or the command that breaks a rule.
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

// readCommand reads a command and checks it as a whole.
func (r *reader) readCommand(key, value *yaml.Node) Command {
	c := Command{Name: key.Value, At: r.at(key)}
	if problem := NameProblem(c.Name); problem != "" {
		r.failf(key, "the name of a command %s", problem)
	}
	r.mapping(value, "command "+c.Name, fields{
		"key":        func(node *yaml.Node) { c.Key = r.key(node) },
		"scope":      func(node *yaml.Node) { c.Scopes = r.scopes(node) },
		"run":        r.texts("run", &c.Args),
		"shell":      r.text("shell", &c.Shell),
		"help":       r.text("help", &c.Help),
		"confirm":    r.flag("confirm", func(on bool) { c.Confirm = on }),
		"background": r.flag("background", func(on bool) { c.Background = on }),
		"acts":       r.flag("acts", func(on bool) { c.Acts = on }),
	})
	if r.err != nil {
		return c
	}
	if err := c.check(); err != nil {
		r.failf(key, "command %s: %s", c.Name, err)
	}
	if c.Help == "" {
		c.Help = c.Name
	}
	return c
}

// scopes are the views that a key works in.
func (r *reader) scopes(node *yaml.Node) []keymap.Scope {
	known := []string{string(keymap.Everywhere)}
	for _, scope := range keymap.Scopes {
		known = append(known, string(scope))
	}
	var scopes []keymap.Scope
	for _, item := range r.list(node, "scope", false) {
		if !slices.Contains(known, item.Value) {
			r.failf(item, "%s is not a view%s", item.Value, suggestion(item.Value, known))
		}
		scopes = append(scopes, keymap.Scope(item.Value))
	}
	return scopes
}

// shells read an argument as a program.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "eval"}

// check says what is wrong with a command as a whole. Values of rows are whatever
// somebody wrote into a message, so they never become part of a script.
func (c *Command) check() error {
	switch {
	case c.Key == "":
		return errors.New("it has no key")
	case (len(c.Args) == 0) == (c.Shell == ""):
		return errors.New("it needs either run, a list, or shell, a text")
	case c.Shell != "" && len(placeholdersIn(c.Shell)) > 0:
		name := placeholdersIn(c.Shell)[0]
		return fmt.Errorf(`in shell write "$%s" for {%s}: a value is never pasted into a script`, Variable(name), name)
	case len(c.Args) > 0 && len(placeholdersIn(c.Args[0])) > 0:
		return errors.New("the program itself cannot be a value of a row")
	}
	if len(c.Scopes) == 0 {
		c.Scopes = []keymap.Scope{keymap.Everywhere}
	}
	for i, arg := range c.Args {
		if i > 0 && slices.Contains(shells, filepath.Base(c.Args[0])) && len(placeholdersIn(arg)) > 0 {
			return fmt.Errorf("%s would run a value of a row: use shell, which finds it in the environment", c.Args[0])
		}
		for rest := arg; ; {
			_, after, open := strings.Cut(rest, "{")
			name, tail, closed := strings.Cut(after, "}")
			if !open || !closed {
				break
			}
			if isName(name) && !slices.Contains(Placeholders, name) {
				return fmt.Errorf("{%s} is not known%s", name, suggestion(name, Placeholders))
			}
			rest = tail
		}
	}
	return nil
}

// isName reports whether what stands in braces looks like a placeholder; JSON
// does not.
func isName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') })
}

func placeholdersIn(text string) []string {
	var found []string
	for _, name := range Placeholders {
		if strings.Contains(text, "{"+name+"}") {
			found = append(found, name)
		}
	}
	return found
}

// Needs lists the values that the command uses, as far as that can be seen.
func (c *Command) Needs() []string {
	var needs []string
	for _, name := range Placeholders {
		if strings.Contains(c.Shell, Variable(name)) || slices.Contains(placeholdersIn(strings.Join(c.Args, " ")), name) {
			needs = append(needs, name)
		}
	}
	return needs
}

// Argv is the command with the values of a row in its arguments. A value is never
// split, and what it holds is never read again.
func (c *Command) Argv(values map[string]string) []string {
	if c.Shell != "" {
		return []string{"sh", "-c", c.Shell}
	}
	pairs := make([]string, 0, 2*len(Placeholders))
	for _, name := range Placeholders {
		pairs = append(pairs, "{"+name+"}", values[name])
	}
	replace := strings.NewReplacer(pairs...)
	argv := make([]string, len(c.Args))
	for i, arg := range c.Args {
		argv[i] = replace.Replace(arg)
	}
	return argv
}
