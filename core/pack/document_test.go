package pack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/pack"
)

// Each policy in the documents can be applied unchanged.
func TestDocumentedPoliciesAreSound(t *testing.T) {
	t.Parallel()
	found := 0
	for _, name := range []string{"policies.md", "cli.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		require.NoError(t, err)
		for paragraph := range strings.SplitSeq(string(text), "\n\n") {
			if !strings.HasPrefix(paragraph, "    ref:") && !strings.HasPrefix(paragraph, "    policies:") {
				continue
			}
			policies, mistakes := pack.Parse(name, []byte(paragraph))
			require.Empty(t, texts(mistakes), paragraph)
			require.NotEmpty(t, policies)
			found += len(policies)
		}
	}
	require.GreaterOrEqual(t, found, 7, "the documents show policies")
}

// The page about policies has a row for each key.
func TestDocumentNamesEveryKey(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "policies.md"))
	require.NoError(t, err)
	_, mistakes := pack.Parse("f", []byte("{ref: a.b, threshold: 1, zzzzzzzzzzzzzzzzzzzzz: 1}"))
	require.Len(t, mistakes, 1)
	_, keys, ok := strings.Cut(mistakes[0].Text, "known are ")
	require.True(t, ok)
	for key := range strings.SplitSeq(keys, ", ") {
		require.Contains(t, string(text), "`"+key+"`")
	}
}
