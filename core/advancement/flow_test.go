package advancement_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/advancement"
	"github.com/attune-go/attune/core/cancellation"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// workflowOf is the row of a workflow's execution.
func (w *world) workflowOf(execution int64) int64 {
	return w.ids(`SELECT id FROM workflow_execution WHERE execution = $1`, execution)[0]
}

const fallback = `
version: "1"
strict: true
tasks:
  - name: try
    action: pk.try
    retry: {count: 2, delay: 60, backoff: exponential}
    next:
      - {when: "{{ failed() and result().code == 3 }}", do: [mend]}
      - {when: "{{ not failed() }}", do: [cheer]}
  - {name: mend, action: pk.mend, join: all, input: {code: "{{ task.try.code }}"}}
  - {name: cheer, action: pk.cheer, input: {}}
`

// A task is retried as often as it specifies, by a timer. After the last failure its transitions are evaluated with
// their whole condition (upstream 45, 47).
func TestAFailureIsRepeatedAndThenHandled(t *testing.T) {
	w := setup(t)
	w.does = func(task string, _, _ int) end {
		if task == "try" {
			return end{lifecycle.StatusFailed, map[string]any{"code": 3}}
		}
		return end{status: lifecycle.StatusCompleted}
	}
	id := w.request(w.define("pk.fallback", fallback), nil)
	w.take(nil, []int64{id})
	first := w.dispatched()[0]
	w.finish(first)
	w.take([]int64{first.ID}, nil)
	require.Equal(t, 1, testkit.Count(t, w.store, `SELECT count(*) FROM execution_retry WHERE waiting AND due BETWEEN now() + interval '55 s' AND now() + interval '60 s'`))
	w.take([]int64{first.ID}, nil)
	w.order(advancement.Request{Workflow: w.workflowOf(id), Children: []int64{first.ID}})
	require.Equal(t, 1, testkit.Count(t, w.store, `SELECT count(*) FROM execution WHERE retry_count = 1`),
		"a duplicate makes no second retry")
	require.Equal(t, "1", w.text(`SELECT workflow_task ->> 'retry_count' FROM execution WHERE retry_count = 1`))

	w.completes(id)
	require.Equal(t, []string{"try/0/0", "try/0/1", "try/0/2", "mend/0/0"}, w.ran)
	require.JSONEq(t, `{"code": 3}`, w.text(`SELECT config FROM execution WHERE action_ref = 'pk.mend'`))
}

// A failure that nothing handles ends the workflow as failed, with the names.
func TestAFailureThatNothingHandles(t *testing.T) {
	w := setup(t)
	w.does = func(task string, _, _ int) end {
		if task == "b" {
			return end{lifecycle.StatusFailed, map[string]any{"error": "no luck"}}
		}
		return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 1}}}
	}
	id := w.request(w.define("pk.chain", chain), map[string]any{"n": 1})
	w.run()
	status, result := w.outcome(id)
	require.Equal(t, lifecycle.StatusFailed, status)
	require.Equal(t, []any{"b"}, result["failed_tasks"])
	require.Equal(t, `{b}`, w.text(`SELECT failed_tasks FROM workflow_execution`))
	require.Contains(t, w.text(`SELECT error_message FROM workflow_execution`), "b")
	w.sound()
}

// A child whose worker vanished before it began is repeated by the engine, without
// the workflow's counting it.
func TestWorkThatWasNeverBegunIsRepeatedForTheWorkflow(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.one", "version: \"1\"\ntasks: [{name: a, action: pk.a}]"), nil)
	w.take(nil, []int64{id})
	child := w.dispatched()[0]
	testkit.Exec(t, w.store, `UPDATE execution SET status = 'failed', result = '{"error": "lost", "failed_by": "execution_timeout_monitor"}' WHERE id = $1`, child.ID)
	w.take([]int64{child.ID}, nil)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, id))
	w.completes(id)
	require.Equal(t, []string{"a/0/1"}, w.ran)
}

