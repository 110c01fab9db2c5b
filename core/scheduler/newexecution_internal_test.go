package scheduler

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// However much the parameters of new executions take together, no statement has more
// than a bounded part of them, and none is left out.
func TestNewExecutionsAreStoredInBoundedStatements(t *testing.T) {
	t.Parallel()
	sizes := []int{10, 3 << 20, 3 << 20, 3 << 20, 10, 20 << 20, 10}
	var newExecutions []*NewExecution
	for i, size := range sizes {
		newExecutions = append(newExecutions, &NewExecution{
			ID: int64(i), ActionRef: "pk.a", Config: json.RawMessage(`{"text":"` + strings.Repeat("x", size) + `"}`),
		})
	}
	parts, err := NewExecutionParts(newExecutions)
	require.NoError(t, err)
	var together []int
	next := int64(0)
	for _, part := range parts {
		var rows []NewExecution
		require.NoError(t, json.Unmarshal(part, &rows))
		require.True(t, len(part) <= maxNewExecutionBytes || len(rows) == 1)
		for _, row := range rows {
			require.Equal(t, next, row.ID)
			require.True(t, bytes.Equal(newExecutions[next].Config, row.Config), "the parameters of %d", row.ID)
			next++
		}
		together = append(together, len(rows))
	}
	require.Equal(t, []int{3, 2, 1, 1}, together)

	newExecutions[0].Config = json.RawMessage(`{`)
	_, err = NewExecutionParts(newExecutions)
	require.ErrorContains(t, err, "encode the new execution 0")
}
