package store_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// statements reads every statement of the generated code, by name.
func statements(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.sql.go")
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

// connectTo opens one connection with the search_path of the engine.
func connectTo(t *testing.T, databaseURL string) *pgx.Conn {
	t.Helper()
	ctx := testkit.Context(t)
	config, err := pgx.ParseConfig(databaseURL)
	require.NoError(t, err)
	config.RuntimeParams["search_path"] = migrations.SearchPath(testkit.Schema)
	conn, err := pgx.ConnectConfig(ctx, config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	return conn
}

// unprepared lists the statements that the server refuses, with its reason.
func unprepared(t *testing.T, conn *pgx.Conn, statements map[string]string) []string {
	t.Helper()
	var refused []string
	for name, sql := range statements {
		if _, err := conn.Prepare(testkit.Context(t), name, sql); err != nil {
			refused = append(refused, fmt.Sprintf("%s: %v", name, err))
		}
	}
	slices.Sort(refused)
	return refused
}

// optional are the statements that are asked only where their tables exist.
var optional = map[installation.Migration][]string{
	installation.WorkQueues: {"ViewDeadLetterLeases", "ViewWorkQueues", "ViewWorkQueueLease", "LeasedExecutions"},
}

// adoptedOnly are the statements about tables that only an existing installation has.
var adoptedOnly = []string{"IdentityPermissionSets", "KeysOfAction", "PermissionSetsByRef"}

func TestEveryStatementRunsOnEverySchema(t *testing.T) {
	t.Parallel()
	t.Run("own", func(t *testing.T) {
		t.Parallel()
		asked := statements(t)
		for _, name := range adoptedOnly {
			require.Contains(t, asked, name)
			delete(asked, name)
		}
		require.Empty(t, unprepared(t, connectTo(t, testkit.Database(t)), asked))
	})
	t.Run("adopted", func(t *testing.T) {
		t.Parallel()
		require.Empty(t, unprepared(t, connectTo(t, testkit.AdoptedDatabase(t)), statements(t)))
	})
	for _, part := range []installation.Migration{
		installation.Audit, installation.History, installation.Supervisor, installation.WorkQueues,
	} {
		t.Run("adopted without "+string(part), func(t *testing.T) {
			t.Parallel()
			databaseURL := testkit.Installation(t, installation.Shape{
				Date: installation.Newest.Date, Without: []installation.Migration{part},
			})
			_, err := migrations.Up(testkit.Context(t), migrations.Options{URL: databaseURL, Schema: testkit.Schema})
			require.NoError(t, err)
			asked := statements(t)
			for _, name := range optional[part] {
				require.Contains(t, asked, name)
				delete(asked, name)
			}
			require.Empty(t, unprepared(t, connectTo(t, databaseURL), asked))
		})
	}
}

// The list of columns that adoption expects is exact: with only these every statement can be prepared, and the
// queries, the migrations or the files of packs use each of them.
func TestAdoptionExpectsWhatStatementsNeed(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	databaseURL := testkit.Installation(t, installation.Newest)
	conn := connectTo(t, databaseURL)
	expected := map[string]bool{}
	tables := map[string]bool{}
	for _, column := range migrations.ExpectedColumns() {
		expected[column] = true
		table, _, _ := strings.Cut(column, ".")
		tables[table] = true
	}
	rows, err := conn.Query(ctx, `SELECT c.relname::text, a.attname::text FROM pg_class c
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = 'attune'::regnamespace AND c.relkind = 'r' ORDER BY 1, a.attnum`)
	require.NoError(t, err)
	type column struct{ Table, Name string }
	there, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	require.NoError(t, err)
	optional := map[string]bool{
		"audit_event": true, "work_queue": true, "work_queue_item": true, "work_queue_dispatch": true,
		"execution_history": true, "worker_history": true, "sensor_process_history": true,
		"permission_set": true, "permission_assignment": true, "permission_set_role_assignment": true,
		"identity_role_assignment": true, "key": true,
	}
	for _, c := range there {
		sql := ""
		switch {
		case optional[c.Table] || expected[c.Table+"."+c.Name]:
		case tables[c.Table]:
			sql = fmt.Sprintf("ALTER TABLE %q DROP COLUMN %q CASCADE", c.Table, c.Name)
		default:
			sql = fmt.Sprintf("DROP TABLE IF EXISTS %q CASCADE", c.Table)
		}
		if sql != "" {
			_, err := conn.Exec(ctx, sql)
			require.NoError(t, err)
		}
	}
	_, err = migrations.Up(ctx, migrations.Options{URL: databaseURL, Schema: testkit.Schema})
	require.NoError(t, err)
	require.Empty(t, unprepared(t, connectTo(t, databaseURL), statements(t)))

	text := migrationText(t)
	for _, sql := range statements(t) {
		text += sql
	}
	for _, kind := range pack.Kinds { // attune_put writes the columns that files name
		text += " " + strings.Join(pack.Keys(kind), " ")
	}
	for column := range expected {
		table, name, _ := strings.Cut(column, ".")
		require.Regexp(t, `\b`+name+`\b`, text, "nothing needs %s of %s", name, table)
	}
}

func migrationText(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../migrations/sql/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var text strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_own.sql") {
			continue
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		text.Write(content)
	}
	return text.String()
}

// A statement that reads every column of a table may read columns that an installation does not have.
func TestNoStatementReadsEveryColumnOfASharedTable(t *testing.T) {
	conn := connectTo(t, testkit.Installation(t, installation.Newest))
	tables := testkit.Column[string](t, conn,
		"SELECT relname::text FROM pg_class WHERE relnamespace = 'attune'::regnamespace AND relkind = 'r'")
	files, err := filepath.Glob("queries/*.sql")
	require.NoError(t, err)
	every := regexp.MustCompile(`(?is)(?:SELECT|RETURNING)\s+(?:\w+\.)?\*(?:[^;()]*?FROM\s+"?(\w+))?`)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range every.FindAllStringSubmatch(string(content), -1) {
			require.NotContains(t, tables, found[1], "%s: %s", file, found[0])
		}
	}
}