// A workflow within a workflow is a child like others; its result leads on.
func TestAWorkflowWithinAWorkflow(t *testing.T) {
	w := setup(t)
	w.does = func(string, int, int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 1}}}
	}
	w.define("pk.chain", chain)
	id := w.request(w.define("pk.outer", `
version: "1"
tasks:
  - {name: inner, action: pk.chain, type: workflow, with_items: "{{ [1, 2] }}", concurrency: 2, input: {n: "{{ item }}"}, next: [{do: [last]}]}
  - {name: last, action: pk.last, input: {sums: "{{ task.inner.results }}"}}
output_map: {n: "{{ length(task.inner.results) }}", first: "{{ task.inner.results[0].sum }}"}
`), nil)
	require.Equal(t, map[string]any{"n": 2.0, "first": 2.0, "succeeded": true}, w.completes(id))
	require.Equal(t, 3, testkit.Count(t, w.store, `SELECT count(*) FROM workflow_execution WHERE status = 'completed'`))
}

const question = `
version: "1"
tasks:
  - name: ask
    action: core.ask
    timeout: 3600
    input: {prompt: "Go on with {{ parameters.what }}?", response_schema: {type: object}}
    next:
      - {when: "{{ succeeded() }}", do: [go]}
      - {when: "{{ timed_out() }}", do: [late]}
  - {name: go, action: pk.go, input: {said: "{{ task.ask.response.yes }}"}}
  - {name: late, action: pk.late, input: {}}
`

// A question to a person holds no slot, waits for no worker, and leads on when it is
// answered or its time is over (S16).
func TestAQuestionLeadsOnWhenItIsAnswered(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.ask", question), map[string]any{"what": "it"})
	w.run()
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, id))
	ask := w.ids(`SELECT id FROM execution WHERE action_ref = 'core.ask'`)[0]
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, ask))
	require.Equal(t, 1, testkit.Count(t, w.store, `SELECT count(*) FROM inquiry WHERE execution = $1 AND prompt = 'Go on with it?' AND status = 'pending'
		AND timeout_at BETWEEN now() + interval '59 min' AND now() + interval '61 min'`, ask))
	require.Zero(t, testkit.Count(t, w.store, `SELECT count(*) FROM execution_holder`))

	testkit.Exec(t, w.store,
		`UPDATE inquiry SET status = 'responded', response = '{"yes": true}', responded_at = now(), settled = true`)
	testkit.Exec(t, w.store,
		`UPDATE execution SET status = 'completed', result = '{"response": {"yes": true}}' WHERE id = $1`, ask)
	w.completes(id)
	require.Equal(t, []string{"go/0/0"}, w.ran)
	require.JSONEq(t, `{"said": true}`, w.text(`SELECT config FROM execution WHERE action_ref = 'pk.go'`))
}

// A result that asks a person holds its workflow up until it is answered, and gives
// its slot back before (upstream 56).
func TestAResultThatAsksHoldsTheWorkflowUp(t *testing.T) {
	w := setup(t)
	w.does = func(task string, _, _ int) end {
		if task == "a" {
			return end{
				lifecycle.StatusCompleted,
				map[string]any{"data": map[string]any{"value": 1, "__inquiry": map[string]any{"prompt": "Really?"}}},
			}
		}
		return end{status: lifecycle.StatusCompleted}
	}
	id := w.request(w.define("pk.asks", `
version: "1"
tasks:
  - {name: a, action: pk.a, next: [{do: [b]}]}
  - {name: b, action: pk.b, input: {said: "{{ task.a.response }}"}}
`), nil)
	w.run()
	require.Equal(t, []string{"a/0/0"}, w.ran)
	require.Equal(t, 1,
		testkit.Count(t, w.store, `SELECT count(*) FROM inquiry WHERE status = 'pending' AND prompt = 'Really?'`))
	require.Zero(t, testkit.Count(t, w.store, `SELECT count(*) FROM execution_holder`))
	testkit.Exec(t, w.store,
		`UPDATE inquiry SET status = 'responded', response = '"yes"', responded_at = now(), settled = true`)
	w.order(advancement.Request{
		Workflow: w.workflowOf(id),
		Children: w.ids(`SELECT id FROM execution WHERE action_ref = 'pk.a'`),
	})
	w.completes(id)
	require.JSONEq(t, `{"said": "yes"}`, w.text(`SELECT config FROM execution WHERE action_ref = 'pk.b'`))
}

// A paused workflow starts nothing new; resumed, it goes on where it was.
func TestPauseAndResume(t *testing.T) {
	w := setup(t)
	w.does = func(string, int, int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 1}}}
	}
	id := w.request(w.define("pk.chain", chain), map[string]any{"n": 1})
	w.take(nil, []int64{id})
	testkit.Exec(t, w.store, `UPDATE workflow_execution SET paused = true, pause_reason = 'lunch'`)
	w.run()
	require.Equal(t, []string{"a/0/0"}, w.ran)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, id))
	testkit.Exec(t, w.store, `UPDATE workflow_execution SET paused = false`)
	w.check(id)
	w.completes(id)
	require.Equal(t, []string{"a/0/0", "b/0/0"}, w.ran)
}

