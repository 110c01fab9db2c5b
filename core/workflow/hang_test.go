package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/workflow"
)

func statusNamed(name string) lifecycle.Status {
	s, err := lifecycle.ParseStatus(name)
	if err != nil {
		panic(err)
	}
	return s
}

// Upstream 38: after a crash the first decision of a workflow is repeated with the same children. After it was written
// it has none.
func TestAWorkflowWhoseStartIsRepeatedDoesNotHang(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
- {name: a, action: core.a}
- {name: b, action: core.b}
`)
	begin := []workflow.Happening{{Kind: workflow.Started}}
	lost := w.decide(w.state, begin)
	again := w.decide(w.state, begin)
	require.Equal(t, lost, again)
	w.apply(again)
	require.Empty(t, w.tell(begin...).Start)
	w.ends("a", completed)
	w.ends("b", completed)
	w.hasEnded(completed)
}

// Upstream 39.
func TestAnEmptyListDoesNotHang(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []string{"", "concurrency: 3, ", "batch_size: 2, "} {
		w := start(t, `
- {name: a, action: core.a, with_items: "{{ [] }}", `+concurrency+`next: [{when: "{{ succeeded() and result() == [] and task.a.items_total == 0 }}", do: [b]}]}
- {name: b, action: core.b}
`)
		w.runs("b")
		w.said("a completed: its list is empty")
		w.ends("b", completed)
		w.hasEnded(completed)
	}
}

// Upstream 40: of two branches only one is taken, and the join of both is given up.
func TestAJoinThatIsNeverSatisfiedDoesNotHang(t *testing.T) {
	t.Parallel()
	w := start(t, `
- name: a
  action: core.a
  next: [{when: "{{ succeeded() }}", do: [b]}, {when: "{{ failed() }}", do: [c]}]
- {name: b, action: core.b, next: [{do: [d]}]}
- {name: c, action: core.c, next: [{do: [d]}]}
- {name: d, action: core.d, join: all, next: [{do: [e]}]}
- {name: e, action: core.e}
`)
	w.ends("a", completed)
	w.ends("b", completed)
	w.hasEnded(completed)
	require.Equal(t, workflow.Lists{Completed: []string{"a", "b"}, Skipped: []string{"d"}}, w.lists4())
	require.Equal(t, "join: 1 of 2 have arrived, and no more can", w.state.Tasks["d"].Why)
	w.said("d is skipped: join: 1 of 2")
	require.Empty(t, w.status("e"))
}

// Upstream 40: a predecessor that has failed and leads on has arrived.
func TestAJoinCountsPredecessorsThatHaveFailed(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, next: [{do: [d]}]}
- {name: b, action: core.b, next: [{do: [d]}]}
- {name: c, action: core.c, next: [{when: "{{ succeeded() }}", do: [d]}]}
- {name: d, action: core.d, join: 2}
`)
	w.ends("a", failed)
	w.said("join of d: 1 of 2 have arrived")
	w.ends("b", timeout)
	w.runs("c", "d")
	w.ends("c", completed)
	w.ends("d", completed)
	w.hasEnded(completed)
}

// A predecessor arrives once, however many of its transitions lead to the join.
func TestAJoinCountsEachPredecessorOnce(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, next: [{do: [c]}, {when: "{{ succeeded() }}", do: [c]}]}
- {name: b, action: core.b, next: [{do: [c]}]}
- {name: c, action: core.c, join: 2}
`)
	w.ends("a", completed)
	w.runs("b")
	w.ends("b", completed)
	w.runs("c")
}

// Upstream 40: joins behind joins are given up together.
func TestJoinsBehindAJoinThatIsGivenUpDoNotHang(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, next: [{when: "{{ succeeded() }}", do: [c]}, {do: [d]}]}
- {name: b, action: core.b, next: [{do: [c, e]}]}
- {name: c, action: core.c, join: all, next: [{do: [d]}]}
- {name: d, action: core.d, join: 2, next: [{do: [e]}]}
- {name: e, action: core.e, join: 2}
`)
	w.ends("a", failed)
	require.Equal(t, workflow.TaskSkipped, w.status("d"), "c cannot start, so neither can d")
	w.ends("b", completed)
	w.hasEnded(completed)
	require.Equal(t, []string{"c", "d", "e"}, w.lists4().Skipped)
}

