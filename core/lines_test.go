package core_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
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
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var wide []int
		for i, line := range strings.Split(string(source), "\n") {
			width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if width > columns && !strings.HasPrefix(line, "//\t") {
				wide = append(wide, i+1)
			}
		}
		if len(wide) == 0 || generated(t, path, source) {
			return nil
		}
		exempt := linesWithLongStrings(source)
		for _, line := range wide {
			if !exempt[line] {
				found = append(found, fmt.Sprintf("%s:%d: more than %d columns", path, line, columns))
			}
		}
		return nil
	}))
	require.Zero(t, len(found), strings.Join(found, "\n"))
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
