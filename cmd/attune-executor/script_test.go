package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
)

// TestMain makes this test binary, with its race detector, the attune-executor of scripts if Slow. Otherwise scripts
// run the built program.
func TestMain(m *testing.M) {
	programs := map[string]func(){}
	// Scripts do not pass the variable of Slow on to it.
	isProgram := filepath.Base(os.Args[0]) == "attune-executor"
	if isProgram || testkit.Slow() {
		programs["attune-executor"] = func() {
			os.Exit(execute(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
		}
	}
	if !isProgram {
		testkit.Together()
	}
	testscript.Main(checked{m}, programs)
}

// setProgram puts attune-executor into the path of a script.
func setProgram(t *testing.T, env *testscript.Env) {
	t.Helper()
	env.Setenv("GORACE", noExitPause)
	if !testkit.Slow() {
		env.Setenv("PATH", filepath.Dir(testkit.Program(t))+string(os.PathListSeparator)+env.Getenv("PATH"))
	}
}

// checked runs the tests and fails when one of them left a goroutine behind.
type checked struct{ *testing.M }

func (c checked) Run() int {
	code := testkit.Tests{M: c.M}.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// noExitPause avoids the second that the race detector waits at the end of each command.
const noExitPause = "atexit_sleep_ms=0"

// commands are the additional commands of scripts.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits": testkit.Exits,
	// broker-delete KIND REST deletes an object of the script's virtual host.
	"broker-delete": func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 2 {
			ts.Fatalf("usage: broker-delete KIND REST")
		}
		amqp, err := url.Parse(ts.Getenv("ATTUNE__MESSAGE_QUEUE__URL"))
		ts.Check(err)
		target := ts.Getenv("MANAGEMENT") + "/api/" + args[0] + "/" + strings.TrimPrefix(amqp.EscapedPath(), "/") +
			"/" + args[1]
		request, err := http.NewRequestWithContext(context.Background(), http.MethodDelete, target, http.NoBody)
		ts.Check(err)
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		ts.Check(err)
		ts.Check(response.Body.Close())
		if response.StatusCode >= http.StatusMultipleChoices {
			ts.Fatalf("%s: %s", target, response.Status)
		}
	},
	// interrupt TEXT TIMES sends SIGINT so many times to the background command with TEXT in its arguments.
	"interrupt": func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 2 {
			ts.Fatalf("usage: interrupt TEXT TIMES")
		}
		times, err := strconv.Atoi(args[1])
		ts.Check(err)
		for _, cmd := range ts.BackgroundCmds() {
			if !slices.Contains(cmd.Args, args[0]) {
				continue
			}
			for range times {
				if err := cmd.Process.Signal(os.Interrupt); !errors.Is(err, os.ErrProcessDone) {
					ts.Check(err)
				}
			}
			return
		}
		ts.Fatalf("no background command has %s in its arguments", args[0])
	},
	// until REGEXP COMMAND… repeats a command until its output matches.
	"until": func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 2 {
			ts.Fatalf("usage: until REGEXP COMMAND [ARGUMENT...]")
		}
		wanted := regexp.MustCompile("(?m)" + args[0])
		// Each poll starts a process, so the pauses grow: polls must not slow down the engine.
		pause := 50 * time.Millisecond
		for begin := time.Now(); time.Since(begin) < testkit.TestTimeout; time.Sleep(pause) {
			_ = ts.Exec(args[1], args[2:]...) // a doctor that finds something fails
			if wanted.MatchString(ts.ReadFile("stdout")) {
				return
			}
			pause = min(pause*3/2, 400*time.Millisecond)
		}
		ts.Fatalf("the output never matched %s", args[0])
	},
	// installation [DATE] builds the schema of an existing installation, of that date or the newest, not adopted yet.
	"installation": func(ts *testscript.TestScript, neg bool, args []string) {
		shape := installation.Newest
		if len(args) == 1 {
			shape.Date = args[0]
		}
		if neg || len(args) > 1 {
			ts.Fatalf("usage: installation [DATE]")
		}
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, ts.Getenv("ATTUNE__DATABASE__URL"))
		ts.Check(err)
		ts.Check(errors.Join(installation.Build(ctx, conn, testkit.Schema, shape), conn.Close(ctx)))
	},
	// paste runs the statements that the last command printed, from SET to the empty line, as psql would.
	"paste": func(ts *testscript.TestScript, neg bool, args []string) {
		_, statements, printed := strings.Cut(ts.ReadFile("stdout"), "\nSET ")
		if neg || len(args) != 0 || !printed {
			ts.Fatalf("usage: paste, after a command that prints SET")
		}
		statements, _, _ = strings.Cut(statements, "\n\n")
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, ts.Getenv("ATTUNE__DATABASE__URL"))
		ts.Check(err)
		_, err = conn.PgConn().Exec(ctx, "SET "+statements).ReadAll()
		ts.Check(errors.Join(err, conn.Close(ctx)))
	},
	// sql STATEMENT runs a statement for which there is no command.
	"sql": func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: sql STATEMENT")
		}
		ctx := context.Background()
		st, err := store.Open(ctx, store.Config{URL: ts.Getenv("ATTUNE__DATABASE__URL")}, telemetry.Discard())
		ts.Check(err)
		defer st.Close()
		_, err = st.Pool().Exec(ctx, args[0])
		ts.Check(err)
	},
}

var update = flag.Bool("update", false, "rewrite the expected output of the scripts")

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

// migrates reports whether a script begins with `migrate up`. It then has a migrated database, where that
// has nothing to do.
func migrates(t *testing.T, script string) bool {
	t.Helper()
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") &&
			!strings.HasPrefix(line, "[!long]") {
			return line == "exec attune-executor migrate up"
		}
	}
	return false
}

// condition implements [long] of scripts: Slow.
func condition(name string) (bool, error) {
	if name != "long" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	return testkit.Slow(), nil
}

// TestServerScripts runs testdata/server/*.txtar, each with a database and a virtual
// host of its own.
func TestServerScripts(t *testing.T) {
	serverScripts(t, serverFiles(t), func(t *testing.T, env *testscript.Env) error {
		setProgram(t, env)
		return nil
	})
}

func serverFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "server", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func serverScripts(t *testing.T, files []string, setup func(t *testing.T, env *testscript.Env) error) {
	t.Helper()
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := ""
			if migrates(t, file) {
				database = testkit.OwnDatabase(t)
			} else {
				database = testkit.EmptyDatabase(t)
			}
			amqp := testkit.VHost(t)
			testscript.Run(t, testscript.Params{
				Files: []string{file}, UpdateScripts: *update, RequireExplicitExec: true, Cmds: commands,
				Condition: condition,
				Setup: func(env *testscript.Env) error {
					env.Setenv("ATTUNE__DATABASE__URL", database)
					env.Setenv("ATTUNE__DATABASE__MAX_CONNECTIONS", strconv.Itoa(testkit.EngineConnections))
					env.Setenv("ATTUNE__MESSAGE_QUEUE__URL", amqp)
					env.Setenv("ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL", testkit.ManagementURL(t))
					env.Setenv("MANAGEMENT", testkit.ManagementURL(t))
					env.Setenv("ATTUNE__EXECUTOR__HTTP__LISTEN", "127.0.0.1:0")
					return setup(t, env)
				},
			})
		})
	}
}
