package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/workflow"
)

func TestAChainRunsFromTheFirstTaskToTheLast(t *testing.T) {
	t.Parallel()
	w := start(t, `
vars: {greeting: hello}
output_map:
  all: "{{ workflow.got }}"
  first: "{{ task.a.n }}"
tasks:
- name: a
  action: core.a
  next:
  - when: "{{ succeeded() }}"
    publish:
    - got: "{{ result().data.n + 1 }}"
    do: [b]
- name: b
  action: core.b
  input: {text: "{{ greeting }} {{ parameters.who }}", n: "{{ got }}", before: "{{ result().data.n }}", since: "{{ system.workflow_start }}"}
  timeout: 30
`)
	w.runs("a")
	require.Equal(t, map[string]any{"who": "me", "n": int64(3)}, w.config("a", 0),
		"without input those of the workflow are passed on")
	w.ends("a", completed, map[string]any{"data": map[string]any{"n": 4}})
	w.runs("b")
	child := w.children[workflow.Child{Task: "b"}].start
	require.Equal(t, map[string]any{
		"text": "hello me", "n": int64(5), "before": int64(4),
		"since": "2026-01-02T03:04:05Z",
	}, child.Config)
	require.Equal(t, "core.b", child.Action)
	require.Equal(t, 30, child.Timeout)
	require.Equal(t, "a", child.TriggeredBy)
	require.Nil(t, child.Index)
	require.Equal(t, workflow.Lists{Current: []string{"b"}, Completed: []string{"a"}}, w.lists4())
	w.ends("b", completed)
	w.hasEnded(completed)
	require.Equal(t, map[string]any{"all": int64(5), "first": int64(4), "succeeded": true}, w.end.Result)
	require.Equal(t, workflow.Lists{Completed: []string{"a", "b"}}, w.lists4())
}

func TestAFailureEndsTheWorkflowUnlessItIsHandled(t *testing.T) {
	t.Parallel()
	source := `
- name: a
  action: core.a
  next:
  - when: "{{ failed() }}"
    do: [rescue]
  - when: "{{ succeeded() }}"
    do: [b]
- {name: b, action: core.b}
- {name: rescue, action: core.r}
`
	w := start(t, source)
	w.ends("a", failed)
	w.runs("rescue")
	w.ends("rescue", completed)
	w.hasEnded(completed)
	require.Equal(t, workflow.Lists{Completed: []string{"a", "rescue"}}, w.lists4())

	w = start(t, source)
	w.ends("a", timeout)
	w.hasEnded(failed)
	require.Equal(t, map[string]any{
		"error": "1 task failed: a (timed out)", "succeeded": false, "failed_tasks": []any{"a"},
	}, w.end.Result)
	require.Equal(t, workflow.Lists{Failed: []string{"a"}}, w.lists4())

	w = start(t, source)
	w.ends("a", completed)
	w.ends("b", failed)
	w.hasEnded(failed)
}

func TestOtherBranchesGoOnToTheirEndAfterAFailure(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a}
- name: b
  action: core.b
  next: [{do: [c]}]
- {name: c, action: core.c}
`)
	w.ends("a", failed)
	require.Nil(t, w.end)
	w.ends("b", completed)
	w.runs("c")
	w.ends("c", completed)
	w.hasEnded(failed)
	require.Equal(t, "1 task failed: a", w.end.Error)
}

// Upstream 45.
func TestConditionsAreEvaluatedAndNotGuessed(t *testing.T) {
	t.Parallel()
	for source, fires := range map[string]map[string]bool{ // by how the task has ended
		"succeeded()": {"completed": true},
		"not succeeded()": {
			"failed": true, "timeout": true, "cancelled": true,
			"abandoned": true,
		},
		"failed()":    {"failed": true, "cancelled": true, "abandoned": true},
		"timed_out()": {"timeout": true},
		"cancelled()": {"cancelled": true},
		"failed() or timed_out()": {
			"failed": true, "timeout": true, "cancelled": true,
			"abandoned": true,
		},
		"succeeded() and result().code == 4":  {},
		"succeeded() and result().code == 3":  {"completed": true},
		"failed() and result().code == 3":     {"failed": true, "cancelled": true, "abandoned": true},
		`"succeeded()" == "x" or timed_out()`: {"timeout": true},
		"parameters.n == 3 and task.a.code in [3] and n": {
			"completed": true, "failed": true, "timeout": true,
			"cancelled": true, "abandoned": true,
		},
	} {
		for _, status := range []string{"completed", "failed", "timeout", "cancelled", "abandoned"} {
			t.Run(source+" after "+status, func(t *testing.T) {
				t.Parallel()
				w := start(t, `
strict: true
vars: {n: 1}
tasks:
- name: a
  action: core.a
  next: [{when: '`+source+`', do: [b]}]
- {name: b, action: core.b}
`)
				w.ends("a", statusNamed(status), map[string]any{"code": 3})
				require.Equal(t, fires[status], w.status("b") == workflow.TaskRunning)
			})
		}
	}
}

func TestAllTransitionsThatMatchFireInOrder(t *testing.T) {
	t.Parallel()
	w := start(t, `
vars: {x: 1, y: 2}
tasks:
- name: a
  action: core.a
  next:
  - publish: [{x: "{{ y }}"}, {y: "{{ x }}"}]
    do: [b]
  - when: "{{ x == 2 }}"
    publish: [{seen: "{{ [x, y] }}"}]
    do: [c, b]
  - when: "{{ false }}"
    publish: [{x: 9}]
  - publish: [whole]
