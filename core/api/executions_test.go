package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

const jwtSecret = "the_secret_of_the_published_api"

// publishedOver serves the published routes without asking for tokens.
func publishedOver(st *store.Store) api.Published {
	return api.Published{Store: st, Submitter: submit.New(st, nil)}
}

// signed serves them for published tokens.
func signed(st *store.Store) http.Handler {
	published := publishedOver(st)
	published.Signer = secret.NewSigner([]byte(jwtSecret))
	return api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow, Published: published,
		View: alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
	}).Handler()
}

// published is a token of any type, as the published services sign it.
func published(t *testing.T, kind secret.TokenType, subject string) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": subject, "login": "x", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		"token_type": kind,
	}).SignedString([]byte(jwtSecret))
	require.NoError(t, err)
	return text
}

// call sends a request and compares its answer with the description. The published operations accept more requests than
// are described.
func call(t *testing.T, handler http.Handler, method, target, bearer, body string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:8080"+target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var answer map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	requireAnswerDescribed(t, r, w.Code, w.Header(), w.Body.Bytes())
	return w.Code, answer
}

// The command lines of the published documents.
var curlLines = []struct {
	line, jq string
	code     int
	want     any // what jq prints, nil for not tested
}{
	{
		line: "curl -X POST http://localhost:8080/api/v1/executions \\\n" +
			"-H \"Authorization: Bearer $TOKEN\" \\\n-H \"Content-Type: application/json\" \\\n" +
			"-d '{\n\"action_ref\": \"core.echo\",\n\"parameters\": {\"message\": \"test\"}\n}'",
		code: http.StatusCreated, jq: ".data.status", want: "requested",
	},
	{
		line: `curl http://localhost:8080/api/v1/executions/{id}`, code: http.StatusOK, jq: ".data.status",
		want: "failed",
	},
	{
		line: `curl http://localhost:8080/api/v1/executions/{id}`, code: http.StatusOK, jq: ".data.result.error",
		want: "Worker queue TTL expired",
	},
	{
		line: `curl http://localhost:8080/api/v1/executions?status=failed`, code: http.StatusOK,
		jq: ".pagination.page_size", want: 20.0,
	},
	{line: `curl http://localhost:8080/api/v1/actions/core.http.get/queue-stats`, code: http.StatusNotFound},
	{
		line: `curl http://localhost:8080/api/v1/actions/core.echo/queue-stats`, code: http.StatusOK,
		jq: ".data.queue_length", want: 3.0,
	},
}

// curl reads a command line as a shell does, and makes its request.
func curl(t *testing.T, line string, variables *strings.Replacer) *http.Request {
	t.Helper()
	var words []string
	word, quote, inside := "", rune(0), false
	for _, c := range strings.ReplaceAll(line, "\\\n", " ") {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, inside = c, true
		case quote == 0 && (c == ' ' || c == '\n'):
			if inside {
				words = append(words, variables.Replace(word))
			}
			word, inside = "", false
		default:
			word, inside = word+string(c), true
		}
	}
	words = append(words, variables.Replace(word))
	require.Equal(t, "curl", words[0])
	method, address, body, header := http.MethodGet, "", "", http.Header{}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-X":
			i++
			method = words[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			header.Set(name, value)
		case "-d":
			i++
			body = words[i]
		default:
			require.Empty(t, address)
			address = words[i]
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	r.Header = header
	return r
}

