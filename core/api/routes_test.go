package api_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
)

// complete is a server with every route.
func complete(st *store.Store, operator *triage.Triage) *api.Server {
	return api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Published: publishedOver(st), Acts: operator,
		View:  alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
		Ready: func(context.Context) []api.Check { return nil },
	})
}

// operations are the routes with a method, without the routes that refuse one.
func operations(patterns []string) map[string]bool {
	allowed := map[string]bool{}
	for _, pattern := range patterns {
		method, path, ok := strings.Cut(pattern, " ")
		if ok && (method == http.MethodGet || method == http.MethodPost) {
			allowed[method+" "+path] = true
		}
	}
	for _, path := range []string{"dead-letters/purge", "executions/front", "executions/lane", "executions/put-back"} {
		delete(allowed, "GET /api/v1/"+path) // has only a POST
	}
	return allowed
}

// Every route is described, and every described operation is a route.
func TestRoutesAreThoseOfTheDescription(t *testing.T) {
	t.Parallel()
	st := &store.Store{}
	served := operations(complete(st, triage.New(triage.Config{}, st, nil)).Patterns())
	described, ids := map[string]bool{}, map[string]string{}
	for _, op := range readSpec() {
		name := op.method + " " + op.path
		described[name] = true
		require.NotEmpty(t, op.ID, name)
		require.Empty(t, ids[op.ID], "%s and %s have one operationId", name, ids[op.ID])
		ids[op.ID] = name
		if op.path != "/healthz" && op.path != "/readyz" {
			require.Contains(t, op.Responses, "429", name)
		}
	}
	for _, status := range lifecycle.Statuses { // each is a route
		delete(served, "GET /api/v1/executions/status/"+string(status))
	}
	served["GET /api/v1/executions/status/{status}"] = true
	require.Equal(t, slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(served)))
}

// The paths of bulk actions, which lie beside those of one thing, say which methods they have.
func TestBulkActionsHaveTheirMethods(t *testing.T) {
	t.Parallel()
	st := &store.Store{}
	handler := complete(st, triage.New(triage.Config{}, st, nil)).Handler()
	for path, allowed := range map[string]string{
		"PUT /api/v1/dead-letters/take": "GET, HEAD, POST", "DELETE /api/v1/queues/repair": "GET, HEAD, POST",
		"GET /api/v1/executions/front": "POST", "GET /api/v1/dead-letters/purge": "POST", "PATCH /api/v1/actions/a.b/queues/clear": "GET, HEAD, POST",
		"GET /api/v1/actions/a.b/queues/pause": "POST", "POST /api/v1/dead-letters/stats": "GET, HEAD",
		"POST /api/v1/workers": "GET, HEAD", "DELETE /api/v1/policies/a.b": "GET, HEAD",
	} {
		method, path, _ := strings.Cut(path, " ")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, http.NoBody))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, "%s %s", method, path)
		require.Equal(t, allowed, w.Header().Get("Allow"), "%s %s", method, path)
	}
}
