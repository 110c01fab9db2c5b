package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/apitest"
)

// clientOf starts a server with every route. The client sends a request with the token all, reader or submitter, or
// with none, and compares the answer with the description.
func clientOf(t *testing.T, st *store.Store, operator *triage.Triage, rates api.Rates,
) func(token, request, body string) (int, string) {
	t.Helper()
	server := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Acts: operator, Rates: rates,
		TokensFile: tokenFile(t, "all read,operate,submit "+hash("all")+"\nreader read "+hash("reader")+
			"\nsubmitter submit "+hash("submitter")),
		View:  alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
		Ready: readyNow, Published: publishedOver(st),
	})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return func(token, request, body string) (int, string) {
		t.Helper()
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+server.Addr()+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if strings.HasSuffix(path, "/execute") {
			r.Header.Set("Idempotency-Key", "once")
		}
		response, err := transport.RoundTrip(r)
		require.NoError(t, err)
		defer response.Body.Close() //nolint:errcheck // it is read to its end
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		requireDescribed(t, r, body, response.StatusCode, response.Header, answer)
		return response.StatusCode, string(answer)
	}
}

// exchange is a request with the status of its answer.
type exchange struct {
	want          int
	request, body string
	// leaves is the action of the row that the request adds to operator_audit, or the table of the row it adds.
	leaves string
}

// manyMessages is a broker whose queues have as many messages as a purge needs.
type manyMessages struct{ *broker.Broker }

func (manyMessages) QueueState(context.Context, string) (broker.QueueState, error) {
	return broker.QueueState{Exists: true, Ready: triage.PurgeOffered + 1}, nil
}

// TestEveryOperationAnswersAsDescribed sends requests to every operation. A write must leave its audit, with the reason
// and the client, and a read none. Each request is then refused without a token, and with another scope.
func TestEveryOperationAnswersAsDescribed(t *testing.T) {
	st, vhost := testkit.Store(t), testkit.VHost(t)
	link := broker.New(broker.Config{URL: vhost}, testkit.Logger(t), nil)
	require.NoError(t, link.Start(testkit.Context(t)))
	t.Cleanup(link.Stop)
	require.NoError(t, link.DeclareExecutor(testkit.Context(t)))
	publishDead(t, vhost)
	operator := triage.New(triage.Config{Source: "attune-executor http"}, st, nil)
	send := clientOf(t, st, operator.With(link), api.Rates{})
	purge := clientOf(t, st, operator.With(manyMessages{link}), api.Rates{}) // with few messages it is refused
	exchanges := exchangesOver(t, st, operator)

	called, audited := map[*operation]bool{}, map[*operation]bool{}
	for _, c := range exchanges {
		audit := fmt.Sprintf(`select count(*) from operator_audit where ('%s' = '' or action = '%[1]s')
			and actor = 'token all' and reason = 'enough'`, c.leaves)
		count := audit
		if c.leaves == "execution" || c.leaves == "event" {
			count = "select count(*) from " + c.leaves
		}
		before, send := testkit.Count(t, st, count), send
		if c.leaves == "dead_letter.purge-broker" {
			send = purge
		}
		code, answer := send("all", c.request, c.body)
		require.Equal(t, c.want, code, "%s: %s", c.request, answer)
		if c.leaves != "" {
			before++
		}
		require.Equal(t, before, testkit.Count(t, st, count), "%s: its rows", c.request)
		method, path, _ := strings.Cut(c.request, " ")
		path, _, _ = strings.Cut(path, "?")
		op, _ := operationOf(method, path)
		called[op] = true
		audited[op] = audited[op] || c.leaves != ""
	}
	for _, op := range readSpec() {
		require.True(t, called[op], "%s is not called", op.ID)
		require.True(t, audited[op] || op.method == http.MethodGet, "%s writes: say what it leaves", op.ID)
	}

	for _, c := range exchanges {
		method, path, _ := strings.Cut(c.request, " ")
		path, _, _ = strings.Cut(path, "?")
		op, _ := operationOf(method, path)
		if len(op.Security) == 0 && op.Security != nil || op.ID == "getMetrics" { // no token is required here
			continue
		}
		if op.ID == "listExecutionsByStatus" && c.want == http.StatusNotFound { // no path, and so not in its format
			continue
		}
		code, _ := send("", c.request, c.body)
		require.Equal(t, http.StatusUnauthorized, code, c.request)
		other := "submitter"
		if slices.ContainsFunc(op.Security, func(s map[string][]string) bool {
			return slices.Contains(s["token"], "submit")
		}) {
			other = "reader"
		}
		code, _ = send(other, c.request, c.body)
		require.Equal(t, http.StatusForbidden, code, c.request)
	}
}

