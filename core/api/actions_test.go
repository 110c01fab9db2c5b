package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// acting is a handler that acts on a database.
func acting(st *store.Store) http.Handler {
	return api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow,
		Acts: triage.New(triage.Config{Source: "attune-executor"}, st, nil), Published: publishedOver(st),
		View: alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
	}).Handler()
}

// post sends an act, and compares the answer with the description; change may alter the request.
func post(t *testing.T, handler http.Handler, path, body string,
	change ...func(*http.Request),
) (code int, kind string, answer map[string]any) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	requireDescribed(t, r, body, w.Code, w.Header(), w.Body.Bytes())
	kind, _, _ = strings.Cut(w.Header().Get("Content-Type"), ";")
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	return w.Code, kind, answer
}

// TestEveryActionAnswersAsDescribed compares every answer of every action with the description.
func TestEveryActionAnswersAsDescribed(t *testing.T) {
	st := testkit.Store(t)
	handler := acting(st)
	action := testkit.Action(t, st, "demo.sleep")
	worker := testkit.Worker(t, st, "w-1")
	at := func(status lifecycle.Status) int64 {
		return testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) {
			if e.Status = status; status != lifecycle.StatusRequested {
				e.Worker = &worker.ID
			}
		}).ID
	}
	waits, runs, completed, failed := at(lifecycle.StatusRequested), at(lifecycle.StatusRunning),
		at(lifecycle.StatusCompleted),
		at(lifecycle.StatusFailed)
	child := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Parent = &runs }).ID
	for _, c := range []struct {
		act    string
		id     any
		body   string
		code   int
		detail string // of the problem
	}{
		{"cancel", waits, `{"reason": "enough"}`, 200, ""},
		{"cancel", waits, "", 409, fmt.Sprintf("Execution %d is in status 'cancelled' and cannot be cancelled", waits)},
		{"cancel", runs, `{"tree": true}`, 200, ""},
		{"cancel", child, "", 409, "is in status 'cancelled' and cannot be cancelled"},
		{"cancel", completed, "", 409, "is in status 'completed' and cannot be cancelled"},
		{"cancel", 999_999, "", 404, "Execution with ID 999999 not found"},
		{"cancel", "x", "", 400, "not a positive number"},
		{"cancel", "7?tree=true", "", 400, `there is no query parameter "tree"`},
		{"cancel", runs, `{"tre": true}`, 400, `unknown field "tre"`},
		{"cancel", runs, `{} {}`, 400, "text after the object"},
		{"cancel", runs, `{`, 400, "the body is not what this path takes"},
		{"cancel", runs, `{"reason": "` + strings.Repeat("x", 2001) + `"}`, 400, "the reason exceeds 2000 bytes"},
		{"cancel", runs, strings.Repeat(" ", 70_000), 413, "the body exceeds 65536 bytes"},
		{"retry", runs, "", 409, fmt.Sprintf("execution %d has not ended", runs)},
		{"retry", failed, `{"reason": "once more"}`, 200, ""},
		{"retry", failed, "", 409, "has been repeated already: the newest attempt is execution"},
		{"retry", 999_999, "", 404, "there is no execution 999999"},
		{"retry", "x", "", 400, "not a positive number"},
		{"retry", failed, `{"tree": true}`, 400, `unknown field "tree"`},
	} {
		url := fmt.Sprintf("/api/v1/executions/%v/%s", c.id, c.act)
		if id, query, ok := strings.Cut(fmt.Sprint(c.id), "?"); ok {
			url = "/api/v1/executions/" + id + "/" + c.act + "?" + query
		}
		code, _, answer := post(t, handler, url, c.body)
		require.Equal(t, c.code, code, "%s: %v", url, answer)
		if c.detail != "" {
			require.Contains(t, cmp.Or(answer["detail"], answer["error"]), c.detail)
		}
	}
	code, _, _ := post(t, handler, fmt.Sprintf("/api/v1/executions/%d/cancel", runs), "reason=x",
		func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		})
	require.Equal(t, http.StatusUnsupportedMediaType, code)

	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, st, waits))
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, st, runs))
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, st, child), "the tree")
	require.Equal(t, 1, testkit.Count(t, st,
		`select count(*) from execution where id = $1 and result->>'message' = 'enough'
		and result->>'cancelled_by' = 'http without a token'`, waits))
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from execution where original_execution = $1`, failed))
}

func TestActsAreOnlyPosted(t *testing.T) {
	handler := acting(testkit.Store(t))
	for _, path := range []string{"/api/v1/executions/7/cancel", "/api/v1/executions/7/retry"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code)
		require.Equal(t, "POST", w.Header().Get("Allow"))
	}
}

// A page of another site, or one under a name that was pointed at this machine,
// cannot have a browser act here.
func TestOtherSitesCannotAct(t *testing.T) {
	st := testkit.Store(t)
	handler := acting(st)
	id := testkit.Execution(t, st, testkit.Action(t, st, "demo.sleep")).ID
	url := fmt.Sprintf("/api/v1/executions/%d/retry", id)
	for name, change := range map[string]func(*http.Request){
		"origin":    func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"fetch":     func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"rebinding": func(r *http.Request) { r.Host = "evil.example:8080" },
	} {
		code, kind, _ := post(t, handler, url, "", change)
		require.Equal(t, http.StatusForbidden, code, name)
		require.Equal(t, "application/problem+json", kind)
	}
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, st, id))
	for _, host := range []string{"localhost:8080", "[::1]:8080", "127.0.0.1"} {
		code, _, _ := post(t, handler, url, "", func(r *http.Request) { r.Host = host })
		require.NotEqual(t, http.StatusForbidden, code, host)
	}
}

// Actions need a token with the scope operate, and the audit names it.
func TestActsNeedTheScopeOperate(t *testing.T) {
	st := testkit.Store(t)
	server := api.New("0.0.0.0:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow,
		Acts: triage.New(triage.Config{}, st, nil), Published: publishedOver(st),
		TokensFile: tokenFile(t, "ann read "+hash("s3cret")+"\nbot operate "+hash("other")+"\n"),
	})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	id := testkit.Execution(t, st, testkit.Action(t, st, "demo.sleep")).ID
	url := fmt.Sprintf("/api/v1/executions/%d/cancel", id)
	with := func(secret string) func(*http.Request) {
		return func(r *http.Request) {
			r.Host = "engine.example" // with tokens every name is accepted
			if secret != "" {
				r.Header.Set("Authorization", "Bearer "+secret)
			}
		}
	}
	for secret, want := range map[string]int{"": 401, "wrong": 401, "s3cret": 403} {
		code, _, _ := post(t, server.Handler(), url, "", with(secret))
		require.Equal(t, want, code, secret)
	}
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, st, id))
	code, _, _ := post(t, server.Handler(), url, "", with("other"))
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, 1, testkit.Count(t, st,
		`select count(*) from operator_audit where actor = 'token bot' and action = 'execution.cancel' and target_id = $1`, id))
}

func TestActsWithoutTheDatabaseSaySo(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(),
		store.Config{URL: "postgres://nobody@127.0.0.1:1/none", ConnectTimeout: time.Second}, nil)
	require.NoError(t, err)
	t.Cleanup(st.Close)
	for _, act := range []string{"cancel", "retry"} {
		code, _, answer := post(t, acting(st), "/api/v1/executions/1/"+act, "")
		require.Equal(t, http.StatusServiceUnavailable, code, act)
		require.Equal(t, "the database refuses connections, nothing listens there", cmp.Or(answer["detail"],
			answer["error"]))
	}
}