// Workflows within a paused workflow start nothing either, no matter whether they began before the pause. They
// continue when it is resumed, unless they were paused themselves.
func TestAPauseIsOneOfTheWholeTree(t *testing.T) {
	w := setup(t)
	w.does = func(string, int, int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 1}}}
	}
	w.define("pk.chain", chain)
	id := w.request(w.define("pk.outer", `
version: "1"
tasks:
  - {name: inner, action: pk.chain, type: workflow, with_items: "{{ [1, 2, 3] }}", concurrency: 3, input: {n: "{{ item }}"}}
`), nil)
	w.order(advancement.Request{Start: id})
	inner := w.ids(`SELECT id FROM execution WHERE parent = $1 ORDER BY id`, id)
	w.order(advancement.Request{Start: inner[0]}, advancement.Request{Start: inner[1]})
	pause := func(paused bool, execution int64) {
		testkit.Exec(t, w.store, `UPDATE workflow_execution SET paused = $1 WHERE execution = $2`, paused, execution)
	}
	pause(true, id)
	pause(true, inner[1])
	require.ElementsMatch(t, []int64{w.workflowOf(id), w.workflowOf(inner[0]), w.workflowOf(inner[1])}, w.due(),
		"the sweep tells all of them")
	w.run()
	require.Equal(t, []string{"a/0/0", "a/0/0"}, w.ran, "running executions end, and the third starts nothing")
	require.Equal(t, 3, testkit.Count(t, w.store, `SELECT count(*) FROM workflow_execution w JOIN execution e ON e.id = w.execution
		WHERE e.parent = $1 AND w.open AND (w.state ->> 'paused')::bool`, id))

	w.check(id) // processes the children that ended meanwhile
	pause(false, id)
	require.Subset(t, w.due(), []int64{w.workflowOf(id), w.workflowOf(inner[0]), w.workflowOf(inner[2])})
	for _, one := range []int64{id, inner[0], inner[1], inner[2]} {
		w.check(one)
	}
	w.run()
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, w.store, inner[0]))
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, inner[1]), "it was paused by itself")
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, w.store, inner[2]))
	pause(false, inner[1])
	w.check(inner[1])
	w.completes(id)
}

// Retries that become due during a pause run after it.
func TestRetriesWaitForTheirWorkflowToBeResumed(t *testing.T) {
	w := setup(t)
	w.does = func(task string, _, retries int) end {
		if task == "try" && retries == 0 {
			return end{lifecycle.StatusFailed, map[string]any{"code": 1}}
		}
		return end{status: lifecycle.StatusCompleted}
	}
	id := w.request(w.define("pk.fallback", fallback), nil)
	w.take(nil, []int64{id})
	testkit.Exec(t, w.store, `UPDATE workflow_execution SET paused = true`)
	w.run()
	require.Zero(t, testkit.Count(t, w.store, `SELECT count(*) FROM execution_retry`))
	testkit.Exec(t, w.store, `UPDATE workflow_execution SET paused = false`)
	w.check(id)
	w.completes(id)
	require.Equal(t, []string{"try/0/0", "try/0/1", "cheer/0/0"}, w.ran)
}

// An operator may retry a failed child while the workflow is paused. The resumed workflow takes the
// operator's retry for its own, whether it has ended meanwhile or not.
func TestARetryByHandTakesThePlaceOfAHeldOne(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"it ends before the resume": true, "it ends after the resume": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.does = func(task string, _, retries int) end {
				if task == "try" && retries == 0 {
					return end{lifecycle.StatusFailed, map[string]any{"code": 1}}
				}
				return end{status: lifecycle.StatusCompleted}
			}
			id := w.request(w.define("pk.fallback", fallback), nil)
			w.take(nil, []int64{id})
			testkit.Exec(t, w.store, `UPDATE workflow_execution SET paused = true`)
			w.run()
			failed := w.ids(`SELECT id FROM execution WHERE status = 'failed'`)
			require.Len(t, failed, 1)
			_, err := w.store.RepeatExecutions(testkit.Context(t), store.RepeatExecutionsParams{
				Failed: failed, Reasons: []string{string(lifecycle.ManualRetry)}, Delays: []float64{0},
				RequestedBy: new("ann"),
			})
			require.NoError(t, err)
			if before {
				w.run()
			}
			testkit.Exec(t, w.store, `UPDATE workflow_execution SET paused = false`)
			w.check(id)
			w.run()
			w.cfg.UnreportedAfter = time.Nanosecond // so that the sweep finds it
			w.check(id)
			w.run()
			w.completes(id)
			require.Equal(t, []string{"try/0/0", "try/0/1", "cheer/0/0"}, w.ran)
		})
	}
}

