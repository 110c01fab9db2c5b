package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// TestTheReasonOfAFailureIsTheLastLineOfStandardError.
func TestTheReasonOfAFailureIsTheLastLineOfStandardError(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "ops.deploy")
	for result, want := range map[string]string{
		`{"error": "Traceback (most recent call last):\n  x\nKeyError: 'host'\n"}`:                    "KeyError: 'host'",
		`{"error": "Command exited with code 7", "stderr_log": "one\ncannot reach the registry\r\n"}`: "cannot reach the registry",
		`{"message": "action exited with code 7", "stderr": "disk full"}`:                             "disk full",
		`{"error": "Command exited with code 7", "stderr": "  \n"}`:                                   "Command exited with code 7",
		`{"message": "Worker queue TTL expired"}`:                                                     "Worker queue TTL expired",
	} {
		var id int64
		require.NoError(t, st.Pool().QueryRow(t.Context(), `insert into execution (action, action_ref, status, result)
			values ($1, $2, 'failed', $3::jsonb) returning id`, action.ID, action.Ref, result).Scan(&id))
		m := New(Config{}, Deps{Store: st})
		page, err := m.Executions(t.Context(), ExecutionFilter{IDs: []int64{id}}, 0)
		require.NoError(t, err)
		require.Len(t, page.List, 1)
		require.Equal(t, want, page.List[0].Reason)
	}
}