// TestTooManyRequestsAreRefusedAsDescribed covers our form of errors and the published one.
func TestTooManyRequestsAreRefusedAsDescribed(t *testing.T) {
	st := testkit.Store(t)
	send := clientOf(t, st, triage.New(triage.Config{}, st, nil), api.Rates{PerToken: 1})
	for token, path := range map[string]string{"reader": "/api/v1/replicas", "all": "/api/v1/executions/stats"} {
		testkit.Eventually(t, func() bool {
			code, _ := send(token, "GET "+path, "")
			return code == http.StatusTooManyRequests
		}, 10*time.Second, "%s is refused", path)
	}
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

// exchangesOver are requests to all operations, over a database with something of everything. Reads come first.
func exchangesOver(t *testing.T, st *store.Store, operator *triage.Triage) []exchange {
	t.Helper()
	f := apitest.Fill(t, st)
	row, err := st.PublishedAction(t.Context(), f.Action)
	require.NoError(t, err)
	action := testkit.ActionRow{ID: row.ID, Ref: f.Action}
	in := func(status lifecycle.Status) int64 {
		return testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = status }).ID
	}
	waits, failed := in(lifecycle.StatusRequested), in(lifecycle.StatusFailed)
	moved, err := operator.Move(t.Context(),
		triage.MoveRequest{Act: triage.MoveLane, Lane: 1, IDs: []int64{f.QueuedExecution}})
	require.NoError(t, err)
	testkit.State(t, st, testkit.Action(t, st, "demo.drifted"), 2, func(r *testkit.StateRow) { r.Active = 2 })
	gone := testkit.Worker(t, st, "gone", func(w *testkit.WorkerRow) { w.Status = "inactive" }).ID
	inquiry, discarded := apitest.Inquiry(t, st, "pending", 0), apitest.DeadLetter(t, st, 0, "discarded")
	requeued, given, taken := apitest.DeadLetter(t, st, 0, ""), apitest.DeadLetter(t, st, 0, ""),
		apitest.DeadLetter(t, st, 0, "")
	testkit.Exec(t, st, `update dead_letter set evidence = jsonb_build_object('taken', jsonb_build_object('queue', $2::text)) where id = $1`,
		taken, message.QueueDeadLetter)
	for range 2 {
		testkit.Exec(t, st, `update dead_letter set reason = 'bulk' where id = $1`, apitest.DeadLetter(t, st, 0, ""))
	}
	const none, only = "", `{"reason": "enough"}`
	with := func(rest string) string { return `{"reason": "enough", ` + rest + "}" }
	return append(readsOver(f), []exchange{
		{200, "GET /api/v1/executions?include_total=true&per_page=3", none, ""},
		{403, fmt.Sprintf("GET /api/v1/executions/%d?include_secret_values=true", f.Holder), none, ""},
		{200, fmt.Sprintf("GET /api/v1/executions/%d/why", f.Holder), none, ""},
		{404, fmt.Sprintf("GET /api/v1/workflows/%d", f.Holder), none, ""},
		{200, "GET /api/v1/dead-letters?decided=true", none, ""},
		{400, "GET /api/v1/dead-letters?open=true&decided=true", none, ""},
		{200, "GET /api/v1/dead-letters/stats?since=1h", none, ""},
		{200, "GET /api/v1/dead-letters/discard-all?reason=expired", none, ""},
		{404, "GET /api/v1/dead-letters/take?queue=nowhere", none, ""},
		{200, "GET /api/v1/queues?action=sleep&paused=true&blocked=true&all=true&limit=1", none, ""},
		{400, "GET /api/v1/queues?limit=0", none, ""},
		{400, "GET /api/v1/queues?limit=x", none, ""},
		{400, "GET /api/v1/queues?limit=1001", none, ""},
		{400, "GET /api/v1/queues?paused=perhaps", none, ""},
		{200, "GET /api/v1/actions/demo.sleep/queues/clear?older_than=1ns", none, ""},
		{400, "GET /api/v1/actions/demo.sleep/queues/clear?group={", none, ""},
		{404, "GET /api/v1/queues/repair?action=demo.nothing", none, ""},
		{200, "GET /api/v1/workers?name=w-", none, ""},
		{400, "GET /api/v1/workers?health=well", none, ""},
		{200, "GET /api/v1/alerts?history=true", none, ""},
		{200, "GET /api/v1/actions?pack=" + f.Pack, none, ""},

		{201, "POST /api/v1/executions", `{"action_ref": "demo.sleep"}`, "execution"},
		{404, "POST /api/v1/executions", `{"action_ref": "demo.nothing"}`, ""},
		{201, "POST /api/v1/executions/execute", `{"action_ref": "demo.sleep"}`, "execution"},
		{422, "POST /api/v1/executions/execute", `{"action_ref": "demo.sleep", "env_vars": {"A": "b"}}`, ""},
		{200, "POST /api/v1/events", `{"trigger_ref": "demo.door", "payload": {"state": "open"}}`, "event"},
		{422, "POST /api/v1/events", `{"trigger_ref": "demo.door", "payload": {}}`, ""},
		{
			200, "POST /api/v1/executions/put-back", with(fmt.Sprintf(`"audit_id": %d`, moved.Audit)),
			"execution.put-back",
		},
		{409, "POST /api/v1/executions/put-back", `{"audit_id": 1099511627776}`, ""},
		{200, "POST /api/v1/executions/front", with(fmt.Sprintf(`"ids": [%d]`, f.QueuedExecution)), "execution.front"},
		{
			200, "POST /api/v1/executions/lane", with(fmt.Sprintf(`"ids": [%d], "lane": "high"`, f.QueuedExecution)),
			"execution.lane",
		},
		{200, fmt.Sprintf("POST /api/v1/executions/%d/cancel", waits), with(`"tree": true`), "execution.cancel"},
		{409, fmt.Sprintf("POST /api/v1/executions/%d/cancel", waits), "{}", ""},
		{200, fmt.Sprintf("POST /api/v1/executions/%d/retry", failed), only, "execution.retry"},
		{409, fmt.Sprintf("POST /api/v1/executions/%d/retry", failed), "{}", ""},
		{200, "POST /api/v1/actions/demo.sleep/queues/pause", only, "queue.pause"},
		{404, "POST /api/v1/actions/demo.nothing/queues/pause", "{}", ""},
		{200, "POST /api/v1/actions/demo.sleep/queues/resume", only, "queue.resume"},
		{200, "POST /api/v1/actions/demo.sleep/queues/limit", with(`"limit": 3`), "queue.limit"},
		{400, "POST /api/v1/actions/demo.sleep/queues/limit", "{}", ""},
		{200, "POST /api/v1/actions/demo.sleep/queues/reset", only, "queue.reset"},
		{200, "POST /api/v1/queues/repair?action=demo.drifted", only, "queue.repair"},
		{409, "POST /api/v1/actions/demo.sleep/queues/clear", `{"confirm": "yes"}`, ""},
		{200, "POST /api/v1/actions/demo.sleep/queues/clear", with(`"confirm": "demo.sleep"`), "queue.clear"},
		{200, fmt.Sprintf("POST /api/v1/workflows/%d/pause", f.Workflow), only, "workflow.pause"},
		{200, fmt.Sprintf("POST /api/v1/workflows/%d/resume", f.Workflow), only, "workflow.resume"},
		{200, fmt.Sprintf("POST /api/v1/workflows/%d/cancel", f.Workflow), only, "execution.cancel"},
		{422, fmt.Sprintf("POST /api/v1/inquiries/%d/respond", inquiry), `{"response": {"ok": 1}}`, ""},
		{
			200, fmt.Sprintf("POST /api/v1/inquiries/%d/respond", inquiry), with(`"response": {"ok": true}`),
			"inquiry.respond",
		},
		{
			200, fmt.Sprintf("POST /api/v1/dead-letters/%d/requeue", requeued), with(`"anyway": true`),
			"dead_letter.requeue",
		},
		{409, fmt.Sprintf("POST /api/v1/dead-letters/%d/requeue", requeued), "{}", ""},
		{200, fmt.Sprintf("POST /api/v1/dead-letters/%d/discard", given), only, "dead_letter.discard"},
		{200, fmt.Sprintf("POST /api/v1/dead-letters/%d/reopen", discarded), only, "dead_letter.reopen"},
		{409, fmt.Sprintf("POST /api/v1/dead-letters/%d/reopen", discarded), "{}", ""},
		{200, fmt.Sprintf("POST /api/v1/dead-letters/%d/return", taken), only, "dead_letter.return"},
		{200, "POST /api/v1/dead-letters/take?first=2", only, "dead_letter.take"},
		{409, "POST /api/v1/dead-letters/discard-all", `{"confirm": "all"}`, ""},
		{200, "POST /api/v1/dead-letters/discard-all?reason=bulk", with(`"confirm": "discard 2"`), "dead_letter.discard"},
		{409, "POST /api/v1/dead-letters/purge", `{"confirm": ""}`, ""},
		{200, "POST /api/v1/dead-letters/purge", with(`"confirm": "purge for good"`), "dead_letter.purge-broker"},
		{200, fmt.Sprintf("POST /api/v1/workers/%d/cordon", f.Worker), only, "worker.cordon"},
		{200, fmt.Sprintf("POST /api/v1/workers/%d/uncordon", f.Worker), only, "worker.uncordon"},
		{200, fmt.Sprintf("POST /api/v1/workers/%d/drain", f.Worker), only, "worker.drain"},
		{200, fmt.Sprintf("POST /api/v1/workers/%d/forget", gone), only, "worker.forget"},
		{200, "POST /api/v1/rules/" + f.Rule + "/disable", only, "rule.disable"},
		{200, "POST /api/v1/rules/" + f.Rule + "/enable", only, "rule.enable"},
		{404, "POST /api/v1/rules/demo.nothing/enable", "{}", ""},
		{200, "GET /api/v1/audit", none, ""},
	}...)
}

