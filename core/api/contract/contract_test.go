package contract_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

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

func TestMain(m *testing.M) { testkit.Main(m) }

// serve starts a server with every route, and the tokens all, reader and submitter.
func serve(t *testing.T, st *store.Store, operator *triage.Triage, rates api.Rates) string {
	t.Helper()
	var tokens strings.Builder
	for name, scopes := range map[string]string{"all": "read,operate,submit", "reader": "read", "submitter": "submit"} {
		fmt.Fprintf(&tokens, "%s %s %x\n", name, scopes, sha256.Sum256([]byte(name)))
	}
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte(tokens.String()), 0o600))
	server := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Acts: operator, TokensFile: file, Rates: rates,
		View:      alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
		Ready:     func(context.Context) []api.Check { return []api.Check{{Name: "all", OK: true, Detail: "well"}} },
		Published: api.Published{Store: st, Requester: submit.New(st, nil)},
	})
	server.Emits(submit.New(st, nil))
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	return "http://" + server.Addr()
}

// newClient is the generated client with a token, or with none.
func newClient(t *testing.T, address, token string) *ClientWithResponses {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := NewClientWithResponses(address, WithHTTPClient(&http.Client{Transport: transport}),
		WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			return nil
		}))
	require.NoError(t, err)
	return client
}

// operation is one operation of the description.
type operation struct {
	ID        string `yaml:"operationId"`
	Security  []map[string][]string
	Responses map[string]any
}

func described(t *testing.T) map[string]operation {
	t.Helper()
	var document struct {
		Paths map[string]map[string]operation
	}
	require.NoError(t, yaml.Unmarshal(api.OpenAPI(), &document))
	all := map[string]operation{}
	for _, path := range document.Paths {
		for _, op := range path {
			all[op.ID] = op
		}
	}
	return all
}

// hold compares an answer with the type that was generated for its status: the body has no member that the type does
// not have, and every required one.
func hold(t *testing.T, op operation, answer any) {
	t.Helper()
	response := reflect.ValueOf(answer).Elem()
	raw, ok := reflect.TypeAssert[*http.Response](response.FieldByName("HTTPResponse"))
	require.True(t, ok)
	body := response.FieldByName("Body").Bytes()
	require.Contains(t, op.Responses, fmt.Sprint(raw.StatusCode), "%s: %s", op.ID, body)
	kind, _, _ := strings.Cut(raw.Header.Get("Content-Type"), ";")
	prefix := map[string]string{"application/json": "JSON", "application/problem+json": "ApplicationproblemJSON"}[kind]
	if prefix == "" {
		require.Contains(t, []string{"text/plain", "application/yaml"}, kind, op.ID)
		require.NotEmpty(t, body)
		return
	}
	field := response.FieldByName(fmt.Sprint(prefix, raw.StatusCode))
	require.True(t, field.IsValid(), "%s: %s is not described for status %d: %s", op.ID, kind, raw.StatusCode, body)
	decoded := reflect.New(field.Type().Elem())
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(decoded.Interface()), "%s: %s", op.ID, body)
	again, err := json.Marshal(decoded.Interface())
	require.NoError(t, err)
	require.Equal(t, present(t, body), present(t, again), op.ID)
}

// present decodes a document without the members that are null: the client omits optional ones.
func present(t *testing.T, document []byte) (value any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(document, &value))
	var strip func(any)
	strip = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, one := range v {
				if one == nil {
					delete(v, name)
				}
				strip(one)
			}
		case []any:
			for _, one := range v {
				strip(one)
			}
		}
	}
	strip(value)
	return value
}

// status is the status of an answer.
func status(answer any) int {
	return answer.(interface{ StatusCode() int }).StatusCode() //nolint:errcheck,forcetypeassert // every answer has one
}

// call is one call of an operation with the status that it must have.
type call struct {
	op   string
	want int
	send func(ctx context.Context, c *ClientWithResponses) (any, error)
}

