package proof

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/lab/testkit"
)

// programDir is where the program is built; main_test.go makes and removes it.
var programDir string

// program is attune-executor, built once with crash points. Without a setting of a point it is the released
// program.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programDir, "attune-executor")
	build := exec.Command("go", "build", "-buildvcs=false", "-tags", "crashpoints", "-o", path,
		"github.com/attune-go/attune/cmd/attune-executor")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return path, nil
})

// run starts the program as a process that dies with the test. Its settings are environment variables.
func (s *stage) run(command string, settings ...string) *process {
	s.t.Helper()
	path, err := program()
	require.NoError(s.t, err)
	cmd := exec.Command(path, command)
	cmd.Env = append(os.Environ(), crashpoint.Variable+"=", crashpoint.FreezeVariable+"=",
		"ATTUNE__DATABASE__URL="+s.Database, "ATTUNE__DATABASE__SCHEMA="+testkit.Schema,
		fmt.Sprintf("ATTUNE__DATABASE__MAX_CONNECTIONS=%d", testkit.EngineConnections),
		"ATTUNE__MESSAGE_QUEUE__URL="+s.AMQP, "ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL="+s.Management)
	if s.QueueType != "" {
		cmd.Env = append(cmd.Env, "ATTUNE__MESSAGE_QUEUE__RABBITMQ__QUEUE_TYPE="+s.QueueType)
	}
	cmd.Env = append(cmd.Env, settings...)
	return launch(s.t, cmd)
}

// serve starts a replica and waits until it works. One with a point of death may find work of its predecessor and
// die before it logs that it has started.
func (s *stage) serve(settings ...string) *process {
	s.t.Helper()
	base := []string{"ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0", "ATTUNE__EXECUTOR__RETRY__BASE_DELAY=50ms"}
	if testkit.Adopted() { // the adopted default ignores the retries and timeouts of actions
		base = append(base, "ATTUNE__EXECUTOR__RETRY__HONOUR_ACTION_MAX_RETRIES=true",
			"ATTUNE__EXECUTOR__HONOUR_ACTION_TIMEOUT_SECONDS=true")
	}
	p := s.run("serve", append(base, settings...)...)
	dies := slices.ContainsFunc(settings, func(setting string) bool {
		return strings.HasPrefix(setting, crashpoint.Variable+"=")
	})
	p.says(s.t, "Engine started", func() bool { return dies && p.killed() })
	return p
}

// dieAt is the setting that kills a process at the nth reach of a point.
func dieAt(point string, nth int) string {
	return fmt.Sprintf("%s=%s:%d", crashpoint.Variable, point, nth)
}

// freezeAt is the setting that freezes a process there until it is continued.
func freezeAt(point string, nth int) string {
	return fmt.Sprintf("%s=%s:%d", crashpoint.FreezeVariable, point, nth)
}

// stopped reports whether the process is frozen.
func (p *process) stopped(t testing.TB) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(stat), ") ")
	require.True(t, ok)
	return strings.HasPrefix(rest, "T")
}

// ended reports whether the process has ended in any way.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// killed reports whether kill -9 has ended the process.
func (p *process) killed() bool {
	select {
	case <-p.done:
		status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	default:
		return false
	}
}

// shutdown is the longest acceptable time of a shutdown, on a busy machine.
const shutdown = 2 * time.Minute

// stop asks the process to end and returns its exit code.
func (p *process) stop(t testing.TB) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.done:
	case <-time.After(shutdown):
		require.Fail(t, "the process has not ended within "+shutdown.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// says waits until the process has logged a text, after which it may have ended, or until one of others holds.
func (p *process) says(t testing.TB, text string, others ...func() bool) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		ended := p.ended() // before the log is read, so that the log of an ended process is complete
		said := strings.Contains(p.log.String(), text) ||
			slices.ContainsFunc(others, func(other func() bool) bool { return other() })
		if ended && !said {
			require.Fail(t, "the process has ended", "%s", p.log)
		}
		return said
	}, 30*time.Second, "the process says %q", text)
}