// Upstream 41.
func TestAnAbandonedItemDoesNotHang(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, with_items: "{{ [1, 2] }}", concurrency: 2, next: [{when: "{{ failed() }}", do: [b]}]}
- {name: b, action: core.b}
`)
	w.item("a", 0, abandoned)
	w.item("a", 1, completed)
	w.runs("b")
	w.ends("b", completed)
	w.hasEnded(completed)
}

// Upstream 42.
func TestAChildThatIsCancelledDoesNotHang(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a}
- {name: b, action: core.b, next: [{do: [c]}]}
- {name: c, action: core.c}
`)
	w.ends("a", cancelled)
	w.ends("b", completed)
	w.runs("c")
	w.ends("c", completed)
	w.hasEnded(failed)
	require.Equal(t, "1 task failed: a (was cancelled)", w.end.Error)
}

// Upstream 43: an error of a task before its start is a failure like any other.
func TestATaskThatCannotBeStartedDoesNotHang(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]string{
		"input":     `input: {x: "{{ 1 / 0 }}"}`,
		"list":      `with_items: "{{ none }}"`,
		"condition": `when: "{{ none }}"`,
		"placement": `worker_selector: {x: "{{ none }}"}`,
		"items":     `{with_items: "{{ [1, 2, 3] }}", input: {x: "{{ item.x }}"}}`,
		"too many":  `with_items: "{{ range(10001) }}"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if broken[0] == '{' {
				broken = broken[1 : len(broken)-1]
			}
			w := start(t, `
strict: true
tasks:
- {name: a, action: core.a, next: [{do: [b]}]}
- {name: b, action: core.b, `+broken+`}
`)
			w.ends("a", completed)
			w.hasEnded(failed)
			require.Equal(t, []string{"b"}, w.lists4().Failed)
			require.NotEmpty(t, w.state.Tasks["b"].Why)
		})
	}
}

// Upstream 44: an end that is reported twice publishes once.
func TestAnEndThatIsHeardTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	w := start(t, `
vars: {n: 0}
tasks:
- {name: a, action: core.a, next: [{publish: [{n: "{{ n + 1 }}"}], do: [b]}]}
- {name: b, action: core.b}
`)
	h := w.ended("a", 0, completed, nil)
	w.tell(h, h)
	w.tell(h)
	require.Equal(t, int64(1), w.state.Variables["n"])
	w.runs("b")
	w.ends("b", completed)
	w.tell(h)
	w.hasEnded(completed)
}

// Upstream 46: the outcome of a list is that of all its items, whichever ends last.
func TestTheOutcomeOfAListIsThatOfAllItsItems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		items []lifecycle.Status
		want  workflow.TaskStatus
	}{
		"all succeed":          {[]lifecycle.Status{completed, completed}, workflow.TaskCompleted},
		"the first fails":      {[]lifecycle.Status{failed, completed}, workflow.TaskFailed},
		"the last fails":       {[]lifecycle.Status{completed, failed}, workflow.TaskFailed},
		"one times out":        {[]lifecycle.Status{timeout, completed}, workflow.TaskTimeout},
		"one of each":          {[]lifecycle.Status{timeout, failed}, workflow.TaskFailed},
		"all fail":             {[]lifecycle.Status{failed, abandoned}, workflow.TaskFailed},
		"all are cancelled":    {[]lifecycle.Status{cancelled, cancelled}, workflow.TaskCancelled},
		"one is cancelled":     {[]lifecycle.Status{cancelled, completed}, workflow.TaskCancelled},
		"cancelled and failed": {[]lifecycle.Status{cancelled, failed}, workflow.TaskFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, `
- {name: a, action: core.a, with_items: "{{ [1, 2] }}", concurrency: 2}
`)
			for i, status := range c.items {
				w.item("a", i, status)
			}
			require.Equal(t, c.want, w.status("a"))
			require.NotNil(t, w.end)
		})
	}
}

// Upstream 47: a retry is planned without sleeping, and the retries end.
func TestATaskThatAlwaysFailsDoesNotHang(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, retry: {count: 2, delay: 4}}
`)
	w.ends("a", failed)
	w.said("a failed and is repeated in 4s (1 of 2)")
	w.ends("a", timeout)
	require.Equal(t, "timeout", w.repeats[1].Reason)
	require.Nil(t, w.end)
	w.ends("a", failed)
	w.hasEnded(failed)
}

