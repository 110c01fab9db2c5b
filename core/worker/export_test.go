package worker

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// SetProbeTimeout bounds the version queries of interpreters.
func SetProbeTimeout(c *Config, timeout time.Duration) { c.probeTimeout = timeout }

// WriteExecutable writes an executable file. Another process does the writing: a file cannot be executed while a
// child that a parallel test has forked holds it open for writing.
func WriteExecutable(t testing.TB, path, text string) {
	t.Helper()
	write := exec.CommandContext(t.Context(), "/bin/sh", "-c", `cat > "$0" && chmod 700 "$0"`, path)
	write.Stdin = strings.NewReader(text)
	require.NoError(t, write.Run())
}
