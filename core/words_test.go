package core_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forbidden are words that hide who does what, each with what to write instead.
var forbidden = []struct {
	word    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bwhoever\b`), "name the agent: the operator, any replica"},
	{regexp.MustCompile(`(?i)\b(somebody|nobody)\b`),
		"name the agent, or use the passive: no consumer, another operator"},
	{regexp.MustCompile(`(?i)\bthose (that|which|who)\b`), "repeat the noun: the executions that …"},
	{regexp.MustCompile(`(?i)\bwhat has ended\b`), "completed executions"},
	{regexp.MustCompile(`(?i)\bwho waits\b`), "waiting executions"},
	{regexp.MustCompile(`(?i)\blook(s|ed)? after\b`), "processes, handles"},
	{regexp.MustCompile(`(?i)\btold of\b`), "described, reported, shown"},
	{regexp.MustCompile(`(?i)\b(errand|haul|crew|bury|furnish(es|ed)?)\b`),
		"the field's noun: client, export, workers, discard, build"},
}

// unworded are folders whose comments still have some of these words.
var unworded = []string{"core/triage"}

// A comment with such a word needs a second reading.
func TestCommentsNameTheAgent(t *testing.T) {
	t.Parallel()
	var found []string
	read := func(path string, prose func(line string) string) {
		file, err := os.Open(path)
		require.NoError(t, err)
		defer func() { _ = file.Close() }()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			text := prose(lines.Text())
			for _, f := range forbidden {
				if word := f.word.FindString(text); word != "" {
					found = append(found, fmt.Sprintf("%s:%d: %q: %s", path, n, word, f.instead))
				}
			}
		}
		require.NoError(t, lines.Err(), path)
	}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		if entry.IsDir() && slices.Contains(unworded, folder) {
			return filepath.SkipDir
		}
		if !strings.HasPrefix(folder, "core/") || !strings.HasSuffix(path, ".go") ||
			strings.HasSuffix(path, "_test.go") {
			return nil
		}
		read(path, func(line string) string {
			_, comment, _ := strings.Cut(line, "// ")
			return comment
		})
		return nil
	}))
	require.Empty(t, found, strings.Join(found, "\n"))
}
