package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

func TestExecutionsOfAStatusAndOfAnEnforcement(t *testing.T) {
	f := newFleet(t)
	handler := signed(f.store)
	bearer := published(t, secret.WorkerToken, "1")
	for path, want := range map[string]struct {
		ids                      []int64
		size, items, pages, page float64
	}{
		"/api/v1/executions/status/failed": {
			[]int64{f.all[6], f.all[5], f.all[2]},
			50,
			3, 1, 1,
		},
		"/api/v1/executions/status/failed?page_size=2&page=2":               {[]int64{f.all[2]}, 2, 3, 2, 2},
		"/api/v1/executions/status/timeout":                                 {[]int64{}, 50, 0, 0, 1},
		"/api/v1/executions/status/running?page_size=500":                   {[]int64{f.all[0]}, 100, 1, 1, 1},
		fmt.Sprintf("/api/v1/enforcements/%d/executions", f.rule):           {[]int64{f.all[4], f.all[3]}, 50, 2, 1, 1},
		fmt.Sprintf("/api/v1/enforcements/%d/executions", f.rule+1_000_000): {[]int64{}, 50, 0, 0, 1},
	} {
		code, answer := call(t, handler, http.MethodGet, path, bearer, "")
		require.Equal(t, http.StatusOK, code, "%s: %v", path, answer)
		ids := []int64{}
		items, ok := answer["items"].([]any)
		require.True(t, ok, "%s: %v", path, answer)
		for _, item := range items {
			row, ok := item.(map[string]any)
			require.True(t, ok, "%s: %v", path, answer)
			id, ok := row["id"].(float64)
			require.True(t, ok, "%s: %v", path, answer)
			ids = append(ids, int64(id))
		}
		require.Equal(t, want.ids, ids, path)
		at, ok := answer["pagination"].(map[string]any)
		require.True(t, ok, "%s: %v", path, answer)
		require.Equal(t, []any{want.size, want.items, want.pages, want.page},
			[]any{at["page_size"], at["total_items"], at["total_pages"], at["page"]}, path)
	}
	code, _ := call(t, handler, http.MethodGet, "/api/v1/enforcements/x/executions", bearer, "")
	require.Equal(t, http.StatusBadRequest, code)
	code, _ = call(t, handler, http.MethodGet, "/api/v1/executions/status/failed", "", "")
	require.Equal(t, http.StatusUnauthorized, code)

	code, answer := call(t, handler, http.MethodGet, "/api/v1/executions/stats", bearer, "")
	require.Equal(t, http.StatusOK, code, "%v", answer)
	require.Equal(t, map[string]any{"data": map[string]any{
		"total": 7.0, "completed": 2.0, "failed": 3.0, "running": 1.0, "pending": 1.0, "cancelled": 0.0, "timeout": 0.0,
		"abandoned": 0.0,
	}}, answer)
}

// The cookie of a login permits reads, as in the published API, but no actions: browsers send it with requests of other
// sites too.
func TestTheCookieOfALoginReadsOnly(t *testing.T) {
	st := testkit.OwnStore(t)
	testkit.Exec(t, st, `insert into identity (id, login, frozen) values (7, 'ann', false), (8, 'bob', true)`)
	testkit.Action(t, st, "demo.a")
	deps := publishedOver(st)
	deps.Signer = secret.NewSigner([]byte(jwtSecret))
	server := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow, Published: deps,
		View:       alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
		TokensFile: tokenFile(t, "eve read "+hash("reads")+"\n"),
	})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	ask := func(method, cookie, bearer string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/api/v1/executions", http.NoBody)
		r.AddCookie(&http.Cookie{Name: "attune_access_token", Value: cookie})
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, r)
		return w.Code
	}
	ann := published(t, secret.AccessToken, "7")
	require.Equal(t, http.StatusOK, ask(http.MethodGet, ann, ""))
	require.Equal(t, http.StatusOK, ask(http.MethodHead, ann, ""))
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodPost, ann, ""))
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodGet, published(t, secret.AccessToken, "8"), ""), "frozen")
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodGet, published(t, secret.RefreshToken, "7"), ""))
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodGet, "reads", ""), "a token of ours is no login")
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodGet, ann, "nonsense"), "the header wins")
}
