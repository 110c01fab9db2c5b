package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

// flow is a stage with events whose rule starts workflows. These have all features: a list that runs two at a
// time, a task that fails first, a nested workflow, two kinds of inquiries, and a join.
type flow struct {
	*stage

	runs    int // events that were emitted
	flowLog *flowLog
}

// The references of a flow.
const (
	flowDoor  = "flow.door"  // the trigger
	flowMain  = "flow.main"  // the workflow that its rule starts
	flowInner = "flow.inner" // the one within
	flowStep  = "flow.step"  // the action of most tasks
	flowFlaky = "flow.flaky" // fails the first time that it is run for a workflow
	flowAsks  = "flow.asks"  // asks a person by its result
)

var flowWorkflows = map[string]string{
	flowMain: `
version: "1"
vars: {sum: 0}
tasks:
  - {name: begin, action: flow.step, input: {run: "{{ parameters.run }}", task: begin}, next: [{do: [list, flaky, nested, ask, asks]}]}
  - name: list
    action: flow.step
    with_items: "{{ range(6) }}"
    concurrency: 2
    input: {run: "{{ parameters.run }}", task: list, item: "{{ item }}"}
    next: [{when: "{{ succeeded() }}", publish: [{sum: "{{ sum + length(result()) }}"}], do: [join]}]
  - name: flaky
    action: flow.flaky
    input: {run: "{{ parameters.run }}", task: flaky}
    retry: {count: 3, delay: 0}
    next: [{when: "{{ succeeded() }}", publish: [{sum: "{{ sum + 1 }}"}], do: [join]}]
  - {name: nested, action: flow.inner, input: {run: "{{ parameters.run }}"}, next: [{when: "{{ succeeded() }}", publish: [{sum: "{{ sum + result().inner }}"}], do: [join]}]}
  - name: ask
    action: core.ask
    input: {prompt: "Go on with {{ parameters.run }}?", response_schema: {yes: {type: boolean, required: true}}}
    next: [{when: "{{ result().response.yes }}", publish: [{sum: "{{ sum + 10 }}"}], do: [join]}]
  - {name: asks, action: flow.asks, input: {run: "{{ parameters.run }}", task: asks}, next: [{when: "{{ result().response.yes }}", publish: [{sum: "{{ sum + 100 }}"}], do: [join]}]}
  - {name: join, action: flow.step, join: all, input: {run: "{{ parameters.run }}", task: join}}
output_map: {sum: "{{ sum }}", items: "{{ length(task.list.results) }}"}
`,
	flowInner: `
version: "1"
tasks:
  - {name: one, action: flow.step, input: {run: "{{ parameters.run }}", task: one}, next: [{do: [two]}]}
  - {name: two, action: flow.step, input: {run: "{{ parameters.run }}", task: two}}
output_map: {inner: 1000}
`,
}

// flowEnd is the result of each workflow.
const flowEnd = `{"sum": 1117, "items": 6, "succeeded": true}`

// flowTasks are the executions of each workflow, with their retries.
var flowTasks = []string{
	"ask/-1/0 completed", "asks/-1/0 completed", "begin/-1/0 completed", "flaky/-1/0 failed", "flaky/-1/1 completed",
	"join/-1/0 completed",
	"list/0/0 completed", "list/1/0 completed", "list/2/0 completed", "list/3/0 completed", "list/4/0 completed",
	"list/5/0 completed",
	"main/-1/0 completed", "nested/-1/0 completed", "one/-1/0 completed", "two/-1/0 completed",
}

func newFlow(t testing.TB) *flow {
	t.Helper()
	return flowOn(newStage(t))
}

func flowOn(s *stage) *flow {
	f := &flow{stage: s, flowLog: newFlowLog()}
	for _, ref := range []string{flowStep, flowFlaky, flowAsks} {
		testkit.Action(s.t, s.store, ref)
	}
	for ref, definition := range flowWorkflows {
		f.define(ref, definition)
	}
	testkit.Exec(s.t, s.store, `INSERT INTO trigger (ref, label) VALUES ($1, 'x')`, flowDoor)
	f.rule(flowDoor, flowMain)
	return f
}

