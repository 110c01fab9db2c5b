package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A package whose code or tests start goroutines has a TestMain that fails if one remains.
func TestPackagesWithGoroutinesCheckForLeaks(t *testing.T) {
	t.Parallel()
	starts, tested, checked := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, file := range sources(t) {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", file.file), nil,
			parser.SkipObjectResolution)
		require.NoError(t, err)
		tested[file.folder] = tested[file.folder] || file.test
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts[file.folder] = true
			case *ast.SelectorExpr:
				switch of, _ := n.X.(*ast.Ident); {
				case n.Sel.Name == "Go":
					starts[file.folder] = true
				case of != nil && (of.Name == "goleak" || of.Name == "testkit" && n.Sel.Name == "Main"):
					checked[file.folder] = true
				}
			}
			return true
		})
	}
	require.True(t, starts["core/engine"], "the search finds no goroutine of the engine")
	var careless []string
	for folder := range starts {
		if tested[folder] && !checked[folder] {
			careless = append(careless, folder)
		}
	}
	slices.Sort(careless)
	require.Empty(t, strings.Join(careless, " "), "testkit.Main or goleak is missing")
}
