package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// ManualPage requires that the manual page of a program in docs/man is the given one, which it writes on update, and
// that groff formats it without a warning.
func ManualPage(t testing.TB, program, page string, update bool) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "man", program+".1")
	if update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644)) //nolint:gosec // world-readable
	}
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, page, string(written), "run `go test ./cmd/%s -run ManualPage -update`", program)
	Formats(t, path)
}

// Formats requires that groff formats a manual page without a warning.
func Formats(t testing.TB, path string) {
	t.Helper()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff to read the page with")
	}
	out, err := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww", "-z", path).CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(out))
}