// define inserts a workflow and its action.
func (f *flow) define(ref, definition string) {
	f.t.Helper()
	parsed, mistakes, _ := workflow.Parse(ref, []byte(definition))
	require.Empty(f.t, mistakes, ref)
	raw, err := parsed.JSON()
	require.NoError(f.t, err)
	action := testkit.Action(f.t, f.store, ref)
	testkit.Exec(f.t, f.store, `WITH d AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
			SELECT $2::text, a.pack, a.pack_ref, $2::text, '1.0.0', $3 FROM action a WHERE a.id = $1 RETURNING id)
		UPDATE action SET workflow_def = d.id FROM d WHERE action.id = $1`, action.ID, ref, raw)
}

// rule inserts a rule that starts a workflow for each event, with the number of the event.
func (f *flow) rule(trigger, ref string) {
	f.t.Helper()
	testkit.Exec(f.t, f.store, `INSERT INTO rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, conditions, action_params, enabled)
		SELECT $1 || '_rule', a.pack, a.pack_ref, 'x', a.id, a.ref, t.id, t.ref, '[{"field": "run", "operator": "not_equals", "value": 0}]',
			'{"run": "{{ event.payload.run }}"}', true
		FROM action a, trigger t WHERE a.ref = $1 AND t.ref = $2`, ref, trigger)
}

// emit emits events that start workflows.
func (f *flow) emit(n int) {
	f.t.Helper()
	events := make([]submit.Event, n)
	for i := range events {
		f.runs++
		events[i] = submit.Event{TriggerRef: flowDoor, Payload: fmt.Appendf(nil, `{"run":%d}`, f.runs)}
	}
	_, err := f.submitter.EmitEvents(testkit.Context(f.t), events)
	require.NoError(f.t, err)
}

// answer answers all pending inquiries, as inquiry respond does.
func (f *flow) answer() {
	f.t.Helper()
	for _, id := range f.ids(`SELECT id FROM inquiry WHERE status = 'pending' AND (timeout_at IS NULL OR timeout_at > now() + interval '1 minute') ORDER BY id`) {
		_, err := f.operator.Answer(testkit.Context(f.t),
			triage.AnswerRequest{Inquiry: id, Response: json.RawMessage(`{"yes": true}`)})
		require.NoError(f.t, err)
	}
}

// until emits at least five events and answers inquiries until enough returns true.
func (f *flow) until(enough func() bool) {
	f.t.Helper()
	deadline := time.Now().Add(4 * time.Minute) // as long as testkit.Eventually gives on a busy machine
	for emitted := 0; emitted < 5 || !enough(); {
		require.True(f.t, time.Now().Before(deadline), "the condition of the load is not met: %s", lazily(f.open))
		// Executions of a dead replica wait, so the load must be bounded.
		if emitted < 5 ||
			f.count(`SELECT count(*) FROM execution e WHERE parent IS NULL AND e.finished_status IS NULL`) < 20 {
			f.emit(1)
			emitted++
		}
		f.answer()
		time.Sleep(30 * time.Millisecond)
	}
}

// age makes the work of dead replicas old enough to be read by others.
func (f *flow) age() {
	f.t.Helper()
	f.stage.age()
	tx, err := f.store.Pool().Begin(testkit.Context(f.t))
	require.NoError(f.t, err)
	// it is committed, or the test has failed
	defer func() { _ = tx.Rollback(context.WithoutCancel(testkit.Context(f.t))) }()
	for _, sql := range []string{
		`SET LOCAL session_replication_role = replica`, // the database sets the time of a row itself
		`UPDATE workflow_execution SET updated = updated - interval '11 s' WHERE open`,
		`UPDATE execution e SET updated = updated - interval '11 s' WHERE e.finished_status IS NOT NULL`,
	} {
		_, err := tx.Exec(testkit.Context(f.t), sql)
		require.NoError(f.t, err)
	}
	require.NoError(f.t, tx.Commit(testkit.Context(f.t)))
}

// over answers inquiries until every workflow has ended.
func (f *flow) over() {
	f.t.Helper()
	testkit.Eventually(f.t, func() bool {
		f.answer()
		return f.count(
			`SELECT count(*) FROM execution e WHERE parent IS NULL AND e.finished_status IS NOT NULL`) >= f.runs &&
			f.count(`SELECT count(*) FROM execution e WHERE e.finished_status IS NULL`) == 0
	}, testkit.TestTimeout, "S12, L2: every workflow ends: %s", lazily(f.open))
	f.stage.over()
	testkit.Eventually(f.t, func() bool {
		return f.count(`SELECT (SELECT count(*) FROM workflow_execution WHERE open) + (SELECT count(*) FROM workflow_task_dispatch WHERE NOT settled)
			+ (SELECT count(*) FROM enforcement WHERE status <> 'processed') + (SELECT count(*) FROM workflow_item)`) == 0
	}, 20*time.Second, "nothing is left open of a workflow: %s", lazily(f.open))
}

