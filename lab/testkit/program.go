package testkit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// EnvProgram is the variable with the path of attune-executor, which `make` has built.
const EnvProgram = "ATTUNE_TEST_PROGRAM"

// Program returns the path of attune-executor, built without the race detector, which makes the start of each
// command six times as expensive. attune-tui and attune-lab are beside it. Without EnvProgram each test binary builds
// all three once.
func Program(t testing.TB) string {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	return path
}

var program = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(EnvProgram); path != "" {
		return path, nil
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("attune-program-%d", os.Getuid()), "attune-executor")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Dir(path)+"/",
		"github.com/attune-go/attune/cmd/attune-executor", "github.com/attune-go/attune/cmd/attune-tui",
		"github.com/attune-go/attune/cmd/attune-lab")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w: %s", err, out)
	}
	return path, nil
})

// Memory is the memory of a process, in bytes.
type Memory struct {
	Now  int // its resident size
	Peak int // the largest one since the start, or since ForgetPeak
}

// MemoryOf reads the memory of a process. It skips the test on a system without /proc.
func MemoryOf(t testing.TB, pid int) Memory {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat("/proc/self/status"); err != nil {
			t.Skip("the memory of a process is read from /proc")
		}
	}
	require.NoError(t, err)
	m := memoryIn(t, raw)
	require.NotZero(t, m.Peak)
	return m
}

// PeakUntilEnd waits for the end of a process and returns its largest memory. The usage that the system reports of an
// ended process includes the memory of the test, which it shares before it runs its own program.
func PeakUntilEnd(t testing.TB, cmd *exec.Cmd) (peak int) {
	t.Helper()
	for {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		m := memoryIn(t, raw)
		if err != nil || m.Peak == 0 { // a process that has ended has no memory
			require.NoError(t, cmd.Wait())
			return peak
		}
		peak = m.Peak
		time.Sleep(5 * time.Millisecond)
	}
}

func memoryIn(t testing.TB, status []byte) (m Memory) {
	t.Helper()
	for line := range strings.SplitSeq(string(status), "\n") {
		name, rest, _ := strings.Cut(line, ":")
		into := map[string]*int{"VmRSS": &m.Now, "VmHWM": &m.Peak}[name]
		if into == nil {
			continue
		}
		_, err := fmt.Sscan(rest, into)
		require.NoError(t, err)
		*into <<= 10 // kilobytes
	}
	return m
}

// ForgetPeak makes the peak of a process its present size.
func ForgetPeak(t testing.TB, pid int) {
	t.Helper()
	require.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0))
}
