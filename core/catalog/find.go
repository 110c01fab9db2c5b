package catalog

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/pack"
)

// packFiles are the names of the file that makes a folder a pack.
var packFiles = []string{"pack.yaml", "pack.yml"}

// folders are the folders that determine the kind of their files.
var folders = map[string]pack.Kind{
	"actions": pack.KindAction, "triggers": pack.KindTrigger, "rules": pack.KindRule, "runtimes": pack.KindRuntime,
	"workflows": pack.KindWorkflow, "policies": pack.KindPolicy,
}

// otherFolders are folders with kinds that are not applied.
var otherFolders = []string{"caches", "dashboards", "permission_sets", "queues", "sensors"}

type found struct {
	name   string
	real   string    // without links; empty for the standard input
	limit  string    // the folder that its links must not leave; empty: none, because it is named itself
	kind   pack.Kind // empty: its keys determine it
	root   string    // folder of its pack; empty: none
	within string    // its path within the pack
	named  bool      // by itself
	walked bool      // with the folder it is in
}

// finder collects files.
type finder struct {
	found   []found
	skipped []string
	unread  []pack.Mistake    // warnings about what is not read
	partial map[string]bool   // folders of packs with something unread
	given   map[string]bool   // absolute names of the given paths
	seen    map[string]int    // places in found, by key
	visited map[string]bool   // folders, by their meaning
	roots   map[string]string // the folder of the pack that a folder is in
}

func newFinder(paths []string) *finder {
	f := &finder{
		partial: map[string]bool{}, given: map[string]bool{}, seen: map[string]int{}, visited: map[string]bool{},
		roots: map[string]string{},
	}
	for _, path := range paths {
		f.given[absolute(path)] = true
	}
	return f
}

// Inside reports whether a path leads to something in the folder, which may be a link itself. Workers and apply follow
// links by this rule.
func Inside(folder, path string) bool {
	_, _, inside := resolve(folder, path)
	return inside
}

// resolve returns the folder and the path in it without links.
func resolve(folder, path string) (root, rest string, inside bool) {
	root, err := filepath.EvalSymlinks(absolute(folder))
	if err != nil {
		return "", "", false
	}
	real, err := filepath.EvalSymlinks(absolute(path))
	if err != nil {
		return "", "", false
	}
	rest, err = filepath.Rel(root, real)
	return root, rest, err == nil && filepath.IsLocal(rest)
}

// add adds what a path names.
func (f *finder) add(path string) error {
	if path == stdinName {
		f.record(found{name: stdinName, named: true})
		return nil
	}
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read the files: %w", err)
	}
	real, err := filepath.EvalSymlinks(absolute(path))
	switch {
	case err != nil && info.IsDir():
		return fmt.Errorf("read the files: %w", err)
	case err != nil:
		real = absolute(path) // the pipe of another process has no other name
	case info.IsDir():
		return f.walk(path, path, real)
	}
	one, ok := f.classify(path)
	if !ok && describesOther(one.name, one.within) {
		f.skipped = append(f.skipped, path)
		return nil
	}
	one.named, one.real = true, real
	f.record(one)
	return nil
}

// walk adds the files below a folder. It follows links within the folder's pack, or outside of packs within the named
// folder. A real folder is read once for each meaning that its place gives to its files, so links may form loops.
func (f *finder) walk(named, folder, real string) error {
	limit, place := named, real+"\x00"+filepath.Base(absolute(folder))
	if root := f.root(folder); root != "" {
		first, deeper, _ := strings.Cut(within(root, folder), "/")
		place = fmt.Sprint(real, "\x00", first, "\x00", deeper == "", deeper == "workflows")
		if Inside(root, folder) {
			limit = root
		}
	}
	if f.visited[place] {
		return nil
	}
	f.visited[place] = true
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("read the files: %w", err)
	}
	for _, entry := range entries {
		name := filepath.Join(folder, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		one := found{name: name, real: filepath.Join(real, entry.Name()), limit: limit, walked: true}
		if err := f.entry(named, one, entry.Type()); err != nil {
			return err
		}
	}
	return nil
}

