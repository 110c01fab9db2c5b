package demo

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is copied from the demo's first lines means the same folder to a shell.
func TestPathsAreWordsOfAShell(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/opt/attune/bin/attune-tui", ".attune/demo", "/home/o'brien/my demo", `/a/$HOME/"b"/*`, "/ä/ö"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+inShell(path)).Output()
		require.NoError(t, err)
		require.Equal(t, path, string(out))
	}
	require.Equal(t, "/opt/attune/bin/attune-tui", inShell("/opt/attune/bin/attune-tui"), "without quotes where none are needed")
}
