package core_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocCommentsBeginWithTheirName finds comments that were left behind by a renamed declaration.
func TestDocCommentsBeginWithTheirName(t *testing.T) {
	t.Parallel()
	var wrong []string
	for _, file := range sources(t) {
		if file.test {
			continue // the comment of a test says what it asserts
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, filepath.Join("..", file.file), nil, parser.ParseComments)
		require.NoError(t, err)
		if ast.IsGenerated(parsed) {
			continue
		}
		check := func(doc *ast.CommentGroup, names ...*ast.Ident) {
			if doc == nil || len(names) != 1 {
				return
			}
			text := doc.Text()
			if name := names[0].Name; text != "" && !beginsWith(text, name) {
				wrong = append(wrong, fmt.Sprintf("%s: the comment of %s begins with %q", fset.Position(names[0].Pos()),
					name, strings.Join(strings.Fields(text)[:1], " ")))
			}
		}
		for _, decl := range parsed.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				check(d.Doc, d.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						if s.Doc == nil && len(d.Specs) == 1 {
							s.Doc = d.Doc
						}
						check(s.Doc, s.Name)
					case *ast.ValueSpec:
						if s.Doc == nil && len(d.Specs) == 1 {
							s.Doc = d.Doc
						}
						check(s.Doc, s.Names...)
					}
				}
			}
		}
	}
	require.Empty(t, strings.Join(wrong, "\n"))
}

// beginsWith accepts an article before the name of a type.
func beginsWith(text, name string) bool {
	for _, article := range []string{"", "A ", "An ", "The "} {
		if rest, ok := strings.CutPrefix(text, article+name); ok && !strings.HasPrefix(rest, "_") &&
			(rest == "" || !isLetter(rest[0])) {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
