package catalog

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/placement"
)

// corePack is the pack whose actions workers have functions for, by which others
// may call them too.
const corePack = "core"

// entries warns of actions whose file is not where workers look for it. That is no
// mistake: a worker may have a function for the action.
func entries(set *pack.Set, sources []pack.Source) []pack.Mistake {
	roots := map[string]string{}
	for _, source := range sources {
		roots[source.Name] = source.Root
	}
	var warnings []pack.Mistake
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
		if slices.ContainsFunc([]string{filepath.Join(root, "actions", name), filepath.Join(root, name)}, isFile) {
			continue
		}
		what := fmt.Sprintf("only a worker that has a function for %s runs it", item.Ref)
		if placement.NormalizeRuntime(item.Runtime) == "shell" {
			what = "workers run the entry point as shell code"
		}
		warnings = append(warnings, pack.Mistake{
			Place: item.At("entry_point"), Text: fmt.Sprintf("there is no file actions/%s in the pack: %s", oneLine(entry), what),
		})
	}
	return warnings
}

// oneLine is the first line of an entry point, which may be code.
func oneLine(entry string) string {
	first, more, _ := strings.Cut(strings.TrimSpace(entry), "\n")
	if more != "" {
		first += " …"
	}
	return first
}