// entry adds an entry of a folder.
func (f *finder) entry(named string, one found, mode fs.FileMode) error {
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(one.name)
		switch {
		case err != nil && f.mayHold(one.name) && (filepath.Ext(one.name) == "" || isYAML(one.name)):
			f.leave(one.name, "the link is not followed: %v", err)
			return nil
		case err != nil || !info.IsDir() && !isYAML(one.name) || !f.mayHold(one.name):
			return nil
		}
		root, rest, inside := resolve(one.limit, one.name)
		switch given := f.given[absolute(one.name)]; {
		case given:
			named, one.limit = one.name, ""
		case !inside:
			f.outside(one.name, one.limit)
			return nil
		}
		mode, one.real = info.Mode().Type(), filepath.Join(root, rest)
	}
	switch {
	case mode.IsDir():
		return f.walk(named, one.name, one.real)
	case !isYAML(one.name):
		return nil
	case !mode.IsRegular():
		f.leave(one.name, "it is not read: it is no regular file")
		return nil
	}
	kind, ok := f.classify(one.name)
	if !ok {
		f.skipped = append(f.skipped, one.name)
		return nil
	}
	one.kind, one.root, one.within = kind.kind, kind.root, kind.within
	f.record(one)
	return nil
}

// mayHold reports whether a link in a pack may be an item or a folder of items. Other programs have links of their own.
func (f *finder) mayHold(name string) bool {
	root := f.root(filepath.Dir(name))
	first, _, _ := strings.Cut(within(root, name), "/")
	return root == "" || folders[first] != "" || slices.Contains(packFiles, first)
}

func (f *finder) outside(name, limit string) {
	f.leave(name, "the link is not followed: it leads out of %s", limit)
}

// leave warns that something is not read. Its pack is then not read as a whole.
func (f *finder) leave(name, format string, args ...any) {
	f.unread = append(f.unread, pack.Mistake{Place: pack.Place{File: name}, Text: fmt.Sprintf(format, args...)})
	f.partial[f.root(filepath.Dir(name))] = true
}

// record adds a file once, and whether it was named itself. Of two paths with the same meaning to a file, the first in
// order counts.
func (f *finder) record(one found) {
	key := fmt.Sprint(cmp.Or(one.real, one.name), "\x00", one.kind, "\x00", one.within)
	i, seen := f.seen[key]
	if !seen {
		f.seen[key] = len(f.found)
		f.found = append(f.found, one)
		return
	}
	have := f.found[i]
	if one.name < have.name {
		one, have = have, one
	}
	have.named, have.walked = have.named || one.named, have.walked || one.walked
	if one.limit == "" {
		have.limit = ""
	}
	f.found[i] = have
}

// classify derives the kind of a file from its path; ok is whether that kind is applied.
func (f *finder) classify(name string) (one found, ok bool) {
	one = found{name: name}
	if root := f.root(filepath.Dir(name)); root != "" {
		one.root, one.within = root, within(root, name)
		one.kind, ok = ofPack(one.within)
		return one, ok
	}
	folder := filepath.Base(filepath.Dir(absolute(name)))
	one.kind = folders[folder]
	return one, !slices.Contains(otherFolders, folder)
}

// describesOther reports whether a file lies in a folder with a kind that is not applied.
func describesOther(name, within string) bool {
	first, _, _ := strings.Cut(within, "/")
	return slices.Contains(otherFolders, first) ||
		slices.Contains(otherFolders, filepath.Base(filepath.Dir(absolute(name))))
}

// ofPack is the kind of a pack's file.
func ofPack(within string) (pack.Kind, bool) {
	segments := strings.Split(within, "/")
	first, depth := segments[0], len(segments)
	switch {
	case depth == 1 && slices.Contains(packFiles, first):
		return pack.KindPack, true
	case first == "policies":
		return pack.KindPolicy, true
	case depth == 2 && folders[first] != "":
		return folders[first], true
	case depth == 3 && first == "actions" && segments[1] == "workflows":
		return pack.KindWorkflow, true
	}
	return "", false
}

// root is the nearest folder with a pack.yaml, from this one up; empty without one.
func (f *finder) root(folder string) string {
	if root, known := f.roots[folder]; known {
		return root
	}
	root := ""
	switch above := filepath.Dir(absolute(folder)); {
	case packFile(folder) != "":
		root = folder
	case above != absolute(folder):
		up := filepath.Dir(folder)
		if folder == "." || filepath.Base(folder) == ".." {
			up = above
		}
		root = f.root(up)
	}
	f.roots[folder] = root
	return root
}

// packFile is the file that makes a folder a pack; empty without one.
func packFile(folder string) string {
	for _, name := range packFiles {
		if path := filepath.Join(folder, name); isFile(path) {
			return path
		}
	}
	return ""
}

// within is the path of a file below a folder, with slashes.
func within(folder, name string) string {
	path, err := filepath.Rel(absolute(folder), absolute(name))
	if err != nil {
		return filepath.ToSlash(name)
	}
	return filepath.ToSlash(path)
}
