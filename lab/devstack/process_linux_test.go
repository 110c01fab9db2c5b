package devstack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAProcessThatReplacesItselfIsAlive asks about a process that does nothing
// but replace itself, as the broker's chain of scripts does while it starts.
// For an instant of every replacement the system shows no command line.
func TestAProcessThatReplacesItselfIsAlive(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "again")
	text := "#!/bin/sh\n[ \"$1\" -eq 0 ] && read -r line\nexec \"$0\" $(($1 - 1)) -mark " + script + " end\n"
	require.NoError(t, os.WriteFile(script, []byte(text), 0o700))
	cmd := exec.Command("/bin/sh", script, strconv.Itoa(1500), "-mark", script, "end")
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	mark := " -mark " + script + " end "
	require.NoError(t, cmd.Start())
	asked := 0
	for last := " 0" + mark; ; asked++ {
		if !alive(cmd.Process.Pid, mark) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			require.Fail(t, "a living process was called dead", "question %d", asked)
		}
		if alive(cmd.Process.Pid, last) {
			break
		}
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	require.NoError(t, input.Close())
	for alive(cmd.Process.Pid, mark) { // it is a zombie soon, with no command line either
	}
	require.Error(t, cmd.Wait(), "it was killed")
	require.False(t, alive(cmd.Process.Pid, mark))
}