// TestPublishedCommandLinesWork runs the lines of the published documents, apart from
// host, port and token: on loopback as they stand, and with a published token where the
// secret of these is configured.
func TestPublishedCommandLinesWork(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"AsTheyStand": "", "WithAToken": jwtSecret} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := testkit.OwnStore(t)
			testkit.Exec(t, st,
				`insert into queue_stats (action_id, queue_length) select id, 3 from action where ref = 'core.echo'`)
			testkit.Exec(t, st, `insert into identity (login) values ('ann')`)
			deps := publishedOver(st)
			deps.Signer = secret.NewSigner([]byte(key))
			server := api.New("127.0.0.1:0", api.Deps{
				Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow, Published: deps,
				View: alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
			})
			require.NoError(t, server.Start(t.Context()))
			t.Cleanup(server.Stop)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			bearer := published(t, secret.AccessToken,
				fmt.Sprint(testkit.Count(t, st, `select id from identity where login = 'ann'`)))
			id := ""
			for _, c := range curlLines {
				r := curl(t, c.line, strings.NewReplacer("localhost:8080", server.Addr(), "$TOKEN", bearer, "{id}", id))
				if key != "" {
					r.Header.Set("Authorization", "Bearer "+bearer)
				}
				response, err := client.Do(r)
				require.NoError(t, err)
				text, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				require.Equal(t, c.code, response.StatusCode, "%s: %s", c.line, text)
				var answer any
				require.NoError(t, json.Unmarshal(text, &answer))
				if id == "" {
					id = fmt.Sprint(jq(t, answer, ".data.id"))
					testkit.Exec(t, st, `update execution set status = 'failed', result = '{"error": "Worker queue TTL expired"}' where id = $1::bigint`, id)
				}
				if c.jq != "" {
					require.Equal(t, c.want, jq(t, answer, c.jq), c.line)
				}
			}
			require.Equal(t, 1, testkit.Count(t, st,
				`select count(*) from execution where config = '{"message": "test"}' and action_ref = 'core.echo'`))
			require.Equal(t, 1, testkit.Count(t, st, `select count(*) from outbox`), "the engine gets a message")
		})
	}
}

// jq finds the value at a path such as .data.status.
func jq(t *testing.T, value any, path string) any {
	t.Helper()
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		object, ok := value.(map[string]any)
		require.True(t, ok, "%v has no %s", value, path)
		value = object[name]
	}
	return value
}

// fleet has executions of two packs, in several statuses, below a parent, and of a rule.
type fleet struct {
	store  *store.Store
	parent int64
	rule   int64 // its enforcement
	all    []int64
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{store: testkit.Store(t)}
	testkit.Exec(t, f.store, `insert into identity (id, login) values (77, 'ann')`)
	f.rule = int64(testkit.Count(t, f.store, `insert into enforcement (rule_ref, trigger_ref, event, payload, config)
		values ('door.opened', 'door.sensor', 1, '{}', '{}') returning id`))
	add := func(ref string, status lifecycle.Status, more string, args ...any) int64 {
		action := testkit.Count(t, f.store, `select coalesce((select id from action where ref = $1), 0)`, ref)
		row := testkit.ActionRow{ID: int64(action), Ref: ref}
		if action == 0 {
			row = testkit.Action(t, f.store, ref)
		}
		id := testkit.Execution(t, f.store, row, func(e *testkit.ExecutionRow) { e.Status = status }).ID
		if more != "" {
			testkit.Exec(t, f.store, `update execution set `+more+fmt.Sprintf(` where id = %d`, id), args...)
		}
		f.all = append(f.all, id)
		return id
	}
	f.parent = add("demo.flow", lifecycle.StatusRunning, "")
	add("demo.a", lifecycle.StatusRequested, "parent = $1", f.parent)
	add("demo.a", lifecycle.StatusRunning, `status = 'failed', parent = $1, result = '{"error": "Disk FULL"}'`, f.parent)
	add("demo.b", lifecycle.StatusCompleted, `enforcement = $1`, f.rule)
	child := add("demo.a", lifecycle.StatusCompleted, `enforcement = $1, parent = $2`, f.rule, f.all[3])
	add("other.a", lifecycle.StatusFailed, `executor = 77, original_execution = $1`, child)
	add("demo_a.x", lifecycle.StatusFailed, `action = null`)
	return f
}

// A search that looked at as many executions as it may says so, and goes on.
func TestABoundedListGoesOn(t *testing.T) {
	f := newFleet(t)
	testkit.Exec(t, f.store, `alter table execution disable trigger user`)
	testkit.Exec(t, f.store, `insert into execution (action_ref, status, config) select 'demo.many', 'requested', '{}' from generate_series(1, 20000)`)
	handler := signed(f.store)
	bearer := published(t, secret.WorkerToken, "1")
	list := func(query string) (ids []any, at map[string]any) {
		code, answer := call(t, handler, http.MethodGet, "/api/v1/executions?"+query, bearer, "")
		require.Equal(t, http.StatusOK, code, answer)
		for _, item := range answer["items"].([]any) {
			ids = append(ids, item.(map[string]any)["id"])
		}
		return ids, answer["pagination"].(map[string]any)
	}
	ids, at := list("result_contains=disk%20full")
	require.Empty(t, ids)
	require.Equal(t, true, at["bounded"])
	ids, at = list(fmt.Sprintf("result_contains=disk%%20full&cursor=%.0f", at["next_cursor"]))
	require.Equal(t, []any{float64(f.all[2])}, ids)
	require.NotContains(t, at, "bounded")
	_, at = list("")
	require.NotContains(t, at, "bounded", "nothing is searched without a filter")
}