// readsOver asks each path that can be read for what exists and for what does not.
func readsOver(f apitest.Filled) (exchanges []exchange) {
	exists := map[string]any{
		"dead-letters/{id}": f.DeadLetter, "workflows/{id}": f.Workflow, "events/{id}": f.Event, "rules/{ref}": f.Rule,
		"inquiries/{id}": f.Inquiry, "executions/{id}": f.Holder, "executions/status/{status}": "running",
		"enforcements/{id}/executions": f.Enforcement, "executions/{id}/why": f.QueuedExecution, "queues/{id}": f.Queue,
		"actions/{ref}/queue-stats": f.Action, "workers/{id}": f.Worker, "actions/{ref}": f.Action,
		"actions/{ref}/queues/clear": f.Action, "triggers/{ref}": f.Trigger, "packs/{ref}": f.Pack,
		"policies/{ref}": f.Policy,
	}
	variable := regexp.MustCompile(`\{\w+\}`)
	for _, op := range readSpec() {
		if op.method != http.MethodGet {
			continue
		}
		add := func(want int, of any) {
			exchanges = append(exchanges,
				exchange{want: want, request: "GET " + variable.ReplaceAllString(op.path, fmt.Sprint(of))})
		}
		add(http.StatusOK, exists[strings.TrimPrefix(op.path, "/api/v1/")])
		// a list, which is empty then
		if strings.Contains(op.path, "{") && op.path != "/api/v1/enforcements/{id}/executions" {
			add(http.StatusNotFound, 999_999)
		}
		if strings.Contains(op.path, "{id}") {
			add(http.StatusBadRequest, "x")
		}
	}
	return exchanges
}
