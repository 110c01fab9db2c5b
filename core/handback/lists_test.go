package handback_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/handback"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

const sevenItems = `
version: "1.0.0"
vars: {prefix: region}
tasks:
  - name: each
    action: demo.each
    with_items: "{{ range(7) }}"
    concurrency: 2
    input: {n: "{{ item }}", at: "{{ index }}", name: "{{ workflow.prefix }}-{{ parameters.word }}"}
    next: [{when: "{{ succeeded() }}", do: [last]}]
  - {name: last, action: demo.last, input: {n: 99}}
`

// define makes the action of a workflow and those of its tasks.
func (w *world) define(t *testing.T, ref, source string) testkit.ActionRow {
	t.Helper()
	definition, mistakes, _ := workflow.Parse(ref, []byte(source))
	require.Empty(t, mistakes)
	raw, err := definition.JSON()
	require.NoError(t, err)
	for _, task := range definition.All() {
		if task.Action != "" {
			testkit.Action(t, w, task.Action)
		}
	}
	action := testkit.Action(t, w, ref)
	testkit.Exec(t, w, `WITH d AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
			SELECT $2::text, a.pack, a.pack_ref, $2::text, '1.0.0', $3 FROM action a WHERE a.id = $1 RETURNING id)
		UPDATE action SET workflow_def = d.id FROM d WHERE action.id = $1`, action.ID, ref, raw)
	return action
}

// each are the numbers of the items in executions with one of these statuses.
func (w *world) each(t *testing.T, statuses ...string) []int {
	t.Helper()
	return testkit.Column[int](t, w.pool, `SELECT (config ->> 'n')::int FROM execution
		WHERE action_ref = 'demo.each' AND status::text = ANY ($1)
		  AND config ->> 'name' = 'region-w'
		  AND config -> 'n' = workflow_task -> 'task_index' AND config -> 'at' = config -> 'n'
		ORDER BY 1`, statuses)
}

func (w *world) purge(t *testing.T, queue string) {
	t.Helper()
	path := fmt.Sprintf("/api/queues/%s/%s/contents", testkit.VHostName(t, w.amqp), queue)
	testkit.Manage(t, "DELETE", path, nil, nil)
}

// startList has the engine run a list until two of its items run.
func (w *world) startList(t *testing.T) (execution int64, stop func()) {
	t.Helper()
	action := w.define(t, "demo.list", sevenItems)
	stop = w.engine(t)
	execution = w.requestWith(t, action.Ref, `{"word": "w"}`)
	testkit.Eventually(t, func() bool { return len(w.each(t, "running")) == 2 }, waitTimeout, "two items run")
	return execution, stop
}

// TestAListGoesOnWithTheOtherExecutor: items without an execution get one, not more start than the concurrency of
// the list allows, and the workflow continues to its end.
func TestAListGoesOnWithTheOtherExecutor(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "hand a list to the other executor; another test hands a workflow over")
	w := setup(t)
	worker, step := w.steps(t)
	execution, stop := w.startList(t)
	step <- struct{}{}
	testkit.Eventually(t, func() bool {
		return len(w.each(t, "completed")) == 1 && len(w.each(t, "running")) == 2
	}, waitTimeout, "the next item runs")
	stop()

	result := w.handBack(t)
	require.Equal(t, 4, result.Made)
	require.Zero(t, result.Requested, "as many run as may")
	require.Equal(t, []int{3, 4, 5, 6}, w.each(t, "requested"))
	require.Equal(t, 7, testkit.Count(t, w, `SELECT count(*) FROM workflow_task_dispatch d
		JOIN execution e ON e.id = d.execution_id
		WHERE d.task_name = 'each' AND d.task_index = (e.workflow_task ->> 'task_index')::int AND e.parent = $1`, execution))
	require.Zero(t, w.handBack(t).Made, "it may be repeated")
	w.down(t)

	w.other(t)
	for range 7 {
		step <- struct{}{}
	}
	w.reaches(t, lifecycle.StatusCompleted, 9)
	require.Equal(t, lifecycle.StatusCompleted, w.statusOf(t, execution))
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6}, w.each(t, "completed"))
	require.LessOrEqual(t, worker.MostAtOnce(), 2)
	require.Len(t, worker.Runs(), 8, "each item once, and the last task")
}

