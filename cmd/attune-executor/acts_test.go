package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
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

// doorCase is an act that every door carries out, each on a subject of its own.
type doorCase struct {
	name    string
	subject func(d *doors) string           // stores what the act changes; SUBJECT stands for it below
	target  func(subject string) act.Target // that of the dashboard; by default the subject's id
	kind    act.Kind                        // if it is not the name
	values  map[string]string
	command string // without it, there is no command
	dryRun  bool   // the command plans
	path    string // without it, HTTP has no such act
	body    string
	plans   bool // HTTP plans
}

// doors is a database with its command line and its HTTP API.
type doors struct {
	t              *testing.T
	store          *store.Store
	database, amqp string
	handler        http.Handler
	dashboard      *act.Operator
	link           *broker.Broker
	made           int
}

func openDoors(t *testing.T) *doors {
	t.Helper()
	d := &doors{t: t, database: testkit.OwnDatabase(t), amqp: testkit.VHost(t)}
	d.store = testkit.OpenStore(t, d.database)
	d.link = broker.New(broker.Config{URL: d.amqp}, testkit.Logger(t), nil)
	require.NoError(t, d.link.Start(testkit.Context(t)))
	t.Cleanup(d.link.Stop)
	require.NoError(t, d.link.DeclareExecutor(testkit.Context(t)))
	for _, sequence := range []string{"execution", "dead_letter", "operator_audit", "inquiry"} { // no id is a count
		testkit.Exec(t, d.store, `alter sequence `+sequence+`_id_seq restart 1000`)
	}
	view := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: d.store}), nil, nil)
	d.dashboard = act.New(act.Config{}, triage.New(triage.Config{}, d.store, nil).With(d.link), view)
	server := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), View: view,
		Acts:      triage.New(triage.Config{Source: "attune-executor http"}, d.store, nil).With(d.link),
		Published: api.Published{Store: d.store},
		Ready:     func(context.Context) []api.Check { return nil },
	})
	d.handler = server.Handler()
	return d
}

func (d *doors) name(prefix string) string {
	d.made++
	return fmt.Sprintf("%s%d", prefix, d.made)
}

// executions stores executions of a new action.
func (d *doors) execution(status lifecycle.Status) int64 {
	action := testkit.Action(d.t, d.store, d.name("demo.x"))
	return testkit.Execution(d.t, d.store, action, func(e *testkit.ExecutionRow) { e.Status = status }).ID
}

// queue stores a queue with waiting executions, and returns the ref of its action and the executions.
func (d *doors) queue(waiting int) (ref string, ids []int64) {
	action := testkit.Action(d.t, d.store, d.name("demo.q"))
	state := testkit.State(d.t, d.store, action, 2, func(r *testkit.StateRow) { r.Queued = int32(waiting) })
	for i := range waiting {
		one := testkit.Execution(d.t, d.store, action)
		testkit.Exec(d.t, d.store, `insert into execution_admission_entry (state_id, execution_id, status, queue_order) values ($1, $2, 'queued', $3)`,
			state.ID, one.ID, i+1)
		ids = append(ids, one.ID)
	}
	testkit.Exec(d.t, d.store, `update execution_admission_state set next_queue_order = 9 where id = $1`, state.ID)
	return action.Ref, ids
}

func (d *doors) deadLetter(decision, reason string) int64 {
	id := apitest.DeadLetter(d.t, d.store, 0, decision)
	testkit.Exec(d.t, d.store, `update dead_letter set reason = $2, evidence = jsonb_build_object('taken', jsonb_build_object('queue', $3::text)),
		body = '{"message_type": "EventCreated", "message_id": "4f3f4f8e-1f0f-4a53-a5a8-5f1d7a3dc001",
			"timestamp": "2026-11-21T10:00:00Z", "payload": {"event_id": 1}}' where id = $1`, id, reason, message.QueueDeadLetter)
	return id
}

