package process_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/worker/process"
)

// shieldVariable makes the test binary a process that shields itself if it is "on", and runs a child that reads its
// environment.
const shieldVariable = "PROCESS_TEST_SHIELD"

func runShielded() int {
	if os.Getenv(shieldVariable) == "on" {
		if err := process.Shield(); err != nil {
			return 3
		}
	}
	outcome, err := process.Run(contextOfTest, process.Command{
		Args: []string{"/bin/sh", "-c", `cat /proc/$PPID/environ && test -r /proc/$PPID/mem`}, Stdout: os.Stdout,
		Stderr: os.Stderr,
	})
	if err != nil {
		return 4
	}
	return outcome.ExitCode
}

// needsRoot skips a test that cannot start processes as another user.
func needsRoot(t testing.TB) *process.User {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("run as root to start processes as another user")
	}
	user, err := process.LookUpUser("65534:65534")
	require.NoError(t, err)
	return &user
}

// A child with the same user can read environment and memory of its parent unless the parent is shielded.
func TestShield(t *testing.T) {
	t.Parallel()
	user := needsRoot(t) // root reads everything
	binary := filepath.Join(openDir(t), "binary")
	// Another process does the writing: a file cannot be executed while a child that a parallel test has forked holds
	// it open for writing.
	copied, err := exec.CommandContext(t.Context(), "cp", os.Args[0], binary).CombinedOutput()
	require.NoError(t, err, "%s", copied)
	require.NoError(t, os.Chmod(binary, 0o755))
	run := func(mode string) (string, int) {
		cmd := exec.CommandContext(t.Context(), binary)
		cmd.Env = []string{shieldVariable + "=" + mode, "KEY=hunter2"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user.UID, Gid: user.GID}}
		out, err := cmd.CombinedOutput()
		require.NotNil(t, cmd.ProcessState, "%v", err) // it was started
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := run("off")
	require.Zero(t, code, out)
	require.Contains(t, out, "KEY=hunter2")
	out, code = run("on")
	require.Equal(t, 1, code, out)
	require.NotContains(t, out, "hunter2")
	require.Contains(t, out, "Permission denied")
}

// openDir is a temporary folder that other users can enter.
func openDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && len(at) > 1; at = filepath.Dir(at) {
		require.NoError(t, os.Chmod(at, 0o755))
	}
	return dir
}

func TestAChildRunsAsAnotherUser(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	command := shell("exec 2>&1; id -u; id -g; cat /etc/shadow", &out)
	command.User = needsRoot(t)
	outcome, err := process.Run(t.Context(), command)
	require.NoError(t, err)
	require.Equal(t, 1, outcome.ExitCode)
	require.True(t, strings.HasPrefix(out.String(), "65534\n65534\ncat: "), out.String())
}

func TestLookUpUser(t *testing.T) {
	t.Parallel()
	root, err := process.LookUpUser("root")
	require.NoError(t, err)
	require.Equal(t, uint32(0), root.UID)
	require.Equal(t, "root", root.Name)
	numbers, err := process.LookUpUser("54321:54322")
	require.NoError(t, err)
	require.Equal(t, process.User{Name: "54321", Home: "/", UID: 54321, GID: 54322}, numbers)
	for text, want := range map[string]string{
		"nobody-of-this-name": "there is no user nobody-of-this-name",
		"root:no-such-group":  "there is no group no-such-group",
		"54321":               "add a group, as in 54321:GROUP", "": "there is no user ",
		"99999999999": "there is no user 99999999999",
	} {
		_, err := process.LookUpUser(text)
		require.ErrorContains(t, err, want)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, script string, limits process.Limits, user *process.User) (process.Outcome, string) {
		var out bytes.Buffer
		command := shell("exec 2>&1\n"+script, &out)
		command.Limits, command.User = limits, user
		outcome, err := process.Run(t.Context(), command)
		require.NoError(t, err)
		return outcome, out.String()
	}
	t.Run("Hold", func(t *testing.T) {
		t.Parallel()
		outcome, out := run(t, "ulimit -n; ulimit -d; ulimit -t; ulimit -H -n",
			process.Limits{OpenFiles: 64, Memory: 512 << 20, CPU: 90 * time.Second}, nil)
		require.Zero(t, outcome.ExitCode)
		require.Equal(t, "64\n524288\n90\n64\n", out)
	})
	t.Run("NoneChangesNothing", func(t *testing.T) {
		t.Parallel()
		_, before := run(t, "ulimit -a", process.Limits{}, nil)
		_, high := run(t, "ulimit -a", process.Limits{OpenFiles: 1 << 40}, nil)
		require.NotEmpty(t, before)
		require.Contains(t, high, "nofiles", "a limit above that of this process is that")
	})
	t.Run("ProcessorTime", func(t *testing.T) {
		t.Parallel()
		outcome, _ := run(t, "while :; do :; done", process.Limits{CPU: time.Second}, nil)
		require.Contains(t, []syscall.Signal{syscall.SIGKILL, syscall.SIGXCPU}, outcome.Signal)
	})
	t.Run("Memory", func(t *testing.T) {
		t.Parallel()
		outcome, _ := run(t, "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}",
			process.Limits{Memory: 50 << 20}, nil)
		require.NotZero(t, outcome.ExitCode)
	})
	t.Run("Processes", func(t *testing.T) {
		t.Parallel()
		user := needsRoot(t)
		user.UID = uint32(40_000 + os.Getpid()%20_000) // has no other processes, also beside other test runs
		outcome, out := run(t, "for i in 1 2 3 4 5 6 7 8; do sleep 600 & done", process.Limits{Processes: 4}, user)
		require.NotZero(t, outcome.ExitCode, out)
		require.Contains(t, strings.ToLower(out), "fork")
	})
	t.Run("OfAProgramFromThePath", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		outcome, err := process.Run(t.Context(), process.Command{
			Args: []string{"echo", "a b", "$c"}, Stdout: &out, Limits: process.Limits{OpenFiles: 32},
		})
		require.NoError(t, err)
		require.Zero(t, outcome.ExitCode)
		require.Equal(t, "a b $c\n", out.String())
	})
}
