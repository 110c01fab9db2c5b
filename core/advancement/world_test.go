package advancement_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/advancement"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// relay records the committed messages of batches, in place of a broker.
type relay struct {
	mu       sync.Mutex
	messages []outbox.Message
}

func (r *relay) Published(_ int64, messages []outbox.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, messages...)
}

// end is how a child ends.
type end struct {
	status lifecycle.Status
	result any
}

// world is a database, the batches of one engine and a worker played by the test.
type world struct {
	t       testing.TB
	store   *store.Store
	batches *scheduler.Scheduler
	relay   *relay
	cfg     advancement.Config
	sources *advancement.Sources
	pack    int64
	worker  int64

	// does says how a child of a task ends; without it, it completes.
	does func(task string, index, retries int) end
	ran  []string // the tasks that were run, in order, with index and retries
	runs []int64  // their executions
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, store: testkit.Store(t, func(c *store.Config) { c.HotPath = true }), relay: &relay{},
		sources: advancement.NewSources(),
		does:    func(string, int, int) end { return end{status: lifecycle.StatusCompleted} },
	}
	w.begin()
	return w
}

// begin makes the engine and the worker.
func (w *world) begin() {
	t := w.t
	w.batches = w.replica()
	w.worker = testkit.Worker(t, w.store, "w1", func(k *testkit.WorkerRow) {
		able := testkit.DefaultCapabilities(5000)
		able["attempt_fence"] = true
		k.Capabilities = able
	}).ID
	testkit.Action(t, w.store, "pk.a")
	w.pack = w.ids(`SELECT pack FROM action WHERE ref = 'pk.a'`)[0]
}

func (w *world) replica() *scheduler.Scheduler {
	return scheduler.New(scheduler.Config{HeartbeatStaleAfter: time.Hour}, // the worker sends no heartbeats
		scheduler.Deps{Store: w.store, Relay: w.relay, Logger: testkit.Logger(w.t)})
}

// define makes the action of a workflow, and those of its tasks that are missing.
func (w *world) define(ref, definition string) testkit.ActionRow {
	w.t.Helper()
	parsed, mistakes, _ := workflow.Parse(ref, []byte(definition))
	require.Empty(w.t, mistakes)
	for _, task := range parsed.All() {
		if task.Action != "" &&
			testkit.Count(w.t, w.store, `SELECT count(*) FROM action WHERE ref = $1`, task.Action) == 0 {
			testkit.Action(w.t, w.store, task.Action)
		}
	}
	raw, err := parsed.JSON()
	require.NoError(w.t, err)
	return w.keep(ref, raw)
}

// keep makes the action of a workflow whose definition is taken as it is.
func (w *world) keep(ref string, definition []byte) testkit.ActionRow {
	w.t.Helper()
	action := testkit.Action(w.t, w.store, ref)
	testkit.Exec(w.t, w.store, `WITH d AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition) VALUES ($2::text, $3, 'pk', $2::text, '1.0.0', $4) RETURNING id)
		UPDATE action SET workflow_def = d.id FROM d WHERE action.id = $1`, action.ID, ref, w.pack, definition)
	return action
}

// request asks for a workflow to be run.
func (w *world) request(action testkit.ActionRow, params any) int64 {
	w.t.Helper()
	return testkit.Execution(w.t, w.store, action, func(e *testkit.ExecutionRow) { e.Config = params }).ID
}

// order runs one batch for these requests.
func (w *world) order(requests ...advancement.Request) scheduler.Result {
	w.t.Helper()
	result, err := w.batches.Run(testkit.Context(w.t), advancement.NewStep(w.cfg, w.sources, requests))
	require.NoError(w.t, err)
	return result
}

// row is a dispatched child, as far as the worker reads it.
type row struct {
	ID      int64
	Task    string
	Index   int
	Retries int
}

// dispatched are the dispatched executions that have not started.
func (w *world) dispatched() []row {
	w.t.Helper()
	rows, err := w.store.Pool().Query(testkit.Context(w.t), `
		SELECT id, coalesce(workflow_task ->> 'task_name', action_ref), coalesce((workflow_task ->> 'task_index')::int, 0), retry_count
		FROM execution WHERE status = 'scheduled' ORDER BY id`)
	require.NoError(w.t, err)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	require.NoError(w.t, err)
	return list
}

// finish has the worker run a child to its end.
func (w *world) finish(child row) {
	w.t.Helper()
	ends := w.does(child.Task, child.Index, child.Retries)
	raw, err := json.Marshal(ends.result)
	require.NoError(w.t, err)
	testkit.Exec(w.t, w.store, `UPDATE execution SET status = 'running', started_at = now() WHERE id = $1`, child.ID)
	testkit.Exec(w.t, w.store, `UPDATE execution SET status = $2, result = $3 WHERE id = $1`, child.ID, ends.status,
		raw)
	w.ran = append(w.ran, fmt.Sprintf("%s/%d/%d", child.Task, child.Index, child.Retries))
	w.runs = append(w.runs, child.ID)
}

// ids reads a list of ids.
func (w *world) ids(sql string, args ...any) []int64 {
	w.t.Helper()
	return testkit.Column[int64](w.t, w.store.Pool(), sql, args...)
}

// take runs a batch of the hot loop, and advances workflows by its result.
func (w *world) take(ended, requested []int64) {
	w.t.Helper()
	steps := []scheduler.Step{
		scheduler.NewCompletionStep(scheduler.CompletionConfig{
			Retry: lifecycle.RetryPolicy{Enabled: true, Unstarted: 2},
		}, reports(ended)),
		scheduler.FillStep{},
		scheduler.NewRequestStep(requested),
	}
	result, err := w.batches.Run(testkit.Context(w.t), steps...)
	require.NoError(w.t, err)
	w.advance(result)
}

