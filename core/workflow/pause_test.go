package workflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/workflow"
)

var (
	pause  = workflow.Happening{Kind: workflow.Paused}
	resume = workflow.Happening{Kind: workflow.Resumed}
	look   = workflow.Happening{Kind: workflow.Rechecked}
)

func TestAPausedWorkflowStartsNothing(t *testing.T) {
	t.Parallel()
	w := start(t, `
strict: true
tasks:
- {name: a, action: core.a, next: [{publish: [{x: 1}], do: [b, c]}]}
- {name: b, action: core.b, input: {x: "{{ x }}"}}
- {name: c, action: core.c, when: "{{ false }}"}
- {name: l, action: core.l, with_items: "{{ range(3) }}"}
- {name: r, action: core.r, retry: {count: 1, delay: 60}}
`)
	w.tell(pause)
	w.said("paused: nothing new is started")
	w.ends("a", completed)
	w.item("l", 0, completed)
	w.ends("r", failed)
	w.runs()
	require.Nil(t, w.end)
	require.Equal(t, int64(1), w.state.Variables["x"], "transitions are evaluated")
	require.Equal(t, workflow.TaskReady, w.status("b"))
	require.Equal(t, []string{"b", "c", "l", "r"}, w.lists4().Current)
	require.Empty(t, w.repeats)
	require.Len(t, w.state.Held, 1)

	w.tell(resume)
	w.runs("b", "l[1]", "r")
	require.Equal(t, map[string]any{"x": int64(1)}, w.config("b", 0))
	require.Equal(t, []workflow.Repeat{{Task: "r", Delay: time.Minute, Reason: "failed"}}, w.repeats)
	require.Equal(t, []string{"c"}, w.lists4().Skipped)
	require.Empty(t, w.state.Held)
	w.said("r is repeated in 1m0s")
	w.ends("b", completed)
	w.ends("r", completed)
	w.item("l", 1, completed)
	w.item("l", 2, completed)
	w.hasEnded(completed)
}

func TestAPausedWorkflowInWhichNothingIsLeftHasEnded(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a}
`)
	w.tell(pause)
	w.ends("a", completed)
	w.hasEnded(completed)
	require.Empty(t, w.tell(resume).Log)
}

func TestAWorkflowThatIsCancelledStopsItsTasksOrLetsThemFinish(t *testing.T) {
	t.Parallel()
	for policy, gently := range map[string]bool{
		"": true, "cancellation_policy: allow_finish\n": true,
		"cancellation_policy: cancel_running\n": false,
	} {
		w := start(t, policy+`
tasks:
- {name: a, action: core.a, next: [{publish: [{x: 1}], do: [b]}]}
- {name: b, action: core.b, join: 1}
- {name: l, action: core.l, with_items: "{{ range(3) }}"}
- {name: j, action: core.j, retry: {count: 1, delay: 1}, next: [{do: [w]}]}
- {name: k, action: core.k, next: [{do: [w]}]}
- {name: w, action: core.w, join: 2}
- name: p
  type: parallel
  tasks: [{name: q, action: core.q}, {name: s, action: core.s}]
