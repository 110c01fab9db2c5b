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
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/workflow"
)

// flow is a stage on which events lead through a rule to workflows with everything
// that a workflow can have: a list that runs two at a time, a task that fails first,
// a workflow within, two ways of asking a person, and a join.
type flow struct {
	*stage

	runs int // events that were emitted
	book *book
}

// The references of a flow.
const (
	flowDoor  = "flow.door"  // the trigger
	flowMain  = "flow.main"  // the workflow that its rule starts
	flowInner = "flow.inner" // the one within
	flowStep  = "flow.step"  // what most tasks run
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

// flowEnd is what a workflow of a flow comes to, whatever happens on its way.
const flowEnd = `{"sum": 1117, "items": 6, "succeeded": true}`

// flowTasks are the executions of one of them, with their repetitions.
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
	f := &flow{stage: s, book: newBook()}
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

// define makes a workflow and its action.
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

// rule has a workflow started for each event, with the number of the event.
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

// answer answers whatever is asked, as inquiry respond does.
func (f *flow) answer() {
	f.t.Helper()
	for _, id := range f.ids(`SELECT id FROM inquiry WHERE status = 'pending' AND (timeout_at IS NULL OR timeout_at > now() + interval '1 minute') ORDER BY id`) {
		_, err := f.operator.Answer(testkit.Context(f.t),
			triage.AnswerOrder{Inquiry: id, Response: json.RawMessage(`{"yes": true}`)})
		require.NoError(f.t, err)
	}
}

func (f *flow) ids(sql string, args ...any) []int64 {
	f.t.Helper()
	rows, err := f.store.Pool().Query(testkit.Context(f.t), sql, args...)
	require.NoError(f.t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(f.t, err)
	return ids
}

// until emits an event now and then, five times and on until enough says that it is
// enough, and answers what is asked meanwhile.
func (f *flow) until(enough func() bool) {
	f.t.Helper()
	deadline := time.Now().Add(4 * time.Minute) // as long as testkit.Eventually gives on a busy machine
	for emitted := 0; emitted < 5 || !enough(); {
		require.True(f.t, time.Now().Before(deadline), "what the load waits for has not happened: %s", lazily(f.open))
		// No more than can be done: what waits for a replica that died waits on.
		if emitted < 5 ||
			f.count(`SELECT count(*) FROM execution e WHERE parent IS NULL AND e.finished_status IS NULL`) < 20 {
			f.emit(1)
			emitted++
		}
		f.answer()
		time.Sleep(30 * time.Millisecond)
	}
}

// age makes what the dead have left as old as it has to be for others to take it.
func (f *flow) age() {
	f.t.Helper()
	f.stage.age()
	tx, err := f.store.Pool().Begin(testkit.Context(f.t))
	require.NoError(f.t, err)
	// it is committed, or the test has failed
	defer func() { _ = tx.Rollback(context.WithoutCancel(testkit.Context(f.t))) }()
	for _, sql := range []string{
		`SET LOCAL session_replication_role = replica`, // the time of a row is the database's own to write
		`UPDATE workflow_execution SET updated = updated - interval '11 s' WHERE open`,
		`UPDATE execution e SET updated = updated - interval '11 s' WHERE e.finished_status IS NOT NULL`,
	} {
		_, err := tx.Exec(testkit.Context(f.t), sql)
		require.NoError(f.t, err)
	}
	require.NoError(f.t, tx.Commit(testkit.Context(f.t)))
}

// over answers what is asked until every event has led to the end of a workflow.
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

// open says what has not ended.
func (f *flow) open() (text string) {
	_ = f.store.Pool().QueryRow(context.Background(), `SELECT coalesce(string_agg(what, E'\n' ORDER BY what), 'nothing') FROM (
		SELECT format('execution %s of %s in %s is %s', e.id, e.action_ref, e.parent, e.status) FROM execution e WHERE e.finished_status IS NULL
		UNION ALL SELECT format('workflow %s of %s, version %s: %s', w.id, w.execution, w.version, w.current_tasks) FROM workflow_execution w WHERE w.open
		UNION ALL SELECT format('enforcement %s is %s', f.id, f.status) FROM enforcement f WHERE f.status <> 'processed'
		UNION ALL SELECT format('inquiry %s of %s is %s', q.id, q.execution, q.status) FROM inquiry q WHERE q.status = 'pending') x (what)`).Scan(&text)
	return "\n" + text // it is only shown
}

// requireFlows asks that every event has led to one workflow, that each of them has
// come to the same end over the same tasks, each of which was run once by the
// account of the actions themselves (S10, S2), never more of a list at a time than
// it may, and that every end was told (S14).
func (f *flow) requireFlows() {
	f.t.Helper()
	f.requireOutcomes()
	f.requireTold()
}

// requireOutcomes asks all of that but what was told.
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

// requireStartedOnce asks the actions themselves.
func (f *flow) requireStartedOnce() {
	f.t.Helper()
	f.book.mu.Lock()
	defer f.book.mu.Unlock()
	for id, attempts := range f.book.starts {
		require.Equal(f.t, []int{1}, attempts, "S2: the starts of execution %d", id)
	}
	require.Len(f.t, f.book.ran, f.runs*12, "every task of every workflow was run")
	for m, n := range f.book.ran {
		if m.Task == "flaky" {
			require.Equal(f.t, 2, n, "%+v fails and is repeated", m)
			continue
		}
		require.Equal(f.t, 1, n, "S10: %+v is run once", m)
	}
	for run, most := range f.book.most {
		require.LessOrEqual(f.t, most, 2, "the list of workflow %d", run)
	}
}

// requireTold asks that the end of every execution was told, and no other.
func (f *flow) requireTold() {
	f.t.Helper()
	statuses := map[int64]string{}
	rows, err := f.store.Pool().Query(testkit.Context(f.t), `SELECT id, status::text FROM execution`)
	require.NoError(f.t, err)
	defer rows.Close()
	for rows.Next() {
		var id int64
		var status string
		require.NoError(f.t, rows.Scan(&id, &status))
		statuses[id] = status
	}
	require.NoError(f.t, rows.Err())
	for id, status := range statuses {
		testkit.Eventually(f.t, func() bool { return len(f.told.of(id)) > 0 }, 10*time.Second,
			"S14: the end of execution %d is told", id)
		require.Equal(f.t, []string{status}, f.told.of(id), "S14: what is told of execution %d", id)
	}
}

// book is what the actions of a flow themselves say about having been run.
type book struct {
	mu     sync.Mutex
	starts map[int64][]int // the attempts of an execution
	ran    map[mark]int    // how often a task was run
	now    map[int]int     // how many items of a workflow's list run
	most   map[int]int     // and did at most
}

// mark is a task of a workflow, by what it was told about itself.
type mark struct {
	Run  int    `json:"run"`
	Task string `json:"task"`
	Item int    `json:"item"`
}

func newBook() *book {
	return &book{starts: map[int64][]int{}, ran: map[mark]int{}, now: map[int]int{}, most: map[int]int{}}
}

// begin writes down that a task begins, and returns how often it has, and what to do
// when it ends.
func (b *book) begin(m mark, task worker.Task) (nth int, end func()) {
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

// does makes an action of a flow of what it makes of how often it was run.
func (b *book) does(result func(nth int) (any, error)) worker.Func {
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

// worker starts a worker in this process that knows the actions of flows and those
// of every stage.
func (f *flow) worker(name string) {
	f.t.Helper()
	actions := worker.Actions{
		actFree: f.diary.run, actLimited: f.diary.run, actFlaky: f.diary.flaky,
		flowStep: f.book.does(func(int) (any, error) { return map[string]any{"done": true}, nil }),
		flowFlaky: f.book.does(func(nth int) (any, error) {
			if nth == 1 {
				return nil, errors.New("out of luck")
			}
			return map[string]any{"done": true}, nil
		}),
		flowAsks: f.book.does(func(int) (any, error) {
			return map[string]any{"__inquiry": map[string]any{"prompt": "And this?"}}, nil
		}),
	}
	cfg := worker.Config{Name: name, MaxConcurrent: 30, HeartbeatInterval: time.Second, Actions: actions}
	w, err := worker.New(cfg, worker.Deps{Store: f.store, Broker: f.connect(name), Logger: testkit.Logger(f.t)})
	require.NoError(f.t, err)
	require.NoError(f.t, w.Start(testkit.Context(f.t)))
	f.t.Cleanup(w.Stop)
}

// rows are all rows that say what has become of the workflows, as one text.
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
		rows, err := f.store.Pool().Query(testkit.Context(f.t), sql)
		require.NoError(f.t, err)
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(f.t, err)
		for _, line := range list {
			lines = append(lines, table+" "+line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// engineQueues are the queues from which replicas work, by the exchange and the key
// from which they are fed.
func engineQueues() map[string][2]string {
	return map[string][2]string{
		message.QueueEvents:             {message.ExchangeEvents, message.KeyEventCreated},
		message.QueueEnforcements:       {message.ExchangeExecutions, message.PatternEnforcement},
		message.QueueExecutionRequests:  {message.ExchangeExecutions, message.KeyExecutionRequested},
		message.QueueExecutionCompleted: {message.ExchangeExecutions, message.KeyExecutionCompleted},
		message.QueueInquiryResponses:   {message.ExchangeExecutions, message.KeyInquiryResponded},
	}
}
