package config_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
)

var update = flag.Bool("update", false, "rewrite config.example.yaml")

// TestTheDocumentedFileLoads reads the file that docs/configuration.md shows.
func TestTheDocumentedFileLoads(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(text, "```")
	require.True(t, found)
	path := write(t, text)
	secrets := filepath.Join(filepath.Dir(path), "secrets")
	require.NoError(t, os.Mkdir(secrets, 0o700))
	for name, secret := range map[string]string{
		"database": "d", "broker": "b",
		"encryption.key": strings.Repeat("k", 32),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(secrets, name), []byte(secret), 0o600))
	}
	cfg, err := config.Load(path, nil)
	require.NoError(t, err)
	require.Equal(t, "postgresql://attune:d@db.example.com/attune", cfg.Database.URL)
	require.Equal(t, "amqp://attune:b@mq.example.com/attune", cfg.MessageQueue.URL)
	require.Equal(t, "wait", cfg.Executor.NoWorkers)
	require.Empty(t, cfg.Warnings)
}

// fieldComments reads the comment of every field: "Type.Field" to text.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	for _, name := range []string{"config.go", "alerts.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		fieldCommentsOf(file, comments)
	}
	return comments
}

func fieldCommentsOf(file *ast.File, comments map[string]string) {
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range structure.Fields.List {
			for _, name := range field.Names {
				comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
		return true
	})
}

func defaultOf(t *testing.T, key string) (value, note string) {
	t.Helper()
	for _, entry := range config.Default().Explain() {
		if entry.Key == key {
			if entry.Value != "" {
				entry.Value = "`" + entry.Value + "`"
			}
			return entry.Value, entry.Note
		}
	}
	return "", ""
}
