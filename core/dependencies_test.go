package core_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostDependencies bounds what a reader must trust and a build must compile.
const mostDependencies = 26

func TestEveryDirectDependencyHasAReason(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	_, requirements, found := strings.Cut(string(source), "require (\n")
	require.True(t, found)
	direct, _, _ := strings.Cut(requirements, "\n)")
	lines := strings.Split(direct, "\n")
	require.LessOrEqual(t, len(lines), mostDependencies)
	for _, line := range lines {
		_, reason, _ := strings.Cut(line, " // ")
		require.NotEmpty(t, reason, "%s: say behind it what it is for", line)
		require.NotContains(t, reason, "indirect", "the first block of go.mod holds the direct dependencies only")
	}
}