// TestEveryOperationAnswersAsItsGeneratedClientExpects calls every operation of the description against a real server.
func TestEveryOperationAnswersAsItsGeneratedClientExpects(t *testing.T) { //nolint:tparallel // reads come before writes
	t.Parallel()
	st, vhost := testkit.Store(t), testkit.VHost(t)
	link := broker.New(broker.Config{URL: vhost}, testkit.Logger(t), nil)
	require.NoError(t, link.Start(testkit.Context(t)))
	t.Cleanup(link.Stop)
	require.NoError(t, link.DeclareExecutor(testkit.Context(t)))
	publishDead(t, vhost)
	address := serve(t, st, triage.New(triage.Config{}, st, nil).With(link), api.Rates{})
	calls := callsOver(t, st)
	all := described(t)
	called := map[string]bool{}
	client := newClient(t, address, "all")
	for _, c := range calls {
		called[c.op] = true
		t.Run(fmt.Sprint(c.op, " ", c.want), func(t *testing.T) {
			answer, err := c.send(t.Context(), client)
			require.NoError(t, err)
			require.Equal(t, c.want, status(answer), "%s", reflect.ValueOf(answer).Elem().FieldByName("Body").Bytes())
			hold(t, all[c.op], answer)
		})
	}
	require.Equal(t, slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(called)), "an operation is not called")

	// Without a token, and with a token of another scope, each is refused as described.
	strangers := map[int]*ClientWithResponses{
		http.StatusUnauthorized: newClient(t, address, ""),
		http.StatusForbidden:    newClient(t, address, "submitter"),
	}
	for code, stranger := range strangers {
		for _, c := range calls {
			op := all[c.op]
			if len(op.Security) == 0 && op.Security != nil || c.op == "getMetrics" { // no token is required here
				continue
			}
			if slices.ContainsFunc(op.Security, func(s map[string][]string) bool {
				return slices.Contains(s["token"], "submit")
			}) && code == http.StatusForbidden {
				stranger = newClient(t, address, "reader")
			} else if code == http.StatusForbidden {
				stranger = strangers[code]
			}
			answer, err := c.send(t.Context(), stranger)
			require.NoError(t, err, c.op)
			require.Equal(t, code, status(answer), c.op)
			hold(t, op, answer)
		}
	}
}

