package store_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/migrations"
)

// statements reads every statement of the generated code, by name.
func statements(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("internal/db/*.sql.go")
	require.NoError(t, err)
	found := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				sql, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				found[spec.Names[0].Name] = sql
			}
			return true
		})
	}
	require.Greater(t, len(found), 400, "the generated code is found")
	return found
}

func TestEveryStatementRunsOnEverySchema(t *testing.T) {
	t.Parallel()
	for name, databaseURL := range map[string]func(testing.TB) string{
		"own": testkit.Database, "adopted": testkit.AdoptedDatabase,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testkit.Context(t)
			config, err := pgx.ParseConfig(databaseURL(t))
			require.NoError(t, err)
			config.RuntimeParams["search_path"] = migrations.SearchPath(testkit.Schema)
			conn, err := pgx.ConnectConfig(ctx, config)
			require.NoError(t, err)
			defer func() { _ = conn.Close(ctx) }()
			var refused []string
			for name, sql := range statements(t) {
				if _, err := conn.Prepare(ctx, name, sql); err != nil {
					refused = append(refused, fmt.Sprintf("%s: %v", name, err))
				}
			}
			require.Empty(t, refused, strings.Join(refused, "\n"))
		})
	}
}