- {name: b, action: core.b, input: {seen: "{{ seen }}"}}
- {name: c, action: core.c}
`)
	w.ends("a", completed, map[string]any{"r": 1})
	w.runs("b", "c")
	require.Equal(t, map[string]any{
		"x": int64(2), "y": int64(1), "seen": []any{int64(2), int64(1)},
		"whole": map[string]any{"r": int64(1)},
	},
		w.state.Variables)
	require.Equal(t, map[string]any{"seen": []any{int64(2), int64(1)}}, w.config("b", 0), "the values of all")
	require.Equal(t, map[string]any{"x": int64(1), "y": int64(2)}, w.def.Vars, "the definition stays as it is")
}

func TestAnErrorFailsItsTaskInAStrictWorkflow(t *testing.T) {
	t.Parallel()
	t.Run("a condition, and nothing else fires", func(t *testing.T) {
		t.Parallel()
		w := start(t, `
strict: true
tasks:
- name: a
  action: core.a
  next: [{when: "{{ result().missing > 1 }}", do: [b]}]
- {name: b, action: core.b}
`)
		w.ends("a", completed, map[string]any{})
		w.hasEnded(failed)
		require.Contains(t, w.end.Error, "there is no field missing")
		require.Equal(t, workflow.Lists{Failed: []string{"a"}}, w.lists4())
	})
	t.Run("a condition, and another one fires", func(t *testing.T) {
		t.Parallel()
		w := start(t, `
strict: true
tasks:
- name: a
  action: core.a
  next: [{when: "{{ result().missing > 1 }}", do: [b]}, {do: [c]}]
- {name: b, action: core.b}
- {name: c, action: core.c}
`)
		w.ends("a", completed, map[string]any{})
		w.runs("c")
		w.said("transition 1 of a does not fire")
		w.ends("c", completed)
		w.hasEnded(completed)
	})
	t.Run("a publish assigns nothing, not even its other names", func(t *testing.T) {
		t.Parallel()
		w := start(t, `
strict: true
tasks:
- name: a
  action: core.a
  next: [{publish: [{x: 1}, {y: "{{ result().missing }}"}], do: [b]}]
- {name: b, action: core.b}
`)
		w.ends("a", completed, map[string]any{})
		w.hasEnded(failed)
		require.Empty(t, w.state.Variables)
	})
	t.Run("parameters, with a handler that sees why", func(t *testing.T) {
		t.Parallel()
		w := start(t, `
strict: true
tasks:
- name: a
  action: core.a
  input: {x: "{{ nothing.there }}"}
  next: [{when: "{{ failed() }}", publish: [{why: "{{ result().error }}"}], do: [b]}]
- {name: b, action: core.b, input: {x: "{{ task.a.error }}"}}
`)
		w.runs("b")
		require.Contains(t, w.state.Variables["why"], "there is no nothing")
		require.Contains(t, w.config("b", 0)["x"], "input: x: column")
		w.ends("b", completed)
		w.hasEnded(completed)
	})
	t.Run("output_map fails the workflow", func(t *testing.T) {
		t.Parallel()
		w := start(t, `
strict: true
output_map: {x: "{{ nothing }}"}
tasks: [{name: a, action: core.a}]
`)
		w.ends("a", completed)
		w.hasEnded(failed)
		require.Contains(t, w.end.Error, "output_map x: ")
		require.Equal(t, false, w.end.Result["succeeded"])
	})
}

func TestASkippedTaskFiresItsTransitions(t *testing.T) {
	t.Parallel()
	const source = `
tasks:
- name: a
  action: core.a
  when: "{{ parameters.n > 3 }}"
  next:
  - when: "{{ succeeded() and result() == null and task.a == null }}"
    do: [b]
- {name: b, action: core.b}
`
	start(t, source).runs("a") // a lenient workflow runs it, as an existing installation does
	w := start(t, "strict: true"+source)
	w.runs("b")
	w.said("a is skipped: its condition {{ parameters.n > 3 }} is false")
	w.ends("b", completed)
	w.hasEnded(completed)
	require.Equal(t, workflow.Lists{Completed: []string{"b"}, Skipped: []string{"a"}}, w.lists4())
}

func TestTheRuntimeAndPermissionsOfChildren(t *testing.T) {
	t.Parallel()
	w := start(t, `
- name: a
  action: core.a
  permission_set_refs: ["p.{{ parameters.who }}", q]
  worker_selector: {zone: "{{ parameters.who }}"}
  worker_tolerations: null
- name: b
  action: core.b
  permission_set_ref: "{{ parameters.who }}"
- {name: c, action: core.c}
- {name: d, action: core.d, permission_set_refs: []}
- {name: e, action: core.e, permission_set_refs: [1]}
`)
	a := w.children[workflow.Child{Task: "a"}].start
	require.Equal(t, []string{"p.me", "q"}, a.PermissionSets)
	require.Equal(t, map[string]any{"zone": "me"}, a.Selector)
	require.Nil(t, a.Affinity)
	require.Equal(t, []string{"me"}, w.children[workflow.Child{Task: "b"}].start.PermissionSets)
	require.Nil(t, w.children[workflow.Child{Task: "c"}].start.PermissionSets, "inherited")
	require.Equal(t, []string{}, w.children[workflow.Child{Task: "d"}].start.PermissionSets, "none")
	require.Equal(t, workflow.TaskFailed, w.status("e"))
}
