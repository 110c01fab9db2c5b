package devstack

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
)

// DirDefault is where programs look for a stack when nothing names servers.
const DirDefault = ".attune/stack"

// shellFile has the shell that was told last which stack its commands use.
const shellFile = "shell"

// FirstUse reports whether the shell of the process id uses the stack for the first time
// since another did, and remembers it in the folder. Where that cannot be written it is
// always the first time.
func FirstUse(dir string, shell int) bool {
	name, id := filepath.Join(dir, shellFile), strconv.Itoa(shell)
	if told, err := os.ReadFile(name); err == nil && string(told) == id {
		return false
	}
	_ = os.WriteFile(name, []byte(id), 0o600) // it is told again
	return true
}

// Variables lists what points a program at the stack in the folder, and nothing
// when neither of its servers runs. With one of them down it is still the stack
// that is meant, and the other server's silence is told with its address.
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
	return []string{
		"ATTUNE__DATABASE__URL=" + stack.DatabaseURL(),
		"ATTUNE__MESSAGE_QUEUE__URL=" + stack.AMQPURL(),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + stack.ManagementURL(),
	}
}
