package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/lab/testkit"
)

var update = flag.Bool("update", false, "rewrite the manual page and the expected output of the scripts")

func TestMain(m *testing.M) {
	testkit.Together()
	code := testkit.Tests{M: m}.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// setProgram puts the built programs into the path of a script.
func setProgram(t *testing.T, env *testscript.Env) {
	t.Helper()
	env.Setenv("PATH", filepath.Dir(testkit.Program(t))+string(os.PathListSeparator)+env.Getenv("PATH"))
}

// commands are the additional commands of scripts.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits": testkit.Exits,
	// sql STATEMENT runs a statement for which there is no command.
	"sql": func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: sql STATEMENT")
		}
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, ts.Getenv("ATTUNE__DATABASE__URL"))
		ts.Check(err)
		_, err = conn.Exec(ctx, args[0])
		ts.Check(errors.Join(err, conn.Close(ctx)))
	},
}

// TestScripts runs testdata/script/*.txtar, which need no server.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: *update, RequireExplicitExec: true, Cmds: commands,
		Setup: func(env *testscript.Env) error {
			setProgram(t, env)
			return nil
		},
	})
}

// TestServerScripts runs testdata/server/*.txtar, each with a database of its own.
func TestServerScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "server", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			database := testkit.EmptyDatabase(t)
			testscript.Run(t, testscript.Params{
				Files: []string{file}, UpdateScripts: *update, RequireExplicitExec: true, Cmds: commands,
				Setup: func(env *testscript.Env) error {
					env.Setenv("ATTUNE__DATABASE__URL", database)
					setProgram(t, env)
					return nil
				},
			})
		})
	}
}