func TestListsAreFilteredAsPublished(t *testing.T) {
	f := newFleet(t)
	handler := signed(f.store)
	bearer := published(t, secret.WorkerToken, "1")
	of := func(positions ...int) []int64 {
		ids := []int64{}
		for _, i := range positions {
			ids = append(ids, f.all[i])
		}
		return ids
	}
	for query, want := range map[string][]int64{
		"":                                               of(6, 5, 4, 3, 2, 1, 0),
		"status=failed":                                  of(6, 5, 2),
		"status=requested":                               of(1),
		"status=running":                                 of(0),
		"status=timeout":                                 of(),
		"action_ref=demo.a":                              of(4, 2, 1),
		"action_ref=demo.*":                              of(4, 3, 2, 1, 0),
		"action_ref=demo_a.x":                            of(6),
		"action_ref=demo%25":                             of(),
		"action_ref=no.such":                             of(),
		"pack_name=demo":                                 of(4, 3, 2, 1, 0),
		"pack_name=demo_a":                               of(6),
		"rule_ref=door.opened":                           of(4, 3),
		"rule_ref=door.*":                                of(4, 3),
		"rule_ref=door.shut":                             of(),
		"trigger_ref=door.*":                             of(4, 3),
		"executor=77":                                    of(5),
		"result_contains=full":                           of(2),
		"result_contains=%25":                            of(),
		"top_level_only=true":                            of(6, 5, 3, 0),
		"top_level_only=false":                           of(6, 5, 4, 3, 2, 1, 0),
		"unknown=7&status=":                              of(6, 5, 4, 3, 2, 1, 0),
		"status=failed&page=2":                           of(),
		"status=FAILED":                                  of(6, 5, 2),
		"per_page=2":                                     of(6, 5),
		"per_page=2&page=4":                              of(0),
		"status=failed&per_page=1&page=2":                of(5),
		"status=failed&action_ref=demo.a":                of(2),
		"status=requested&pack_name=demo":                of(1),
		"action_ref=demo.a&pack_name=other":              of(),
		fmt.Sprintf("parent=%d", f.parent):               of(2, 1),
		fmt.Sprintf("parent=%d&per_page=1", f.parent):    of(2),
		fmt.Sprintf("parent=%d&status=failed", f.parent): of(2),
		fmt.Sprintf("enforcement=%d", f.rule):            of(4, 3),
		fmt.Sprintf("enforcement=%d&parent=%d", f.rule, f.all[3]): of(4),
		"enforcement=99": of(),
	} {
		code, answer := call(t, handler, http.MethodGet, "/api/v1/executions?"+query, bearer, "")
		require.Equal(t, http.StatusOK, code, query)
		got := []int64{}
		items, _ := answer["items"].([]any)
		for _, item := range items {
			id, _ := jq(t, item, ".id").(float64)
			got = append(got, int64(id))
		}
		require.Equal(t, want, got, query)
	}
	for query, want := range map[string]string{
		"status=done":           "Invalid execution status: done",
		"page=0":                "page must be a positive number",
		"per_page=x":            "per_page must be a positive number",
		"parent=-1":             "parent must be a positive number",
		"include_total=1":       "include_total must be true or false",
		"page=201&per_page=500": "a list ends after 20000 executions: narrow the filter",
	} {
		code, answer := call(t, handler, http.MethodGet, "/api/v1/executions?"+query, bearer, "")
		require.Equal(t, http.StatusBadRequest, code, query)
		require.Equal(t, map[string]any{"error": want, "code": "BAD_REQUEST"}, answer, query)
	}
}

