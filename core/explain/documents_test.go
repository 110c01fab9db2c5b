package explain

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
)

// A screen reads a part of a large document and says of how much. Everything else reads all of it.
func TestALargeDocumentIsWholeOrSaysItsSize(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	result := map[string]string{"stdout": strings.Repeat("é", 400_000)}
	id := testkit.Execution(t, b.Store, action, func(r *testkit.ExecutionRow) {
		r.Status, r.Result = lifecycle.StatusCompleted, result
	}).ID
	part, err := b.Execution(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, []rune(part.Result), monitor.MaxDocument)
	require.Greater(t, part.ResultBytes, int64(800_000))
	require.Zero(t, part.ConfigBytes, "it is not cut")
	whole, err := b.WholeExecution(t.Context(), id)
	require.NoError(t, err)
	require.Zero(t, whole.ResultBytes)
	require.Len(t, whole.Result, int(part.ResultBytes))
	var read map[string]string
	require.NoError(t, json.Unmarshal([]byte(whole.Result), &read))
	require.Equal(t, result, read)
	require.Empty(t, whole.Why, "it waits for nothing")
}
