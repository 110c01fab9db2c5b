package catalog

import (
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
	seen    map[string]bool   // by absolute name
	roots   map[string]string // the folder of the pack that a folder is in
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
	if !info.IsDir() {
		one, ok := f.classify(path)
		if !ok && describesOther(one.name, one.within) {
			f.skipped = append(f.skipped, path)
			return nil
		}
		one.named = true
		f.record(one)
		return nil
	}
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		hidden := name != path && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return filepath.SkipDir
		case entry.IsDir() || hidden || !isYAML(name):
			return nil
		}
		if one, ok := f.classify(name); ok {
			one.walked = true
			f.record(one)
		} else {
			f.skipped = append(f.skipped, name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the files: %w", err)
	}
	return nil
}

// record adds a file once, and whether it was named itself.
func (f *finder) record(one found) {
	key := absolute(one.name)
	if !f.seen[key] {
		f.seen[key] = true
		f.found = append(f.found, one)
		return
	}
	i := slices.IndexFunc(f.found, func(have found) bool { return absolute(have.name) == key })
	f.found[i].named = f.found[i].named || one.named
	f.found[i].walked = f.found[i].walked || one.walked
	f.found[i].name = min(f.found[i].name, one.name)
}

// ordered are the files in order of their names.
func (f *finder) ordered() []found {
	list := slices.Clone(f.found)
	slices.SortFunc(list, func(a, b found) int { return strings.Compare(a.name, b.name) })
	return list
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
