package advancement_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/advancement"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// inBatches runs batches for these requests, and for the rest that each of them leaves. It lists how many children
// each has made of the workflow of an execution.
func (w *world) inBatches(id int64, requests ...advancement.Request) (made []int) {
	w.t.Helper()
	for before := 0; len(requests) > 0; {
		step := advancement.NewStep(w.cfg, w.sources, requests)
		_, err := w.batches.Run(testkit.Context(w.t), step)
		require.NoError(w.t, err)
		now := w.children(id)
		made, before, requests = append(made, now-before), now, step.Again()
	}
	return made
}

func (w *world) children(id int64) int {
	w.t.Helper()
	return testkit.Count(w.t, w.store, `SELECT count(*) FROM execution WHERE parent = $1`, id)
}

// endAll fails all dispatched children at once in one batch, and advances their workflow.
func (w *world) endAll() int {
	w.t.Helper()
	handed := w.dispatched()
	ids, steps := make([]int64, len(handed)), make([]scheduler.Step, len(handed))
	for i, child := range handed {
		ids[i], steps[i] = child.ID, completionOf(child.ID)
	}
	testkit.Exec(w.t, w.store, `UPDATE execution SET status = 'running', started_at = now() WHERE id = ANY($1)`, ids)
	testkit.Exec(w.t, w.store, `UPDATE execution SET status = 'failed', result = '{"error": "x"}' WHERE id = ANY($1)`,
		ids)
	result, err := w.batches.Run(testkit.Context(w.t), steps...)
	require.NoError(w.t, err)
	w.advance(result)
	return len(ids)
}

// A list whose children do not fit into one batch has all of them after some.
func TestAListOfManyItemsIsBegunInSeveralBatches(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.wide", `
version: "1"
tasks: [{name: each, action: pk.each, with_items: "{{ range(2100) }}", concurrency: 2050, input: {x: "{{ item }}"}}]
`), nil)
	require.Equal(t, []int{1000, 1000, 50}, w.inBatches(id, advancement.Request{Start: id}))
	require.Equal(t, 2050,
		testkit.Count(t, w.store, `SELECT count(DISTINCT config ->> 'x') FROM execution WHERE parent = $1`, id))
	testkit.Invariants(t, w.store)
}

// A list without parameters of its own passes on those of its workflow to every one of
// its items. However large they are, a batch takes a bounded part of memory.
func TestAListWithLargeParametersIsBegunInSeveralBatches(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "begin a list with 16 MB of parameters")
	w := setup(t)
	action := w.define("pk.heavy", `
version: "1"
tasks: [{name: each, action: pk.each, with_items: "{{ range(40) }}", concurrency: 40}]
`)
	id := w.request(action, map[string]any{"text": strings.Repeat("0123456789", 1<<20/10)})
	require.Equal(t, []int{16, 16, 8}, w.inBatches(id, advancement.Request{Start: id}))

	var requests []advancement.Request
	for range 3 { // together they are too large
		requests = append(requests,
			advancement.Request{Start: w.request(action, map[string]any{"text": strings.Repeat("0123456789",
				1<<20/10)})})
	}
	first := advancement.NewStep(w.cfg, w.sources, requests)
	_, err := w.batches.Run(testkit.Context(t), first)
	require.NoError(t, err)
	require.Equal(t, 16, w.children(requests[0].Start))
	require.Zero(t, w.children(requests[2].Start))
	require.Len(t, first.Again(), 3)
	testkit.Invariants(t, w.store)
}

const asking = `
version: "1"
tasks:
  - name: each
    action: pk.each
    with_items: "{{ range(1100) }}"
    concurrency: 1100
    retry: {count: 1, delay: 1, on_error: "{{ result().error == 'y' }}"}
`

// More than a thousand items fail at once: their retries are decided, and the workflow does not fail by itself.
func TestMoreThanAThousandItemsFailAtOnce(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.asking", asking), nil)
	require.Equal(t, []int{1000, 100}, w.inBatches(id, advancement.Request{Start: id}))
	require.Equal(t, 1100, w.endAll())
	status, result := w.outcome(id)
	require.Equal(t, lifecycle.StatusFailed, status)
	require.Equal(t, "1 task failed: each (1100 of 1100)", result["error"])
	require.Zero(t, testkit.Count(t, w.store, `SELECT count(*) FROM execution_retry`))
	w.sound()
}

// begun inserts a workflow whose list another engine has started: some of its items have a child, and the first of
// these have completed.
func (w *world) begun(action testkit.ActionRow, made, completed int) int64 {
	w.t.Helper()
	id := w.existing(action, nil, nil)
	testkit.Exec(w.t, w.store, `WITH child AS (
			INSERT INTO execution (action, action_ref, parent, status, result, worker, workflow_task)
			SELECT a.id, a.ref, $1, CASE WHEN n < $4 THEN 'completed' ELSE 'running' END::execution_status_enum, to_jsonb(n), $5,
				jsonb_build_object('workflow_execution', $2::bigint, 'task_name', 'each', 'task_index', n, 'retry_count', 0)
			FROM action a, generate_series(0, $3 - 1) n WHERE a.ref = 'pk.each' RETURNING id, workflow_task)
		INSERT INTO workflow_task_dispatch (workflow_execution, task_name, task_index, execution_id)
		SELECT $2, 'each', (workflow_task ->> 'task_index')::int, id FROM child`, id, w.workflowOf(id), made, completed, w.worker)
	return id
}

// Another engine has begun a list, of more children than one plan makes: all of them
// are found, and none is made again.
func TestALongListOfAnotherEngineIsTakenOver(t *testing.T) {
	w := setup(t)
	id := w.begun(w.define("pk.wide", `
version: "1"
tasks: [{name: each, action: pk.each, with_items: "{{ range(1500) }}", concurrency: 1390, input: {x: "{{ item }}"}}]
`), 1390, 0)
	testkit.Exec(t, w.store, `UPDATE execution SET status = 'completed' WHERE (workflow_task ->> 'task_index')::int < 10`)
	require.Equal(t, []int{1400}, w.inBatches(id, advancement.Request{Workflow: w.workflowOf(id)}))
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, id))
	require.Equal(t, 1500, testkit.Count(t, w.store, `SELECT count(*) FROM workflow_item`))
}

// The items of a list that another engine completed count; this engine runs the remaining ones.
func TestAListOfAnotherEngineGoesOnWhereItIs(t *testing.T) {
	t.Parallel()
	for _, completed := range []int{3, 5, 8} {
		w := setup(t)
		w.does = func(_ string, index, _ int) end { return end{lifecycle.StatusCompleted, index} }
		id := w.begun(w.define("pk.wide", `
version: "1"
tasks: [{name: each, action: pk.each, with_items: "{{ range(8) }}", concurrency: 2, next: [{publish: [{all: "{{ result() }}"}]}]}]
output_map: {all: "{{ all }}"}
`), completed, completed)
		w.check(id)
		require.Equal(t, []any{0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}, w.completes(id)["all"])
		require.Len(t, w.ran, 8-completed)
	}
}