// dead puts a message into the broker's queue of dead letters.
func (d *doors) dead() {
	conn, err := amqp.Dial(d.amqp)
	require.NoError(d.t, err)
	defer func() { require.NoError(d.t, conn.Close()) }()
	channel, err := conn.Channel()
	require.NoError(d.t, err)
	require.NoError(d.t, channel.Confirm(false))
	sent, err := channel.PublishWithDeferredConfirmWithContext(d.t.Context(), "", message.QueueDeadLetter, true, false,
		amqp.Publishing{MessageId: d.name("m-"), Type: "EventCreated", Body: []byte(`{}`)})
	require.NoError(d.t, err)
	require.True(d.t, sent.Wait())
}

func (d *doors) worker(status string) string {
	return testkit.Worker(d.t, d.store, d.name("w-"), func(w *testkit.WorkerRow) { w.Status = status }).Name
}

func ofID(id int64) string { return fmt.Sprint(id) }

func ofQueue(waiting int) func(d *doors) string {
	return func(d *doors) string {
		ref, _ := d.queue(waiting)
		return ref
	}
}

func ofExecution(status lifecycle.Status) func(d *doors) string {
	return func(d *doors) string { return ofID(d.execution(status)) }
}

func ofDeadLetter(decision string) func(d *doors) string {
	return func(d *doors) string { return ofID(d.deadLetter(decision, "rejected")) }
}

func ofRule(enabled bool) func(d *doors) string {
	return func(d *doors) string {
		action, ref := testkit.Action(d.t, d.store, d.name("demo.x")), d.name("demo.x")
		testkit.Exec(d.t, d.store, `insert into rule (ref, pack, pack_ref, label, action, action_ref, trigger_ref, enabled)
			select $1, pack, pack_ref, 'Rule', id, ref, 'demo.door', $3 from action where id = $2`, ref, action.ID, enabled)
		return ref
	}
}

func ofWaiting(d *doors) string {
	_, ids := d.queue(2)
	return ofID(ids[1])
}

func ofWorkflow(d *doors) string { return ofID(apitest.Workflow(d.t, d.store)) }

// paused is a paused queue, or workflow.
func paused(of func(d *doors) string, path string) func(d *doors) string {
	return func(d *doors) string {
		subject := of(d)
		code, answer := d.post(strings.ReplaceAll(path, "SUBJECT", subject), `{"reason": "before"}`)
		require.Equal(d.t, http.StatusOK, code, answer)
		return subject
	}
}

func (d *doors) workerID(name string) string {
	return ofID(int64(testkit.Count(d.t, d.store, `select id from worker where name = $1`, name)))
}

func ofAction(subject string) act.Target { return act.Target{Action: subject} }

func named(subject string) act.Target { return act.Target{Ref: subject} }

