package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// POST …/executions/{id}/cancel answers as published: 200 with the execution, 404, 409, and both
// formats of errors. An execution with a cancel request keeps it.
func TestCancelAnswersAsPublished(t *testing.T) {
	st := testkit.Store(t)
	handler := acting(st)
	worker := testkit.Worker(t, st, "w-1")
	action := testkit.Action(t, st, "demo.sleep")
	at := func(status lifecycle.Status) int64 {
		return testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) {
			if e.Status = status; status == lifecycle.StatusRunning || status == lifecycle.StatusScheduled {
				e.Worker = &worker.ID
			}
		}).ID
	}
	running := at(lifecycle.StatusRunning)
	for _, c := range []struct {
		id     int64
		code   int
		status string // of the execution in the answer
		answer string // code and error of a refusal
	}{
		{id: at(lifecycle.StatusRequested), code: 200, status: "cancelled"},
		{id: at(lifecycle.StatusScheduling), code: 200, status: "cancelled"},
		{id: running, code: 200, status: "canceling"},
		{id: running, code: 200, status: "canceling"},
		{
			id: at(lifecycle.StatusCompleted), code: 409,
			answer: "CONFLICT Execution %d is in status 'completed' and cannot be cancelled",
		},
		{
			id: at(lifecycle.StatusAbandoned), code: 409,
			answer: "CONFLICT Execution %d is in status 'abandoned' and cannot be cancelled",
		},
		{id: 999_999, code: 404, answer: "NOT_FOUND Execution with ID %d not found"},
	} {
		code, answer := call(t, handler, http.MethodPost, fmt.Sprintf("/api/v1/executions/%d/cancel", c.id), "", "")
		require.Equal(t, c.code, code, answer)
		if c.answer != "" {
			require.Len(t, answer, 2)
			require.Equal(t, fmt.Sprintf(c.answer, c.id), fmt.Sprint(answer["code"], " ", answer["error"]))
			continue
		}
		require.InDelta(t, c.id, jq(t, answer, ".data.id"), 0)
		require.Equal(t, c.status, jq(t, answer, ".data.status"))
		require.Equal(t, c.status, string(testkit.StatusOf(t, st, c.id)))
		_, one := call(t, handler, http.MethodGet, fmt.Sprintf("/api/v1/executions/%d", c.id), "", "")
		require.Equal(t, one["data"], answer["data"], "the execution as it is read")
	}
}

// Published tokens cancel: an access token every execution, an execution token its own and
// those below it, others none. The audit names them.
func TestPublishedTokensCancel(t *testing.T) {
	st := testkit.Store(t)
	deps := publishedOver(st)
	deps.Signer = secret.NewSigner([]byte(jwtSecret))
	handler := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow, Published: deps,
		View: alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
		Acts: triage.New(triage.Config{}, st, nil),
	}).Handler()
	testkit.Exec(t, st, `insert into identity (id, login) values (7, 'ann')`)
	action := testkit.Action(t, st, "demo.sleep")
	parent := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	child := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Parent = &parent }).ID
	grandchild := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Parent = &child }).ID
	other := testkit.Execution(t, st, action).ID
	own, err := secret.NewSigner([]byte(jwtSecret)).Sign(secret.ExecutionClaims{
		ExecutionID: parent, ActionRef: "demo.sleep",
	})
	require.NoError(t, err)
	for _, c := range []struct {
		bearer string
		id     int64
		code   int
		answer map[string]any
		actor  string
	}{
		{
			"", other, 401,
			map[string]any{"error": map[string]any{"code": 401.0, "message": "Missing authentication token"}},
			"",
		},
		{
			"nonsense", other, 401,
			map[string]any{"error": map[string]any{"code": 401.0, "message": "Invalid authentication token"}},
			"",
		},
		{published(t, secret.WorkerToken, "1"), other, 403, nil, ""},
		{published(t, secret.SensorToken, "1"), other, 403, nil, ""},
		{own, other, 403, map[string]any{
			"code": "FORBIDDEN", "error": "an execution token may cancel only its own execution and those below it",
		}, ""},
		{own, 999_999, 403, nil, ""},
		{own, grandchild, 200, nil, fmt.Sprintf("execution %d", parent)},
		{published(t, secret.AccessToken, "7"), other, 200, nil, "x (identity 7)"},
		{published(t, secret.AccessToken, "7"), 999_999, 404, nil, ""},
	} {
		code, answer := call(t, handler, http.MethodPost, fmt.Sprintf("/api/v1/executions/%d/cancel", c.id), c.bearer,
			"")
		require.Equal(t, c.code, code, answer)
		if c.answer != nil {
			require.Equal(t, c.answer, answer)
		}
		if c.actor != "" {
			require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, st, c.id))
			require.Equal(t, 1, testkit.Count(t, st, `select count(*) from operator_audit where actor = $2 and action = 'execution.cancel' and target_id = $1`, c.id, c.actor))
		}
	}
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, st, child))
}
