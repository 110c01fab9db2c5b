package core_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// columns is the width of a line of code; a tab counts as four.
const columns = 120

// Code is read side by side with a change of it, in two windows of 120 columns. A string that
// is long by itself, such as SQL or a message that operators search for, stays in one piece, and
// so does a table in a comment.
func TestLinesFitIn120Columns(t *testing.T) {
	t.Parallel()
	var found []string
	for path, source := range files(t, "..", ".go") {
		var wide []int
		for i, line := range strings.Split(string(source), "\n") {
			width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if width > columns && !strings.HasPrefix(line, "//\t") {
				wide = append(wide, i+1)
			}
		}
		if len(wide) == 0 || generated(t, path, source) {
			continue
		}
		exempt := linesWithLongStrings(source)
		for _, line := range wide {
			if !exempt[line] {
				found = append(found, fmt.Sprintf("%s:%d: more than %d columns", path, line, columns))
			}
		}
	}
	require.Empty(t, strings.Join(found, "\n"))
}

// files are the files of the repository with one of the extensions, by path, without built and downloaded ones.
func files(t *testing.T, root string, extensions ...string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && filepath.Dir(path) == root && slices.Contains(notOurs, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains(extensions, filepath.Ext(path)):
			return nil
		}
		found[path], err = os.ReadFile(path)
		return err
	}))
	return found
}

// notOurs are folders of the root that git ignores.
var notOurs = []string{".git", ".attune", "bin", "dist", "packs", "secrets"}

// The tools of make targets, such as Prometheus, bring Go files of their own.
func TestFilesOfToolsAreNotChecked(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"core/a.go", "core/dist/b.go", "core/a.sql", ".attune/tools/prometheus/main.go"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), nil, 0o600))
	}
	names := slices.Sorted(maps.Keys(files(t, root, ".go")))
	require.Equal(t, []string{filepath.Join(root, "core/a.go"), filepath.Join(root, "core/dist/b.go")}, names)
}

func generated(t *testing.T, path string, source []byte) bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.PackageClauseOnly|parser.ParseComments)
	require.NoError(t, err)
	return ast.IsGenerated(file)
}

// linesWithLongStrings are the lines of which half are strings, and those of strings with several lines.
func linesWithLongStrings(source []byte) map[int]bool {
	long, widths := map[int]bool{}, map[int]int{}
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	for {
		at, kind, text := s.Scan()
		if kind == token.EOF {
			return long
		}
		if kind != token.STRING {
			continue
		}
		first := file.Line(at)
		last := first + strings.Count(text, "\n")
		widths[first] += len(text)
		for line := first; line <= last && (last > first || widths[first] > columns/2); line++ {
			long[line] = true
		}
	}
}
