package yamldoc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/yamldoc"
)

// The error of a wrong indentation names its lines.
func TestYAMLMistakesNameTheLines(t *testing.T) {
	t.Parallel()
	const tasks = "version: 1\ntasks:\n  - name: a\n    action: b.c\n"
	broken := "the block that begins near line 2 breaks off in line "
	for content, want := range map[string]struct {
		line int
		text string
	}{
		tasks + strings.Repeat("  - {name: b}\n", 20) + "   - name: c\n":             {25, broken + "25"},
		tasks + "    input:\n      x: 1\n     y: 2\n" + strings.Repeat("a: 1\n", 90): {7, broken + "7"},
		"a: 1\n---\na:\n  b: 1\n c: 2\n---\nd: 3\n": {
			5,
			"breaks off in line 5: is one of the lines indented wrongly?",
		},
		"a: 1\n\tb: 2\n":           {2, "found a tab character that violates indentation"},
		"a: 1\nb:\n  c: *secret\n": {3, "an alias has no anchor: put a value that begins with * between quotes"},
		"a: [1,\nb: 2\n":           {2, "did not find expected ',' or ']'"},
	} {
		r := &yamldoc.Reader{File: "f"}
		r.Documents([]byte(content))
		require.Len(t, r.Mistakes, 1, content)
		require.Equal(t, yamldoc.Place{File: "f", Line: want.line}, r.Mistakes[0].Place, content)
		require.Contains(t, r.Mistakes[0].Text, "this is not YAML: ")
		require.Contains(t, r.Mistakes[0].Text, want.text)
		require.NotContains(t, r.Mistakes[0].Text, "secret")
	}
}
