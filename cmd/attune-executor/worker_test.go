package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// The readiness of a worker names failed checks, and metrics are served in any state.
func TestAWorkerServesItsMetricsAndReadiness(t *testing.T) {
	st := testkit.Store(t)
	registry := telemetry.NewRegistry()
	worker.NewMetrics(registry)
	link := broker.New(broker.Config{URL: testkit.VHost(t)}, testkit.Logger(t), broker.NewMetrics(registry))
	server := workerHTTP("127.0.0.1:0", api.Deps{Gatherer: registry, Logger: testkit.Logger(t)}, st, link,
		func() placement.Report { return placement.Report{} })
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, http.NoBody)
		server.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	code, body := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.JSONEq(t, `{"status":"not ready","checks":[{"name":"database","ok":true},{"name":"broker","ok":false,"detail":"the broker is not connected yet: start it, or correct message_queue.url"}]}`, body)
	require.NoError(t, link.Start(testkit.Context(t)))
	t.Cleanup(link.Stop)
	code, _ = get("/readyz")
	require.Equal(t, http.StatusOK, code)
	code, body = get("/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "attune_worker_poison_messages_total 0")
	require.Contains(t, body, `attune_broker_connected{connection="publish"} 1`)

	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	taken := workerHTTP(server.Addr(), api.Deps{Gatherer: registry, Logger: testkit.Logger(t)}, st, link,
		func() placement.Report { return placement.Report{} })
	require.ErrorContains(t, taken.Start(t.Context()), "(--metrics)")
}