`)
		w.ends("k", completed)
		w.ends("s", completed)
		plan := w.tell(workflow.Happening{Kind: workflow.Cancelled})
		w.hasEnded(cancelled)
		require.Equal(t, []string{"a", "l", "j", "q"}, plan.Stop)
		require.Equal(t, gently, plan.StopUnstarted)
		require.Equal(t, map[string]any{"error": "Workflow cancelled", "succeeded": false}, plan.End.Result)
		require.Equal(t, workflow.TaskCancelled, w.status("w"))

		w.ends("a", completed)
		w.item("l", 0, cancelled)
		w.ends("j", failed)
		w.ends("q", cancelled)
		w.runs()
		require.Empty(t, w.state.Variables, "later ends fire no transition")
		require.Equal(t, workflow.TaskCompleted, w.status("a"))
		require.Equal(t, workflow.TaskCancelled, w.status("l"))
		require.Equal(t, workflow.TaskFailed, w.status("j"))
		require.Equal(t, workflow.TaskCancelled, w.status("p"))
		require.Equal(t, workflow.Lists{
			Completed: []string{"a", "k", "s"}, Failed: []string{"l", "j", "p", "q"},
			Skipped: []string{"w"},
		}, w.lists4())
	}
}

func TestAWorkflowThatRunsTooLongEnds(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, retry: {count: 5, delay: 1}}
`)
	w.tell(pause)
	w.ends("a", failed)
	w.tell(workflow.Happening{Kind: workflow.TimedOut}, workflow.Happening{Kind: workflow.Cancelled})
	w.hasEnded(timeout)
	require.Empty(t, w.state.Held, "a retry that was held is none any more")
	require.Equal(t, workflow.TaskCancelled, w.status("a"))
	require.Empty(t, w.stopped)
}

func TestRetriesAreAskedForByOnError(t *testing.T) {
	t.Parallel()
	source := `
- name: a
  action: core.a
  with_items: "{{ [1, 2] }}"
  concurrency: 2
  retry: {count: 3, delay: 2, backoff: exponential, max_delay: 5, on_error: "{{ failed() and result().code == 7 }}"}
`
	w := start(t, source)
	w.item("a", 1, failed, map[string]any{"code": 7})
	require.Equal(t, []*workflow.NeedError{{Children: []workflow.Child{{Task: "a", Index: 1}}}}, w.asked)
	w.said("item 1 of a failed and is repeated in 2s (1 of 3)")
	w.item("a", 1, failed, map[string]any{"code": 7})
	w.item("a", 1, failed, map[string]any{"code": 7})
	require.Equal(t, []workflow.Repeat{
		{Task: "a", Index: 1, Delay: 2 * time.Second, Reason: "failed"},
		{Task: "a", Index: 1, Delay: 4 * time.Second, Reason: "failed"},
		{Task: "a", Index: 1, Delay: 5 * time.Second, Reason: "failed"},
	}, w.repeats)
	w.item("a", 0, failed, map[string]any{"code": 8})
	w.said("a is not repeated: {{ failed() and result().code == 7 }} is false")
	w.runs("a[1]")
	w.item("a", 1, completed)
	w.hasEnded(failed)

	w = start(t, source)
	w.item("a", 0, timeout)
	w.item("a", 1, failed, "no object")
	w.said("a is not repeated: retry.on_error: ")
	w.hasEnded(failed)
}

func TestACancelledTaskIsNotRetried(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, retry: {count: 3, delay: 1}}
- {name: b, action: core.b, retry: {count: 3, delay: 1}}
`)
	w.ends("a", cancelled)
	w.ends("b", abandoned)
	require.Len(t, w.repeats, 1)
	w.ends("b", completed)
	w.hasEnded(failed)
}

func TestAPausedListWithinAParallelTaskIsCancelledWithIt(t *testing.T) {
	t.Parallel()
	w := start(t, `
- name: p
  type: parallel
  tasks:
  - {name: l, action: core.l, with_items: "{{ range(3) }}"}
  - {name: m, action: core.m, with_items: "{{ range(3) }}"}
`)
	w.tell(pause)
	h := w.ended("l", 0, completed, nil)
	w.tell(h, h)
	require.Equal(t, 1, w.state.Tasks["l"].Succeeded, "no open item could end twice")
	w.tell(workflow.Happening{Kind: workflow.Cancelled})
	require.Equal(t, []string{"m"}, w.stopped)
	require.Equal(t, workflow.TaskCancelled, w.status("l"))
	require.Equal(t, workflow.TaskRunning, w.status("p"))
	w.item("m", 0, completed)
	require.Equal(t, workflow.TaskCancelled, w.status("m"))
	require.Equal(t, workflow.TaskCancelled, w.status("p"))
}
