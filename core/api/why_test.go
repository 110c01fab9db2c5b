package api_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// The reasons about workers and pending retries match the description.
func TestWhyOfWorkersAndRetriesIsAsDescribed(t *testing.T) {
	st := testkit.Store(t)
	handler := handlerOver(t, st)
	action := testkit.Action(t, st, "demo.a", func(r *testkit.ActionRow) { r.MaxRetries = 3 })
	testkit.Worker(t, st, "cordoned", func(r *testkit.WorkerRow) { r.Cordoned = true })
	failed := testkit.Execution(t, st, action, func(r *testkit.ExecutionRow) {
		r.Status, r.Result = lifecycle.StatusFailed, map[string]any{"error": "no workers available"}
	})
	again := testkit.Execution(t, st, action, func(r *testkit.ExecutionRow) { r.RetryCount = 1 })
	testkit.Exec(t, st, `insert into execution_retry (failed, execution, reason, due, requested_by)
		values ($1, $2, 'manual_retry', now() + interval '1 hour', 'alice')`, failed.ID, again.ID)
	for id, key := range map[int64]string{failed.ID: "workers", again.ID: "retry"} {
		code, _, body := ask(t, handler, "/api/v1/executions/"+strconv.FormatInt(id, 10)+"/why")
		require.Equal(t, http.StatusOK, code)
		var answer map[string]any
		require.NoError(t, json.Unmarshal(body, &answer))
		require.NotEmpty(t, data(t, answer)[key], key)
	}
}
