package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
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
)

// operation is one operation of openapi.yaml.
type operation struct {
	ID          string `json:"operationId"`
	Summary     string
	Security    []map[string][]string
	Parameters  []*parameter
	RequestBody *body
	Responses   map[string]*body

	method, path string
}

type parameter struct {
	Ref      string `json:"$ref"`
	Name, In string
	media
}

// body is the body of a request or of an answer, by content type.
type body struct {
	Ref      string `json:"$ref"`
	Required bool
	Content  map[string]*media
}

type media struct {
	Schema any
	rules  *jsonschema.Schema
}

func (m *media) accepts(document []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return m.rules.Validate(value)
}

// readSpec reads openapi.yaml once: its operations, with compiled schemas. An object may only have the members that are
// described, and an example must be one.
var readSpec = sync.OnceValue(func() []*operation {
	var document map[string]any
	var described struct {
		Paths      map[string]map[string]*operation
		Components struct {
			Parameters map[string]*parameter
			Responses  map[string]*body
		}
	}
	must(yaml.Unmarshal(api.OpenAPI(), &document))
	examples := restrict(document, false)
	text, err := json.Marshal(document)
	must(err)
	must(json.Unmarshal(text, &described))

	schemas, all := map[string]any{"components": document["components"]}, []*media{}
	add := func(m *media) {
		schemas[fmt.Sprint(len(all))], all = m.Schema, append(all, m)
	}
	addBody := func(b *body) {
		for _, m := range b.Content {
			add(m)
		}
	}
	for _, p := range described.Components.Parameters {
		add(&p.media)
	}
	for _, response := range described.Components.Responses {
		addBody(response)
	}
	var operations []*operation
	for path, methods := range described.Paths {
		for method, op := range methods {
			op.method, op.path = strings.ToUpper(method), path
			operations = append(operations, op)
			for i, p := range op.Parameters {
				if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
					op.Parameters[i] = described.Components.Parameters[name]
				} else {
					add(&p.media)
				}
			}
			for status, response := range op.Responses {
				if name, ok := strings.CutPrefix(response.Ref, "#/components/responses/"); ok {
					op.Responses[status] = described.Components.Responses[name]
				} else {
					addBody(response)
				}
			}
			if op.RequestBody != nil {
				addBody(op.RequestBody)
			}
		}
	}
	for _, schema := range examples {
		add(&media{Schema: schema})
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	must(compiler.AddResource("openapi", schemas))
	for i, m := range all {
		m.rules, err = compiler.Compile(fmt.Sprintf("openapi#/%d", i))
		must(err)
	}
	for i, schema := range examples {
		for _, name := range []string{"example", "default"} {
			if example, ok := schema[name]; ok {
				must(all[len(all)-len(examples)+i].rules.Validate(example))
			}
		}
	}
	return operations
})

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// restrict has objects refuse members that are not described. A part of an allOf, and a schema that may be one, stays
// open: it is where it is used that a member is refused. It returns the schemas with an example or a default.
func restrict(value any, part bool) (examples []map[string]any) {
	switch node := value.(type) {
	case []any:
		for _, one := range node {
			examples = append(examples, restrict(one, part)...)
		}
	case map[string]any:
		ref, _ := node["$ref"].(string)
		object := strings.HasPrefix(ref, "#/components/schemas/") && ref != "#/components/schemas/Any"
		for _, name := range []string{"properties", "allOf"} {
			object = object || node[name] != nil
		}
		if object && !part && node["additionalProperties"] == nil {
			node["unevaluatedProperties"] = false
		}
		if node["example"] != nil || node["default"] != nil {
			examples = append(examples, node)
		}
		for name, child := range node {
			if schemas, ok := child.(map[string]any); ok && name == "schemas" {
				for _, schema := range schemas {
					examples = append(examples, restrict(schema, true)...)
				}
				continue
			}
			examples = append(examples, restrict(child, name == "allOf")...)
		}
	}
	return examples
}

// operationOf returns the operation of a request, nil for none, and the values in its path. A literal path wins over
// one with variables.
func operationOf(method, path string) (found *operation, values map[string]string) {
	parts := strings.Split(path, "/")
next:
	for _, op := range readSpec() {
		want := strings.Split(op.path, "/")
		if op.method != method || len(want) != len(parts) {
			continue
		}
		in := map[string]string{}
		for i, part := range want {
			if strings.HasPrefix(part, "{") {
				in[strings.Trim(part, "{}")] = parts[i]
			} else if part != parts[i] {
				continue next
			}
		}
		if found == nil || len(in) < len(values) {
			found, values = op, in
		}
	}
	return found, values
}

// requireDescribed requires that openapi.yaml describes the answer to the request, and, of a request that succeeds, its
// parameters and its body.
func requireDescribed(t testing.TB, r *http.Request, sent string, code int, header http.Header, answer []byte) {
	t.Helper()
	op := requireAnswerDescribed(t, r, code, header, answer)
	if op == nil || code >= 300 {
		return
	}
	name, given := r.Method+" "+r.URL.String(), map[string]string{}
	for parameter := range r.URL.Query() {
		given["query "+parameter] = r.URL.Query().Get(parameter)
	}
	_, values := operationOf(r.Method, r.URL.Path)
	for parameter, value := range values {
		given["path "+parameter] = value
	}
	if key := "Idempotency-Key"; r.Header.Get(key) != "" {
		given["header "+key] = r.Header.Get(key)
	}
	for _, p := range op.Parameters {
		value, ok := given[p.In+" "+p.Name]
		if ok && p.rules.Validate(value) != nil { // no text
			require.NoError(t, p.accepts([]byte(value)), "%s: %s", name, p.Name)
		}
		delete(given, p.In+" "+p.Name)
	}
	require.Empty(t, given, "%s succeeds with parameters that are not described", name)
	if sent != "" || op.RequestBody != nil && op.RequestBody.Required {
		require.NotNil(t, op.RequestBody, "%s succeeds with a body that is not described", name)
		require.NoError(t, op.RequestBody.Content["application/json"].accepts([]byte(sent)), "%s: %s", name, sent)
	}
}

// requireAnswerDescribed returns the operation, nil for a request that openapi.yaml does not have, which must be
// refused.
func requireAnswerDescribed(t testing.TB, r *http.Request, code int, header http.Header, answer []byte) *operation {
	t.Helper()
	name := r.Method + " " + r.URL.String()
	op, _ := operationOf(r.Method, r.URL.Path)
	if op == nil {
		require.GreaterOrEqual(t, code, 400, "%s succeeds and is not described", name)
		return nil
	}
	require.Contains(t, op.Responses, fmt.Sprint(code), "%s: %s", name, answer)
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	content := op.Responses[fmt.Sprint(code)].Content[kind]
	require.NotNil(t, content, "%s answers %d with %s", name, code, kind)
	if strings.HasSuffix(kind, "json") {
		require.NoError(t, content.accepts(answer), "%s answers %d with %s", name, code, answer)
	} else {
		require.NotEmpty(t, answer, name)
	}
	return op
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

// ask reads a path, and compares the answer with the description.
func ask(t *testing.T, handler http.Handler, path string) (int, string, []byte) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
	handler.ServeHTTP(w, r)
	requireDescribed(t, r, "", w.Code, w.Header(), w.Body.Bytes())
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	return w.Code, kind, w.Body.Bytes()
}

func TestTheNearestActionIsNamed(t *testing.T) {
	st := testkit.Store(t)
	testkit.Action(t, st, "demo.sleep")
	_, _, body := ask(t, handlerOver(t, st), "/api/v1/actions/demo.sleeep/queue-stats")
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
