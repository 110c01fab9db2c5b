package advancement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

const overList = `
version: "1"
tasks:
  - name: each
    action: pk.each
    with_items: "{{ range(parameters.n) }}"
    concurrency: 2
    input: {x: "{{ item }}"}
    next: [{do: [after]}]
  - {name: after, action: pk.after, input: {n: "{{ task.each.succeeded_count }}"}}
`

// existingList makes a workflow over a list as the existing engine leaves it: rows for
// all items from the beginning, those in statuses somewhere, the others requested.
func (w *world) existingList(statuses []lifecycle.Status, made int) (id int64, children []int64) {
	w.t.Helper()
	return w.existingListOf(overList, statuses, made)
}

func (w *world) existingListOf(definition string, statuses []lifecycle.Status, made int) (id int64, children []int64) {
	w.t.Helper()
	id = w.existing(w.define("pk.list", definition), map[string]any{"n": made}, nil)
	each := testkit.ActionRow{ID: w.ids(`SELECT id FROM action WHERE ref = 'pk.each'`)[0], Ref: "pk.each"}
	for index := range made {
		child := testkit.Execution(w.t, w.store, each, func(e *testkit.ExecutionRow) {
			e.Parent, e.Config = &id, map[string]any{"x": index}
			if index < len(statuses) {
				if e.Status = statuses[index]; e.Status != lifecycle.StatusRequested {
					e.Worker = &w.worker
				}
			}
			e.WorkflowTask = map[string]any{
				"workflow_execution": w.workflowOf(id), "task_name": "each", "task_index": index, "task_batch": nil,
				"retry_count": 0,
			}
		}).ID
		testkit.Exec(w.t, w.store,
			`INSERT INTO workflow_task_dispatch (workflow_execution, task_name, task_index, execution_id) VALUES ($1, 'each', $2, $3)`,
			w.workflowOf(id), index, child)
		children = append(children, child)
	}
	return id, children
}

// settle runs the workflow with the requests that it sends, and none of its own, until
// nothing moves. It returns the most children that were dispatched at a time.
func (w *world) settle(id int64) (most int) {
	w.t.Helper()
	taken := map[int64]bool{}
	for range 100 {
		var requested []int64
		for _, child := range w.ids(`SELECT id FROM execution WHERE parent = $1 AND status = 'requested'`, id) {
			if w.requested(child) && !taken[child] {
				taken[child], requested = true, append(requested, child)
			}
		}
		w.take(nil, requested)
		handed := w.dispatched()
		most = max(most, len(handed))
		if len(handed) == 0 {
			if len(requested) == 0 {
				return most
			}
			continue
		}
		w.finish(handed[0])
		w.take([]int64{handed[0].ID}, nil)
	}
	require.Fail(w.t, "it never ends")
	return 0
}

// requested reports whether an execution was requested by a message.
func (w *world) requested(id int64) bool {
	w.relay.mu.Lock()
	defer w.relay.mu.Unlock()
	for _, m := range w.relay.messages {
		if m.RoutingKey == "execution.requested" &&
			strings.Contains(string(m.Body), fmt.Sprintf(`"execution_id":%d,`, id)) {
			return true
		}
	}
	return false
}

// A list whose children another engine has all made up front goes on: each runs once,
// never more than concurrency at a time, and the workflow completes.
func TestAListWhoseChildrenAreAllThereGoesOn(t *testing.T) {
	t.Parallel()
	const done, runs, waits = lifecycle.StatusCompleted, lifecycle.StatusScheduled, lifecycle.StatusRequested
	for name, c := range map[string]struct {
		statuses []lifecycle.Status
		ran      int // of the list, after it was taken over
	}{
		"all wait":                  {nil, 6},
		"one of two was handed out": {[]lifecycle.Status{runs}, 6},
		"two run":                   {[]lifecycle.Status{runs, runs}, 6},
		"some have ended":           {[]lifecycle.Status{done, done, runs, runs}, 4},
		"a hole":                    {[]lifecycle.Status{done, runs, done, waits}, 4},
		"one was cancelled early":   {[]lifecycle.Status{runs, runs, waits, waits, lifecycle.StatusCancelled}, 5},
		"all have ended":            {[]lifecycle.Status{done, done, done, done, done, done}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			id, children := w.existingList(c.statuses, 6)
			w.take(nil, nil)
			w.check(id)
			require.Empty(t, w.lost(), "a request that is not due is not lost")
			require.LessOrEqual(t, w.settle(id), 2)
			w.age() // as the sweep finds it: one that had ended before it was due
			w.check(id)
			w.settle(id)
			status, result := w.outcome(id)
			require.Equal(t, lifecycle.StatusCompleted, status, "%v %v", result, w.log(id))
			require.Len(t, w.ran, c.ran+1, "each once, and what follows: %v", w.ran)
			require.Equal(t, children,
				w.ids(`SELECT id FROM execution WHERE parent = $1 AND action_ref = 'pk.each' ORDER BY id`, id))
			w.sound()
		})
	}
}

