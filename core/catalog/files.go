package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/pack"
)

// maxFile bounds a policy file.
const maxFile = 1 << 20

// policiesFolder is the folder of a pack that holds its policies.
const policiesFolder = "policies"

// packFiles are the names of the file that makes a folder a pack.
var packFiles = []string{"pack.yaml", "pack.yml"}

// otherFolders are folders whose files describe something else.
var otherFolders = []string{
	"actions", "permission_sets", "queues", "rules", "runtimes", "sensors", "triggers", "workflows",
}

// ErrNoFiles is wrapped by the error for paths below which there is no file to
// apply.
var ErrNoFiles = errors.New("there is no policy file")

// Files is what was read from files.
type Files struct {
	Policies []pack.Policy
	Mistakes []pack.Mistake // in order; also of refs that are given twice
	// Skipped are the files below the given folders that describe something other
	// than policies.
	Skipped []string
}

// stdinName is the path that stands for the standard input.
const stdinName = "-"

// Read reads policy files. The path - is stdin. A path is a file, or a folder that is read with all
// folders below it: its files *.yaml and *.yml, but in a pack (where there is a
// pack.yaml) only those below policies, and none of folders that are named
// after another kind of description, such as actions. What begins with a dot
// is left out. A file that is named itself must hold a policy.
func Read(paths []string, stdin io.Reader) (Files, error) {
	var files Files
	var names, named []string
	for _, path := range paths {
		if path == stdinName {
			named = append(named, path)
			continue
		}
		found, skipped, err := find(filepath.Clean(path))
		if err != nil {
			return Files{}, err
		}
		if len(found) == 1 && found[0] == filepath.Clean(path) {
			named = append(named, found[0])
			continue
		}
		names, files.Skipped = append(names, found...), append(files.Skipped, skipped...)
	}
	if names = once(append(named, names...)); len(names) == 0 {
		return Files{}, fmt.Errorf("%w below %s", ErrNoFiles, strings.Join(paths, ", "))
	}
	files.Skipped = once(files.Skipped)
	for _, name := range names {
		content, err := content(name, stdin)
		if err != nil {
			return Files{}, err
		}
		if len(content) > maxFile {
			files.Mistakes = append(files.Mistakes, pack.Mistake{
				Place: pack.Place{File: name}, Text: fmt.Sprintf("the file is larger than %d KiB", maxFile>>10),
			})
			continue
		}
		policies, mistakes := pack.Parse(name, content)
		if len(policies)+len(mistakes) == 0 && slices.ContainsFunc(named, func(path string) bool { return sameFile(path, name) }) {
			mistakes = []pack.Mistake{{Place: pack.Place{File: name}, Text: "it holds no policy"}}
		}
		files.Policies, files.Mistakes = append(files.Policies, policies...), append(files.Mistakes, mistakes...)
	}
	files.Mistakes = pack.Sort(append(files.Mistakes, pack.Duplicates(files.Policies)...))
	return files, nil
}

// find lists the policy files at or below a path, and the files that are not.
func find(path string) (policies, skipped []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read the policies: %w", err)
	}
	if !info.IsDir() {
		if slices.Contains(packFiles, filepath.Base(path)) {
			return nil, []string{path}, nil
		}
		return []string{path}, nil, nil
	}
	applies := map[string]bool{} // by folder
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch hidden := name != path && strings.HasPrefix(entry.Name(), "."); {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return filepath.SkipDir
		case entry.IsDir():
			above, inside := applies[filepath.Dir(name)]
			applies[name], err = folderApplies(name, above || !inside)
			return err
		case hidden || !isYAML(name):
		case applies[filepath.Dir(name)] && !slices.Contains(packFiles, entry.Name()):
			policies = append(policies, name)
		default:
			skipped = append(skipped, name)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the policies: %w", err)
	}
	return policies, skipped, nil
}

// folderApplies reports whether the files of a folder are policies. above says
// it of the folder that it is in.
func folderApplies(folder string, above bool) (bool, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return false, err
	}
	for _, name := range packFiles {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return false, nil
		}
	}
	switch name := filepath.Base(absolute); {
	case name == policiesFolder:
		return true, nil
	case slices.Contains(otherFolders, name):
		return false, nil
	}
	return above, nil
}

func isYAML(name string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name))
}

// once sorts names and drops those that name a file which another names.
func once(names []string) []string {
	type file struct{ name, absolute string }
	files := make([]file, len(names))
	for i, name := range names {
		files[i] = file{name, absolute(name)}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(cmp.Compare(a.absolute, b.absolute), cmp.Compare(a.name, b.name)) })
	files = slices.CompactFunc(files, func(a, b file) bool { return a.absolute == b.absolute })
	kept := make([]string, len(files))
	for i, file := range files {
		kept[i] = file.name
	}
	slices.Sort(kept)
	return kept
}

// absolute is one name for every way to name a file.
func absolute(name string) string {
	path, err := filepath.Abs(name)
	if err != nil || name == stdinName {
		return name
	}
	return path
}

func sameFile(a, b string) bool { return absolute(a) == absolute(b) }

// content reads a file, one byte more than it may have at most.
func content(name string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if name != stdinName {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read the policies: %w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the policies: %w", err)
	}
	return text, nil
}