// TestUnpublishedEndsArePublishedAtHandBack: the running items of a list end while no engine runs, and their
// messages are lost. The hand-back publishes the ends, and the other executor continues with the list and the next
// task.
func TestUnpublishedEndsArePublishedAtHandBack(t *testing.T) {
	w := setup(t)
	worker, step := w.steps(t)
	execution, stop := w.startList(t)
	stop()
	step <- struct{}{}
	step <- struct{}{}
	link := w.wire(t, w.amqp)
	testkit.Eventually(t, func() bool {
		return messages(t, link, message.QueueExecutionCompleted) == 2
	}, waitTimeout, "the worker has reported both ends")
	w.purge(t, message.QueueExecutionCompleted)

	result := w.handBack(t)
	require.Equal(t, 5, result.Made)
	require.Equal(t, 2, result.Requested, "as many as run at once")
	require.Equal(t, 2, result.Completed)
	w.down(t)

	w.other(t)
	for range 6 {
		step <- struct{}{}
	}
	w.reaches(t, lifecycle.StatusCompleted, 9)
	require.Equal(t, lifecycle.StatusCompleted, w.statusOf(t, execution))
	require.LessOrEqual(t, worker.MostAtOnce(), 2)
	require.Len(t, worker.Runs(), 8, "each item once, and the last task")
}

// TestTheLastEndOfATaskIsPublishedAtHandBack: only the consequences of unpublished ends are left of the workflow.
func TestTheLastEndOfATaskIsPublishedAtHandBack(t *testing.T) {
	w := setup(t)
	worker, step := w.steps(t)
	action := w.define(t, "demo.pair", `
version: "1.0.0"
tasks:
  - name: first
    action: demo.first
    next: [{when: "{{ failed() }}", do: [mend]}, {when: "{{ succeeded() }}", do: [second]}]
  - {name: second, action: demo.second}
  - {name: mend, action: demo.mend}
`)
	stop := w.engine(t)
	execution := w.requestWith(t, action.Ref, `{"word": "w"}`)
	w.reaches(t, lifecycle.StatusRunning, 2)
	stop()
	step <- struct{}{}
	link := w.wire(t, w.amqp)
	testkit.Eventually(t, func() bool {
		return messages(t, link, message.QueueExecutionCompleted) == 1
	}, waitTimeout, "the worker has reported the end")
	w.purge(t, message.QueueExecutionCompleted)

	require.Equal(t, 1, w.handBack(t).Completed)
	w.down(t)
	w.other(t)
	step <- struct{}{}
	w.reaches(t, lifecycle.StatusCompleted, 3)
	require.Equal(t, lifecycle.StatusCompleted, w.statusOf(t, execution))
	require.Len(t, worker.Runs(), 2)
}

// TestAReplicaGoesOnWithAListAfterAHandBack: the engine starts the children that a hand-back has made, each once
// and not before it is due.
func TestAReplicaGoesOnWithAListAfterAHandBack(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "go on with a list after a hand-back")
	w := setup(t)
	worker, step := w.steps(t)
	execution, stop := w.startList(t)
	stop()
	require.Equal(t, 5, w.handBack(t).Made)

	w.engine(t)
	for range 8 {
		step <- struct{}{}
	}
	w.reaches(t, lifecycle.StatusCompleted, 9)
	require.Equal(t, lifecycle.StatusCompleted, w.statusOf(t, execution))
	require.LessOrEqual(t, worker.MostAtOnce(), 2)
	require.Len(t, worker.Runs(), 8)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, w, "SELECT count(*) FROM execution_admission_state WHERE active_count <> 0") == 0
	}, waitTimeout, "the slots are counted anew")
	testkit.Invariants(t, w.store)
}

// TestItemsWhoseInputCannotBeRenderedFail: such an item gets a failed execution, so that the list fails under the
// other executor too.
func TestItemsWhoseInputCannotBeRenderedFail(t *testing.T) {
	w := setup(t)
	_, step := w.steps(t)
	action := w.define(t, "demo.broken", `
version: "1.0.0"
tasks:
  - name: each
    action: demo.each
    with_items: [{n: 0}, {n: 1}, {m: 2}, {n: 3}]
    input: {n: "{{ item.n }}"}
`)
	stop := w.engine(t)
	execution := w.requestWith(t, action.Ref, `{}`)
	w.reaches(t, lifecycle.StatusRunning, 2)
	stop()
	result := w.handBack(t)
	require.Equal(t, 3, result.Made)
	require.Equal(t, 1, result.Completed, "the end of the failed item")
	require.Equal(t, 1, testkit.Count(t, w, `SELECT count(*) FROM execution WHERE status = 'failed'
		AND workflow_task ->> 'task_index' = '2' AND result ->> 'error' LIKE '%no field n%'`))
	w.down(t)
	w.other(t)
	for range 3 {
		step <- struct{}{}
	}
	w.reaches(t, lifecycle.StatusCompleted, 3)
	testkit.Eventually(t, func() bool {
		return w.statusOf(t, execution) == lifecycle.StatusFailed
	}, waitTimeout, "the workflow fails")
}