func TestPagesSayWhereTheyAre(t *testing.T) {
	f := newFleet(t)
	handler := signed(f.store)
	bearer := published(t, secret.SensorToken, "1")
	for query, want := range map[string]string{
		"":                                  `{"page":1,"page_size":20,"has_previous":false,"has_next":false}`,
		"per_page=3":                        `{"page":1,"page_size":3,"has_previous":false,"has_next":true}`,
		"per_page=3&page=2":                 `{"page":2,"page_size":3,"has_previous":true,"has_next":true}`,
		"per_page=3&page=3":                 `{"page":3,"page_size":3,"has_previous":true,"has_next":false}`,
		"per_page=500":                      `{"page":1,"page_size":100,"has_previous":false,"has_next":false}`,
		"per_page=3&include_total=true":     `{"page":1,"page_size":3,"total_items":7,"total_pages":3,"has_previous":false,"has_next":true}`,
		"page=9&include_total=true":         `{"page":9,"page_size":20,"total_items":7,"total_pages":1,"has_previous":true,"has_next":false}`,
		"status=timeout&include_total=true": `{"page":1,"page_size":20,"total_items":0,"total_pages":0,"has_previous":false,"has_next":false}`,
		"status=failed&include_total=true":  `{"page":1,"page_size":20,"total_items":3,"total_pages":1,"has_previous":false,"has_next":false}`,
		"action_ref=demo.*&include_total=true&per_page=5": `{"page":1,"page_size":5,"total_items":5,"total_pages":1,"has_previous":false,"has_next":false}`,
	} {
		_, answer := call(t, handler, http.MethodGet, "/api/v1/executions?"+query, bearer, "")
		got, err := json.Marshal(answer["pagination"])
		require.NoError(t, err)
		require.JSONEq(t, want, string(got), query)
	}
}