// Upstream 50: the tasks of a parallel one run, and it ends with the last.
func TestAParallelTaskDoesNotHang(t *testing.T) {
	t.Parallel()
	w := start(t, parallelSource)
	w.runs("x", "y[0]", "y[1]")
	w.ends("x", completed, map[string]any{"n": 1})
	w.item("y", 0, completed, "p")
	w.item("y", 1, completed, "q")
	w.runs("after")
	require.Equal(t, map[string]any{"n": int64(1), "all": `{"x":{"n":1},"y":["p","q"],"z":null}`}, w.config("after", 0))
	w.ends("after", completed)
	w.hasEnded(completed)
}

const parallelSource = `
strict: true
tasks:
- name: both
  type: parallel
  tasks:
  - {name: x, action: core.x, retry: {count: 1, delay: 1}}
  - {name: y, action: core.y, with_items: "{{ [1, 2] }}", concurrency: 2}
  - {name: z, action: core.z, when: "{{ false }}"}
  next: [{when: "{{ succeeded() }}", publish: [{all: "{{ string(result()) }}"}], do: [after]}]
- {name: after, action: core.after, input: {n: "{{ task.both.x.n }}", all: "{{ all }}"}}
`

func TestTasksOfAParallelTaskReadItsPredecessor(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, next: [{do: [p]}]}
- name: p
  type: parallel
  tasks: [{name: x, action: core.x, input: {r: "{{ result() }}", ok: "{{ succeeded() }}"}}]
`)
	w.ends("a", completed, "text")
	require.Equal(t, map[string]any{"r": "text", "ok": true}, w.config("x", 0))
	require.Equal(t, "p", w.children[workflow.Child{Task: "x"}].start.TriggeredBy)
}

func TestAParallelTaskFailsWithAnyOfItsTasks(t *testing.T) {
	t.Parallel()
	w := start(t, parallelSource)
	w.ends("x", failed)
	require.Len(t, w.repeats, 1)
	w.ends("x", failed)
	w.item("y", 0, completed)
	require.Nil(t, w.end)
	w.item("y", 1, completed)
	w.hasEnded(failed)
	require.Equal(t, []string{"both", "x"}, w.lists4().Failed)
}

// Upstream 51: a workflow that is cancelled while nothing runs has ended.
func TestAWorkflowThatIsCancelledWithNothingOpenDoesNotHang(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
- {name: a, action: core.a}
`)
	w.tell(workflow.Happening{Kind: workflow.Paused}, workflow.Happening{Kind: workflow.Started})
	w.runs()
	require.Nil(t, w.end)
	w.tell(workflow.Happening{Kind: workflow.Cancelled})
	w.hasEnded(cancelled)
	require.Empty(t, w.stopped)
	require.Equal(t, []string{"a"}, w.lists4().Skipped)
}

// A state in which nothing can happen any more, however it has come about, ends at
// the next look.
func TestAStateThatNothingFollowsFromDoesNotHang(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
- {name: a, action: core.a, next: [{do: [b]}]}
- {name: b, action: core.b, join: 1}
`)
	w.state.Tasks["b"] = &workflow.TaskState{Status: workflow.TaskWaiting}
	w.tell(workflow.Happening{Kind: workflow.Rechecked})
	w.hasEnded(completed)

	w = newWorld(t, `
- {name: a, action: core.a}
`)
	w.state.Tasks["a"] = &workflow.TaskState{Status: workflow.TaskRunning, Total: 1, Next: 1}
	w.tell(workflow.Happening{Kind: workflow.Rechecked})
	w.hasEnded(completed)
}

// Two decisions that were begun at the same state do not write into each other.
func TestDecisionsOnOneStateAreTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
- {name: a, action: core.a, next: [{do: [d]}]}
- {name: b, action: core.b, next: [{do: [d]}]}
- {name: c, action: core.c, next: [{do: [d]}]}
- {name: d, action: core.d, join: all}
`)
	w.tell(workflow.Happening{Kind: workflow.Started})
	w.ends("a", completed)
	w.state.Tasks["d"].Arrived = append(make([]string, 0, 8), "a")
	byB := w.decide(w.state, []workflow.Happening{w.ended("b", 0, completed, nil)})
	byC := w.decide(w.state, []workflow.Happening{w.ended("c", 0, completed, nil)})
	require.Equal(t, []string{"a", "b"}, byB.State.Tasks["d"].Arrived)
	require.Equal(t, []string{"a", "c"}, byC.State.Tasks["d"].Arrived)
}