// TestTheSurveyNamesSettingsWithoutAnEffect lists settings without an effect.
func TestTheSurveyNamesSettingsWithoutAnEffect(t *testing.T) {
	w := setup(t)
	strict := w.define(t, "demo.strict", "version: \"1\"\nstrict: true\ntasks: [{name: a, action: demo.a}]\n")
	w.define(t, "demo.lenient", "version: \"1\"\ntasks: [{name: b, action: demo.b}]\n")
	for _, sql := range []string{
		`UPDATE action SET max_retries = 2, timeout_seconds = 5 WHERE ref = 'demo.a'`,
		`UPDATE action SET scheduled_timeout_seconds = 5 WHERE ref = 'demo.b'`,
	} {
		testkit.Exec(t, w, sql)
	}
	survey, err := handback.Read(testkit.Context(t), w.store)
	require.NoError(t, err)
	notes := map[string][]string{}
	for _, item := range survey.Items {
		require.NotEmpty(t, item.Then)
		notes[item.Kind] = item.Notes
	}
	require.Equal(t, map[string][]string{
		"strict workflows": {strict.Ref}, "action retries": {"demo.a"}, "action timeouts": {"demo.a", "demo.b"},
	}, notes)
}

const twoAtOnce = `
version: "1.0.0"
tasks:
  - name: both
    type: parallel
    tasks: [{name: left, action: demo.left}, {name: right, action: demo.right}]
    next: [{when: "{{ succeeded() }}", do: [after]}]
  - {name: after, action: demo.after}
`

// TestTheSurveyNamesParallelTasks: the published executor ends a workflow when the parallel tasks have ended,
// without later tasks. So the survey names every open workflow with a parallel task.
func TestTheSurveyNamesParallelTasks(t *testing.T) {
	w := setup(t)
	action := w.define(t, "demo.both", twoAtOnce)
	w.define(t, "demo.plain", "version: \"1\"\ntasks: [{name: a, action: demo.a}]\n")
	_, step := w.steps(t)
	stop := w.engine(t)
	done := w.requestWith(t, action.Ref, `{}`)
	w.reaches(t, lifecycle.StatusRunning, 3)
	step <- struct{}{}
	step <- struct{}{}
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, w,
			`SELECT count(*) FROM execution WHERE action_ref = 'demo.after' AND status = 'running'`) == 1
	}, waitTimeout, "the parallel task of the first workflow has ended")
	w.requestWith(t, "demo.plain", `{}`)
	lost := w.requestWith(t, action.Ref, `{}`)
	w.reaches(t, lifecycle.StatusRunning, 7) // three workflows and four tasks
	stop()

	survey, err := handback.Read(testkit.Context(t), w.store)
	require.NoError(t, err)
	require.Len(t, survey.Items, 1)
	item := survey.Items[0]
	require.Equal(t, "parallel tasks", item.Kind)
	require.Equal(t, []int64{lost}, item.IDs)
	require.Equal(t, []string{"both"}, item.Notes)
	require.Equal(t, "their workflow ends after the parallel tasks, without later ones: let them end before",
		item.Then)

	w.handBack(t)
	w.down(t)
	w.other(t)
	for range 4 {
		step <- struct{}{}
	}
	testkit.Eventually(t, func() bool {
		return w.statusOf(t, done) == lifecycle.StatusCompleted && w.statusOf(t, lost) == lifecycle.StatusCompleted
	}, waitTimeout, "both workflows end")
	require.Equal(t, 1, testkit.Count(t, w, `SELECT count(*) FROM execution WHERE action_ref = 'demo.after'`),
		"as the survey says")
}

func (w *world) statusOf(t *testing.T, id int64) (status lifecycle.Status) {
	t.Helper()
	row := w.pool.QueryRow(testkit.Context(t), "SELECT status::text FROM execution WHERE id = $1", id)
	require.NoError(t, row.Scan(&status))
	return status
}

// messages is the number of messages in a queue.
func messages(t *testing.T, link *broker.Broker, queue string) int {
	t.Helper()
	state, err := link.QueueState(testkit.Context(t), queue)
	require.NoError(t, err)
	return state.Ready
}
