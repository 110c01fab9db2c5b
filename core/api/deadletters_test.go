package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/apitest"
)

// Every filter is applied, and an invalid one is refused.
func TestDeadLettersAreFilteredAndPaged(t *testing.T) {
	st := testkit.Store(t)
	handler := handlerOver(t, st)
	event := apitest.DeadLetter(t, st, 0, "")
	failed := apitest.DeadLetter(t, st, 5, "failed")
	list := func(query string) (int, []int64, int64) {
		code, _, body := ask(t, handler, "/api/v1/dead-letters"+query)
		var page struct {
			Data struct {
				List []struct {
					ID int64 `json:"id"`
				} `json:"list"`
				Next int64 `json:"next"`
			} `json:"data"`
		}
		require.NoError(t, json.Unmarshal(body, &page))
		ids := []int64{}
		for _, one := range page.Data.List {
			ids = append(ids, one.ID)
		}
		return code, ids, page.Data.Next
	}
	for query, want := range map[string][]int64{
		"": {failed, event}, "?open=true": {event}, "?decided=true": {failed}, "?decision=failed,stale": {failed},
		"?reason=expired":  {failed, event},
		"?reason=rejected": {}, "?type=EventCreated": {event}, "?execution=5": {failed}, "?action=core.*": {},
		"?worker=nobody": {},
		"?since=1d02h":   {failed, event}, "?older_than=1w": {},
	} {
		code, ids, _ := list(query)
		require.Equal(t, http.StatusOK, code, query)
		require.Equal(t, want, ids, query)
	}
	_, ids, next := list("?limit=1")
	require.Equal(t, []int64{failed}, ids)
	_, ids, _ = list(fmt.Sprintf("?limit=1&cursor=%d", next))
	require.Equal(t, []int64{event}, ids)
	for _, bad := range []string{
		"?open=perhaps", "?decided=1x", "?open=true&decided=true", "?decision=retired", "?since=yesterday",
		"?older_than=-1h", "?limit=0", "?limit=501",
		"?cursor=x", "?execution=-1", "?deciison=failed",
	} {
		code, _, _ := list(bad)
		require.Equal(t, http.StatusBadRequest, code, bad)
	}
}

// TestDeadLettersAreDecidedAsDescribed compares every answer with the description.
func TestDeadLettersAreDecidedAsDescribed(t *testing.T) {
	st := testkit.Store(t)
	handler := acting(st)
	action := testkit.Action(t, st, "demo.sleep")
	at := func(status lifecycle.Status) int64 {
		return testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = status }).ID
	}
	failed, again := apitest.DeadLetter(t, st, at(lifecycle.StatusFailed), "failed"), at(lifecycle.StatusFailed)
	first, second := apitest.DeadLetter(t, st, again, ""), apitest.DeadLetter(t, st, again, "")
	completed := apitest.DeadLetter(t, st, at(lifecycle.StatusCompleted), "stale")
	event, other := apitest.DeadLetter(t, st, 0, ""), apitest.DeadLetter(t, st, 0, "")
	running := apitest.DeadLetter(t, st, at(lifecycle.StatusRunning), "")
	for _, c := range []struct {
		act    string
		id     any
		body   string
		code   int
		detail string
	}{
		{"requeue", failed, `{"reason": "back"}`, 200, ""},
		{"requeue", failed, "", 409, "is decided already: requeued by http without a token at 20"},
		{"requeue", first, "", 200, ""},
		{"requeue", second, "", 409, "has been repeated already"},
		{"requeue", running, "", 409, "its execution has not ended: it is running"},
		{"requeue", event, "", 200, ""},
		{"requeue", completed, "", 409, "completed: a requeue would run it once more: send anyway"},
		{"requeue", completed, `{"anyway": true}`, 200, ""},
		{"discard", event, "", 409, "requeued by"},
		{"discard", other, `{"reason": "a test"}`, 200, ""},
		{"discard", other, "", 409, "discarded by"},
		{"requeue", 999_999, "", 404, "there is no dead letter 999999"},
		{"discard", 999_999, "", 404, "there is no dead letter 999999"},
		{"requeue", "x", "", 400, "not a positive number"},
		{"requeue", second, `{"force": true}`, 400, `unknown field "force"`},
		{"discard", second, `{"reason": "` + strings.Repeat("x", 2001) + `"}`, 400, "the reason exceeds"},
		{"discard", second, strings.Repeat(" ", 70_000), 413, "the body exceeds"},
	} {
		code, _, answer := post(t, handler, fmt.Sprintf("/api/v1/dead-letters/%v/%s", c.id, c.act), c.body)
		require.Equal(t, c.code, code, "%s %v: %v", c.act, c.id, answer)
		if c.detail != "" {
			require.Contains(t, answer["detail"], c.detail)
		}
	}
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from operator_audit where action = 'dead_letter.requeue' and target_id = $1 and reason = 'back'`, failed))
	require.Equal(t, 4, testkit.Count(t, st, `select count(*) from dead_letter where decision = 'requeued'`))
}

// Decisions need the scope operate, reads the scope read. The audit and the ledger name the token.
func TestDecidingNeedsTheScopeOperate(t *testing.T) {
	st := testkit.Store(t)
	server := api.New("0.0.0.0:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow,
		Acts: triage.New(triage.Config{}, st, nil),
		View: noView{}, TokensFile: tokenFile(t, "ann read "+hash("s3cret")+"\nbot operate "+hash("other")+"\n"),
	})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	id := apitest.DeadLetter(t, st, 0, "")
	with := func(secret string) func(*http.Request) {
		return func(r *http.Request) {
			if r.Host = "engine.example"; secret != "" {
				r.Header.Set("Authorization", "Bearer "+secret)
			}
		}
	}
	for _, act := range []string{"requeue", "discard"} {
		for secret, want := range map[string]int{"": 401, "wrong": 401, "s3cret": 403} {
			code, _, _ := post(t, server.Handler(), fmt.Sprintf("/api/v1/dead-letters/%d/%s", id, act), "",
				with(secret))
			require.Equal(t, want, code, "%s with %q", act, secret)
		}
	}
	for _, path := range []string{"/api/v1/dead-letters", "/api/v1/dead-letters/1"} {
		code, _, _ := ask(t, server.Handler(), path)
		require.Equal(t, http.StatusUnauthorized, code)
	}
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from dead_letter where decision is null`))
	code, _, _ := post(t, server.Handler(), fmt.Sprintf("/api/v1/dead-letters/%d/discard", id), "", with("other"))
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from dead_letter where decided_by = 'token bot'`))
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from operator_audit where actor = 'token bot' and action = 'dead_letter.discard' and target_id = $1`, id))
	code, _, _ = post(t, server.Handler(), fmt.Sprintf("/api/v1/dead-letters/%d/requeue", id), "", with("other"),
		func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example")
		})
	require.Equal(t, http.StatusForbidden, code)
}
