package core_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forbidden are words that hide the agent, each with a replacement.
var forbidden = []struct {
	word    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bwhoever\b`), "name the agent: the operator, any replica"},
	{
		regexp.MustCompile(`(?i)\b(somebody|nobody)\b`),
		"name the agent, or use the passive: no consumer, another operator",
	},
	{regexp.MustCompile(`(?i)\bthose (that|which|who)\b`), "repeat the noun: the executions that …"},
	{regexp.MustCompile(`(?i)\bwhat has ended\b`), "completed executions"},
	{regexp.MustCompile(`(?i)\bwho waits\b`), "waiting executions"},
	{regexp.MustCompile(`(?i)\blook(s|ed)? after\b`), "processes, handles"},
	{regexp.MustCompile(`(?i)\btold of\b`), "described, reported, shown"},
	{
		regexp.MustCompile(`(?i)\b(errand|haul|crew|bury|furnish(es|ed)?)\b`),
		"the field's noun: client, export, workers, discard, build",
	},
}

// exempt lists uses of the words as names: a user, a request without a body.
var exempt = regexp.MustCompile(`"_?postgres"|user postgres or nobody|the user nobody|http\.NoBody`)

// parts are fragments of these words, for a fast check: most lines contain none.
var parts = []string{
	"whoever", "body", "those ", "what has ended", "who waits", "look", "told of", "errand", "haul", "crew", "bury", "furnish",
}

func suspect(line string) bool {
	line = strings.ToLower(line)
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) })
}

// read are the kinds of files that are checked: programs, statements, and the description of the HTTP API. A
// migration stays as it was applied.
var read = []string{".go", ".sql", ".yaml"}

// checked is the part of a line that is checked: all of it, but only the comment in a test, where texts are data.
func checked(path, line string) string {
	if !strings.HasSuffix(path, "_test.go") {
		return line
	}
	_, comment, _ := strings.Cut(line, "// ")
	return comment
}

// A comment or a text with such a word needs a second reading.
func TestCommentsAndTextsNameTheAgent(t *testing.T) {
	t.Parallel()
	var found []string
	for path, source := range files(t, "..", read...) {
		if strings.Contains(path, "/migrations/sql/") || strings.Contains(path, "/testdata/") {
			continue
		}
		for i, line := range strings.Split(string(source), "\n") {
			line = checked(path, line)
			if !suspect(line) || exempt.MatchString(line) {
				continue
			}
			for _, f := range forbidden {
				if word := f.word.FindString(line); word != "" {
					found = append(found, fmt.Sprintf("%s:%d: %q: %s", path, i+1, word, f.instead))
				}
			}
		}
	}
	require.Empty(t, strings.Join(found, "\n"))
}
