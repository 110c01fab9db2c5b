package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/apitest"
)

// spec is the description that is served, as far as it is checked.
type spec struct {
	Paths      map[string]map[string]operation
	Components struct {
		Schemas   map[string]schema
		Responses map[string]response
	}
}

type operation struct {
	ID         string `yaml:"operationId"`
	Summary    string
	Parameters []struct {
		Name, In string
		Schema   schema
	}
	Responses map[string]response
}

type response struct {
	Ref     string `yaml:"$ref"`
	Content map[string]struct{ Schema schema }
}

type schema struct {
	Ref        string `yaml:"$ref"`
	Type       any
	Enum       []string
	Required   []string
	Properties map[string]schema
	Items      *schema
	AllOf      []schema `yaml:"allOf"`
	// Others describes the members of an object whose names are data.
	Others *schema `yaml:"additionalProperties"`
}

// readOnce reads the description, which many answers are held against.
var readOnce = sync.OnceValues(func() (*spec, error) {
	s := &spec{}
	return s, yaml.Unmarshal(api.OpenAPI(), s)
})

func readSpec(t *testing.T) *spec {
	t.Helper()
	s, err := readOnce()
	require.NoError(t, err)
	return s
}

// resolved follows references and joins the parts of a schema.
func (s *spec) resolved(t *testing.T, of schema) schema {
	t.Helper()
	if of.Ref != "" {
		name := strings.TrimPrefix(of.Ref, "#/components/schemas/")
		require.Contains(t, s.Components.Schemas, name)
		return s.resolved(t, s.Components.Schemas[name])
	}
	if len(of.AllOf) == 0 {
		return of
	}
	all := schema{Type: "object", Properties: map[string]schema{}}
	for _, part := range of.AllOf {
		part = s.resolved(t, part)
		all.Required = append(all.Required, part.Required...)
		maps.Copy(all.Properties, part.Properties)
	}
	return all
}

// check compares a value with a schema: its type, its required members, and that
// nothing is served that the schema does not name.
func (s *spec) check(t *testing.T, at string, value any, of schema) {
	t.Helper()
	if of.Ref == "#/components/schemas/Any" {
		return
	}
	of = s.resolved(t, of)
	require.Regexp(t, kindOf(value), fmt.Sprint(of.Type), "%s is %v", at, value)
	if len(of.Enum) > 0 && value != nil {
		require.Contains(t, of.Enum, value, at)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range of.Required {
			require.Contains(t, v, name, at)
		}
		for name, one := range v {
			if of.Others != nil {
				s.check(t, at+"."+name, one, *of.Others)
				continue
			}
			require.Contains(t, of.Properties, name, "%s has a member that is not described", at)
			s.check(t, at+"."+name, one, of.Properties[name])
		}
	case []any:
		for i, one := range v {
			s.check(t, fmt.Sprintf("%s[%d]", at, i), one, *of.Items)
		}
	}
}

func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if v == float64(int64(v)) {
			return "integer|number"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// served is a handler over a filled database, with the values of path variables.
func served(t *testing.T) (handler http.Handler, ids map[string]string) {
	t.Helper()
	st := testkit.Store(t)
	f := apitest.Fill(t, st)
	return handlerOver(t, st), map[string]string{
		"/api/v1/dead-letters/{id}": fmt.Sprint(f.DeadLetter), "/api/v1/workflows/{id}": fmt.Sprint(f.Workflow),
		"/api/v1/events/{id}": fmt.Sprint(f.Event), "/api/v1/rules/{ref}": f.Rule,
		"/api/v1/inquiries/{id}": fmt.Sprint(f.Inquiry), "/api/v1/executions/{id}": fmt.Sprint(f.Holder),
		"/api/v1/executions/status/{status}":   "running",
		"/api/v1/enforcements/{id}/executions": fmt.Sprint(f.Enforcement),
		"/api/v1/executions/{id}/why":          fmt.Sprint(f.QueuedExecution),
		"/api/v1/queues/{id}":                  fmt.Sprint(f.Queue),
		"/api/v1/actions/{ref}/queue-stats":    f.Action,
		"/api/v1/workers/{id}":                 fmt.Sprint(f.Worker),
		"/api/v1/actions/{ref}":                f.Action,
		"/api/v1/actions/{ref}/queues/clear":   f.Action,
		"/api/v1/triggers/{ref}":               f.Trigger,
		"/api/v1/packs/{ref}":                  f.Pack,
		"/api/v1/policies/{ref}":               f.Policy,
	}
}

func handlerOver(t *testing.T, st *store.Store) http.Handler {
	t.Helper()
	return api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(),
		View: alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
		Acts: triage.New(triage.Config{}, st, nil).With(twoMessages{}), Ready: readyNow, Published: publishedOver(st),
	}).Handler()
}

