package api_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/apitest"
)

// complete is a server with every route.
func complete(st *store.Store, operator *triage.Triage) *api.Server {
	server := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Published: publishedOver(st), Acts: operator,
		View:  alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
		Ready: func(context.Context) []api.Check { return nil },
	})
	server.Emits(submit.New(st, nil))
	return server
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
	for path, operations := range readSpec(t).Paths {
		for method, op := range operations {
			name := strings.ToUpper(method) + " " + path
			described[name] = true
			require.NotEmpty(t, op.ID, name)
			require.Empty(t, ids[op.ID], "%s and %s have one operationId", name, ids[op.ID])
			ids[op.ID] = name
			if path != "/healthz" && path != "/readyz" {
				require.Contains(t, op.Responses, "429", name)
			}
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

// written is a request to a writing route. It must add a row of operator_audit with the reason and the client; requests
// of executions and events must add their own rows.
type written struct {
	path, query, body string
	action            string // of the row of operator_audit
	other             string // counts rows otherwise
}

// Every route that writes is sent a request that changes something, and must leave its audit. A new route without a
// case fails.
func TestEveryWriteIsAudited(t *testing.T) {
	t.Parallel()
	st, vhost := testkit.Store(t), testkit.VHost(t)
	link := broker.New(broker.Config{URL: vhost}, testkit.Logger(t), nil)
	require.NoError(t, link.Start(testkit.Context(t)))
	t.Cleanup(link.Stop)
	require.NoError(t, link.DeclareExecutor(testkit.Context(t)))
	operator := triage.New(triage.Config{Source: "attune-executor http"}, st, nil).With(link)
	server := complete(st, operator)
	tokens, err := api.LoadTokens(tokenFile(t, "bot read,operate,submit "+hash("s3cret")), telemetry.Discard())
	require.NoError(t, err)
	server.UseTokens(tokens)

	action := testkit.Action(t, st, "demo.sleep")
	testkit.Exec(t, st, `insert into trigger (ref, label) values ('demo.door', 'x')`)
	executionIn := func(status lifecycle.Status) int64 {
		return testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = status }).ID
	}
	deadLetter := func(decision, reason string) int64 {
		id := apitest.DeadLetter(t, st, 0, decision)
		testkit.Exec(t, st, `update dead_letter set reason = $2, evidence = jsonb_build_object('taken', jsonb_build_object('queue', $3::text))
			where id = $1`, id, reason, message.QueueDeadLetter)
		return id
	}
	for range 2 {
		deadLetter("", "bulk")
	}
	publishDead(t, vhost)
	state := testkit.State(t, st, action, 2, func(r *testkit.StateRow) { r.Queued = 1 })
	waiter := testkit.Execution(t, st, action)
	testkit.Exec(t, st, `insert into execution_admission_entry (state_id, execution_id, status, queue_order) values ($1, $2, 'queued', 1)`, state.ID, waiter.ID)
	moved, err := operator.Move(t.Context(),
		triage.MoveRequest{Act: triage.MoveLane, Lane: 1, IDs: []int64{waiter.ID}})
	require.NoError(t, err)
	drifted := testkit.Action(t, st, "demo.drifted")
	testkit.State(t, st, drifted, 2, func(r *testkit.StateRow) { r.Active = 2 })
	gone := testkit.Worker(t, st, "gone", func(w *testkit.WorkerRow) { w.Status = "inactive" }).ID
	works := testkit.Worker(t, st, "works").ID
	flow := apitest.Workflow(t, st)

	const reason = `"reason": "enough"`
	only, body := "{"+reason+"}", func(rest string) string { return "{" + reason + ", " + rest + "}" }
	cases := []written{
		{
			path: "/api/v1/executions", body: `{"action_ref": "demo.sleep"}`,
			other: `select count(*) from execution where action_ref = 'demo.sleep'`,
		},
		{
			path: "/api/v1/executions/execute", body: `{"action_ref": "demo.sleep"}`,
			other: `select count(*) from execution where action_ref = 'demo.sleep'`,
		},
		{path: "/api/v1/events", body: `{"trigger_ref": "demo.door"}`, other: `select count(*) from event`},
		{
			path: fmt.Sprintf("/api/v1/executions/%d/cancel", executionIn(lifecycle.StatusRequested)), body: only,
			action: "execution.cancel",
		},
		{
			path: fmt.Sprintf("/api/v1/executions/%d/retry", executionIn(lifecycle.StatusFailed)), body: only,
			action: "execution.retry",
		},
		{
			path: "/api/v1/executions/put-back", body: body(fmt.Sprintf(`"audit_id": %d`, moved.Audit)),
			action: "execution.put-back",
		},
		{
			path: "/api/v1/executions/front", body: body(fmt.Sprintf(`"ids": [%d]`, waiter.ID)),
			action: "execution.front",
		},
		{
			path: "/api/v1/executions/lane", body: body(fmt.Sprintf(`"ids": [%d], "lane": "high"`, waiter.ID)),
			action: "execution.lane",
		},
		{path: "/api/v1/actions/demo.sleep/queues/pause", body: only, action: "queue.pause"},
		{path: "/api/v1/actions/demo.sleep/queues/resume", body: only, action: "queue.resume"},
		{path: "/api/v1/actions/demo.sleep/queues/limit", body: body(`"limit": 1`), action: "queue.limit"},
		{path: "/api/v1/actions/demo.sleep/queues/reset", body: only, action: "queue.reset"},
		{path: "/api/v1/actions/demo.sleep/queues/clear", body: body(`"confirm": "demo.sleep"`), action: "queue.clear"},
		{path: "/api/v1/queues/repair", query: "?action=demo.drifted", body: only, action: "queue.repair"},
		{path: fmt.Sprintf("/api/v1/workers/%d/cordon", works), body: only, action: "worker.cordon"},
		{path: fmt.Sprintf("/api/v1/workers/%d/uncordon", works), body: only, action: "worker.uncordon"},
		{path: fmt.Sprintf("/api/v1/workers/%d/drain", works), body: only, action: "worker.drain"},
		{path: fmt.Sprintf("/api/v1/workers/%d/forget", gone), body: only, action: "worker.forget"},
		{path: fmt.Sprintf("/api/v1/workflows/%d/pause", flow), body: only, action: "workflow.pause"},
		{path: fmt.Sprintf("/api/v1/workflows/%d/resume", flow), body: only, action: "workflow.resume"},
		{path: fmt.Sprintf("/api/v1/workflows/%d/cancel", flow), body: only, action: "execution.cancel"},
		{
			path: fmt.Sprintf("/api/v1/inquiries/%d/respond", apitest.Inquiry(t, st, "pending", 0)),
			body: body(`"response": {"ok": true}`), action: "inquiry.respond",
		},
		{
			path: fmt.Sprintf("/api/v1/dead-letters/%d/requeue", deadLetter("", "rejected")), body: only,
			action: "dead_letter.requeue",
		},
		{
			path: fmt.Sprintf("/api/v1/dead-letters/%d/discard", deadLetter("", "rejected")), body: only,
			action: "dead_letter.discard",
		},
		{
			path: fmt.Sprintf("/api/v1/dead-letters/%d/reopen", deadLetter("discarded", "rejected")), body: only,
			action: "dead_letter.reopen",
		},
		{
			path: fmt.Sprintf("/api/v1/dead-letters/%d/return", deadLetter("", "rejected")), body: only,
			action: "dead_letter.return",
		},
		{path: "/api/v1/dead-letters/take", query: "?first=1", body: only, action: "dead_letter.take"},
		{
			path: "/api/v1/dead-letters/discard-all", query: "?reason=bulk", body: body(`"confirm": "discard 2"`),
			action: "dead_letter.discard",
		},
		{
			path: "/api/v1/dead-letters/purge", body: body(`"confirm": "purge for good"`),
			action: "dead_letter.purge-broker",
		},
	}
	// A purge is refused below 50,000 messages, so the broker answers that there are more.
	purging := complete(st, operator.With(manyMessages{link}))
	purging.UseTokens(tokens)

	handled := map[string]bool{}
	for _, c := range cases {
		count := c.other
		if count == "" {
			count = fmt.Sprintf(`select count(*) from operator_audit where actor = 'token bot' and reason = 'enough' and action = '%s'`,
				c.action)
		}
		before := testkit.Count(t, st, count)
		handler := server.Handler()
		if c.action == "dead_letter.purge-broker" {
			handler = purging.Handler()
		}
		code, _, answer := post(t, handler, c.path+c.query, c.body,
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer s3cret") })
		require.Less(t, code, 300, "%s: %v", c.path, answer)
		require.Equal(t, before+1, testkit.Count(t, st, count), "%s is not audited", c.path)
		for _, pattern := range server.Patterns() {
			if method, path, _ := strings.Cut(pattern, " "); method == http.MethodPost && matches(path, c.path) {
				handled[pattern] = true
			}
		}
	}
	for _, pattern := range server.Patterns() {
		method, _, ok := strings.Cut(pattern, " ")
		if ok && method != http.MethodGet && !refuses(pattern) {
			require.True(t, handled[pattern], "%s has no case: say what it leaves in operator_audit", pattern)
		}
	}
}

// refuses reports routes that only refuse a method.
func refuses(pattern string) bool {
	method, _, _ := strings.Cut(pattern, " ")
	return method == http.MethodPut || method == http.MethodPatch || method == http.MethodDelete
}

// matches reports whether a path is one of a pattern; literal patterns win over those of one thing.
func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && !strings.HasPrefix(want[i], "{") {
			return false
		}
	}
	return true
}

// manyMessages is a broker whose queues have as many messages as a purge needs.
type manyMessages struct{ *broker.Broker }

func (manyMessages) QueueState(context.Context, string) (broker.QueueState, error) {
	return broker.QueueState{Exists: true, Ready: triage.PurgeOffered + 1}, nil
}

// publishDead puts a message into the broker's queue of dead letters.
func publishDead(t *testing.T, vhost string) {
	t.Helper()
	conn, err := amqp.Dial(vhost)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	channel, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, channel.Confirm(false))
	sent, err := channel.PublishWithDeferredConfirmWithContext(t.Context(), "", message.QueueDeadLetter, true, false,
		amqp.Publishing{MessageId: "m-1", Type: "EventCreated", Body: []byte(`{}`)})
	require.NoError(t, err)
	require.True(t, sent.Wait())
}
