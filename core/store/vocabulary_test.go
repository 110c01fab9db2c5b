package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
)

var (
	listPattern  = regexp.MustCompile(`(?s)(?:\(|ARRAY\[)('[a-z]+'(?:,\s*'[a-z]+')+)[)\]]`)
	labelPattern = regexp.MustCompile(`'([a-z]+)'`)
	movePattern  = regexp.MustCompile(`UPDATE execution e\s+SET status = '([a-z]+)'[^;]*?e\.status = '([a-z]+)'`)
)

func queries(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("queries/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[file] = string(text)
	}
	return texts
}

// SQL and code agree on terminal statuses: every list with 'completed' and 'abandoned' is the whole set.
func TestTerminalLabelsInSQLAreTheVocabularys(t *testing.T) {
	t.Parallel()
	var want []string
	for _, s := range lifecycle.TerminalStatuses {
		want = append(want, string(s))
	}
	slices.Sort(want)
	found := 0
	for file, text := range queries(t) {
		for _, list := range listPattern.FindAllStringSubmatch(text, -1) {
			var labels []string
			for _, label := range labelPattern.FindAllStringSubmatch(list[1], -1) {
				labels = append(labels, label[1])
			}
			if !slices.Contains(labels, "completed") || !slices.Contains(labels, "abandoned") {
				continue
			}
			found++
			slices.Sort(labels)
			require.Equal(t, want, labels, "%s: %s", file, list[1])
		}
	}
	require.Positive(t, found, "the pattern no longer finds any list")
}

// S8: every guarded update with a fixed target moves along the transition
// table.
func TestUpdatesInSQLMoveAlongTheTransitionTable(t *testing.T) {
	t.Parallel()
	found := 0
	for file, text := range queries(t) {
		for _, move := range movePattern.FindAllStringSubmatch(text, -1) {
			found++
			require.True(t, lifecycle.CanMove(lifecycle.Status(move[2]), lifecycle.Status(move[1])),
				"%s moves %s → %s", file,
				move[2], move[1])
		}
	}
	require.Positive(t, found, "the pattern no longer finds any update")
}
