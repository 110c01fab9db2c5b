package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/apitest"
)

// act posts to a path and holds the answer against the description.
func actOn(t *testing.T, s *spec, handler http.Handler, path, id, body string) (code int, answer map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+fill(path, id),
		strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(w, r)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	described(t, s, "post", path, kind, w.Code, answer)
	return w.Code, answer
}

func TestWorkflowsAreListedAndActedOnAsDescribed(t *testing.T) {
	t.Parallel()
	s := readSpec(t)
	st := testkit.Store(t)
	handler := handlerOver(t, st)
	first, second := apitest.Workflow(t, st), apitest.Workflow(t, st)
	list := func(query string) (int, []int64) {
		code, kind, body := ask(t, handler, "/api/v1/workflows"+query)
		var value any
		require.NoError(t, json.Unmarshal(body, &value))
		described(t, s, "get", "/api/v1/workflows", kind, code, value)
		var page struct {
			Data struct {
				List []struct {
					Execution int64 `json:"execution"`
				} `json:"list"`
			} `json:"data"`
		}
		require.NoError(t, json.Unmarshal(body, &page))
		ids := []int64{}
		for _, one := range page.Data.List {
			ids = append(ids, one.Execution)
		}
		return code, ids
	}
	const acts = "/api/v1/workflows/{id}/"
	one := fmt.Sprint(first)
	code, answer := actOn(t, s, handler, acts+"pause", one, `{"reason": "new prices"}`)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "starts nothing more; what runs goes on to its end", data(t, answer)["says"])
	for query, want := range map[string][]int64{
		"": {second, first}, "?limit=1": {second}, fmt.Sprintf("?cursor=%d", second): {first}, "?paused=true": {first},
		"?status=failed,completed": {}, "?status=running": {second, first}, "?action=shop.*": {second, first},
		"?action=core.*": {},
	} {
		code, ids := list(query)
		require.Equal(t, http.StatusOK, code, query)
		require.Equal(t, want, ids, query)
	}
	for _, bad := range []string{"?limit=0", "?status=done", "?paused=perhaps", "?cursor=x", "?state=running"} {
		code, _ := list(bad)
		require.Equal(t, http.StatusBadRequest, code, bad)
	}
	code, answer = actOn(t, s, handler, acts+"resume", one, `{}`)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "goes on", data(t, answer)["says"])
	code, answer = actOn(t, s, handler, acts+"cancel", one, `{"reason": "wrong cart"}`)
	require.Equal(t, http.StatusOK, code, answer)

	testkit.Exec(t, st, `UPDATE execution SET status = 'cancelled' WHERE id = $1`, first)
	for _, act := range []string{"pause", "resume", "cancel"} {
		code, answer = actOn(t, s, handler, acts+act, one, `{}`)
		require.Equal(t, http.StatusConflict, code, act)
		require.Contains(t, answer["detail"], "has ended (cancelled)")
		code, _ = actOn(t, s, handler, acts+act, "999999", `{}`)
		require.Equal(t, http.StatusNotFound, code, act)
		code, _ = actOn(t, s, handler, acts+act, one, `{"why": "x"}`)
		require.Equal(t, http.StatusBadRequest, code, act)
	}
	alone := testkit.Execution(t, st, testkit.Action(t, st, "shop.alone")).ID
	code, _, body := ask(t, handler, fmt.Sprintf("/api/v1/workflows/%d", alone))
	require.Equal(t, http.StatusNotFound, code)
	require.Contains(t, string(body), "(shop.alone) is no workflow")
	code, _ = actOn(t, s, handler, acts+"cancel", fmt.Sprint(alone), `{}`)
	require.Equal(t, http.StatusNotFound, code, "an execution that is no workflow is not cancelled")
}
