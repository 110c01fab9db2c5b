// Package settings reads what an operator has set up for the dashboard:
// $XDG_CONFIG_HOME/attune/tui.yaml, with the installations that it can be turned
// to, how it looks, and the keys and bookmarks of its operator.
//
// The file is read strictly. A key that is not known, a value of another type
// and a key that stands twice are errors with the file and the line, and with
// what was probably meant. Passwords may stand in the file, which is warned of
// when others can read it, or be referred to: ${NAME} is the value of an
// environment variable, file:PATH the content of a file. References are followed
// when an installation is opened, not before, so that a missing one harms
// nothing else.
package settings

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/tui/keymap"
)

// Settings is the file. The zero value is what holds without one.
type Settings struct {
	// Path is the file that was looked for; Found is false where there is none.
	Path  string
	Found bool
	// DefaultContext names the context to open when nothing else says which.
	DefaultContext string
	// Theme is the name of a theme; empty where it is not set.
	Theme string
	// Refresh is the interval between polls; zero where it is not set.
	Refresh time.Duration
	ASCII   bool
	NoMouse bool
	NoHints bool
	// Contexts are in the order of the file.
	Contexts []Context
	// Keys are the actions that have other keys. Keymap is the key map with these
	// changes, nil where there are none.
	Keys   []keymap.Change
	Keymap *keymap.Map
	// Bookmarks are those of the file and those that were saved.
	Bookmarks []Bookmark
	// Warnings are the lines that the operator should see once.
	Warnings []string
	keysAt   map[keymap.Action]string // where the keys of an action are given
}

// Context is one installation.
type Context struct {
	Name string
	// Database, Broker and Management are the addresses of its servers. Only the
	// first must be given.
	Database, Broker, Management Reference
	// Schema holds its tables; empty means the default.
	Schema string
	// ReadOnly refuses every act, Protected asks for its name before anything
	// is done.
	ReadOnly, Protected bool
	// Colour is one of theme.Colours, or empty.
	Colour string
	// At is the file and the line that it begins in.
	At string
}

// Path is where the file is looked for: below XDG_CONFIG_HOME, or else below
// .config in the home folder. It is empty where neither is known.
func Path(environ []string) string {
	if folder := lookup(environ, "XDG_CONFIG_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "attune", "tui.yaml")
	}
	if home := lookup(environ, "HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "attune", "tui.yaml")
	}
	return ""
}

// Load reads the file. One that does not exist is none; everything else that
// keeps it from being read is an error in one line.
func Load(path string) (*Settings, error) {
	s := &Settings{Path: path, keysAt: map[keymap.Action]string{}}
	if path == "" {
		return s, nil
	}
	for _, step := range []func() error{s.loadOwn, s.loadSaved, s.makeKeymap} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	s.warnReadable()
	return s, nil
}

// loadOwn reads the file that the operator has written.
func (s *Settings) loadOwn() error {
	content, err := os.ReadFile(s.Path)
	if err != nil {
		if !exists(s.Path) {
			return nil
		}
		return fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	s.Found = true
	root, err := parse(s.Path, content)
	if root == nil || err != nil {
		return err
	}
	r := &reader{path: s.Path}
	s.read(r, root)
	return r.err
}

// exists reports whether there is a file. One below a folder that nobody may
// enter, or that is no folder, is none.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// parse reads a document; one that holds nothing is nil.
func parse(path string, content []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return document.Content[0], nil
}

// Find returns the context of a name. The error names those there are.
func (s *Settings) Find(name string) (Context, error) {
	for _, c := range s.Contexts {
		if c.Name == name {
			return c, nil
		}
	}
	if s.Path == "" {
		return Context{}, fmt.Errorf("there is no context %q: neither XDG_CONFIG_HOME nor HOME says where tui.yaml is", name)
	}
	if !s.Found {
		return Context{}, fmt.Errorf("there is no context %q: %s does not exist", name, s.Path)
	}
	if near := config.Nearest(name, s.Names()); near != "" {
		return Context{}, fmt.Errorf("there is no context %q in %s; did you mean %s?", name, s.Path, near)
	}
	return Context{}, fmt.Errorf("there is no context %q in %s: --contexts lists them", name, s.Path)
}

// Names lists the contexts in the order of the file.
func (s *Settings) Names() []string {
	names := make([]string, len(s.Contexts))
	for i, c := range s.Contexts {
		names[i] = c.Name
	}
	return names
}

// warnReadable warns of passwords that others can read.
func (s *Settings) warnReadable() {
	info, err := os.Stat(s.Path)
	if err != nil || !readableByOthers(info) {
		return
	}
	for _, c := range s.Contexts {
		for _, ref := range []Reference{c.Database, c.Broker, c.Management} {
			if ref.literal() && config.MaskURL(ref.text) != ref.text {
				s.Warnings = append(s.Warnings, s.Path+" holds passwords and can be read by others: chmod 600 "+s.Path)
				return
			}
		}
	}
}

func readableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o044 != 0 }

func lookup(environ []string, name string) string {
	value, _ := find(environ, name)
	return value
}

// find returns the last value of a variable, and whether it is set at all.
func find(environ []string, name string) (value string, set bool) {
	for _, line := range environ {
		if v, ok := strings.CutPrefix(line, name+"="); ok {
			value, set = v, true
		}
	}
	return value, set
}
