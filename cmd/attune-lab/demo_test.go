package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/testkit"
)

// TestDemoScript runs the demo with its own servers in its own folder.
func TestDemoScript(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t,
		"run the demo on its own servers; scripts check its refusals, and lab/demo its parts")
	dir := stackDir(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if stack, err := devstack.Attach(ctx, devstack.Config{Dir: dir}); err == nil {
			require.NoError(t, stack.Reset(ctx))
		}
	})
	withGone := maps.Clone(commands)
	withGone["gone"] = gone
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "demo"), UpdateScripts: *update, RequireExplicitExec: true, Cmds: withGone,
		Setup: func(env *testscript.Env) error {
			setProgram(t, env)
			env.Setenv("DEMO_DIR", dir) // the command gone finds its processes by it
			return nil
		},
	})
}

// gone FOLDER fails if a process has the folder in its command line or in its environment.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone FOLDER")
	}
	if runtime.GOOS != "linux" {
		return // other systems do not show the environment of a process
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	ts.Check(err)
	for _, process := range processes {
		for _, name := range []string{"cmdline", "environ"} {
			content, err := os.ReadFile(filepath.Join(process, name))
			if err == nil && bytes.Contains(content, []byte(args[0])) { // it may have ended meanwhile
				ts.Fatalf("%s is still there: %s", process, bytes.ReplaceAll(content, []byte{0}, []byte(" ")))
			}
		}
	}
}