// A cancelled workflow stops its children as its definition says, and starts no others (upstream 42, 51).
func TestACancelledWorkflowStops(t *testing.T) {
	t.Parallel()
	for policy, running := range map[string]lifecycle.Status{
		"allow_finish":   lifecycle.StatusRunning,
		"cancel_running": lifecycle.StatusCanceling,
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			id := w.request(w.define("pk.two", fmt.Sprintf(`
version: "1"
cancellation_policy: %s
tasks:
  - {name: a, action: pk.a, next: [{do: [c]}]}
  - {name: b, action: pk.b, next: [{do: [c]}]}
  - {name: c, action: pk.c}
`, policy)), nil)
			w.take(nil, []int64{id})
			children := w.dispatched()
			require.Len(t, children, 2)
			testkit.Exec(t, w.store, `UPDATE execution SET status = 'running', started_at = now() WHERE id = $1`,
				children[0].ID)
			tree, err := w.store.CancelChildren(testkit.Context(t), []int64{id}, true, 10)
			require.NoError(t, err)
			require.Equal(t, running != lifecycle.StatusRunning, slices.Contains(tree, children[0].ID),
				"what is cancelled with the workflow")
			all, err := w.store.CancelChildren(testkit.Context(t), []int64{id}, false, 10)
			require.NoError(t, err)
			require.Contains(t, all, children[0].ID, "an operator cancels it with the whole tree")
			require.Contains(t, tree, children[1].ID)
			w.cancel(id)
			require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, w.store, id))
			require.Equal(t, []int64{w.workflowOf(id)}, w.due(), "the sweep finds it")
			w.check(id)
			w.poll()
			require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, w.store, id),
				"one of its children has not ended")
			require.Empty(t, w.due(), "it waits for its children")
			require.Equal(t, "cancelled", w.text(`SELECT status FROM workflow_execution`), "as published")
			require.Equal(t, running, testkit.StatusOf(t, w.store, children[0].ID))
			require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, w.store, children[1].ID))
			_, stopped := w.outcome(children[1].ID)
			require.Equal(t, "wrong host", stopped["message"], "an execution that is stopped with its workflow has the reason")
			require.Equal(t, "anna", stopped["cancelled_by"])
			testkit.Exec(t, w.store, `UPDATE execution SET status = 'completed' WHERE id = $1`, children[0].ID)
			w.run()
			require.Empty(t, w.ran, "nothing is started after the end")
			require.Zero(t, testkit.Count(t, w.store, `SELECT count(*) FROM workflow_task_dispatch WHERE NOT settled`))
			status, result := w.outcome(id)
			require.Equal(t, lifecycle.StatusCancelled, status)
			require.Equal(t, map[string]any{"error": "Workflow cancelled", "succeeded": false}, result)
			require.Equal(t, "{}", w.text(`SELECT current_tasks FROM workflow_execution`),
				"nothing is shown as running any more")
			require.Equal(t, "cancelled", w.text(`SELECT status FROM workflow_execution`))
			w.sound()
		})
	}
}

