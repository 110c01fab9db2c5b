package api_test

import (
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
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/triage"
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

// whole follows references and joins the parts of a schema.
func (s *spec) whole(t *testing.T, of schema) schema {
	t.Helper()
	if of.Ref != "" {
		name := strings.TrimPrefix(of.Ref, "#/components/schemas/")
		require.Contains(t, s.Components.Schemas, name)
		return s.whole(t, s.Components.Schemas[name])
	}
	if len(of.AllOf) == 0 {
		return of
	}
	all := schema{Type: "object", Properties: map[string]schema{}}
	for _, part := range of.AllOf {
		part = s.whole(t, part)
		all.Required = append(all.Required, part.Required...)
		maps.Copy(all.Properties, part.Properties)
	}
	return all
}

// check compares a value with a schema: its type, its required members, and that
// nothing is served that the schema does not name.
func (s *spec) check(t *testing.T, at string, value any, of schema) {
	t.Helper()
	of = s.whole(t, of)
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

// served is a database with something of everything, and the handler over it.
func served(t *testing.T) (handler http.Handler, ids map[string]string) {
	t.Helper()
	st := testkit.Store(t)
	action := testkit.Action(t, st, "demo.sleep")
	worker := testkit.Worker(t, st, "w-1")
	testkit.Policy(t, st, action, 2)
	pack := testkit.Policy(t, st, action, 1, testkit.OfPack(action))
	testkit.Policy(t, st, action, 9, func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "rate", new(int32(60)) })
	quota := testkit.Policy(t, st, action, 9, testkit.Global,
		func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "quota", new(int32(60)) })
	state := testkit.State(t, st, action, 2, func(r *testkit.StateRow) { r.Active, r.Queued = 1, 1 })
	group := `{"tenant":"acme"}`
	testkit.State(t, st, action, 2, func(r *testkit.StateRow) { r.GroupKey = &group })
	testkit.Execution(t, st, action,
		func(r *testkit.ExecutionRow) { r.Status, r.Age = attune.StatusCompleted, time.Minute })
	testkit.Exec(t, st, `update execution set admitted_at = created`)
	holder := testkit.Execution(t, st, action, func(r *testkit.ExecutionRow) {
		r.Status, r.Worker, r.AdmissionState = attune.StatusRunning, &worker.ID, &state.ID
	})
	waiter := testkit.Execution(t, st, action)
	testkit.Exec(t, st, `insert into execution_admission_entry (state_id, execution_id, status, queue_order) values ($1, $2, 'queued', 1)`, state.ID, waiter.ID)
	testkit.Exec(t, st, `insert into admission_scope (kind, scope_key, max_concurrent, active_count, policy, policy_ref)
		values ('pack', $1::text, 1, 1, $2, $3)`, fmt.Sprint(action.PackID), pack.ID, pack.Ref)
	testkit.Exec(t, st, `insert into admission_scope (kind, scope_key, max_concurrent, used, policy, policy_ref, window_seconds, period_start)
		values ('quota', $1::text, 9, 9, $2, $3, 60, now())`, fmt.Sprint(quota.ID), quota.ID, quota.Ref)
	testkit.Exec(t, st,
		`insert into execution_slot (execution, scope_id) select $1, id from admission_scope where kind = 'pack'`,
		holder.ID)
	testkit.Exec(t, st, `insert into admission_blocked (state_id, ticket, reason, scope_id, until)
		select $1, 1, 'the pack is full', id, now() + interval '1 minute' from admission_scope where kind = 'pack'`, state.ID)
	testkit.Exec(t, st, `update execution_admission_state set paused = true, paused_by = 'alice', paused_at = now(), pause_reason = 'r', resumed_at = now(),
		queue_timeout_seconds = 60, max_queued = 7 where id = $1`, state.ID)
	testkit.Exec(t, st, `insert into queue_stats (action_id, queue_length) values ($1, 1)`, action.ID)
	testkit.Exec(t, st, `insert into engine_replica (id, host, version, pid, state, loops, details) values (gen_random_uuid(), 'h', 'v', 1, 'blocked',
		jsonb_build_object('recovery', now()), jsonb_build_object('clock', now(), 'http', '127.0.0.1:1', 'outbox', 2, 'round_since', now(),
			'connections', jsonb_build_array(jsonb_build_object('purpose', 'publish', 'up', true, 'blocked', true, 'reason', 'low on memory', 'since', now())),
			'consumers', jsonb_build_object('q', true), 'database_away', jsonb_build_object('from', now(), 'until', now()),
			'loops', jsonb_build_object('recovery', jsonb_build_object('patience_ns', 1, 'error', 'e'))))`)
	var letter int64
	require.NoError(t, st.Pool().QueryRow(t.Context(), `insert into dead_letter (message_type, routing_key, exchange, queue, reason, action_ref, execution, worker,
			attempt, execution_status, decision, decided_by, decided_at, died, message_id, correlation_id, fingerprint, detail, body, x_death, headers, evidence)
		values ('ExecutionRequested', 'execution.dispatch.worker.1', 'attune.executions', 'worker.1.executions', 'expired', 'demo.sleep', $1, $2, 1, 'scheduled',
			'failed', 'dead_letter_handler', now(), now(), 'm', 'c', 'f', 'd', '{"a": [1, null]}', '[{"count": 1}]', '{"x": {"y": 1.5}}', '{"worker": {"id": 1}}')
		returning id`, holder.ID, worker.ID).Scan(&letter))
	return handlerOver(t, st), map[string]string{
		"/api/v1/dead-letters/{id}": fmt.Sprint(letter),
		"/api/v1/workflows/{id}":    fmt.Sprint(workflowOf(t, st)),
		"/api/v1/events/{id}":       fmt.Sprint(eventOf(t, st)), "/api/v1/rules/{ref}": "demo.rule",
		"/api/v1/inquiries/{id}":             fmt.Sprint(inquiryOf(t, st, "responded", 0)),
		"/api/v1/executions/{id}":            fmt.Sprint(holder.ID),
		"/api/v1/executions/status/{status}": "running", "/api/v1/enforcements/{id}/executions": "1",
		"/api/v1/executions/{id}/why": fmt.Sprint(waiter.ID), "/api/v1/queues/{id}": fmt.Sprint(state.ID),
		"/api/v1/actions/{ref}/queue-stats": "demo.sleep", "/api/v1/workers/{id}": fmt.Sprint(worker.ID),
	}
}

func handlerOver(t *testing.T, st *store.Store) http.Handler {
	t.Helper()
	return api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(),
		View: alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
		Acts: triage.New(triage.Config{}, st, nil), Ready: readyNow, Published: publishedOver(st),
	}).Handler()
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

func TestWithoutTheDatabaseItSaysSo(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(),
		store.Config{URL: "postgres://nobody@127.0.0.1:1/none", ConnectTimeout: time.Second}, nil)
	require.NoError(t, err)
	t.Cleanup(st.Close)
	for _, path := range []string{"/api/v1/executions/1/why", "/api/v1/queues", "/api/v1/queues/1",
		"/api/v1/actions/a.b/queue-stats", "/api/v1/replicas"} {
		code, kind, body := ask(t, handlerOver(t, st), path)
		require.Equal(t, http.StatusServiceUnavailable, code, path)
		require.Equal(t, "application/problem+json", kind, path)
		require.NotContains(t, string(body), "127.0.0.1", "what went wrong inside is not told")
	}
}
