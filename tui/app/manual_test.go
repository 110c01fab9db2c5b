package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
)

// between replaces the text between two marks of a page.
func between(t *testing.T, page, mark, text string) string {
	t.Helper()
	open, end := fmt.Sprintf("<!-- %s -->\n", mark), fmt.Sprintf("<!-- /%s -->", mark)
	head, rest, ok := strings.Cut(page, open)
	require.True(t, ok, "the page has no %s", open)
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "the page has no %s", end)
	return head + open + text + end + tail
}

func TestTheManualPageShowsTheKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "man", "attune-tui.1")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	want := between(t, string(page), "keys", keymap.Roff()+`.\" `)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run the test with -update")
}
