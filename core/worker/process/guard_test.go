package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/worker/process"
)

// guardVariable makes the test binary a process that runs the guarded child it names.
const guardVariable = "PROCESS_TEST_GUARD"

func runGuarded() int {
	command := shell(os.Getenv(guardVariable), nil)
	command.Guard = &process.Guard{}
	defer command.Guard.Close()
	if _, err := process.Run(contextOfTest, command); err != nil {
		return 4
	}
	return 0
}

// numbers reads the words that a script has written to a file; nil until it has written all of them.
func numbers(path string, want int) []string {
	raw, _ := os.ReadFile(path)
	if found := strings.Fields(string(raw)); len(found) == want {
		return found
	}
	return nil
}

// ended reports whether none of the processes runs; zombies do not run.
func ended(t testing.TB, pids []string) bool {
	t.Helper()
	for _, pid := range pids {
		state, err := exec.CommandContext(t.Context(), "ps", "-o", "stat=", "-p", pid).Output()
		if err == nil && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z") {
			return false
		}
	}
	return true
}

// When a process is killed, the guard kills the child and its background processes.
func TestGuard(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), guardVariable+"=sleep 600 & echo $! >> "+pids+"; (sleep 600; :) & echo $! >> "+
		pids+"; echo $$ >> "+pids+"; wait")
	require.NoError(t, parent.Start())
	var all []string
	require.Eventually(t, func() bool { all = numbers(pids, 3); return all != nil }, time.Minute, 10*time.Millisecond)
	require.False(t, ended(t, all[:1]))
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool { return ended(t, all) }, time.Minute, 20*time.Millisecond)
}

// The next child replaces a killed guard, and a closed guard starts no child.
func TestGuardIsReplaced(t *testing.T) {
	t.Parallel()
	command := shell("exit 0", nil)
	command.Guard = &process.Guard{}
	guard := func() (pid int) {
		_, err := process.Run(t.Context(), command)
		require.NoError(t, err)
		found, err := exec.CommandContext(t.Context(), "pgrep", "-P", strconv.Itoa(os.Getpid()), "-f",
			"attune-guard").Output()
		require.NoError(t, err)
		pid, err = strconv.Atoi(strings.TrimSpace(string(found)))
		require.NoError(t, err)
		return pid
	}
	first := guard()
	require.Equal(t, first, guard())
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	require.Eventually(t, func() bool { return ended(t, []string{strconv.Itoa(first)}) }, time.Minute,
		10*time.Millisecond)
	require.NotEqual(t, first, guard())
	command.Guard.Close()
	_, err := process.Run(t.Context(), command)
	require.ErrorIs(t, err, os.ErrClosed)
}
