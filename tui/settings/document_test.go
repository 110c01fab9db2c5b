package settings_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/settings"
)

var update = flag.Bool("update", false, "rewrite the example in docs/dashboard.md")

// TestTheDocumentedFileHasEverySetting keeps the example of docs/dashboard.md equal to the
// declarations.
func TestTheDocumentedFileHasEverySetting(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "dashboard.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), "```yaml\ndefault_context")
	require.True(t, ok)
	_, after, _ := strings.Cut(rest, "```\n")
	want := before + "```yaml\n" + settings.Template() + "```\n" + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run `go test ./tui/settings -run Documented -update`")
	s := load(t, settings.Template())
	require.True(t, s.Contexts[0].Protected)
}
