package workflow

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/yamldoc"
)

func document(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../docs/workflows.md")
	require.NoError(t, err)
	return string(content)
}

// The examples of the document can be applied unchanged, without a warning.
func TestDocumentedWorkflowsAreSound(t *testing.T) {
	t.Parallel()
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(document(t), -1)
	require.GreaterOrEqual(t, len(examples), 10)
	for _, example := range examples {
		_, mistakes, warnings := Parse("docs", []byte(example[1]))
		require.Empty(t, mistakes, example[1])
		warnings = slices.DeleteFunc(warnings,
			func(m Mistake) bool { return strings.Contains(m.Text, "is ignored beside next") })
		require.Empty(t, warnings, example[1])
	}
}

// Every key that has an effect is explained.
func TestDocumentNamesEveryKey(t *testing.T) {
	t.Parallel()
	text := document(t)
	of := func(form any) []string { return yamldoc.Names(yamldoc.KeysOf(form)) }
	for _, keys := range [][]string{of(definitionFile{}), of(taskFile{}), of(retryFile{}), {
		"when", "publish", "do",
		"default",
	}, reserved} {
		for _, key := range keys {
			if key != chartKey {
				require.Regexp(t, "`"+regexp.QuoteMeta(key)+"[`:]", text)
			}
		}
	}
	for _, name := range append(slices.Clone(knownNames), "result()", "succeeded()", "failed()", "timed_out()",
		"cancelled()") {
		require.Contains(t, text, name)
	}
}