// twoMessages is a broker whose queues have two messages.
type twoMessages struct{ triage.WorkerQueues }

func (twoMessages) QueueState(_ context.Context, name string) (broker.QueueState, error) {
	return broker.QueueState{Exists: name == message.QueueDeadLetter, Ready: 2}, nil
}

func ask(t *testing.T, handler http.Handler, path string) (int, string, []byte) {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil))
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	return w.Code, kind, w.Body.Bytes()
}

// TestEveryPathAnswersAsDescribed walks the description: every operation is
// asked for what exists and for what does not, and every answer is held against
// its schema.
func TestEveryPathAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	s := readSpec(t)
	handler, ids := served(t)
	hold := func(path string, op operation, url string) int {
		code, kind, body := ask(t, handler, url)
		described, ok := op.Responses[fmt.Sprint(code)]
		require.True(t, ok, "%s answers with %d, which is not described", url, code)
		if name, ok := strings.CutPrefix(described.Ref, "#/components/responses/"); ok {
			described = s.Components.Responses[name]
		}
		content, ok := described.Content[kind]
		require.True(t, ok, "%s answers %d with %s", url, code, kind)
		if strings.HasSuffix(kind, "json") {
			var value any
			require.NoError(t, json.Unmarshal(body, &value))
			s.check(t, path, value, content.Schema)
		}
		return code
	}
	for path, operations := range s.Paths {
		op, ok := operations["get"]
		if !ok {
			require.Contains(t, operations, "post", path) // see TestEveryActAnswersAsDescribed
			continue
		}
		require.NotEmpty(t, op.Summary, path)
		require.Equal(t, http.StatusOK, hold(path, op, fill(path, ids[path])), path)
		// a list, which is empty then
		if strings.Contains(path, "{") && path != "/api/v1/enforcements/{id}/executions" {
			require.Equal(t, http.StatusNotFound, hold(path, op, fill(path, "999999")), path)
		}
		if strings.Contains(path, "{id}") {
			require.Equal(t, http.StatusBadRequest, hold(path, op, fill(path, "x")), path)
		}
	}
	queues := s.Paths["/api/v1/queues"]["get"]
	require.Equal(t, http.StatusOK,
		hold("queues", queues, "/api/v1/queues?action=sleep&paused=true&blocked=true&limit=1"))
	for _, bad := range []string{"limit=0", "limit=x", "limit=1001", "paused=perhaps"} {
		require.Equal(t, http.StatusBadRequest, hold("queues", queues, "/api/v1/queues?"+bad), bad)
	}
	code, kind, _ := ask(t, handler, "/api/v2/queues")
	require.Equal(t, http.StatusNotFound, code)
	require.Equal(t, "application/problem+json", kind)
}

func fill(path, with string) string {
	from, to := strings.Index(path, "{"), strings.Index(path, "}")
	if from < 0 {
		return path
	}
	return path[:from] + with + path[to+1:]
}

func TestTheNearestActionIsNamed(t *testing.T) {
	t.Parallel()
	handler, _ := served(t)
	_, _, body := ask(t, handler, "/api/v1/actions/demo.sleeep/queue-stats")
	var problem struct {
		Detail string `json:"detail"`
	}
	require.NoError(t, json.Unmarshal(body, &problem))
	require.Equal(t, "there is no action demo.sleeep; the nearest is demo.sleep", problem.Detail)
}

func TestWithoutTheDatabaseRoutesAnswer503(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(),
		store.Config{URL: "postgres://nobody@127.0.0.1:1/none", ConnectTimeout: time.Second}, nil)
	require.NoError(t, err)
	t.Cleanup(st.Close)
	for _, path := range []string{
		"/api/v1/executions/1/why", "/api/v1/queues", "/api/v1/queues/1",
		"/api/v1/actions/a.b/queue-stats", "/api/v1/replicas",
	} {
		code, kind, body := ask(t, handlerOver(t, st), path)
		require.Equal(t, http.StatusServiceUnavailable, code, path)
		require.Equal(t, "application/problem+json", kind, path)
		require.NotContains(t, string(body), "127.0.0.1", "the answer has no internal details")
	}
}