// TestTooManyRequestsAreRefusedAsDescribed covers our form of errors and the published one.
func TestTooManyRequestsAreRefusedAsDescribed(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t)
	address := serve(t, st, triage.New(triage.Config{}, st, nil), api.Rates{PerToken: 1})
	all := described(t)
	for _, c := range []call{
		{"listReplicas", 429, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListReplicasWithResponse(ctx)
		}},
		{"getExecutionStats", 429, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetExecutionStatsWithResponse(ctx)
		}},
	} {
		client := newClient(t, address, map[string]string{"listReplicas": "reader", "getExecutionStats": "all"}[c.op])
		testkit.Eventually(t, func() bool {
			answer, err := c.send(t.Context(), client)
			require.NoError(t, err)
			hold(t, all[c.op], answer)
			return status(answer) == c.want
		}, 10*time.Second, "%s is refused", c.op)
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

// callsOver are calls of all operations, over a database with something of everything. Reads come first.
func callsOver(t *testing.T, st *store.Store) []call {
	t.Helper()
	f := apitest.Fill(t, st)
	action, err := st.PublishedAction(t.Context(), f.Action)
	require.NoError(t, err)
	in := func(status lifecycle.Status) int64 {
		return testkit.Execution(t, st, testkit.ActionRow{ID: action.ID, Ref: f.Action}, func(e *testkit.ExecutionRow) {
			e.Status = status
		}).ID
	}
	waits, failed := in(lifecycle.StatusRequested), in(lifecycle.StatusFailed)
	gone := testkit.Worker(t, st, "gone", func(w *testkit.WorkerRow) { w.Status = "inactive" }).ID
	pending, discarded := apitest.Inquiry(t, st, "pending", 0), apitest.DeadLetter(t, st, 0, "discarded")
	requeued, given, taken := apitest.DeadLetter(t, st, 0, ""), apitest.DeadLetter(t, st, 0, ""),
		apitest.DeadLetter(t, st, 0, "")
	testkit.Exec(t, st, `update dead_letter set evidence = jsonb_build_object('taken', jsonb_build_object('queue', $2::text)) where id = $1`,
		taken, message.QueueDeadLetter)
	reason, two := new("enough"), new(2)
	keyed := &ExecuteActionParams{IdempotencyKey: new("once")}
	return append(reads(f), []call{
		{"createExecution", 201, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.CreateExecutionWithResponse(ctx, nil, ExecutionRequest{ActionRef: f.Action})
		}},
		{"createExecution", 404, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.CreateExecutionWithResponse(ctx, nil, ExecutionRequest{ActionRef: "demo.nothing"})
		}},
		{"executeAction", 201, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ExecuteActionWithResponse(ctx, keyed, ExecutionRequest{ActionRef: f.Action})
		}},
		{"executeAction", 422, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ExecuteActionWithResponse(ctx, keyed, ExecutionRequest{
				ActionRef: f.Action, EnvVars: new(Any(map[string]any{"A": "b"})),
			})
		}},
		{"emitEvent", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.EmitEventWithResponse(ctx, nil, EmitOrder{
				TriggerRef: f.Trigger, Payload: new(Any(map[string]any{"state": "open"})),
			})
		}},
		{"emitEvent", 422, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.EmitEventWithResponse(ctx, nil, EmitOrder{
				TriggerRef: f.Trigger, Payload: new(Any(map[string]any{})),
			})
		}},
		{"frontExecutions", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.FrontExecutionsWithResponse(ctx, FrontOrder{Ids: []int64{waits}, Reason: reason})
		}},
		{"laneExecutions", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.LaneExecutionsWithResponse(ctx, LaneOrder{Ids: []int64{waits}, Lane: LaneOrderLaneHigh})
		}},
		{"putBackExecutions", 409, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PutBackExecutionsWithResponse(ctx, PutBackOrder{AuditId: 1 << 40})
		}},
		{"cancelExecution", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.CancelExecutionWithResponse(ctx, waits, CancelOrder{Reason: reason, Tree: new(true)})
		}},
		{"cancelExecution", 409, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.CancelExecutionWithResponse(ctx, waits, CancelOrder{})
		}},
		{"retryExecution", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.RetryExecutionWithResponse(ctx, failed, RetryOrder{Reason: reason})
		}},
		{"retryExecution", 409, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.RetryExecutionWithResponse(ctx, failed, RetryOrder{})
		}},
		{"pauseQueues", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PauseQueuesWithResponse(ctx, f.Action, QueueOrder{Reason: reason})
		}},
		{"pauseQueues", 404, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PauseQueuesWithResponse(ctx, "demo.nothing", QueueOrder{})
		}},
		{"resumeQueues", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ResumeQueuesWithResponse(ctx, f.Action, QueueOrder{})
		}},
		{"limitQueues", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.LimitQueuesWithResponse(ctx, f.Action, QueueLimitOrder{Limit: 3, Reason: reason})
		}},
		{"limitQueues", 400, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.LimitQueuesWithResponse(ctx, f.Action, QueueLimitOrder{})
		}},
		{"resetQueueLimits", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ResetQueueLimitsWithResponse(ctx, f.Action, QueueOrder{})
		}},
		{"repairQueues", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.RepairQueuesWithResponse(ctx, nil, ActOrder{Reason: reason})
		}},
		{"clearQueues", 409, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ClearQueuesWithResponse(ctx, f.Action, nil, ConfirmOrder{Confirm: "yes"})
		}},
		{"clearQueues", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ClearQueuesWithResponse(ctx, f.Action, nil, ConfirmOrder{Confirm: f.Action, Reason: reason})
		}},
		{"pauseWorkflow", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PauseWorkflowWithResponse(ctx, f.Workflow, WorkflowOrder{Reason: reason})
		}},
		{"resumeWorkflow", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ResumeWorkflowWithResponse(ctx, f.Workflow, WorkflowOrder{})
		}},
		{"cancelWorkflow", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.CancelWorkflowWithResponse(ctx, f.Workflow, WorkflowOrder{})
		}},
		{"respondToInquiry", 422, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.RespondToInquiryWithResponse(ctx, pending, RespondOrder{Response: map[string]any{"ok": 1}})
		}},
		{"respondToInquiry", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.RespondToInquiryWithResponse(ctx, pending,
				RespondOrder{Response: map[string]any{"ok": true}, Reason: reason})
		}},
		{"requeueDeadLetter", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.RequeueDeadLetterWithResponse(ctx, requeued, RequeueOrder{Reason: reason, Anyway: new(true)})
		}},
		{"requeueDeadLetter", 409, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.RequeueDeadLetterWithResponse(ctx, requeued, RequeueOrder{})
		}},
		{"discardDeadLetter", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.DiscardDeadLetterWithResponse(ctx, given, DeadLetterOrder{Reason: reason})
		}},
		{"reopenDeadLetter", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ReopenDeadLetterWithResponse(ctx, discarded, ActOrder{Reason: reason})
		}},
		{"reopenDeadLetter", 409, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ReopenDeadLetterWithResponse(ctx, discarded, ActOrder{})
		}},
		{"returnDeadLetter", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ReturnDeadLetterWithResponse(ctx, taken, ActOrder{Reason: reason})
		}},
		{"takeDeadLetters", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.TakeDeadLettersWithResponse(ctx, &TakeDeadLettersParams{First: two}, ActOrder{Reason: reason})
		}},
		{"discardDeadLetters", 409, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.DiscardDeadLettersWithResponse(ctx, nil, ConfirmOrder{Confirm: "all"})
		}},
		{"discardDeadLetters", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.DiscardDeadLettersWithResponse(ctx, nil, ConfirmOrder{Confirm: "discard 2", Reason: reason})
		}},
		{"purgeDeadLetters", 409, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PurgeDeadLettersWithResponse(ctx, ConfirmOrder{})
		}},
		{"purgeDeadLetters", 409, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PurgeDeadLettersWithResponse(ctx, ConfirmOrder{Confirm: "purge for good", Reason: reason})
		}},
		{"cordonWorker", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.CordonWorkerWithResponse(ctx, f.Worker, WorkerOrder{Reason: reason})
		}},
		{"uncordonWorker", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.UncordonWorkerWithResponse(ctx, f.Worker, WorkerOrder{})
		}},
		{"drainWorker", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.DrainWorkerWithResponse(ctx, f.Worker, WorkerOrder{})
		}},
		{"forgetWorker", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ForgetWorkerWithResponse(ctx, gone, WorkerOrder{Reason: reason})
		}},
		{"listAudit", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListAuditWithResponse(ctx, nil)
		}},
	}...)
}

