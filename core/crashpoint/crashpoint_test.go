package crashpoint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/crashpoint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPlansOfCrashes(t *testing.T) {
	t.Parallel()
	for plan, want := range map[string]map[string]int{
		"":                                       {},
		"batch:committed":                        {"batch:committed": 1},
		"batch:committed:3":                      {"batch:committed": 3},
		"hot:before-ack:2, outbox:after-publish": {"hot:before-ack": 2, "outbox:after-publish": 1},
	} {
		at, err := crashpoint.Parse(plan)
		require.NoError(t, err, plan)
		require.Equal(t, want, at, plan)
	}
	for plan, want := range map[string]string{
		"batch:com":         "there are batch:locked, ",
		"round":             `no crash point "round"`,
		"batch:committed:0": "first time",
	} {
		_, err := crashpoint.Parse(plan)
		require.ErrorContains(t, err, want, plan)
	}
}

// The list and the code have the same points, each at one place: a listed point without a call would never crash.
func TestThePointsOfTheListAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	places := map[string][]string{}
	for _, root := range []string{"../../core", "../../cmd"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if name, ok := reached(t, node, path); ok {
					places[name] = append(places[name], path)
				}
				return true
			})
			return nil
		}))
	}
	var found []string
	for name, paths := range places {
		require.Len(t, paths, 1, "%s is reached at several places", name)
		found = append(found, name)
	}
	require.ElementsMatch(t, crashpoint.Names(), found)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(found))), len(found))
}

// reached is the name in a call of crashpoint.Reach.
func reached(t *testing.T, node ast.Node, path string) (string, bool) {
	t.Helper()
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return "", false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || function.Sel.Name != "Reach" {
		return "", false
	}
	if of, ok := function.X.(*ast.Ident); !ok || of.Name != "crashpoint" {
		return "", false
	}
	require.Len(t, call.Args, 1)
	literal, ok := call.Args[0].(*ast.BasicLit)
	require.True(t, ok, "%s: a crash point is named by a literal, so that it can be found", path)
	name, err := strconv.Unquote(literal.Value)
	require.NoError(t, err)
	return name, true
}

// The tagged build dies at the nth reach and not before. It refuses a plan with an unknown point at its start.
func TestTheTaggedBuildDiesWhereThePlanSays(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a program")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(source, []byte(`package main

import (
	"os"

	"github.com/attune-go/attune/core/crashpoint"
)

func main() {
	for range 3 {
		crashpoint.Reach("batch:committed")
		os.Stdout.WriteString("x")
	}
}
`), 0o600))
	program := filepath.Join(dir, "program")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-tags", "crashpoints", "-o",
		program, source).CombinedOutput()
	require.NoError(t, err, "%s", out)

	for plan, want := range map[string]struct {
		killed bool
		said   string
	}{
		"":                                 {false, "xxx"},
		"batch:locked":                     {false, "xxx"},
		"batch:committed":                  {true, ""},
		"batch:committed:3":                {true, "xx"},
		"batch:committed:4":                {false, "xxx"},
		"hot:before-ack,batch:committed:2": {true, "x"},
	} {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(os.Environ(), crashpoint.Variable+"="+plan)
		said, _ := cmd.Output() // the outcome is read next
		require.Equal(t, want.said, string(said), plan)
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		require.True(t, ok)
		require.Equal(t, want.killed, status.Signaled() && status.Signal() == syscall.SIGKILL, plan)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), crashpoint.Variable+"=batch:com")
	out, err = cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "there is no crash point")
}