// Null members stay, and members of later versions are left out.
func TestExecutionsHaveThePublishedMembers(t *testing.T) {
	st := testkit.Store(t)
	handler := signed(st)
	bearer := published(t, secret.WorkerToken, "1")
	id := testkit.Execution(t, st, testkit.Action(t, st, "demo.a")).ID
	testkit.Exec(t, st, `update execution set created = '2026-06-01T10:00:00.5Z' where id = $1`, id)
	members := func(of any) []string {
		object, _ := of.(map[string]any)
		var names []string
		for name := range object {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	target := fmt.Sprintf("/api/v1/executions/%d", id)
	_, answer := call(t, handler, http.MethodGet, target, bearer, "")
	require.Equal(t, []string{
		"action", "action_ref", "config", "created", "enforcement", "executor", "id", "parent", "result", "status",
		"updated", "worker",
	}, members(answer["data"]))
	require.Equal(t, "2026-06-01T10:00:00.5Z", jq(t, answer, ".data.created"))
	require.Nil(t, jq(t, answer, ".data.config"))
	_, answer = call(t, handler, http.MethodGet, "/api/v1/executions", bearer, "")
	items, _ := answer["items"].([]any)
	require.Equal(t, []string{
		"action_ref", "created", "enforcement", "id", "parent", "rule_ref", "status", "trigger_ref", "updated",
	}, members(items[0]))

	testkit.Exec(t, st, `update execution set permission_set_refs = '{a}', artifact_retention_policy = 'days', artifact_retention_limit = 3,
		worker_selector = '{"a":"b"}', worker_tolerations = '[]', worker_affinity = '{}', original_execution = id, started_at = now(),
		workflow_task = '{"task_name":"x"}', config = '{"n":12345678901234567890}', env_vars = '{"A":"b"}' where id = $1`, id)
	_, answer = call(t, handler, http.MethodGet, target, bearer, "")
	require.Equal(t, []string{
		"action", "action_ref", "artifact_retention_limit", "artifact_retention_policy", "config", "created",
		"enforcement", "executor", "id",
		"original_execution", "parent", "permission_set_refs", "result", "started_at", "status", "updated", "worker",
		"worker_affinity",
		"worker_selector", "worker_tolerations", "workflow_task",
	}, members(answer["data"]))
	_, answer = call(t, handler, http.MethodGet, "/api/v1/executions", bearer, "")
	items, _ = answer["items"].([]any)
	require.Contains(t, members(items[0]), "workflow_task")

	code, answer := call(t, handler, http.MethodGet, target+"?include_secret_values=true", bearer, "")
	require.Equal(t, http.StatusForbidden, code, answer)
	code, answer = call(t, handler, http.MethodGet, "/api/v1/executions/999999", bearer, "")
	require.Equal(t, http.StatusNotFound, code)
	require.Equal(t, map[string]any{"error": "Execution with ID 999999 not found", "code": "NOT_FOUND"}, answer)
}

func TestRequestsAreCheckedAndStored(t *testing.T) {
	st := testkit.Store(t)
	handler := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow, Published: publishedOver(st),
	}).Handler()
	action := testkit.Action(t, st, "demo.login")
	testkit.Exec(t, st, `update action set param_schema = '{"user":{"type":"string","required":true},"password":{"type":"string","secret":true}}',
		default_execution_permission_set_refs = '{standard,core.reader}' where id = $1`, action.ID)
	for name, c := range map[string]struct {
		body string
		code int
		want string // of the error, or of the stored row
	}{
		"Nothing":         {``, 400, "BAD_REQUEST the body is not a JSON object"},
		"NoJSON":          {`{`, 400, "BAD_REQUEST the body is not a JSON object"},
		"NoAction":        {`{"parameters":{}}`, 422, "UNPROCESSABLE_ENTITY the body has no action_ref"},
		"ActionOfAnother": {`{"action_ref":7}`, 422, "UNPROCESSABLE_ENTITY the body is not what this path takes"},
		"UnknownAction":   {`{"action_ref":"demo.none"}`, 404, "NOT_FOUND Action 'demo.none' not found"},
		"NoObject":        {`{"action_ref":"demo.login","parameters":[1]}`, 400, "BAD_REQUEST"},
		"Missing": {
			`{"action_ref":"demo.login","parameters":{}}`, 422,
			"VALIDATION_ERROR the parameters do not fit demo.login: user",
		},
		"WrongType": {`{"action_ref":"demo.login","parameters":{"user":7}}`, 422, "VALIDATION_ERROR"},
		"SecretNoKey": {
			`{"action_ref":"demo.login","parameters":{"user":"a","password":"p"}}`, 500,
			"INTERNAL_SERVER_ERROR",
		},
		"Selector": {
			`{"action_ref":"demo.login","parameters":{"user":"a"},"worker_selector":7}`, 400,
			"BAD_REQUEST",
		},
		"Retention": {
			`{"action_ref":"demo.login","artifact_retention_limit":0}`, 400,
			"BAD_REQUEST artifact_retention_limit",
		},
		"RetentionPolicy": {
			`{"action_ref":"demo.login","artifact_retention_policy":"weeks"}`, 422,
			"UNPROCESSABLE_ENTITY",
		},
		"Beyond": {
			`{"action_ref":"demo.login","parameters":{"user":"a"},"permission_set_refs":["core.admin"]}`, 403,
			"FORBIDDEN",
		},
		"TooLong": {`{"action_ref":"` + strings.Repeat("x", 3<<20) + `"}`, 413, "REQUEST_ENTITY_TOO_LARGE"},
	} {
		for _, path := range []string{"/api/v1/executions", "/api/v1/executions/execute"} {
			code, answer := call(t, handler, http.MethodPost, path, "", c.body)
			require.Equal(t, c.code, code, "%s: %v", name, answer)
			require.Contains(t, fmt.Sprint(answer["code"], " ", answer["error"]), c.want, name)
		}
	}
	require.Zero(t, testkit.Count(t, st, `select count(*) from execution`))

	code, answer := call(t, handler, http.MethodPost, "/api/v1/executions/execute", "",
		`{"action_ref":"core.noop","parameters":{},"x":1}`)
	require.Equal(t, http.StatusCreated, code)
	require.Nil(t, jq(t, answer, ".data.config"), "{} is none")
	require.Equal(t, "versions", jq(t, answer, ".data.artifact_retention_policy"))
	require.EqualValues(t, 5, jq(t, answer, ".data.artifact_retention_limit"))
	_, answer = call(t, handler, http.MethodPost, "/api/v1/executions", "", `{"action_ref":"demo.login","parameters":{"user":"a"},
		"env_vars":{"A":"b"},"permission_set_refs":[],"artifact_retention_policy":"days","artifact_retention_limit":2,
		"worker_selector":{"zone":"a"},"worker_tolerations":null,"worker_affinity":null}`)
	require.NotContains(t, answer["data"], "permission_set_refs")
	require.NotContains(t, answer["data"], "worker_tolerations")
	require.Equal(t, map[string]any{"zone": "a"}, jq(t, answer, ".data.worker_selector"))
	require.Equal(t, "days", jq(t, answer, ".data.artifact_retention_policy"))
	id, _ := jq(t, answer, ".data.id").(float64)
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from execution where id = $1 and env_vars = '{"A":"b"}' and executor is null
		and worker_tolerations is null`, int64(id)))
	_, answer = call(t, handler, http.MethodPost, "/api/v1/executions", "",
		`{"action_ref":"demo.login","parameters":{"user":"a"}}`)
	require.Equal(t, []any{"standard", "core.reader"}, jq(t, answer, ".data.permission_set_refs"))
	require.Equal(t, 3, testkit.Count(t, st, `select count(*) from outbox`))
}

// A page of another site, or one under a name that was pointed at this machine, cannot
// have a browser request executions.
func TestOtherSitesCannotRequest(t *testing.T) {
	t.Parallel()
	handler := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Published: publishedOver(testkit.Store(t)),
	}).Handler()
	for name, change := range map[string]func(*http.Request){
		"origin":    func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"rebinding": func(r *http.Request) { r.Host = "evil.example:8080" },
	} {
		code, _, answer := post(t, handler, "/api/v1/executions", `{"action_ref":"core.noop"}`, change)
		require.Equal(t, http.StatusForbidden, code, name)
		require.Equal(t, "FORBIDDEN", answer["code"])
	}
}

func TestPublishedRoutesAskForTokens(t *testing.T) {
	st := testkit.OwnStore(t)
	testkit.Exec(t, st, `insert into identity (id, login, frozen) values (7, 'ann', false), (8, 'bob', true)`)
	action := testkit.Action(t, st, "demo.a")
	running := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	ended := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusCompleted }).ID
	signer := secret.NewSigner([]byte(jwtSecret))
	ofExecution := func(id int64) string {
		text, err := signer.Sign(secret.ExecutionClaims{
			ExecutionID: id, ActionRef: "demo.a",
			PermissionSetRefs: []string{"standard"},
		})
		require.NoError(t, err)
		return text
	}
	expired, err := jwt.NewWithClaims(jwt.SigningMethodHS256,
		jwt.MapClaims{"sub": "7", "iat": 1, "exp": 2}).SignedString([]byte(jwtSecret))
	require.NoError(t, err)
	deps := publishedOver(st)
	deps.Signer = signer
	server := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow, Published: deps,
		View:       alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
		TokensFile: tokenFile(t, "eve read "+hash("reads")+"\nbot submit "+hash("submits")+"\n"),
	})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	for name, c := range map[string]struct {
		bearer        string
		read, request int
		why           string // of a 401
	}{
		"None":      {"", 401, 401, "Missing authentication token"},
		"Nonsense":  {"x", 401, 401, "Invalid authentication token"},
		"Expired":   {expired, 401, 401, "Authentication token has expired"},
		"OwnRead":   {"reads", 200, 403, ""},
		"OwnSubmit": {"submits", 403, 201, ""},
		"Access":    {published(t, secret.AccessToken, "7"), 200, 201, ""},
		"Frozen": {
			published(t, secret.AccessToken, "8"), 401, 401,
			"The identity of this token does not exist or is frozen",
		},
		"Gone": {
			published(t, secret.AccessToken, "9"), 401, 401,
			"The identity of this token does not exist or is frozen",
		},
		"NoIdentity": {published(t, secret.AccessToken, "ann"), 401, 401, "Invalid authentication token"},
		"Refresh": {
			published(t, secret.RefreshToken, "7"), 401, 401,
			"A refresh token does not authenticate requests",
		},
		"Sensor":         {published(t, secret.SensorToken, "1"), 200, 403, ""},
		"Worker":         {published(t, secret.WorkerToken, "1"), 200, 403, ""},
		"Execution":      {ofExecution(running), 200, 201, ""},
		"ExecutionEnded": {ofExecution(ended), 401, 401, "The execution of this token has ended"},
		"ExecutionGone":  {ofExecution(999_999), 401, 401, "The execution of this token has ended"},
	} {
		for target, want := range map[string]int{
			"GET /api/v1/executions": c.read, fmt.Sprintf("GET /api/v1/executions/%d", running): c.read,
			"POST /api/v1/executions": c.request, "POST /api/v1/executions/execute": c.request,
		} {
			method, path, _ := strings.Cut(target, " ")
			body := ""
			if method == http.MethodPost {
				body = `{"action_ref":"demo.a"}`
			}
			code, answer := call(t, server.Handler(), method, path, c.bearer, body)
			require.Equal(t, want, code, "%s %s: %v", name, target, answer)
			switch code {
			case http.StatusUnauthorized:
				require.Equal(t, map[string]any{"error": map[string]any{"code": 401.0, "message": c.why}}, answer, name)
			case http.StatusForbidden:
				require.Equal(t, "FORBIDDEN", answer["code"], name)
			}
		}
	}
	require.Equal(t, 2, testkit.Count(t, st, `select count(*) from execution where executor = 7`),
		"requests of ann act for ann")
	require.Equal(t, 2, testkit.Count(t, st, `select count(*) from execution where parent = $1`, running),
		"requests of an execution are below it")
}

// Queue statistics are a published route, the other routes of ours take our tokens only.
func TestPublishedTokensReadQueueStatistics(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "demo.a")
	testkit.Exec(t, st, `insert into queue_stats (action_id) values ($1)`, action.ID)
	deps := publishedOver(st)
	deps.Signer = secret.NewSigner([]byte(jwtSecret))
	server := api.New("0.0.0.0:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow, Published: deps,
		View:       alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
		TokensFile: tokenFile(t, "eve read "+hash("reads")+"\n"),
	})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	get := func(path, bearer string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
		r.Header.Set("Authorization", "Bearer "+bearer)
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, r)
		return w.Code
	}
	worker := published(t, secret.WorkerToken, "1")
	require.Equal(t, http.StatusOK, get("/api/v1/actions/demo.a/queue-stats", worker))
	require.Equal(t, http.StatusOK, get("/api/v1/actions/demo.a/queue-stats", "reads"))
	require.Equal(t, http.StatusUnauthorized, get("/api/v1/actions/demo.a/queue-stats", "other"))
	require.Equal(t, http.StatusUnauthorized, get("/api/v1/queues", worker))

	// On loopback too they need a token once there is a secret to sign it.
	server = api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow, Published: deps,
		View: alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
	})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	require.Equal(t, http.StatusUnauthorized, get("/api/v1/actions/demo.a/queue-stats", ""))
	require.Equal(t, http.StatusOK, get("/api/v1/actions/demo.a/queue-stats", worker))
	require.Equal(t, http.StatusOK, get("/api/v1/queues", ""), "a route of ours")
}

// An execution may request actions of its own pack, if it has standard access, and with
// no more permission sets than it has itself.
func TestExecutionTokensPermitTheirOwnPack(t *testing.T) {
	st := testkit.Store(t)
	handler := signed(st)
	testkit.Exec(t, st, `insert into identity (id, login) values (7, 'ann')`)
	for _, ref := range []string{"demo.a", "demo.b", "ops.flow", "else.a"} {
		testkit.Action(t, st, ref)
	}
	testkit.Exec(t, st, `update action set default_execution_permission_set_refs = '{core.admin}' where ref = 'demo.b'`)
	own := testkit.ActionRow{
		ID:  int64(testkit.Count(t, st, `select id from action where ref = 'demo.a'`)),
		Ref: "demo.a",
	}
	id := testkit.Execution(t, st, own, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	testkit.Exec(t, st, `update execution set executor = 7 where id = $1`, id)
	bearer := func(workflow string, sets ...string) string {
		text, err := secret.NewSigner([]byte(jwtSecret)).Sign(secret.ExecutionClaims{
			ExecutionID: id, ActionRef: "demo.a", PermissionSetRefs: sets, WorkflowActionRef: workflow,
		})
		require.NoError(t, err)
		return text
	}
	for name, c := range map[string]struct {
		bearer, body string
		code         int
	}{
		"OwnAction":        {bearer("", "standard"), `{"action_ref":"demo.a"}`, 201},
		"OtherPack":        {bearer("", "standard"), `{"action_ref":"else.a"}`, 403},
		"WithoutStandard":  {bearer("", "core.admin"), `{"action_ref":"demo.a"}`, 403},
		"NoSets":           {bearer(""), `{"action_ref":"demo.a"}`, 403},
		"PackOfItsFlow":    {bearer("ops.flow", "standard"), `{"action_ref":"ops.flow"}`, 201},
		"NotItsFlow":       {bearer("", "standard"), `{"action_ref":"ops.flow"}`, 403},
		"MoreByDefault":    {bearer("", "standard"), `{"action_ref":"demo.b"}`, 403},
		"FewerThanDefault": {bearer("", "standard"), `{"action_ref":"demo.b","permission_set_refs":["standard"]}`, 201},
		"MoreByRequest": {
			bearer("", "standard"), `{"action_ref":"demo.a","permission_set_refs":["core.admin"]}`,
			403,
		},
		"AsMany":  {bearer("", "standard", "core.admin"), `{"action_ref":"demo.b"}`, 201},
		"Unknown": {bearer("", "standard"), `{"action_ref":"demo.none"}`, 404},
	} {
		code, answer := call(t, handler, http.MethodPost, "/api/v1/executions/execute", c.bearer, c.body)
		require.Equal(t, c.code, code, "%s: %v", name, answer)
		if code == http.StatusCreated {
			require.EqualValues(t, id, jq(t, answer, ".data.parent"), name)
			require.EqualValues(t, 7, jq(t, answer, ".data.executor"), name)
		}
	}
}

// An access token has the grants of the permission sets of its identity and of its roles.
func TestAccessTokensHaveTheRightsOfTheirIdentity(t *testing.T) {
	st := testkit.OpenStore(t, testkit.AdoptedDatabase(t))
	handler := signed(st)
	for _, sql := range []string{
		`insert into identity (id, login) values (107, 'ann'), (108, 'bob'), (109, 'cyd'), (110, 'dan'), (111, 'eve')`,
		`insert into permission_set (id, ref, grants) values
			(101, 'test.admin', '[{"resource":"actions","actions":["read","execute"]},{"resource":"keys","actions":["read"],"constraints":null}]'),
			(102, 'demo.runner', '[{"resource":"actions","actions":["execute"],"constraints":{"pack_refs":["demo"],"ids":null}}]'),
			(103, 'test.one', '[{"resource":"actions","actions":["execute"],"constraints":{"refs":["else.a"],"attributes":{"team":"x"}}}]'),
			(104, 'test.reader', '[{"resource":"actions","actions":["read"]},{"resource":"keys","actions":["read"]}]'),
			(105, 'test.writer', '[{"resource":"keys","actions":["read","update"]}]'), (106, 'test.broken', '{}')`,
		`insert into permission_assignment (identity, permset) values (107, 101), (109, 103), (109, 104), (111, 106)`,
		`insert into identity_role_assignment (identity, role) values (108, 'runners')`,
		`insert into permission_set_role_assignment (permset, role) values (102, 'runners')`,
	} {
		testkit.Exec(t, st, sql)
	}
	for _, ref := range []string{"demo.a", "else.a"} {
		testkit.Action(t, st, ref)
	}
	testkit.Exec(t, st,
		`update action set default_execution_permission_set_refs = '{standard,test.reader}' where ref = 'else.a'`)
	for name, c := range map[string]struct {
		identity, body string
		code           int
	}{
		"Admin":            {"107", `{"action_ref":"demo.a"}`, 201},
		"AdminDelegates":   {"107", `{"action_ref":"else.a"}`, 201},
		"AdminHolds":       {"107", `{"action_ref":"else.a","permission_set_refs":["test.admin"]}`, 201},
		"BeyondTheAdmin":   {"107", `{"action_ref":"else.a","permission_set_refs":["test.writer"]}`, 403},
		"NoSuchSet":        {"107", `{"action_ref":"else.a","permission_set_refs":["test.none"]}`, 403},
		"ByRole":           {"108", `{"action_ref":"demo.a"}`, 201},
		"NotThatPack":      {"108", `{"action_ref":"else.a"}`, 403},
		"ByAttribute":      {"109", `{"action_ref":"else.a"}`, 403},
		"ReadOnly":         {"109", `{"action_ref":"demo.a"}`, 403},
		"NothingAtAll":     {"110", `{"action_ref":"demo.a"}`, 403},
		"UnreadableGrants": {"111", `{"action_ref":"demo.a"}`, 403},
	} {
		code, answer := call(t, handler, http.MethodPost, "/api/v1/executions/execute",
			published(t, secret.AccessToken, c.identity), c.body)
		require.Equal(t, c.code, code, "%s: %v", name, answer)
		if code == http.StatusCreated {
			require.Equal(t, c.identity, fmt.Sprint(jq(t, answer, ".data.executor")), name)
		}
	}
}

func TestPublishedRoutesWithoutTheDatabaseSaySo(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(),
		store.Config{URL: "postgres://nobody@127.0.0.1:1/none", ConnectTimeout: time.Second}, nil)
	require.NoError(t, err)
	t.Cleanup(st.Close)
	for _, path := range []string{"/api/v1/executions", "/api/v1/executions/1"} {
		code, answer := call(t, signed(st), http.MethodGet, path, published(t, secret.WorkerToken, "1"), "")
		require.Equal(t, http.StatusServiceUnavailable, code, path)
		require.Equal(t, map[string]any{"error": "the database refuses connections, nothing listens there", "code": "SERVICE_UNAVAILABLE"}, answer)
	}
}
