package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/apitest"
)

func TestWorkflowsAreListedAndActedOnAsDescribed(t *testing.T) {
	st := testkit.Store(t)
	handler := handlerOver(t, st)
	first, second := apitest.Workflow(t, st), apitest.Workflow(t, st)
	list := func(query string) (int, []int64) {
		code, _, body := ask(t, handler, "/api/v1/workflows"+query)
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
	do := func(act string, id int64, body string) (int, map[string]any) {
		code, _, answer := post(t, handler, fmt.Sprintf("/api/v1/workflows/%d/%s", id, act), body)
		return code, answer
	}
	code, answer := do("pause", first, `{"reason": "new prices"}`)
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
	code, answer = do("resume", first, `{}`)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "goes on", data(t, answer)["says"])
	code, answer = do("cancel", first, `{"reason": "wrong cart"}`)
	require.Equal(t, http.StatusOK, code, answer)

	testkit.Exec(t, st, `UPDATE execution SET status = 'cancelled' WHERE id = $1`, first)
	for _, act := range []string{"pause", "resume", "cancel"} {
		code, answer = do(act, first, `{}`)
		require.Equal(t, http.StatusConflict, code, act)
		require.Contains(t, answer["detail"], "has ended (cancelled)")
		code, _ = do(act, 999_999, `{}`)
		require.Equal(t, http.StatusNotFound, code, act)
		code, _ = do(act, first, `{"why": "x"}`)
		require.Equal(t, http.StatusBadRequest, code, act)
	}
	alone := testkit.Execution(t, st, testkit.Action(t, st, "shop.alone")).ID
	code, _, body := ask(t, handler, fmt.Sprintf("/api/v1/workflows/%d", alone))
	require.Equal(t, http.StatusNotFound, code)
	require.Contains(t, string(body), "(shop.alone) is no workflow")
	code, _ = do("cancel", alone, `{}`)
	require.Equal(t, http.StatusNotFound, code, "an execution that is no workflow is not cancelled")
}
