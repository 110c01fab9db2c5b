// Package settings reads the operator's settings of the dashboard from $XDG_CONFIG_HOME/attune/tui.yaml: contexts,
// look, keys and bookmarks.
//
// Reading is strict. Unknown keys, wrong types and repeated keys are errors with file, line and a suggestion; all
// mistakes are reported at once. Addresses may contain passwords; the program warns if others can read the file. They
// may also be references: ${NAME} is an environment variable, file:PATH a file. A reference is resolved when its
// installation is opened, so that a missing one affects no other.
//
// Every setting is declared once by the tags of a field: key, default and help. Validation, the documented example
// and the flags follow from them.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/yamldoc"
	"github.com/attune-go/attune/tui/keymap"
)

// Settings are the contents of the file. The zero value is the default.
type Settings struct {
	// Found is false if the file does not exist.
	Path  string
	Found bool
	// DefaultContext is the context to open if nothing names another one.
	DefaultContext string `yaml:"default_context" example:"staging" help:"the one to open when nothing else says which"`
	// Theme is empty if it is not set.
	Theme string `yaml:"theme" example:"auto"`
	// Refresh is the interval between polls, 0 if it is not set.
	Refresh  time.Duration
	ASCII    bool `yaml:"ascii" example:"false" help:"draw with ASCII signs only"`
	NoMouse  bool
	NoHints  bool
	Contexts []Context
	// Keys are the changed actions. Keymap is the result, nil without changes.
	Keys   []keymap.Change
	Keymap *keymap.Map
	// Bookmarks are those of the file and the saved ones.
	Bookmarks []Bookmark
	// Warnings are shown once at the start.
	Warnings []string
	keysAt   map[keymap.Action]string // the lines of Keys
}

// file is the YAML form of Settings.
type file struct {
	*Settings
	Refresh   yamldoc.Field `yaml:"refresh" example:"2s" help:"interval between polls, 500ms to 1m"`
	Mouse     bool          `yaml:"mouse" example:"true" help:"false: leave the mouse to the terminal"`
	Hints     bool          `yaml:"hints" example:"true" help:"false: no hints, not even in the first minute"`
	Contexts  yamldoc.Field `yaml:"contexts"`
	Keys      yamldoc.Field `yaml:"keys"`
	Bookmarks yamldoc.Field `yaml:"bookmarks"`
}

// Context is an installation. Only the address of its database is required.
type Context struct {
	Name       string
	Database   Reference `yaml:"database_url" example:"${STAGING_DATABASE}" help:"the value of an environment variable"`
	Broker     Reference `yaml:"broker_url" example:"file:secrets/staging" help:"content of a file, from this folder"`
	Management Reference `yaml:"management_url" example:"https://mq.example.com:15671" help:"follows from broker_url"`
	Schema     string    `yaml:"schema" example:"attune" help:"of the tables"`
	ReadOnly   bool      `yaml:"read_only" example:"true" help:"refuse every act"`
	Protected  bool      `yaml:"protected" example:"true" help:"ask for the name before anything is done"`
	Colour     string    `yaml:"colour" example:"red"`
	// At is its file and line.
	At string
}

// Path is the file below XDG_CONFIG_HOME, or below .config in the home folder. It is empty if neither is known.
func Path(environ []string) string {
	if folder := lookup(environ, "XDG_CONFIG_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "attune", "tui.yaml")
	}
	if home := lookup(environ, "HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "attune", "tui.yaml")
	}
	return ""
}

// Load reads the file. A missing file means defaults; the error has a line for each mistake.
func Load(path string) (*Settings, error) {
	s := &Settings{Path: path, keysAt: map[keymap.Action]string{}}
	if path == "" {
		return s, nil
	}
	var err error
	if s.Found, err = readFile(path, s.read); err != nil {
		return nil, err
	}
	_, err = readFile(s.savedPath(), func(r *reader, root *yaml.Node) {
		for _, entry := range r.entries(root, "the file") {
			s.addBookmark(r, entry, true)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(s.Keys) > 0 {
		if s.Keymap, err = keymap.New(s.Keys); err != nil {
			at := s.Path
			if problem, ok := errors.AsType[*keymap.ProblemError](err); ok {
				for _, action := range slices.Backward(problem.Actions) {
					at = cmp.Or(s.keysAt[action], at)
				}
			}
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	s.warnReadable()
	return s, nil
}

// Find returns a context by name. The error lists the known names.
func (s *Settings) Find(name string) (Context, error) {
	i := slices.IndexFunc(s.Contexts, func(c Context) bool { return c.Name == name })
	switch {
	case i >= 0:
		return s.Contexts[i], nil
	case s.Path == "":
		return Context{}, fmt.Errorf("there is no context %q: neither XDG_CONFIG_HOME nor HOME says where tui.yaml is",
			name)
	case !s.Found:
		return Context{}, fmt.Errorf("there is no context %q: %s does not exist", name, s.Path)
	}
	if near := phrase.Nearest(name, s.Names()); near != "" {
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

// warnReadable warns of passwords in a file that others can read.
func (s *Settings) warnReadable() {
	info, err := os.Stat(s.Path)
	if err != nil || info.Mode().Perm()&0o044 == 0 {
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

// Help describes a top-level setting, as the flag of the same meaning does.
func Help(name string) string { return helpOf(name, yamldoc.KeysOf(file{})) }

func helpOf(name string, keys []yamldoc.Key) string {
	if allowed := choices[name]; allowed != nil {
		return strings.Join(allowed, ", ")
	}
	i := slices.IndexFunc(keys, func(key yamldoc.Key) bool { return key.Name == name })
	return keys[i].Tag.Get("help")
}

func lookup(environ []string, name string) string {
	for _, line := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}