// A cancelled child counts as failed, and the workflow goes on (upstream 42).
func TestACancelledChildDoesNotHoldTheWorkflowUp(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.two", `
version: "1"
tasks:
  - {name: a, action: pk.a, next: [{when: "{{ cancelled() }}", do: [b]}]}
  - {name: b, action: pk.b}
`), nil)
	w.take(nil, []int64{id})
	w.cancel(w.dispatched()[0].ID)
	w.completes(id)
	require.Equal(t, []string{"b/0/0"}, w.ran)
}

// A workflow that runs for longer than it may ends as timeout.
func TestAWorkflowWhoseTimeIsOver(t *testing.T) {
	w := setup(t)
	action := w.define("pk.chain", chain)
	testkit.Exec(t, w.store, `UPDATE action SET timeout_seconds = 60 WHERE id = $1`, action.ID)
	id := w.request(action, map[string]any{"n": 1})
	w.take(nil, []int64{id})
	child := w.dispatched()[0]
	require.Equal(t, 1, testkit.Count(t, w.store, `SELECT count(*) FROM workflow_execution WHERE deadline BETWEEN now() + interval '50 s' AND now() + interval '60 s'`))
	testkit.Exec(t, w.store, `UPDATE workflow_execution SET created = created - interval '1 minute', deadline = deadline - interval '1 minute'`)
	w.check(id)
	status, result := w.outcome(id)
	require.Equal(t, lifecycle.StatusTimeout, status)
	require.Equal(t, "the workflow has run for longer than it may: 1m0s", result["error"])
	w.poll()
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, w.store, child.ID),
		"what was not begun is not begun any more")
}

// A definition that cannot be run ends its execution with the reason.
func TestADefinitionThatCannotBeRun(t *testing.T) {
	w := setup(t)
	id := w.request(w.keep("pk.round", []byte(`{"version": "1", "strict": true, "tasks": [
		{"name": "a", "action": "pk.a", "next": [{"do": ["b"]}]}, {"name": "b", "action": "pk.a", "next": [{"do": ["a"]}]}]}`)), nil)
	w.run()
	status, result := w.outcome(id)
	require.Equal(t, lifecycle.StatusFailed, status)
	require.Contains(t, result["message"], "a → b → a")
}

// The action of a task that does not exist fails the task, and with it the workflow.
func TestATaskWhoseActionDoesNotExist(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.one", "version: \"1\"\ntasks: [{name: a, action: pk.gone}]"), nil)
	testkit.Exec(t, w.store, `DELETE FROM action WHERE ref = 'pk.gone'`)
	w.run()
	status, _ := w.outcome(id)
	require.Equal(t, lifecycle.StatusFailed, status)
	require.Equal(t, lifecycle.StatusFailed,
		testkit.StatusOf(t, w.store, w.ids(`SELECT id FROM execution WHERE parent = $1`, id)[0]))
	w.sound()
}

// The sweep replaces a lost request, whatever it was about.
func TestTheSweepFindsUnreportedEnds(t *testing.T) {
	w := setup(t)
	w.does = func(string, int, int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 1}}}
	}
	id := w.request(w.define("pk.chain", chain), map[string]any{"n": 1})
	w.take(nil, []int64{id})
	require.Empty(t, w.due(), "a workflow that waits for its children is left alone")
	child := w.dispatched()[0]
	w.finish(child)
	w.released(child.ID)
	require.Empty(t, w.due(), "the report may be on its way")
	testkit.Exec(t, w.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, w.store, `UPDATE execution SET updated = now() - interval '1 min' WHERE id = $1`, child.ID)
	testkit.Exec(t, w.store, `ALTER TABLE execution ENABLE TRIGGER USER`)
	testkit.Exec(t, w.store, `ALTER TABLE workflow_execution DISABLE TRIGGER USER`)
	testkit.Exec(t, w.store, `UPDATE workflow_execution SET updated = now() - interval '1 min'`)
	require.Equal(t, []int64{w.workflowOf(id)}, w.due())
	w.check(id)
	require.Len(t, w.dispatched(), 1, "b has begun")
	testkit.Exec(t, w.store, `UPDATE workflow_execution SET paused = true`)
	require.Equal(t, []int64{w.workflowOf(id)}, w.due(), "an operator has paused it")
	w.check(id)
	require.Empty(t, w.due())
}

// The end of a child is processed after the batch that releases its slot: that batch may repeat it.
func TestAnEndIsProcessedAfterItsSlotIsReleased(t *testing.T) {
	w := setup(t)
	w.does = func(string, int, int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 1}}}
	}
	id := w.request(w.define("pk.chain", chain), map[string]any{"n": 1})
	w.take(nil, []int64{id})
	child := w.dispatched()[0]
	w.finish(child)
	ended := advancement.Request{Workflow: w.workflowOf(id), Children: []int64{child.ID}}
	w.order(ended)
	require.Empty(t, w.dispatched())
	w.released(child.ID)
	w.order(ended)
	require.Len(t, w.dispatched(), 1, "b has begun")
}

// due are the workflows that the sweep would check.
func (w *world) due() []int64 {
	rows, err := w.store.FindWorkflows(testkit.Context(w.t), 10, 0, 100)
	require.NoError(w.t, err)
	var ids []int64
	for _, row := range rows {
		if row.Due {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// released processes the report of an end without notifying the runner of workflows.
func (w *world) released(id int64) {
	told := w.relay
	w.relay = &relay{}
	defer func() { w.relay = told }()
	result, err := w.batches.Run(testkit.Context(w.t), completionOf(id))
	require.NoError(w.t, err)
	require.Len(w.t, result.Tasks, 1)
}

// poll processes cancellations, as an engine does every few seconds.
func (w *world) poll() {
	w.t.Helper()
	for range 3 {
		ids := w.ids(`SELECT n.execution FROM execution_cancel n JOIN execution e ON e.id = n.execution
			WHERE e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') ORDER BY 1`)
		if len(ids) == 0 {
			return
		}
		w.cancel(ids...)
	}
}

