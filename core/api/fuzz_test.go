package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// emptyQueues is a broker whose queues have no messages.
type emptyQueues struct{ triage.WorkerQueues }

func (emptyQueues) QueueState(context.Context, string) (broker.QueueState, error) {
	return broker.QueueState{Exists: true}, nil
}

func (emptyQueues) Drain(context.Context, string, int, int) (*broker.Drain, error) {
	return nil, triage.ErrQueueMissing
}

// target is one operation of the description, with its parameters.
type target struct {
	method, path string
	parameters   []string
}

// targets are all operations, in the order of their names; {id} is 1 and {ref} a ref that exists.
func targets() []target {
	variables := strings.NewReplacer("{id}", "1", "{ref}", "demo.sleep", "{status}", "running")
	list := []target{{http.MethodGet, "/", nil}}
	for _, op := range readSpec() {
		one := target{method: op.method, path: variables.Replace(op.path)}
		for _, p := range op.Parameters {
			if p.In == "query" {
				one.parameters = append(one.parameters, p.Name)
			}
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b target) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return list
}

// fuzzed sends a request that may be no valid one.
func fuzzed(t *testing.T, handler http.Handler, method, path, query, body string,
	change func(http.Header),
) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/", strings.NewReader(body))
	r.URL = &url.URL{Scheme: "http", Host: r.Host, Path: path, RawQuery: query}
	r.Header.Set("Content-Type", "application/json")
	if change != nil {
		change(r.Header)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	answers(t, path, w)
	return w
}

// answers requires that an answer is no failure of the server, and that its body is of its kind: JSON, except for
// metrics and the description. The multiplexer itself redirects a path that is not clean.
func answers(t *testing.T, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	require.Less(t, w.Code, 500, "%q: %s", path, w.Body)
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	switch kind {
	case "application/json", "application/problem+json":
		require.True(t, json.Valid(w.Body.Bytes()), "%q: %s", path, w.Body)
	default:
		require.True(t, path == "/metrics" || path == "/api/v1/openapi.yaml" || w.Code/100 == 3, "%q: %d %s", path,
			w.Code, w.Body)
	}
}

// FuzzAPI sends any text in the paths, queries and bodies of every operation.
func FuzzAPI(f *testing.F) {
	all := targets()
	for n, text := range []string{
		"\x00", "\xff\xfe", `{"reason":"\u0000"}`,
		`{"reason":"\ud800","trigger_ref":"demo.door","payload":{"a":"\ud800"}}`,
		`{"trigger_ref":"demo.door","payload":1e999999999}`, `{"trigger_ref":"demo.door","payload":{"a":"\u0000"}}`,
		`{"trigger_ref":"\u0000"}`,
		`{"trigger_ref":"demo.door","payload":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
		`{"reason":"` + "\xc3\x28" + `"}`,
		`{"action_ref":"demo.sleep","parameters":{"n":-1e99999}}`,
		`{"action_ref":"demo.sleep","env_vars":{"A":"\u0000"}}`, `{"reason":1}`, `[`, `null`,
		`{"action_ref":"demo.sleep","worker_selector":{"a":"\udfff"}}`, `{"response":{"a":"\ud800\u0000"}}`,
		`99999999999999999999`, `{"execution_id":1e40}`,
		`{"group":"{\"a\":\"\\u0000\"}"}`, `{"group":"{\"a\":1e999999}","limit":99999999999999999999}`, `{"limit":-1}`,
		`{"limit":2147483647}`, `{"confirm":"demo.sleep"}`, `{"confirm":"discard 0"}`, `{"confirm":"purge for good"}`,
		`{"tenant":"a"}`, `{"a":"\u0000"}`, `limit=99999999999999999999`, `cursor=-1`, `action=%00`, `action=%ff`,
		`status=%ed%a0%80`, `since=1e999999999h`, `q=%zz`, `-1`, `9223372036854775808`, `1e999h`, `0`, `true`,
	} {
		for path := range all {
			if path%17 == n%17 { // each text at some operations, and each operation with some texts
				f.Add(uint8(path), text, text)
			}
		}
	}
	st := testkit.Store(f)
	testkit.Execution(f, st, testkit.Action(f, st, "demo.sleep"))
	testkit.Exec(f, st, `insert into trigger (ref, label) values ('demo.door', 'x')`)
	handler := complete(st, triage.New(triage.Config{}, st, nil).With(emptyQueues{})).Handler()
	f.Fuzz(func(t *testing.T, path uint8, text, more string) {
		one := all[int(path)%len(all)]
		fuzzed(t, handler, http.MethodPost, one.path, "", text, nil)
		fuzzed(t, handler, http.MethodGet, one.path, text, "", nil)
		fuzzed(t, handler, one.method, one.path+"/"+more, "", text, nil)
		for _, name := range one.parameters {
			fuzzed(t, handler, one.method, one.path, name+"="+url.QueryEscape(text), more, nil)
		}
	})
}

// FuzzHeaders sends any headers to operations that require a token: only a known token gets past.
func FuzzHeaders(f *testing.F) {
	f.Add("Bearer s3cret", "", "", uint8(0))
	for _, text := range []string{
		"", "Bearer", "Bearer ", "bearer s3cret", "Bearer  s3cret", "Bearer s3cret ", "Basic czNjcmV0", "Bearer s3cret\x00",
		"Bearer " + strings.Repeat("x", 10_000), "Bearer eyJhbGciOiJub25lIn0.e30.", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x",
		"Bearer a.b.c", "Bearer \xff", "Bearer s3cret, Bearer other", "Digest username=\"s3cret\"",
	} {
		f.Add(text, "attune_access_token="+strings.TrimPrefix(text, "Bearer "), "application/json; charset=\xff",
			uint8(3))
	}
	all := targets()
	published := publishedOver(&store.Store{})
	published.Signer = secret.NewSigner([]byte(jwtSecret))
	server := api.New("192.0.2.7:8080", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), View: noView{}, Ready: readyNow,
		Published: published, Acts: triage.New(triage.Config{}, &store.Store{}, nil),
		Rates: api.Rates{PerToken: 1_000_000, Unauthorized: 1_000_000},
	})
	tokens, err := api.LoadTokens(tokenFile(f, "ann read "+hash("s3cret")), telemetry.Discard())
	require.NoError(f, err)
	server.UseTokens(tokens)
	handler := server.Handler()
	f.Fuzz(func(t *testing.T, authorization, cookie, kind string, path uint8) {
		one := all[int(path)%len(all)]
		scheme, secret, _ := strings.Cut(authorization, " ")
		known := strings.EqualFold(scheme, "Bearer") && strings.TrimSpace(secret) == "s3cret"
		if known { // it may read, and only this route has an answer without a database
			one = target{method: http.MethodGet, path: "/api/v1/queues"}
		}
		w := fuzzed(t, handler, one.method, one.path, "", "{}", func(h http.Header) {
			h["Authorization"], h["Cookie"] = []string{authorization}, []string{cookie}
			h["Content-Type"], h["Accept"] = []string{kind}, []string{kind}
			h["Origin"], h["Sec-Fetch-Site"] = []string{cookie}, []string{kind}
		})
		if !known && one.path != "/healthz" && one.path != "/readyz" {
			require.Contains(t, []int{http.StatusUnauthorized, http.StatusTooManyRequests}, w.Code, "%q", authorization)
		}
	})
}
