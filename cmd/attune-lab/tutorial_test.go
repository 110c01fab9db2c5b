package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

var (
	// blocks are the commands of the tutorial, with their output if it is shown.
	blocks = regexp.MustCompile("(?s)```sh\n(.*?)```(?:\n\n```text\n(.*?)```)?")
	blanks = regexp.MustCompile(`[ \t]+`)
)

// ending stops all processes and servers of a failed tutorial.
const ending = "trap 'kill $(jobs -p) 2>/dev/null || true; cd $FOLDER/hello-attune 2>/dev/null && attune-lab stack reset || true' EXIT\n"

// TestTutorial runs the commands of the tutorial in one shell and requires that they print each line that it shows.
func TestTutorial(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts servers")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial.md"))
	require.NoError(t, err)
	script := strings.Builder{}
	script.WriteString("set -euo pipefail\n" + ending)
	var shown []string
	for i, block := range blocks.FindAllStringSubmatch(string(page), -1) {
		script.WriteString("echo '@@ " + strconv.Itoa(i) + "'\n" + block[1])
		shown = append(shown, block[2])
	}
	require.Greater(t, len(shown), 8)
	folder := filepath.Dir(stackDir(t)) // one that the servers' user can enter
	run := filepath.Join(t.TempDir(), "tutorial.txtar")
	require.NoError(t, os.WriteFile(run, []byte(
		"cd $FOLDER\nexec timeout 600 bash -c 'bash $WORK/tutorial.sh 2>&1'\nas-told\n! exists hello-attune\n-- tutorial.sh --\n"+script.String()), 0o600))
	testscript.Run(t, testscript.Params{
		Files: []string{run}, RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"as-told": func(ts *testscript.TestScript, _ bool, _ []string) { asTold(ts, shown) },
		},
		Setup: func(env *testscript.Env) error {
			setProgram(t, env)
			env.Setenv("FOLDER", folder)
			return nil
		},
	})
}

// asTold compares the output of each block with that in the tutorial.
func asTold(ts *testscript.TestScript, shown []string) {
	printed := strings.Split(ts.ReadFile("stdout"), "@@ ")[1:]
	if len(printed) != len(shown) {
		ts.Fatalf("%d of %d blocks were run", len(printed), len(shown))
	}
	for i, want := range shown {
		got := blanks.ReplaceAllString(printed[i], " ")
		for line := range strings.Lines(want) {
			if line = strings.TrimSpace(blanks.ReplaceAllString(line, " ")); !strings.Contains(got, line) {
				ts.Fatalf("block %d does not print %q", i, line)
			}
		}
	}
}
