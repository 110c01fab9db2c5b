package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/lab/testkit"
)

// An execution that an action requests with its token runs like any other, below the
// one that requested it, and is cancelled with it.
func TestExecutionsRequestedWithATokenRun(t *testing.T) {
	const key = "the_secret_of_the_published_api"
	b := setup(t)
	b.worker(t, "w1", 4)
	e := b.engine(t, func(c *config.Config) { c.Security.JWTSecret, c.Executor.HTTP.Listen = key, "127.0.0.1:0" })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	call := func(method, path, bearer, body string) (int, map[string]any) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+e.Addr()+"/api/v1/executions"+path,
			strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+bearer)
		r.Header.Set("Content-Type", "application/json")
		response, err := client.Do(r)
		require.NoError(t, err)
		defer func() { require.NoError(t, response.Body.Close()) }()
		var answer struct {
			Data map[string]any `json:"data"`
		}
		require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
		return response.StatusCode, answer.Data
	}
	parent := b.request(t, "core.sleep", 1, `{"seconds": 600}`)[0]
	b.untilStatus(t, lifecycle.StatusRunning, parent)
	bearer, err := secret.NewSigner([]byte(key)).Sign(secret.ExecutionClaims{
		ExecutionID: parent, ActionRef: "core.sleep", PermissionSetRefs: []string{"standard"},
	})
	require.NoError(t, err)

	code, quick := call(http.MethodPost, "/execute", bearer,
		`{"action_ref": "core.echo", "parameters": {"message": "hi"}}`)
	require.Equal(t, http.StatusCreated, code)
	require.InDelta(t, parent, quick["parent"], 0)
	var last map[string]any
	testkit.Eventually(t, func() bool {
		_, last = call(http.MethodGet, fmt.Sprintf("/%.0f", quick["id"]), bearer, "")
		return last["status"] == "completed"
	}, 20*time.Second, "the child completes")
	require.Equal(t, map[string]any{"message": "hi"}, last["config"])
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, parent), "its parent runs on")

	code, long := call(http.MethodPost, "", bearer, `{"action_ref": "core.sleep", "parameters": {"seconds": 600}}`)
	require.Equal(t, http.StatusCreated, code)
	child, _ := long["id"].(float64)
	b.untilStatus(t, lifecycle.StatusRunning, int64(child))
	code, stopped := call(http.MethodPost, fmt.Sprintf("/%d/cancel", parent), bearer, `{"tree": true}`)
	require.Equal(t, http.StatusOK, code)
	require.InDelta(t, parent, stopped["id"], 0)
	require.Contains(t, []any{"canceling", "cancelled"}, stopped["status"])
	b.untilStatus(t, lifecycle.StatusCancelled, parent, int64(child))
	code, _ = call(http.MethodGet, fmt.Sprintf("/%d", parent), bearer, "")
	require.Equal(t, http.StatusUnauthorized, code, "its execution has ended")
}
