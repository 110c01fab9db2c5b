package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A child that was killed for want of memory says how many processes of the worker's cgroup the kernel killed.
//
//nolint:paralleltest // it replaces the file with the counter
func TestAKillForWantOfMemoryIsTold(t *testing.T) {
	file, kept := filepath.Join(t.TempDir(), "memory.events"), oomCounter
	t.Cleanup(func() { oomCounter = kept })
	oomCounter = func() string { return file }
	for name, c := range map[string]struct{ before, script, want string }{
		"Version2": {
			"low 0\nmax 9\noom 4\noom_kill 4\noom_group_kill 0\n", `echo oom_kill 6 > "$1"; kill -KILL $$`,
			"killed by SIGKILL: out of memory, the kernel killed 2 processes of the worker's cgroup",
		},
		"Version1": {
			"oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", `echo oom_kill 1 > "$1"; kill -KILL $$`,
			"killed by SIGKILL: out of memory, the kernel killed 1 process of the worker's cgroup",
		},
		"Program": {
			"oom_kill 0\n", `echo oom_kill 1 > "$1"; exit 137`,
			"a program of it was killed by SIGKILL: out of memory, the kernel killed 1 process of the worker's cgroup",
		},
		"ByHand":   {"oom_kill 7\n", "kill -KILL $$", "killed by SIGKILL, often for want of memory"},
		"Unknown":  {"", "kill -KILL $$", "killed by SIGKILL, often for want of memory"},
		"Segfault": {"oom_kill 0\n", `echo oom_kill 1 > "$1"; kill -SEGV $$`, "killed by SIGSEGV"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(c.before), 0o600))
		outcome, err := Run(t.Context(), Command{Args: []string{"/bin/sh", "-c", c.script, "sh", file}})
		require.NoError(t, err, name)
		require.Equal(t, c.want, outcome.Death(), name)
	}
}