// Only some of the rows were made before the other engine was lost.
func TestAListOfWhichOnlySomeChildrenAreThereGoesOn(t *testing.T) {
	w := setup(t)
	id, children := w.existingList([]lifecycle.Status{lifecycle.StatusScheduled}, 4)
	testkit.Exec(t, w.store, `UPDATE execution SET config = '{"n": 6}' WHERE id = $1`, id)
	w.check(id)
	require.LessOrEqual(t, w.settle(id), 2)
	w.completes(id)
	require.Len(t, w.ran, 7)
	require.Subset(t, w.ids(`SELECT id FROM execution WHERE parent = $1`, id), children)
}

// A retry that a paused workflow holds back has no open row. It does not count as the child that retention has deleted.
func TestAHeldRetryOfAListThatIsTakenOverIsNotLost(t *testing.T) {
	w := setup(t)
	retries := strings.Replace(overList, "concurrency: 2", "concurrency: 2\n    retry: {count: 1, delay: 0}", 1)
	id, children := w.existingListOf(retries, []lifecycle.Status{lifecycle.StatusCompleted,
		lifecycle.StatusScheduled}, 3)
	testkit.Exec(t, w.store, `DELETE FROM execution WHERE id = $1`, children[0])
	w.check(id)
	testkit.Exec(t, w.store, `UPDATE workflow_execution SET paused = true`)
	w.check(id)
	testkit.Exec(t, w.store, `UPDATE execution SET status = 'failed', result = '{"error": "x"}' WHERE id = $1`,
		children[1])
	w.take(children[1:2], nil)
	w.check(id)
	require.Equal(t, "1",
		w.text(`SELECT coalesce(jsonb_array_length(state -> 'held'), 0)::text FROM workflow_execution`))
	testkit.Exec(t, w.store, `UPDATE workflow_execution SET paused = false`)
	w.check(id)
	w.settle(id)
	w.run()
	status, result := w.outcome(id)
	require.Equal(t, lifecycle.StatusCompleted, status, "%v %v", result, w.log(id))
	require.ElementsMatch(t, []string{"each/2/0", "each/1/1"}, w.ran[:2], "%v", w.ran)
	require.Equal(t, []string{"after/0/0"}, w.ran[2:], "it comes after the retry")
}

// A workflow that was cancelled before it is taken over makes nothing any more, and ends
// with the last of its children.
func TestACancelledWorkflowOfAnotherEngineEndsWithItsLastChild(t *testing.T) {
	w := setup(t)
	id, children := w.existingList([]lifecycle.Status{lifecycle.StatusCompleted, lifecycle.StatusRunning}, 4)
	testkit.Exec(t, w.store, `UPDATE execution SET status = 'canceling' WHERE id = $1`, id)
	w.check(id)
	w.poll()
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, w.store, id), "%v", w.log(id))
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, children[1]), "it is let go on")
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, w.store, children[2]))
	testkit.Exec(t, w.store, `UPDATE execution SET status = 'completed' WHERE id = $1`, children[1])
	w.take(children, nil)
	status, result := w.outcome(id)
	require.Equal(t, lifecycle.StatusCancelled, status, "%v", w.log(id))
	require.Equal(t, map[string]any{"error": "Workflow cancelled", "succeeded": false}, result)
	require.Len(t, w.ids(`SELECT id FROM execution WHERE parent = $1`, id), 4)
}

// lost are the requests that recovery would submit again.
func (w *world) lost() []int64 {
	w.t.Helper()
	w.age()
	row, err := w.store.FindLostRequests(testkit.Context(w.t),
		store.FindLostRequestsParams{OlderThan: 60, ClaimAge: 60, WindowSize: 1000})
	require.NoError(w.t, err)
	var early []int64
	for _, id := range row.Ids {
		if !w.requested(id) {
			early = append(early, id)
		}
	}
	return early
}

// age has everything happened an hour ago.
func (w *world) age() {
	w.t.Helper()
	testkit.Exec(w.t, w.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(w.t, w.store, `UPDATE execution SET updated = now() - interval '1 hour'`)
	testkit.Exec(w.t, w.store, `ALTER TABLE execution ENABLE TRIGGER USER`)
}
