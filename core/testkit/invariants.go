package testkit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/doctor"
)

// Invariants fails the test when an invariant query returns a row.
func Invariants(t testing.TB, st Pooler) {
	t.Helper()
	violations, err := doctor.Invariants(t.Context(), st.Pool())
	require.NoError(t, err)
	lines := make([]string, len(violations))
	for i, violation := range violations {
		lines[i] = violation.String()
	}
	require.Empty(t, violations, strings.Join(lines, "\n"))
}
