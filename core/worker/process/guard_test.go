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

// numbers are what a script has written to a file, nil until all are there.
func numbers(path string, want int) []string {
	raw, _ := os.ReadFile(path)
	if found := strings.Fields(string(raw)); len(found) == want {
		return found
	}
	return nil
}

// ended reports that no process of these runs: what init has not collected is over too.
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

// A process that is killed takes with it what its child has started in the background;
// children that have ended before are no concern of the guard.
func TestGuard(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), guardVariable+"=sleep 600 & echo $! >> "+pids+"; (sleep 600; :) & echo $! >> "+
		pids+"; echo $$ >> "+pids+"; wait")
	require.NoError(t, parent.Start())
	var all []string
	require.Eventually(t, func() bool { all = numbers(pids, 3); return all != nil }, 20*time.Second,
		10*time.Millisecond)
	require.False(t, ended(t, all[:1]))
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool { return ended(t, all) }, 20*time.Second, 20*time.Millisecond)
}

// A guard that was killed is replaced with the next child, and one that is closed starts
// no child.
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
	require.Eventually(t, func() bool { return ended(t, []string{strconv.Itoa(first)}) }, 20*time.Second,
		time.Millisecond)
	require.NotEqual(t, first, guard())
	command.Guard.Close()
	_, err := process.Run(t.Context(), command)
	require.ErrorIs(t, err, os.ErrClosed)
}
