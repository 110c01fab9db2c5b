package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
)

var update = flag.Bool("update", false, "write the manual page anew")

func TestTheManualPageIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "man", "attune-tui.1")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(manual()), 0o644))
		return
	}
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, withoutKeys(t, manual()), withoutKeys(t, string(page)), "run the test with -update")
	testkit.Formats(t, path)
}

// withoutKeys omits the keys, which a test of the key map checks.
func withoutKeys(t *testing.T, page string) string {
	t.Helper()
	head, rest, begins := strings.Cut(page, "<!-- keys -->")
	_, tail, ends := strings.Cut(rest, "<!-- /keys -->")
	require.True(t, begins && ends)
	return head + tail
}

func TestTheManualPageHasEveryFlagAndKey(t *testing.T) {
	t.Parallel()
	page := manual()
	for _, want := range []string{`\-\-plain`, `\-\-context`, `\fB\-o\fR, \fB\-\-output\fR`, `\fB\e\fR`, `\fB\(aq\fR`} {
		require.Contains(t, page, want)
	}
	for _, b := range keymap.BuiltIn.All() {
		require.Contains(t, page, keymap.Escape(b.Help))
	}
}
