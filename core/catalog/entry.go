package catalog

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/yamldoc"
)

// corePack is the pack whose actions workers implement as functions, so that other packs may call
// them too.
const corePack = "core"

// scripts are the endings of files that workers run.
var scripts = []string{".bash", ".cjs", ".js", ".mjs", ".pl", ".py", ".r", ".rb", ".sh"}

// interpreters are the runtimes whose entry points are scripts.
var interpreters = []string{"node", "perl", "python", "r", "ruby", "shell"}

// entries reports actions whose file is missing where workers look for it. It is a mistake if the
// entry point is the name of a script, because the action will fail. Otherwise it is a warning,
// because a worker may have a function for the action, and runs shell code directly.
func entries(set *pack.Set, sources []pack.Source) (mistakes, warnings []pack.Mistake) {
	roots := map[string]string{}
	for _, source := range sources {
		roots[source.Name] = source.Root
	}
	for _, item := range set.Of(pack.KindAction) {
		root := roots[item.Place.File]
		entry, _ := item.Columns["entrypoint"].(string)
		switch {
		case item.Ref == "" || root == "" || entry == "" || item.Runtime == "" || filepath.IsAbs(entry):
			continue
		case item.Pack == corePack || strings.HasPrefix(entry, corePack+"."):
			continue
		}
		name := filepath.FromSlash(entry)
		exists := func(path string) bool { return isFile(path) && Inside(root, path) }
		candidates := []string{filepath.Join(root, "actions", name), filepath.Join(root, name)}
		if i := slices.IndexFunc(candidates, exists); i >= 0 {
			if what := lineEnds(candidates[i], placement.NormalizeRuntime(item.Runtime) == "shell"); what != "" {
				what = oneLine(entry) + " " + what
				warnings = append(warnings, pack.Mistake{Place: item.At("entry_point"), Text: what})
			}
			continue
		}
		what := fmt.Sprintf("there is no file actions/%s in the pack", oneLine(entry))
		for _, path := range candidates {
			if isFile(path) {
				what = fmt.Sprintf("%s leads out of the pack by a link", oneLine(entry))
			} else if _, err := os.Stat(path); err == nil {
				what = fmt.Sprintf("%s is not a regular file", oneLine(entry))
			}
		}
		named := slices.Contains(interpreters, placement.NormalizeRuntime(item.Runtime))
		if named && slices.Contains(scripts, strings.ToLower(filepath.Ext(entry))) && pack.NamesFile(entry) {
			mistakes = append(mistakes, pack.Mistake{Place: item.At("entry_point"), Text: what})
			continue
		}
		why := fmt.Sprintf("only a worker that has a function for %s runs it", item.Ref)
		if placement.NormalizeRuntime(item.Runtime) == "shell" && !pack.NamesFile(entry) {
			why = "workers run the entry point as shell code"
		}
		warnings = append(warnings, pack.Mistake{Place: item.At("entry_point"), Text: what + ": " + why})
	}
	return mistakes, warnings
}

// lineEnds says what an editor of another system has left in a file and no shell or kernel understands; empty if
// nothing.
func lineEnds(file string, shell bool) string {
	script, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = script.Close() }() // it was only read
	begin := make([]byte, 64<<10)
	n, _ := io.ReadFull(script, begin) // the worker reports a file that cannot be read
	begin = begin[:n]
	first, _, _ := bytes.Cut(begin, []byte("\n"))
	switch {
	case bytes.HasPrefix(begin, []byte(yamldoc.BOM)):
		return "begins with a byte order mark, which hides its first line from the system: save it as UTF-8 without BOM"
	case shell && bytes.Contains(begin, []byte("\r\n")),
		bytes.HasPrefix(first, []byte("#!")) && bytes.HasSuffix(first, []byte("\r")):
		return "has lines that end in CRLF, and a shell takes the CR for a part of the line: save it with LF"
	}
	return ""
}

// oneLine is the first line of an entry point, which may be code.
func oneLine(entry string) string {
	first, more, _ := strings.Cut(strings.TrimSpace(entry), "\n")
	if more != "" {
		first += " …"
	}
	return first
}
