package core_test

import (
	"fmt"
	"io/fs"
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

// exempt is where the word is the name of a thing: the user nobody, a request without a body.
var exempt = regexp.MustCompile(`"_?postgres"|user postgres or nobody|http\.NoBody`)

// parts are what lines with these words contain; most lines contain none.
var parts = []string{
	"whoever", "body", "those ", "what has ended", "who waits", "look", "told of", "errand", "haul", "crew", "bury", "furnish",
}

func suspect(line string) bool {
	line = strings.ToLower(line)
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) })
}

// A comment or a text with such a word needs a second reading.
func TestCommentsAndTextsNameTheAgent(t *testing.T) {
	t.Parallel()
	var found []string
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(source), "\n") {
			if !suspect(line) || exempt.MatchString(line) {
				continue
			}
			for _, f := range forbidden {
				if word := f.word.FindString(line); word != "" {
					found = append(found, fmt.Sprintf("%s:%d: %q: %s", path, i+1, word, f.instead))
				}
			}
		}
		return nil
	}))
	require.Zero(t, len(found), strings.Join(found, "\n"))
}
