package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// data is the object that an answer carries.
func data(t *testing.T, answer map[string]any) map[string]any {
	t.Helper()
	object, ok := answer["data"].(map[string]any)
	require.True(t, ok, "%v", answer)
	return object
}

// TestEveryActionOnWorkersAnswersAsDescribed compares every answer with the description.
func TestEveryActionOnWorkersAnswersAsDescribed(t *testing.T) {
	st := testkit.Store(t)
	link := broker.New(broker.Config{URL: testkit.VHost(t)}, testkit.Logger(t), nil)
	require.NoError(t, link.Start(testkit.Context(t)))
	t.Cleanup(link.Stop)
	require.NoError(t, link.DeclareCommon(testkit.Context(t)))
	operator := triage.New(triage.Config{Source: "attune-executor"}, st, nil)
	server := func(operator *triage.Triage) http.Handler {
		return api.New("127.0.0.1:0", api.Deps{
			Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow, Acts: operator,
		}).Handler()
	}
	handler, without := server(operator.With(link)), server(operator)

	action := testkit.Action(t, st, "demo.sleep")
	works := testkit.Worker(t, st, "w-1").ID
	// named like the other's id
	gone := testkit.Worker(t, st, fmt.Sprint(works), func(w *testkit.WorkerRow) { w.Status = "inactive" }).ID
	running := testkit.Execution(t, st, action,
		func(e *testkit.ExecutionRow) { e.Worker, e.Status = &works, lifecycle.StatusRunning })
	testkit.Hold(t, st, running.ID, 1)
	require.NoError(t, link.DeclareWorker(testkit.Context(t), gone, 0))
	for _, c := range []struct {
		act    string
		id     any
		body   string
		code   int
		says   string // of the receipt, or the detail of the problem
		broken bool   // there is no broker
	}{
		{"cordon", works, `{"reason": "new disk"}`, 200, "is given nothing new", false},
		{"cordon", works, "", 200, "is cordoned already since ", false},
		{"drain", works, "", 200, "drains: ", false},
		{"drain", works, "", 200, "is draining already since ", false},
		{"uncordon", works, "", 200, "takes work again: it was draining since ", false},
		{"uncordon", works, "", 200, "is not cordoned", false},
		{"forget", works, "", 409, "it sends heartbeats", false},
		{"cordon", 999_999, "", 404, "there is no worker 999999", false},
		{"cordon", "w-1", "", 400, "not a positive number", false},
		{"drain", works, `{"why": "x"}`, 400, `unknown field "why"`, false},
		{"forget", gone, "", 503, "to forget a worker the broker is needed", true},
		{"forget", gone, "", 200, "is forgotten", false},
		{"forget", gone, "", 404, "there is no worker", false},
	} {
		to := handler
		if c.broken {
			to = without
		}
		url := fmt.Sprintf("/api/v1/workers/%v/%s", c.id, c.act)
		code, _, answer := post(t, to, url, c.body)
		require.Equal(t, c.code, code, "%s: %v", url, answer)
		if code != http.StatusOK {
			require.Contains(t, answer["detail"], c.says)
		} else {
			require.Contains(t, data(t, answer)["says"], c.says)
		}
	}
	require.Equal(t, 7, testkit.Count(t, st,
		`SELECT count(*) FROM operator_audit WHERE target_type = 'worker' AND actor = 'http without a token'`))
	state, err := link.QueueState(testkit.Context(t), message.WorkerExecutionsQueue(gone))
	require.NoError(t, err)
	require.False(t, state.Exists)

	get := func(path string) (int, map[string]any) {
		code, _, body := ask(t, handler, path)
		var answer map[string]any
		require.NoError(t, json.Unmarshal(body, &answer))
		return code, answer
	}
	code, answer := get(fmt.Sprintf("/api/v1/workers/%d", works))
	require.Equal(t, http.StatusOK, code)
	require.InDelta(t, 1, data(t, answer)["running"], 0)
	code, _ = get("/api/v1/workers/999999")
	require.Equal(t, http.StatusNotFound, code)
	code, _ = get("/api/v1/workers/x")
	require.Equal(t, http.StatusBadRequest, code)
}
