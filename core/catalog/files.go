package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/attune-go/attune/core/pack"
)

const maxFile = 1 << 20

// ErrNoFiles is wrapped by the error for paths without a file to apply.
var ErrNoFiles = errors.New("there is no file to apply")

// Files is the content of files.
type Files struct {
	Set      *pack.Set
	Mistakes []pack.Mistake // in order; also duplicate refs
	Warnings []pack.Mistake // in order
	// Skipped are files below the given folders that describe other kinds of objects, such as
	// sensors.
	Skipped []string
}

// stdinName is the path of the standard input.
const stdinName = "-"

// Read reads files. The path - is stdin. A path is a file, or a folder that is read with all its
// subfolders: its files *.yaml and *.yml. A folder with a pack.yaml is a pack; the folders of its
// files determine their kinds. Outside of packs, too, a folder called actions, triggers, rules,
// runtimes, workflows or policies determines the kind of its files; the keys of other files
// determine theirs, or they are policies. Names with a leading dot are skipped. Links are followed
// within a pack, and outside of packs within the given folder; Warnings name the others. A file that
// is named itself must describe an item.
func Read(paths []string, stdin io.Reader) (Files, error) {
	f := newFinder(paths)
	for _, path := range paths {
		if err := f.add(path); err != nil {
			return Files{}, err
		}
	}
	if len(f.found) == 0 {
		err := fmt.Errorf("%w below %s", ErrNoFiles, strings.Join(paths, ", "))
		for _, left := range f.unread {
			err = fmt.Errorf("%w; %s", err, left)
		}
		return Files{}, err
	}
	var files Files
	var sources []pack.Source
	slices.SortFunc(f.found, func(a, b found) int { return strings.Compare(a.name, b.name) })
	for _, one := range f.found {
		text, err := content(one.name, one.limit, stdin)
		if err != nil {
			return Files{}, err
		}
		if len(text) > maxFile {
			files.Mistakes = append(files.Mistakes, pack.Mistake{
				Place: pack.Place{File: one.name}, Text: fmt.Sprintf("the file is larger than %d KiB", maxFile>>10),
			})
			continue
		}
		source := one.source(text)
		if one.named && source.Kind == pack.KindPolicy {
			if policies, mistakes := pack.Parse(source.Name, text); len(policies)+len(mistakes) == 0 {
				files.Mistakes = append(files.Mistakes,
					pack.Mistake{Place: pack.Place{File: one.name}, Text: "it holds no policy"})
				continue
			}
		}
		sources = append(sources, source)
	}
	sources, err := f.complete(sources)
	if err != nil {
		return Files{}, err
	}
	for i := range sources { // a pack with something unread is not read as a whole
		sources[i].Single = sources[i].Single || f.partial[sources[i].Root]
	}
	set, mistakes := pack.Read(sources)
	files.Set = set
	missing, warnings := entries(set, sources)
	files.Warnings = pack.Sort(slices.Concat(set.Warnings, warnings, f.unread))
	files.Mistakes = pack.Sort(slices.Concat(files.Mistakes, mistakes, missing))
	files.Skipped = once(f.skipped)
	return files, nil
}

// source is the file with the kind that its path or its keys determine.
func (o found) source(text []byte) pack.Source {
	source := pack.Source{Name: o.name, Kind: o.kind, Root: o.root, Path: o.within, Content: text, Single: !o.walked}
	if source.Kind == "" {
		source.Kind = pack.Guess(filepath.Base(o.name), text)
	}
	if source.Path == "" {
		source.Path = filepath.ToSlash(filepath.Base(o.name))
	}
	return source
}

// complete adds the unnamed files to which the files refer: the pack.yaml of their pack, which is
// only read, the workflow files of actions, and the actions of workflow files.
func (f *finder) complete(sources []pack.Source) ([]pack.Source, error) {
	have := map[string]bool{}
	for _, source := range sources {
		have[absolute(source.Name)] = true
	}
	add := func(name string, source pack.Source) error {
		if have[absolute(name)] || !isFile(name) {
			return nil
		}
		have[absolute(name)] = true
		if !Inside(source.Root, name) {
			f.outside(name, source.Root)
			return nil
		}
		text, err := content(name, source.Root, nil)
		if err != nil {
			return err
		}
		source.Name, source.Content = name, text[:min(len(text), maxFile)]
		sources = append(sources, source)
		return nil
	}
	for _, source := range slices.Clone(sources) {
		if source.Root == "" {
			continue
		}
		if source.Kind == pack.KindWorkflow && strings.HasPrefix(source.Path, "actions/workflows/") {
			for _, name := range namedBy(source.Root, source.Path) {
				if err := add(name, pack.Source{
					Kind: pack.KindAction, Root: source.Root,
					Path: within(source.Root, name),
				}); err != nil {
					return nil, err
				}
			}
		}
		if err := add(packFile(source.Root),
			pack.Source{Kind: pack.KindPack, Root: source.Root, Path: "pack.yaml", Context: true}); err != nil {
			return nil, err
		}
	}
	for _, source := range slices.Clone(sources) {
		if source.Kind != pack.KindAction || source.Root == "" {
			continue
		}
		for _, path := range pack.WorkflowFiles(source.Content) {
			name := filepath.Join(source.Root, filepath.FromSlash(path))
			if err := add(name, pack.Source{Kind: pack.KindWorkflow, Root: source.Root, Path: path}); err != nil {
				return nil, err
			}
		}
	}
	return sources, nil
}

// namedBy are the action files of a pack that name a workflow file.
func namedBy(root, path string) []string {
	names, _ := filepath.Glob(filepath.Join(root, "actions", "*"))
	var naming []string
	for _, name := range names {
		if !isYAML(name) || !isFile(name) {
			continue
		}
		text, err := content(name, root, nil) // fails for links out of the pack
		if err == nil && slices.Contains(pack.WorkflowFiles(text), path) {
			naming = append(naming, name)
		}
	}
	return naming
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func isYAML(name string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name))
}

// once sorts names and drops duplicates of a file.
func once(names []string) []string {
	type file struct{ name, absolute string }
	files := make([]file, len(names))
	for i, name := range names {
		files[i] = file{name, absolute(name)}
	}
	slices.SortFunc(files,
		func(a, b file) int { return cmp.Or(cmp.Compare(a.absolute, b.absolute), cmp.Compare(a.name, b.name)) })
	files = slices.CompactFunc(files, func(a, b file) bool { return a.absolute == b.absolute })
	kept := make([]string, len(files))
	for i, file := range files {
		kept[i] = file.name
	}
	slices.Sort(kept)
	return kept
}

// absolute is the canonical name of a file.
func absolute(name string) string {
	path, err := filepath.Abs(name)
	if err != nil || name == stdinName {
		return name
	}
	return path
}

// content reads a file, up to one byte more than the limit of sizes. With a folder it reads nothing outside of it,
// whatever the links are. It does not wait for a program that would write to a named pipe.
func content(name, folder string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if name != stdinName {
		file, err := open(name, folder)
		if err != nil {
			return nil, fmt.Errorf("read the files: %w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the files: %w", err)
	}
	return text, nil
}

func open(name, folder string) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	if folder == "" {
		return os.OpenFile(name, flags, 0)
	}
	within, path, inside := resolve(folder, name)
	if !inside {
		return nil, &os.PathError{Op: "open", Path: name, Err: errors.New("it is not in " + folder)}
	}
	root, err := os.OpenRoot(within) // which refuses links that appear meanwhile and lead out
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it was only read
	return root.OpenFile(path, flags, 0)
}
