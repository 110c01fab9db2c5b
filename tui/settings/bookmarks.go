package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/tui/keymap"
)

// savedName is the file beside tui.yaml that bookmarks are saved in, so that the
// program never writes what a person has written.
const savedName = "bookmarks.yaml"

// details are the views that show one row, which a bookmark cannot name.
var details = []keymap.Scope{keymap.InQueue, keymap.InWorker, keymap.InExecution, keymap.InLog}

func (r *reader) readBookmark(key, value *yaml.Node) Bookmark {
	b := Bookmark{Name: key.Value, At: r.at(key)}
	if problem := NameProblem(b.Name); problem != "" {
		r.failf(key, "the name of a bookmark %s", problem)
	}
	var views []string
	for _, scope := range keymap.Scopes {
		if !slices.Contains(details, scope) {
			views = append(views, string(scope))
		}
	}
	r.mapping(value, "bookmark "+b.Name, fields{
		"key": func(node *yaml.Node) {
			if b.Key = node.Value; utf8.RuneCountInString(b.Key) != 1 || NameProblem(b.Key) != "" {
				r.failf(node, "the key of a bookmark must be one character")
			}
		},
		"view":     r.choice("view", (*string)(&b.View), views),
		"filter":   r.text("filter", &b.Filter),
		"sort":     r.text("sort", &b.Sort),
		"columns":  r.texts("columns", &b.Columns),
		"problems": r.flag("problems", func(on bool) { b.Problems = on }),
	})
	if b.View == "" {
		r.failf(key, "bookmark %s has no view", b.Name)
	}
	return b
}

// addBookmark refuses names and keys that stand for two bookmarks.
func (s *Settings) addBookmark(r *reader, key *yaml.Node, b Bookmark) {
	for _, other := range s.Bookmarks {
		if other.Name == b.Name {
			r.failf(key, "bookmark %s stands also at %s", b.Name, other.At)
		}
		if other.Key == b.Key && b.Key != "" {
			r.failf(key, "the key %s opens also bookmark %s at %s", b.Key, other.Name, other.At)
		}
	}
	s.Bookmarks = append(s.Bookmarks, b)
}

// savedPath is where bookmarks are saved; empty where that is not known.
func (s *Settings) savedPath() string {
	if s.Path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(s.Path), savedName)
}

// loadSaved reads the bookmarks that were saved. They are held to the same rules
// as the file of the operator.
func (s *Settings) loadSaved() error {
	path := s.savedPath()
	content, err := os.ReadFile(path)
	if err != nil {
		if !exists(path) {
			return nil
		}
		return fmt.Errorf("read the saved bookmarks: %w", err)
	}
	root, err := parse(path, content)
	if root == nil || err != nil {
		return err
	}
	r := &reader{path: path}
	r.entries(root, "the file", func(key, value *yaml.Node) {
		b := r.readBookmark(key, value)
		b.saved = true
		s.addBookmark(r, key, b)
	})
	return r.err
}

// Save writes a bookmark beside those that were saved before, and takes the place
// of a saved one of the same name. It reads what is there first, so that two
// dashboards do not forget each other's; whoever writes last wins for one name.
// The file is replaced at once or not at all.
func Save(path string, b Bookmark) error {
	if path == "" {
		return errors.New("neither XDG_CONFIG_HOME nor HOME says where to save it")
	}
	now, err := Load(path)
	if err != nil {
		return err
	}
	saved := map[string]savedBookmark{}
	for _, other := range now.Bookmarks {
		switch {
		case other.Name == b.Name && !other.saved:
			return fmt.Errorf("%s stands in %s, which only its writer changes", b.Name, other.At)
		case other.Name == b.Name:
		case other.Key == b.Key && b.Key != "":
			return fmt.Errorf("the key %s opens %s already", b.Key, other.Name)
		case other.saved:
			saved[other.Name] = toSaved(other)
		}
	}
	saved[b.Name] = toSaved(b)
	text, err := yaml.Marshal(saved)
	if err != nil {
		return fmt.Errorf("write the bookmark: %w", err)
	}
	return replaceFile(now.savedPath(), append([]byte("# Saved by attune-tui.\n"), text...))
}

// savedBookmark is a bookmark as it stands in the file.
type savedBookmark struct {
	Key      string   `yaml:"key,omitempty"`
	View     string   `yaml:"view"`
	Filter   string   `yaml:"filter,omitempty"`
	Sort     string   `yaml:"sort,omitempty"`
	Columns  []string `yaml:"columns,omitempty"`
	Problems bool     `yaml:"problems,omitempty"`
}

func toSaved(b Bookmark) savedBookmark {
	return savedBookmark{Key: b.Key, View: string(b.View), Filter: b.Filter, Sort: b.Sort, Columns: b.Columns, Problems: b.Problems}
}

// replaceFile writes a file that only its owner can read, whole or not at all.
func replaceFile(path string, text []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("save the bookmark: %w", err)
	}
	file, err := os.CreateTemp(folder, savedName+".*")
	if err != nil {
		return fmt.Errorf("save the bookmark: %w", err)
	}
	_, err = file.Write(text)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // What failed first is told.
		return fmt.Errorf("save the bookmark: %w", err)
	}
	return nil
}