// completionOf is the step for one report.
func completionOf(id int64) scheduler.Step { return scheduler.NewReleaseStep([]int64{id}) }

func reports(ended []int64) []scheduler.Report {
	list := make([]scheduler.Report, len(ended))
	for i, id := range ended {
		list[i].Execution = id
	}
	return list
}

// advance advances workflows by the result of a batch, until nothing is left.
func (w *world) advance(result scheduler.Result) {
	w.t.Helper()
	for len(result.Starts)+len(result.Tasks) > 0 {
		byWorkflow := map[int64]*advancement.Request{}
		var requests []advancement.Request
		for _, id := range result.Starts {
			requests = append(requests, advancement.Request{Start: id})
		}
		for _, task := range result.Tasks {
			if byWorkflow[task.Workflow] == nil {
				byWorkflow[task.Workflow] = &advancement.Request{Workflow: task.Workflow}
			}
			byWorkflow[task.Workflow].Children = append(byWorkflow[task.Workflow].Children, task.Child)
		}
		for _, request := range byWorkflow {
			requests = append(requests, *request)
		}
		result = w.order(requests...)
	}
}

// run does everything there is to do until nothing is left.
func (w *world) run() {
	w.t.Helper()
	told := map[int64]bool{}
	for range 10_000 {
		requested := w.ids(`SELECT e.id FROM execution e WHERE e.status = 'requested'
			AND NOT EXISTS (SELECT FROM execution_admission_entry q WHERE q.execution_id = e.id)
			AND NOT EXISTS (SELECT FROM execution_retry r WHERE r.execution = e.id AND r.waiting AND r.due > now() + interval '1 hour')`)
		testkit.Exec(w.t, w.store, `UPDATE execution_retry SET due = now() WHERE waiting AND execution = ANY($1)`,
			requested)
		handed := w.dispatched()
		for _, child := range handed {
			w.finish(child)
		}
		var ended []int64
		for _, id := range w.ids(`SELECT id FROM execution WHERE status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') ORDER BY id`) {
			if !told[id] {
				told[id] = true
				ended = append(ended, id)
			}
		}
		if len(requested)+len(handed)+len(ended) == 0 {
			return
		}
		w.take(ended, requested)
	}
	require.Fail(w.t, "it never ends")
}

// outcome is the status and the result of an execution.
func (w *world) outcome(id int64) (lifecycle.Status, map[string]any) {
	w.t.Helper()
	var status lifecycle.Status
	var raw []byte
	require.NoError(w.t, w.store.Pool().QueryRow(testkit.Context(w.t),
		`SELECT status, result FROM execution WHERE id = $1`, id).Scan(&status, &raw))
	result := map[string]any{}
	if raw != nil {
		require.NoError(w.t, json.Unmarshal(raw, &result))
	}
	return status, result
}

// completes runs a workflow to its end and expects it to succeed.
func (w *world) completes(id int64) map[string]any {
	w.t.Helper()
	w.run()
	status, result := w.outcome(id)
	require.Equal(w.t, lifecycle.StatusCompleted, status, "%v\n%s", result, strings.Join(w.log(id), "\n"))
	w.sound()
	return result
}

// log lists the decisions about a workflow.
func (w *world) log(id int64) []string {
	return testkit.Column[string](w.t, w.store.Pool(), `SELECT unnest(l.lines) FROM workflow_log l
		JOIN workflow_execution w ON w.id = l.workflow_execution WHERE w.execution = $1 ORDER BY l.version`, id)
}

// sound checks the invariants of workflows when no batch is under way.
func (w *world) sound() {
	w.t.Helper()
	testkit.Invariants(w.t, w.store)
	for what, sql := range map[string]string{
		"S11: versions without a gap": `SELECT count(*) FROM workflow_execution w WHERE w.version <> (SELECT count(*) FROM workflow_log l
			WHERE l.workflow_execution = w.id AND l.version BETWEEN 1 AND w.version)`,
		"S10: one child for each task and index": `SELECT count(*) FROM (SELECT FROM execution WHERE jsonb_typeof(workflow_task) = 'object' AND retry_count = 0
			GROUP BY workflow_task ->> 'workflow_execution', workflow_task ->> 'task_name', workflow_task ->> 'task_index' HAVING count(*) > 1) x`,
		"nothing is kept of lists that have ended": `SELECT count(*) FROM workflow_item`,
		"the row says what its execution says": `SELECT count(*) FROM workflow_execution w JOIN execution e ON e.id = w.execution
			WHERE w.status <> e.status`,
	} {
		require.Zero(w.t, testkit.Count(w.t, w.store, sql), what)
	}
}

// keys has the engine encrypt with a key.
func (w *world) keys(key string) secret.Keyring {
	keys, err := secret.NewKeyring(key)
	require.NoError(w.t, err)
	w.cfg.Keys = keys
	return keys
}

// text is one value as text.
func (w *world) text(sql string, args ...any) string {
	w.t.Helper()
	var value string
	require.NoError(w.t,
		w.store.Pool().QueryRow(testkit.Context(w.t), `SELECT x::text FROM (`+sql+`) y (x)`, args...).Scan(&value))
	return value
}

// reports counts the messages about the end of an execution.
func (w *world) reports(id int64) int {
	w.relay.mu.Lock()
	defer w.relay.mu.Unlock()
	n := 0
	for _, m := range w.relay.messages {
		if m.RoutingKey == "execution.completed" &&
			strings.Contains(string(m.Body), fmt.Sprintf(`"execution_id":%d,`, id)) {
			n++
		}
	}
	return n
}

// check has a workflow checked, as the sweep does.
func (w *world) check(execution int64) {
	w.t.Helper()
	w.order(advancement.Request{Workflow: w.workflowOf(execution)})
}