// open describes the open executions, workflows, enforcements and inquiries.
func (f *flow) open() (text string) {
	_ = f.store.Pool().QueryRow(context.Background(), `SELECT coalesce(string_agg(what, E'\n' ORDER BY what), 'nothing') FROM (
		SELECT format('execution %s of %s in %s is %s', e.id, e.action_ref, e.parent, e.status) FROM execution e WHERE e.finished_status IS NULL
		UNION ALL SELECT format('workflow %s of %s, version %s: %s', w.id, w.execution, w.version, w.current_tasks) FROM workflow_execution w WHERE w.open
		UNION ALL SELECT format('enforcement %s is %s', f.id, f.status) FROM enforcement f WHERE f.status <> 'processed'
		UNION ALL SELECT format('inquiry %s of %s is %s', q.id, q.execution, q.status) FROM inquiry q WHERE q.status = 'pending') x (what)`).Scan(&text)
	return "\n" + text // it is only shown
}

// requireFlows checks that every event has one workflow with the expected result and tasks, that each task ran
// once (S10, S2), lists within their concurrency, and that every end was published (S14).
func (f *flow) requireFlows() {
	f.t.Helper()
	f.requireOutcomes()
	f.requireReported(f.ids(`SELECT id FROM execution`)...)
}

// requireOutcomes checks all of that except the published ends.
func (f *flow) requireOutcomes() {
	f.t.Helper()
	type outcome struct {
		Run    int
		Result string
		Tasks  []string
	}
	rows, err := f.store.Pool().Query(testkit.Context(f.t), `
		SELECT (r.config ->> 'run')::int, coalesce(r.result::text, ''), array_agg(t.task ORDER BY t.task)
		FROM execution r CROSS JOIN LATERAL (
			SELECT format('%s/%s/%s %s', coalesce(e.workflow_task ->> 'task_name', 'main'), coalesce((e.workflow_task ->> 'task_index')::int, -1), e.retry_count, e.status)
			FROM execution e LEFT JOIN execution p ON p.id = e.parent
			WHERE r.id IN (e.id, e.parent, p.parent)) t (task)
		WHERE r.action_ref = $1 AND r.parent IS NULL
		GROUP BY r.id ORDER BY 1`, flowMain)
	require.NoError(f.t, err)
	outcomes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[outcome])
	require.NoError(f.t, err)
	require.Len(f.t, outcomes, f.runs, "each event leads to one workflow")
	for i, o := range outcomes {
		require.Equal(f.t, i+1, o.Run)
		require.Equal(f.t, flowTasks, o.Tasks, "the tasks of workflow %d", o.Run)
		require.JSONEq(f.t, flowEnd, o.Result, "the result of workflow %d", o.Run)
	}
	require.Zero(f.t, f.count(`SELECT count(*) FROM late_write`), "S8: no late write had to be refused")
	require.Zero(f.t, f.count(`SELECT count(*) FROM dead_letter`), "nothing is given up")
	require.Zero(f.t, f.count(`SELECT count(*) FROM workflow_execution w WHERE w.version <> (SELECT count(*) FROM workflow_log l WHERE l.workflow_execution = w.id)`), "S11")
	f.requireStartedOnce()
}

// requireStartedOnce checks the starts in the flowLog.
func (f *flow) requireStartedOnce() {
	f.t.Helper()
	f.flowLog.mu.Lock()
	defer f.flowLog.mu.Unlock()
	for id, attempts := range f.flowLog.starts {
		require.Equal(f.t, []int{1}, attempts, "S2: the starts of execution %d", id)
	}
	require.Len(f.t, f.flowLog.ran, f.runs*12, "every task of every workflow was run")
	for m, n := range f.flowLog.ran {
		if m.Task == "flaky" {
			require.Equal(f.t, 2, n, "%+v fails and is retried", m)
			continue
		}
		require.Equal(f.t, 1, n, "S10: %+v is run once", m)
	}
	for run, most := range f.flowLog.most {
		require.LessOrEqual(f.t, most, 2, "the list of workflow %d", run)
	}
}