// reads are the calls that change nothing.
func reads(f apitest.Filled) []call {
	return []call{
		{"getHealth", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetHealthWithResponse(ctx)
		}},
		{"getReadiness", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetReadinessWithResponse(ctx)
		}},
		{"getMetrics", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetMetricsWithResponse(ctx)
		}},
		{"getOpenapi", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetOpenapiWithResponse(ctx)
		}},
		{"listExecutions", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListExecutionsWithResponse(ctx, &ListExecutionsParams{IncludeTotal: new(true), PerPage: new(3)})
		}},
		{"getExecution", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetExecutionWithResponse(ctx, f.Holder, nil)
		}},
		{"getExecution", 404, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetExecutionWithResponse(ctx, 999_999, nil)
		}},
		{"getExecution", 403, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetExecutionWithResponse(ctx, f.Holder, &GetExecutionParams{IncludeSecretValues: new(true)})
		}},
		{"getExecutionStats", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetExecutionStatsWithResponse(ctx)
		}},
		{"listExecutionsByStatus", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListExecutionsByStatusWithResponse(ctx, "running", nil)
		}},
		{"listExecutionsByEnforcement", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListExecutionsByEnforcementWithResponse(ctx, f.Enforcement, nil)
		}},
		{"explainExecution", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ExplainExecutionWithResponse(ctx, f.QueuedExecution)
		}},
		{"explainExecution", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ExplainExecutionWithResponse(ctx, f.Holder)
		}},
		{"explainExecution", 404, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ExplainExecutionWithResponse(ctx, 999_999)
		}},
		{"listWorkflows", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListWorkflowsWithResponse(ctx, nil)
		}},
		{"getWorkflow", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetWorkflowWithResponse(ctx, f.Workflow)
		}},
		{"getWorkflow", 404, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetWorkflowWithResponse(ctx, f.Holder)
		}},
		{"listInquiries", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListInquiriesWithResponse(ctx, nil)
		}},
		{"getInquiry", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetInquiryWithResponse(ctx, f.Inquiry)
		}},
		{"listEvents", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListEventsWithResponse(ctx, nil)
		}},
		{"getEvent", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetEventWithResponse(ctx, f.Event)
		}},
		{"listEnforcements", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListEnforcementsWithResponse(ctx, nil)
		}},
		{"listRules", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListRulesWithResponse(ctx, nil)
		}},
		{"getRule", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetRuleWithResponse(ctx, f.Rule)
		}},
		{"listDeadLetters", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListDeadLettersWithResponse(ctx, &ListDeadLettersParams{Decided: new(true)})
		}},
		{"listDeadLetters", 400, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListDeadLettersWithResponse(ctx, &ListDeadLettersParams{Open: new(true), Decided: new(true)})
		}},
		{"getDeadLetter", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetDeadLetterWithResponse(ctx, f.DeadLetter)
		}},
		{"getDeadLetterStats", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetDeadLetterStatsWithResponse(ctx, &GetDeadLetterStatsParams{Since: new("1h")})
		}},
		{"planDiscardDeadLetters", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PlanDiscardDeadLettersWithResponse(ctx, &PlanDiscardDeadLettersParams{Reason: new("expired")})
		}},
		{"planTakeDeadLetters", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PlanTakeDeadLettersWithResponse(ctx, nil)
		}},
		{"planTakeDeadLetters", 404, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PlanTakeDeadLettersWithResponse(ctx, &PlanTakeDeadLettersParams{Queue: new("nowhere")})
		}},
		{"listQueues", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListQueuesWithResponse(ctx, &ListQueuesParams{All: new(true)})
		}},
		{"getQueue", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetQueueWithResponse(ctx, f.Queue)
		}},
		{"getQueueStats", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetQueueStatsWithResponse(ctx, f.Action)
		}},
		{"getQueueStats", 404, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetQueueStatsWithResponse(ctx, "demo.nothing")
		}},
		{"planClearQueues", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PlanClearQueuesWithResponse(ctx, f.Action, &PlanClearQueuesParams{OlderThan: new("1ns")})
		}},
		{"planClearQueues", 400, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PlanClearQueuesWithResponse(ctx, f.Action, &PlanClearQueuesParams{Group: new("{")})
		}},
		{"planRepairQueues", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PlanRepairQueuesWithResponse(ctx, nil)
		}},
		{"planRepairQueues", 404, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.PlanRepairQueuesWithResponse(ctx, &PlanRepairQueuesParams{Action: new("demo.nothing")})
		}},
		{"listWorkers", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListWorkersWithResponse(ctx, &ListWorkersParams{Name: new("w-")})
		}},
		{"listWorkers", 400, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListWorkersWithResponse(ctx, &ListWorkersParams{Health: new("well")})
		}},
		{"getWorker", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetWorkerWithResponse(ctx, f.Worker)
		}},
		{"listAlerts", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListAlertsWithResponse(ctx, &ListAlertsParams{History: new(true)})
		}},
		{"listReplicas", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListReplicasWithResponse(ctx)
		}},
		{"listAudit", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListAuditWithResponse(ctx, nil)
		}},
		{"listPolicies", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListPoliciesWithResponse(ctx, nil)
		}},
		{"getPolicy", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetPolicyWithResponse(ctx, f.Policy)
		}},
		{"listActions", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListActionsWithResponse(ctx, &ListActionsParams{Pack: &f.Pack})
		}},
		{"getAction", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetActionWithResponse(ctx, f.Action)
		}},
		{"listTriggers", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListTriggersWithResponse(ctx, nil)
		}},
		{"getTrigger", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetTriggerWithResponse(ctx, f.Trigger)
		}},
		{"listPacks", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.ListPacksWithResponse(ctx, nil)
		}},
		{"getPack", 200, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetPackWithResponse(ctx, f.Pack)
		}},
		{"getPack", 404, func(ctx context.Context, c *ClientWithResponses) (any, error) {
			return c.GetPackWithResponse(ctx, "nothing")
		}},
	}
}
