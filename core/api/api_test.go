package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func start(t *testing.T, ready func(context.Context) []api.Check) (*api.Server, func(path string) (int, string)) {
	t.Helper()
	server := api.New("127.0.0.1:0",
		api.Deps{Ready: ready, Gatherer: telemetry.NewRegistry(), Logger: telemetry.Discard()})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return server, func(path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.Addr()+path, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		defer func() { require.NoError(t, response.Body.Close()) }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
}

func TestReadinessFollowsItsChecksAndLivenessDoesNot(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	_, get := start(t, func(context.Context) []api.Check {
		return []api.Check{{Name: "database", OK: up.Load(), Detail: "since 12:00"}, {Name: "broker", OK: true}}
	})
	code, body := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.JSONEq(t, `{"status":"not ready","checks":[{"name":"database","ok":false,"detail":"since 12:00"},{"name":"broker","ok":true}]}`, body)
	code, _ = get("/healthz")
	require.Equal(t, http.StatusOK, code)
	up.Store(true)
	code, _ = get("/readyz")
	require.Equal(t, http.StatusOK, code)
	code, body = get("/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "go_goroutines")
}

func TestLivenessReportsItsState(t *testing.T) {
	t.Parallel()
	server := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(),
		About: func() map[string]any { return map[string]any{"worker_id": 7} },
	})
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", http.NoBody))
	require.JSONEq(t, `{"status": "ok", "worker_id": 7}`, w.Body.String())
}

// TestOtherMethodsAreNotAllowed: a path that can be read says that it can only
// be read, and a parameter that does not exist is named.
func TestOtherMethodsAreNotAllowed(t *testing.T) {
	t.Parallel()
	server := api.New("127.0.0.1:0",
		api.Deps{Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), View: noView{}})
	answer := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w,
			httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, http.NoBody))
		return w
	}
	for _, path := range []string{
		"/healthz", "/readyz", "/metrics", "/api/v1/queues", "/api/v1/queues/7",
		"/api/v1/executions/7/why", "/api/v1/openapi.yaml",
	} {
		w := answer(http.MethodPost, path)
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, path)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"), path)
	}
	require.Equal(t, http.StatusNotFound, answer(http.MethodPost, "/api/v1/nothing").Code)
	w := answer(http.MethodGet, "/api/v1/queues?acton=x&paused=true&b=1")
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(),
		`there is no query parameter \"acton\", \"b\"; there are action, paused, blocked, all, limit`)
	require.Equal(t, http.StatusBadRequest, answer(http.MethodGet, "/api/v1/queues/7?x=1").Code)
}

func TestStartFailsOnATakenAddress(t *testing.T) {
	t.Parallel()
	first, _ := start(t, func(context.Context) []api.Check { return nil })
	second := api.New(first.Addr(), api.Deps{Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry()})
	err := second.Start(t.Context())
	require.ErrorIs(t, err, api.ErrAddressTaken)
	require.ErrorContains(t, err, first.Addr())
}

func TestAnyPortTakesAFreeOneWhenTheWantedIsTaken(t *testing.T) {
	t.Parallel()
	first, _ := start(t, func(context.Context) []api.Check { return nil })
	second := api.New(first.Addr(),
		api.Deps{Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), AnyPort: true})
	require.NoError(t, second.Start(t.Context()))
	t.Cleanup(second.Stop)
	require.NotEmpty(t, second.Addr())
	require.NotEqual(t, first.Addr(), second.Addr())
}

func TestWithoutAnAddressItListensNowhere(t *testing.T) {
	t.Parallel()
	server := api.New("", api.Deps{Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry()})
	require.NoError(t, server.Start(t.Context()))
	require.Empty(t, server.Addr())
	server.Stop()
}