// flowLog is the log of the actions of a flow about their runs.
type flowLog struct {
	mu     sync.Mutex
	starts map[int64][]int // the attempts of an execution
	ran    map[mark]int    // the runs of a task
	now    map[int]int     // the running items of a workflow's list
	most   map[int]int     // their maximum
}

// mark identifies a task of a workflow, by its parameters.
type mark struct {
	Run  int    `json:"run"`
	Task string `json:"task"`
	Item int    `json:"item"`
}

func newFlowLog() *flowLog {
	return &flowLog{starts: map[int64][]int{}, ran: map[mark]int{}, now: map[int]int{}, most: map[int]int{}}
}

// begin logs the start of a task, and returns the number of its starts and a function that logs its end.
func (b *flowLog) begin(m mark, task worker.Task) (nth int, end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.starts[task.ExecutionID] = append(b.starts[task.ExecutionID], task.Attempt)
	b.ran[m]++
	if m.Task == "list" {
		b.now[m.Run]++
		b.most[m.Run] = max(b.most[m.Run], b.now[m.Run])
	}
	return b.ran[m], func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if m.Task == "list" {
			b.now[m.Run]--
		}
	}
}

// does returns an action that logs its start and end around run.
func (b *flowLog) does(result func(nth int) (any, error)) worker.Func {
	return func(ctx context.Context, task worker.Task) (any, error) {
		var m mark
		if err := task.Decode(&m); err != nil {
			return nil, err
		}
		nth, end := b.begin(m, task)
		defer end()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Duration(1+task.ExecutionID%7) * 2 * time.Millisecond):
			return result(nth)
		}
	}
}

// worker starts a worker in this process with the actions of flows and of every stage.
func (f *flow) worker(name string) {
	f.t.Helper()
	actions := worker.Actions{
		actFree: f.runLog.run, actLimited: f.runLog.run, actFlaky: f.runLog.flaky,
		flowStep: f.flowLog.does(func(int) (any, error) { return map[string]any{"done": true}, nil }),
		flowFlaky: f.flowLog.does(func(nth int) (any, error) {
			if nth == 1 {
				return nil, errors.New("out of luck")
			}
			return map[string]any{"done": true}, nil
		}),
		flowAsks: f.flowLog.does(func(int) (any, error) {
			return map[string]any{"__inquiry": map[string]any{"prompt": "And this?"}}, nil
		}),
	}
	f.startWorkerWith(worker.Config{Name: name, MaxConcurrent: 30, HeartbeatInterval: time.Second, Actions: actions})
}

// rows are all rows about the state of the workflows, as one text.
func (f *flow) rows() string {
	f.t.Helper()
	var lines []string
	for table, sql := range map[string]string{
		"execution":              `SELECT row(t.id, t.status, t.attempt, t.retry_count, t.result, t.parent, t.workflow_task, t.finished_at)::text FROM execution t`,
		"workflow_execution":     `SELECT row(t.id, t.version, t.status, t.state, t.variables)::text FROM workflow_execution t`,
		"workflow_task_dispatch": `SELECT row(t.id, t.task_name, t.task_index, t.execution_id, t.settled)::text FROM workflow_task_dispatch t`,
		"enforcement":            `SELECT row(t.id, t.status, t.event)::text FROM enforcement t`,
		"inquiry":                `SELECT row(t.id, t.status, t.response, t.execution)::text FROM inquiry t`,
	} {
		list := testkit.Column[string](f.t, f.store.Pool(), sql)
		for _, line := range list {
			lines = append(lines, table+" "+line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// engineQueues are the queues of the replicas, by exchange and routing key.
func engineQueues() map[string][2]string {
	return map[string][2]string{
		message.QueueEvents:             {message.ExchangeEvents, message.KeyEventCreated},
		message.QueueEnforcements:       {message.ExchangeExecutions, message.PatternEnforcement},
		message.QueueExecutionRequests:  {message.ExchangeExecutions, message.KeyExecutionRequested},
		message.QueueExecutionCompleted: {message.ExchangeExecutions, message.KeyExecutionCompleted},
		message.QueueInquiryResponses:   {message.ExchangeExecutions, message.KeyInquiryResponded},
	}
}
