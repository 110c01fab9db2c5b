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

// TestReasonsAndTriesAreTheSameEverywhere: the list, one execution, why and the attempts
// tell the same of why an execution ended, and which try it was.
func TestReasonsAndTriesAreTheSameEverywhere(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "pk.a")
	for name, result := range map[string]string{
		"error":              `{"error": "no such customer"}`,
		"error and message":  `{"error": "Worker unavailable", "message": "it was never started"}`,
		"message":            `{"message": "it is closed"}`,
		"standard error":     `{"exit_code": 3, "stderr": "disk is full\n", "error": "Action exited with code 3"}`,
		"long":               `{"error": "` + strings.Repeat("x", 5000) + `"}`,
		"nothing":            `{}`,
		"not an object":      `"broken"`,
		"an error of fields": `{"error": {"code": 7}}`,
	} {
		failed := func(e *testkit.ExecutionRow) { e.Status, e.Result = lifecycle.StatusFailed, json.RawMessage(result) }
		first := testkit.Execution(t, b.Store, action, failed)
		again := testkit.Execution(t, b.Store, action, failed)
		testkit.Exec(t, b.Store, `UPDATE execution SET original_execution = $2, retry_count = 1 WHERE id = $1`,
			again.ID, first.ID)
		testkit.Exec(t, b.Store,
			`INSERT INTO execution_retry (execution, failed, reason, due, waiting) VALUES ($1, $2, 'x', now(), false)`, again.ID, first.ID)

		list, err := b.Executions(t.Context(), monitor.ExecutionFilter{IDs: []int64{first.ID, again.ID}}, 0)
		require.NoError(t, err, name)
		require.Len(t, list.List, 2, name)
		attempts, err := b.Attempts(t.Context(), first.ID)
		require.NoError(t, err, name)
		require.Len(t, attempts, 2, name)
		for at, id := range []int64{first.ID, again.ID} {
			row := list.List[1-at]
			detail, err := b.Execution(t.Context(), id)
			require.NoError(t, err, name)
			why, err := b.Why(t.Context(), id)
			require.NoError(t, err, name)
			require.Equal(t, row.Reason, detail.Reason, "%s: list and show", name)
			require.Equal(t, row.Reason, why.Reason, "%s: list and why", name)
			require.Equal(t, row.Reason, attempts[at].Error, "%s: list and attempts", name)
			if name == "error" {
				require.Equal(t, "no such customer", row.Reason)
			}
			require.Equal(t, int64(at), row.RetryCount, name)
			require.Equal(t, row.RetryCount+1, attempts[at].Number, "%s: tries", name)
		}
	}
}