var doorCases = []doorCase{
	{
		name: "execution.cancel", subject: ofExecution(lifecycle.StatusRequested), dryRun: true,
		command: "execution cancel SUBJECT --reason why", path: "/api/v1/executions/SUBJECT/cancel",
	},
	{
		name: "execution.cancel of one that ended", subject: ofExecution(lifecycle.StatusCompleted),
		command: "execution cancel SUBJECT --reason why", path: "/api/v1/executions/SUBJECT/cancel",
	},
	{
		name: "execution.cancel-tree", subject: ofExecution(lifecycle.StatusRequested), dryRun: true,
		command: "execution cancel SUBJECT --tree --reason why", path: "/api/v1/executions/SUBJECT/cancel",
		body: `"tree": true`,
	},
	{
		name: "execution.retry", subject: ofExecution(lifecycle.StatusFailed),
		command: "execution retry SUBJECT --reason why", path: "/api/v1/executions/SUBJECT/retry",
	},
	{
		name: "execution.retry of a running one", subject: ofExecution(lifecycle.StatusRunning),
		command: "execution retry SUBJECT --reason why", path: "/api/v1/executions/SUBJECT/retry",
	},
	{
		name: "execution.retry of none", subject: func(*doors) string { return "99999" },
		command: "execution retry SUBJECT --reason why", path: "/api/v1/executions/SUBJECT/retry",
	},
	{
		name: "execution.front", subject: ofWaiting, command: "execution front SUBJECT --reason why",
		path: "/api/v1/executions/front", body: `"ids": [SUBJECT]`,
	},
	{
		name: "execution.lane", values: map[string]string{act.FieldLane: "high"}, subject: ofWaiting, command: "execution lane --to high SUBJECT --reason why",
		path: "/api/v1/executions/lane", body: `"ids": [SUBJECT], "lane": "high"`,
	},
	{
		name: "execution.put-back", command: "execution front --undo SUBJECT --reason why",
		subject: func(d *doors) string {
			code, answer := d.post("/api/v1/executions/front", `{"ids": [`+ofWaiting(d)+`]}`)
			require.Equal(d.t, http.StatusOK, code, answer)
			return ofID(int64(testkit.Count(d.t, d.store, `select max(id) from operator_audit`)))
		},
		path: "/api/v1/executions/put-back", body: `"audit_id": SUBJECT`,
	},
	{
		name: "execution.put-back of no move", command: "execution front --undo SUBJECT --reason why",
		subject: func(*doors) string { return "99999" },
		path:    "/api/v1/executions/put-back", body: `"audit_id": SUBJECT`,
	},
	{
		name: "queue.pause", target: ofAction, subject: ofQueue(1), command: "queue pause SUBJECT --reason why",
		path: "/api/v1/actions/SUBJECT/queues/pause",
	},
	{
		name: "queue.resume", target: ofAction, subject: paused(ofQueue(1), "/api/v1/actions/SUBJECT/queues/pause"),
		command: "queue resume SUBJECT", path: "/api/v1/actions/SUBJECT/queues/resume",
	},
	{
		name: "queue.limit", target: ofAction, values: map[string]string{act.FieldLimit: "7"},
		subject: ofQueue(1), command: "queue limit SUBJECT 7",
		path: "/api/v1/actions/SUBJECT/queues/limit", body: `"limit": 7`,
	},
	{
		name: "queue.reset", target: ofAction, subject: ofQueue(1), command: "queue limit SUBJECT --reset",
		path: "/api/v1/actions/SUBJECT/queues/reset",
	},
	{
		name: "queue.pause of no action", subject: func(*doors) string { return "demo.none" },
		command: "queue pause SUBJECT --reason why", path: "/api/v1/actions/SUBJECT/queues/pause",
	},
	{
		name: "queue.clear", target: ofAction,
		subject: ofQueue(2), dryRun: true, plans: true, command: "queue clear SUBJECT --yes",
		path: "/api/v1/actions/SUBJECT/queues/clear", body: `"confirm": "SUBJECT"`,
	},
	{
		name: "queue.clear without a word", subject: ofQueue(2), command: "queue clear SUBJECT",
		path: "/api/v1/actions/SUBJECT/queues/clear",
	},
	{
		name: "queue.repair", target: ofAction, dryRun: true, plans: true, command: "queue repair SUBJECT",
		subject: func(d *doors) string {
			action := testkit.Action(d.t, d.store, d.name("demo.d"))
			testkit.State(d.t, d.store, action, 2, func(r *testkit.StateRow) { r.Active = 2 })
			return action.Ref
		},
		path: "/api/v1/queues/repair?action=SUBJECT",
	},
	{
		name: "worker.cordon", target: named,
		subject: func(d *doors) string { return d.worker("active") }, dryRun: true,
		command: "workers cordon SUBJECT --reason why", path: "/api/v1/workers/ID/cordon",
	},
	{
		name: "worker.uncordon", target: named, dryRun: true, command: "workers uncordon SUBJECT --reason why",
		subject: func(d *doors) string {
			name := d.worker("active")
			code, answer := d.post("/api/v1/workers/"+d.workerID(name)+"/cordon", `{}`)
			require.Equal(d.t, http.StatusOK, code, answer)
			return name
		},
		path: "/api/v1/workers/ID/uncordon",
	},
	{
		name: "worker.drain", target: named, subject: func(d *doors) string { return d.worker("active") }, dryRun: true,
		command: "workers drain SUBJECT --reason why --yes", path: "/api/v1/workers/ID/drain",
	},
	{
		name: "worker.forget", target: named,
		subject: func(d *doors) string { return d.worker("inactive") }, dryRun: true,
		command: "workers forget SUBJECT --reason why --yes", path: "/api/v1/workers/ID/forget",
	},
	{
		name: "worker.forget of a live one", subject: func(d *doors) string { return d.worker("active") }, dryRun: true,
		command: "workers forget SUBJECT --reason why --yes", path: "/api/v1/workers/ID/forget",
	},
	{
		name: "workflow.pause", subject: ofWorkflow, command: "workflow pause SUBJECT --reason why",
		path: "/api/v1/workflows/SUBJECT/pause",
	},
	{
		name: "workflow.resume", subject: paused(ofWorkflow, "/api/v1/workflows/SUBJECT/pause"),
		command: "workflow resume SUBJECT --reason why", path: "/api/v1/workflows/SUBJECT/resume",
	},
	{
		name: "workflow.cancel", subject: ofWorkflow, dryRun: true, command: "workflow cancel SUBJECT --reason why",
		path: "/api/v1/workflows/SUBJECT/cancel",
	},
	{
		name: "workflow.pause of an execution", subject: ofExecution(lifecycle.StatusRequested),
		command: "workflow pause SUBJECT --reason why", path: "/api/v1/workflows/SUBJECT/pause",
	},
	{
		name: "inquiry.respond", values: map[string]string{act.FieldAnswer + "ok": "yes"}, dryRun: true,
		subject: func(d *doors) string { return ofID(apitest.Inquiry(d.t, d.store, "pending", 0)) },
		command: "inquiry respond SUBJECT --note why -p ok:=true", path: "/api/v1/inquiries/SUBJECT/respond",
		body: `"response": {"ok": true}`,
	},
	{
		name:    "inquiry.respond to an answered one",
		subject: func(d *doors) string { return ofID(apitest.Inquiry(d.t, d.store, "responded", 0)) },
		command: "inquiry respond SUBJECT --note why -p ok:=true", path: "/api/v1/inquiries/SUBJECT/respond",
		body: `"response": {"ok": true}`,
	},
	{
		name: "dead_letter.requeue", subject: ofDeadLetter(""), command: "dlq requeue SUBJECT --reason why",
		path: "/api/v1/dead-letters/SUBJECT/requeue",
	},
	{
		name: "dead_letter.requeue of a useless one", command: "dlq requeue SUBJECT --reason why",
		subject: func(d *doors) string {
			id := d.deadLetter("", "rejected")
			testkit.Exec(d.t, d.store, `update dead_letter set headers = '{"x-attune-deaths": "9"}' where id = $1`, id)
			return ofID(id)
		},
		path: "/api/v1/dead-letters/SUBJECT/requeue",
	},
	{
		name: "dead_letter.requeue of a decided one", subject: ofDeadLetter("discarded"),
		command: "dlq requeue SUBJECT --reason why", path: "/api/v1/dead-letters/SUBJECT/requeue",
	},
	{
		name: "dead_letter.discard", subject: ofDeadLetter(""), command: "dlq discard SUBJECT --reason why",
		path: "/api/v1/dead-letters/SUBJECT/discard",
	},
	{
		name: "dead_letter.discard of a decided one", subject: ofDeadLetter("discarded"),
		command: "dlq discard SUBJECT --reason why", path: "/api/v1/dead-letters/SUBJECT/discard",
	},
	{
		name: "dead_letter.discard-all", dryRun: true, plans: true,
		values: map[string]string{act.FieldReason: "SUBJECT"},
		subject: func(d *doors) string {
			reason := d.name("bulk")
			d.deadLetter("", reason)
			d.deadLetter("", reason)
			return reason
		},
		command: "dlq discard-all --reason SUBJECT --note why --yes",
		path:    "/api/v1/dead-letters/discard-all?reason=SUBJECT", body: `"confirm": "discard 2"`,
	},
	{
		name: "dead_letter.reopen", kind: act.UndoDeadLetters, subject: ofDeadLetter("discarded"), path: "/api/v1/dead-letters/SUBJECT/reopen",
	},
	{name: "dead_letter.return", subject: ofDeadLetter(""), path: "/api/v1/dead-letters/SUBJECT/return"},
	{
		name: "dead_letter.take", dryRun: true, plans: true, command: "dlq take --first 1 --note why --yes",
		subject: func(d *doors) string {
			d.dead()
			return "-"
		},
		path: "/api/v1/dead-letters/take?first=1",
	},
	{
		name: "dead_letter.send", subject: ofDeadLetter(""),
		values: map[string]string{act.FieldExchange: message.ExchangeEvents, act.FieldKey: message.KeyEventCreated},
	},
	{
		name: "workflow.retry", subject: ofExecution(lifecycle.StatusFailed), command: "execution retry SUBJECT",
	},
	{
		name: "task.retry", subject: ofExecution(lifecycle.StatusFailed), command: "execution retry SUBJECT",
	},
	{
		name: "rule.disable", target: named, subject: ofRule(true), command: "rule disable SUBJECT --reason why",
		path: "/api/v1/rules/SUBJECT/disable",
	},
	{
		name: "rule.enable", target: named, subject: ofRule(false), command: "rule enable SUBJECT --reason why",
		path: "/api/v1/rules/SUBJECT/enable",
	},
	{
		name: "rule.enable of an enabled one", subject: ofRule(true), command: "rule enable SUBJECT --reason why",
		path: "/api/v1/rules/SUBJECT/enable",
	},
	{
		name: "rule.enable of none", subject: func(*doors) string { return "demo.none" },
		command: "rule enable SUBJECT --reason why", path: "/api/v1/rules/SUBJECT/enable",
	},
	{
		name: "dead_letter.purge-broker", subject: func(*doors) string { return "-" },
		path: "/api/v1/dead-letters/purge", body: `"confirm": "purge for good"`,
	},
}

