package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/yamldoc"
	"github.com/attune-go/attune/tui/keymap"
)

// savedName is the file for saved bookmarks beside tui.yaml. The program never writes tui.yaml.
const savedName = "bookmarks.yaml"

// Bookmark is a saved arrangement of a view.
type Bookmark struct {
	Name string `yaml:"-"`
	// Key is its letter after the key of bookmarks, if any.
	Key  string       `yaml:"key,omitempty"`
	View keymap.Scope `yaml:"view"`
	// Empty fields mean the defaults of the view.
	Filter  string   `yaml:"filter,omitempty"`
	Sort    string   `yaml:"sort,omitempty"`
	Columns []string `yaml:"columns,omitempty"`
	// Problems is the problems-only mode.
	Problems bool `yaml:"problems,omitempty"`
	// At is its file and line.
	At    string `yaml:"-"`
	saved bool   // in the file of saved bookmarks
}

// views are the views that a bookmark can name: all lists.
func views() []string {
	details := []keymap.Scope{keymap.InQueue, keymap.InWorker, keymap.InExecution, keymap.InLog}
	var views []string
	for _, scope := range keymap.Scopes {
		if !slices.Contains(details, scope) {
			views = append(views, string(scope))
		}
	}
	return views
}

// addBookmark reads a bookmark. Names and keys must be unique.
func (s *Settings) addBookmark(r *reader, entry yamldoc.Field, saved bool) {
	b := Bookmark{Name: entry.Name, At: r.At(entry.Key).String(), saved: saved}
	if problem := NameProblem(b.Name); problem != "" {
		r.Mistakef(r.At(entry.Key), "the name of a bookmark %s", problem)
	}
	digitsAreTexts(yamldoc.Below(entry.Value, "key"))
	given, ok := r.decode(entry.Value, "bookmark "+b.Name, &b)
	if given.Sound("key") && (utf8.RuneCountInString(b.Key) != 1 || NameProblem(b.Key) != "") {
		r.Mistakef(r.At(given["key"].Value), "the key of a bookmark must be one character")
	}
	if ok && !given["view"].Given() {
		r.Mistakef(r.At(entry.Key), "bookmark %s has no view", b.Name)
	}
	for _, other := range s.Bookmarks {
		if other.Name == b.Name {
			r.Mistakef(r.At(entry.Key), "bookmark %s stands also at %s", b.Name, other.At)
		}
		if other.Key == b.Key && b.Key != "" {
			r.Mistakef(r.At(entry.Key), "the key %s opens also bookmark %s at %s", b.Key, other.Name, other.At)
		}
	}
	s.Bookmarks = append(s.Bookmarks, b)
}

func (s *Settings) savedPath() string { return filepath.Join(filepath.Dir(s.Path), savedName) }

// Save adds a bookmark to the saved ones, or replaces the one of the same name. It reads the file first, so that two
// dashboards keep each other's bookmarks. The write is atomic.
func Save(path string, b Bookmark) error {
	if path == "" {
		return errors.New("neither XDG_CONFIG_HOME nor HOME says where to save it")
	}
	now, err := Load(path)
	if err != nil {
		return err
	}
	saved := map[string]Bookmark{}
	for _, other := range now.Bookmarks {
		switch {
		case other.Name == b.Name && !other.saved:
			return fmt.Errorf("%s stands in %s, which only its writer changes", b.Name, other.At)
		case other.Name == b.Name:
		case other.Key == b.Key && b.Key != "":
			return fmt.Errorf("the key %s opens %s already", b.Key, other.Name)
		case other.saved:
			saved[other.Name] = other
		}
	}
	saved[b.Name] = b
	text, err := yaml.Marshal(saved)
	if err != nil {
		return fmt.Errorf("write the bookmark: %w", err)
	}
	return replaceFile(now.savedPath(), append([]byte("# Saved by attune-tui.\n"), text...))
}

// replaceFile writes a file with mode 0600 atomically.
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
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // the first error is returned
		return fmt.Errorf("save the bookmark: %w", err)
	}
	return nil
}
