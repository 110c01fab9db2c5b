package devstack

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
)

// DirDefault is the folder of the stack that programs use without configured servers.
const DirDefault = ".attune/stack"

// shellFile has the process id of the last shell that used the stack.
const shellFile = "shell"

// FirstUse reports whether the shell of the process id uses the stack for the first time since another shell,
// and records it in the folder. In a read-only folder it is always the first time.
func FirstUse(dir string, shell int) bool {
	name, id := filepath.Join(dir, shellFile), strconv.Itoa(shell)
	if last, err := os.ReadFile(name); err == nil && string(last) == id {
		return false
	}
	_ = os.WriteFile(name, []byte(id), 0o600) // a failure only repeats a message
	return true
}

// Variables returns the variables that point a program at the stack in the folder, nil when none of its
// servers runs. With one server down they still name both, so that errors name its address.
func Variables(ctx context.Context, dir string) []string {
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	stack, err := Attach(ctx, Config{Dir: dir})
	if err != nil {
		return nil
	}
	if status := stack.Status(); !status.Postgres.Running && !status.Broker.Running {
		return nil
	}
	return stack.variables()
}