// cancel stops executions as an operator does.
func (w *world) cancel(ids ...int64) {
	w.t.Helper()
	require.NoError(w.t, w.store.Tx(testkit.Context(w.t), "cancel", func(ctx context.Context, tx *store.Tx) error {
		_, err := cancellation.Apply(ctx, tx, cancellation.Request{Actor: "anna", Reason: "wrong host"}, ids)
		return err
	}))
}

// A value made from a secret parameter is encrypted as well, also within a longer text, and appears nowhere else
// (upstream 52).
func TestSecretsGoFromTaskToTaskUnseen(t *testing.T) {
	w := setup(t)
	keys := w.keys(strings.Repeat("k", 32))
	w.does = func(string, int, int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"ok": true}}
	}
	id := w.request(w.define("pk.hide", `
version: "1"
tasks:
  - name: a
    action: pk.a
    input: {whole: "{{ parameters.password }}", part: "Bearer {{ parameters.password }}!"}
    next: [{publish: [{kept: "{{ parameters.password }}"}], do: [b]}]
  - {name: b, action: pk.b, input: {kept: "{{ kept }}"}}
output_map: {out: "{{ kept }}"}
`), json.RawMessage(`{"password": {"$attune_secret": true, "redacted": true}}`))
	sealed, err := keys.Seal("hunter2")
	require.NoError(t, err)
	testkit.Exec(t, w.store, `INSERT INTO execution_secret_value (entity_type, entity_id, json_path, source_kind, encrypted_value)
		VALUES ('execution_config', $1, '/password', 'parameter_schema', $2)`, id, sealed)
	w.completes(id)
	testkit.NowhereInDatabase(t, w.store, "hunter2")
	values := map[string]any{}
	for _, child := range w.ids(`SELECT id FROM execution WHERE parent = $1`, id) {
		rows, err := store.SecretsOf(testkit.Context(t), w.store.Queries, "execution_config", child)
		require.NoError(t, err)
		for _, row := range rows {
			values[row.Path], err = keys.Open(row)
			require.NoError(t, err)
		}
	}
	require.Equal(t, map[string]any{"/whole": "hunter2", "/part": "Bearer hunter2!", "/kept": "hunter2"}, values)
	require.JSONEq(t, `{"kept": {"$attune_secret": true, "redacted": true}}`,
		w.text(`SELECT config FROM execution WHERE action_ref = 'pk.b'`))
	_, result := w.outcome(id)
	require.Equal(t, map[string]any{"$attune_secret": true, "redacted": true}, result["out"])
}

// After the timeout of a workflow, the completion of a child starts no further task and no retry.
func TestNothingIsMadeWhenTheTimeIsOver(t *testing.T) {
	w := setup(t)
	w.does = func(task string, _, _ int) end {
		if task == "try" {
			return end{lifecycle.StatusFailed, map[string]any{"code": 1}}
		}
		return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 1}}}
	}
	for ref, definition := range map[string]string{"pk.chain": chain, "pk.fallback": fallback} {
		id := w.request(w.define(ref, definition), map[string]any{"n": 1})
		w.take(nil, []int64{id})
		child := w.dispatched()[0]
		w.finish(child)
		w.released(child.ID)
		testkit.Exec(t, w.store, `UPDATE workflow_execution SET deadline = now() WHERE execution = $1`, id)
		w.order(advancement.Request{Workflow: w.workflowOf(id), Children: []int64{child.ID}})
		require.Equal(t, lifecycle.StatusTimeout, testkit.StatusOf(t, w.store, id), ref)
		require.Equal(t, 1, testkit.Count(t, w.store, `SELECT count(*) FROM execution WHERE parent = $1`, id), ref)
	}
	w.run()
	require.Len(t, w.ran, 2)
	w.sound()
}