func (d *doors) ask(method, path, body string) (int, string) {
	r := httptest.NewRequestWithContext(d.t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	var text bytes.Buffer
	require.NoError(d.t, json.Indent(&text, w.Body.Bytes(), "", "  "), "%s", w.Body)
	return w.Code, text.String()
}

func (d *doors) post(path, body string) (int, string) { return d.ask(http.MethodPost, path, body) }

func (d *doors) command(line string) string {
	var out, errs bytes.Buffer
	environ := []string{"ATTUNE__DATABASE__URL=" + d.database, "ATTUNE__MESSAGE_QUEUE__URL=" + d.amqp}
	code := execute(testkit.Context(d.t), strings.Fields(line), environ, strings.NewReader(""), &out, &errs)
	text := fmt.Sprintf("exit %d\n%s", code, &out)
	if errs.Len() > 0 {
		text += "stderr: " + errs.String()
	}
	return text
}

// show plans and runs an act as the dashboard does, and returns what it shows.
func (d *doors) show(c doorCase, subject string) (planned, ran string) {
	request := act.Request{Kind: cmp.Or(c.kind, act.Kind(c.name)), Values: map[string]string{}}
	for name, value := range c.values {
		request.Values[name] = strings.ReplaceAll(value, "SUBJECT", subject)
	}
	request.Target.ID, _ = strconv.ParseInt(subject, 10, 64)
	if c.target != nil {
		request.Target = c.target(subject)
	}
	var w page
	plan, err := d.dashboard.Plan(d.t.Context(), request)
	if err != nil {
		return err.Error(), ""
	}
	planPage(&w, plan)
	planned = w.String() + "word: " + cmp.Or(plan.Word, "-")
	if plan.Nothing != "" {
		return planned, ""
	}
	receipt, err := d.dashboard.Run(d.t.Context(), plan, "why", nil)
	if err != nil {
		return planned, err.Error()
	}
	w.Reset()
	receiptPage(&w, receipt)
	return planned, w.String()
}

// varying are the parts of answers that differ from run to run.
var varying = []struct {
	what *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?Z`), "TIME"},
	{regexp.MustCompile(`("[a-z_]*seconds": )[\d.e-]+`), "${1}0"},
	{regexp.MustCompile(`("audit_id": )\d+`), "${1}0"},
	{regexp.MustCompile(`("audit_ids": \[)[\d\s,]+\]`), "${1}0]"},
	{regexp.MustCompile(`\(audits? [\d–, ]+\)`), "(audit 0)"},
	{regexp.MustCompile(`--undo \d+`), "--undo 0"},
	{regexp.MustCompile(`"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"`), `"UUID"`},
	{regexp.MustCompile(`(?i)\b[a-z_0-9-]+@[a-z0-9-]+`), "ACTOR"},
	{regexp.MustCompile(`(worker |"(id|worker)": )\d+`), "${1}0"},
	{regexp.MustCompile(`demo\.[xqd]\d+`), "demo.NAME"},
	{regexp.MustCompile(`\b[\d.]+(ms|s|µs)\b`), "0s"},
}

// TestActsThroughEveryDoor compares what each door says about each act, its plan and its result, with
// testdata/acts.golden.
func TestActsThroughEveryDoor(t *testing.T) {
	d := openDoors(t)
	var golden strings.Builder
	acted := map[act.Kind]bool{}
	say := func(subject, door, text string) {
		for _, v := range varying {
			text = v.what.ReplaceAllString(text, v.text)
		}
		if subject != "-" {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(subject)+`\b`).ReplaceAllString(text, "SUBJECT")
		}
		fmt.Fprintf(&golden, "--- %s: %s\n", door, strings.TrimSpace(text))
	}
	for _, c := range doorCases {
		began := time.Now()
		fmt.Fprintf(&golden, "=== %s\n", c.name)
		with := func(text, subject string) string {
			if strings.Contains(text, "/ID/") {
				text = strings.ReplaceAll(text, "ID", d.workerID(subject))
			}
			return strings.ReplaceAll(text, "SUBJECT", subject)
		}
		if c.command != "" {
			for _, output := range []string{"table", "json"} {
				subject := c.subject(d)
				line := with(c.command, subject) + " -o " + output
				if c.dryRun {
					say(subject, output+" plan", d.command(strings.ReplaceAll(line, " --yes", "")+" --dry-run"))
				}
				say(subject, output, d.command(line))
			}
		}
		if acted[cmp.Or(c.kind, act.Kind(strings.Fields(c.name)[0]))] = true; !strings.Contains(c.name, " ") {
			subject := c.subject(d)
			planned, ran := d.show(c, subject)
			say(subject, "dashboard plan", planned)
			say(subject, "dashboard", ran)
		}
		if c.path != "" {
			subject := c.subject(d)
			path, body := with(c.path, subject), `"reason": "why"`
			if c.plans {
				code, answer := d.ask(http.MethodGet, path, "")
				say(subject, "HTTP plan", fmt.Sprintf("%d\n%s", code, answer))
			}
			if c.body != "" {
				body += ", " + with(c.body, subject)
			}
			code, answer := d.post(path, "{"+body+"}")
			say(subject, "HTTP", fmt.Sprintf("%d\n%s", code, answer))
		}
		t.Logf("%s in %s", c.name, time.Since(began))
	}
	for _, of := range act.All() {
		require.True(t, acted[of.Kind], "%s has no case", of.Kind)
	}
	file := filepath.Join("testdata", "acts.golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(golden.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), golden.String())
}
