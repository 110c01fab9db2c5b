package proof

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/testkit"
)

// programDir is where the program is built; main_test.go makes and removes it.
var programDir string

// program is attune-executor, built once in the way in which it can be told
// where to die. Told nothing it is the program as everybody has it.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programDir, "attune-executor")
	build := exec.Command("go", "build", "-buildvcs=false", "-tags", "crashpoints", "-o", path,
		"github.com/attune-go/attune/cmd/attune-executor")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return path, nil
})

// run starts the program as a process that dies with the test. Settings are
// variables of its environment.
func (s *stage) run(command string, settings ...string) *process {
	s.t.Helper()
	path, err := program()
	require.NoError(s.t, err)
	cmd := exec.Command(path, command)
	cmd.Env = append(os.Environ(), crashpoint.Variable+"=", crashpoint.FreezeVariable+"=",
		"ATTUNE__DATABASE__URL="+s.Database, "ATTUNE__DATABASE__SCHEMA="+testkit.Schema,
		fmt.Sprintf("ATTUNE__DATABASE__MAX_CONNECTIONS=%d", testkit.EngineConnections),
		"ATTUNE__MESSAGE_QUEUE__URL="+s.AMQP, "ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL="+s.Management)
	cmd.Env = append(cmd.Env, settings...)
	return launch(s.t, cmd)
}

// serve starts a replica and waits until it works.
func (s *stage) serve(settings ...string) *process {
	s.t.Helper()
	base := []string{"ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0", "ATTUNE__EXECUTOR__RETRY__BASE_DELAY=50ms"}
	if testkit.Adopted() { // where by default what actions say of repetitions and times does not count
		base = append(base, "ATTUNE__EXECUTOR__RETRY__HONOUR_ACTION_MAX_RETRIES=true",
			"ATTUNE__EXECUTOR__HONOUR_ACTION_TIMEOUT_SECONDS=true")
	}
	p := s.run("serve", append(base, settings...)...)
	p.says(s.t, "Engine started")
	return p
}

// dieAt is the setting that ends a process at the nth reach of a point.
func dieAt(point string, nth int) string {
	return fmt.Sprintf("%s=%s:%d", crashpoint.Variable, point, nth)
}

// freezeAt is the setting that stops a process there until it is continued.
func freezeAt(point string, nth int) string {
	return fmt.Sprintf("%s=%s:%d", crashpoint.FreezeVariable, point, nth)
}

// stopped says whether the process stands still.
func (p *process) stopped(t testing.TB) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(stat), ") ")
	require.True(t, ok)
	return strings.HasPrefix(rest, "T")
}

// ended says whether the process has ended, in whichever way.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// killed says whether the process has been ended by kill -9.
func (p *process) killed() bool {
	select {
	case <-p.done:
		status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	default:
		return false
	}
}

// shutdown is how long a process that is asked to stop may take at most.
const shutdown = 30 * time.Second

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

// says waits until the process has said something.
func (p *process) says(t testing.TB, text string) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		select {
		case <-p.done:
			require.Fail(t, "the process has ended", "%s", p.log)
		default:
		}
		return strings.Contains(p.log.String(), text)
	}, 30*time.Second, "the process says %q", text)
}
