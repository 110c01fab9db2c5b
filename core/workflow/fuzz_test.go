package workflow_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/workflow"
)

const everyKind = `
vars: {n: 0}
output_map: {n: "{{ n }}", d: "{{ task.d }}"}
tasks:
- {name: a, action: core.a, when: "{{ n < 5 }}", next: [{publish: [{n: "{{ n + 1 }}"}], do: [b, c, d]}, {when: "{{ failed() }}", do: [e]}]}
- {name: b, action: core.b, with_items: "{{ range(5) }}", concurrency: 2, batch_size: 2, input: {x: "{{ item }}"}, next: [{do: [d]}]}
- {name: c, action: core.c, retry: {count: 2, delay: 1, backoff: exponential, on_error: "{{ result().code == 1 }}"}, next: [{when: "{{ succeeded() }}", do: [d]}]}
- name: d
  type: parallel
  join: 2
  tasks: [{name: x, action: core.x}, {name: y, action: core.y, with_items: "{{ [1, 2] }}"}]
  next: [{when: "{{ result().x == task.d.x }}", do: [e]}]
- {name: e, action: core.e, join: all, input: {all: "{{ task.b }} {{ task.c }}"}}
`

// FuzzDecideOnAnyState checks that any state and happening lead to a plan or to a need, and that a workflow that
// continues waits for something.
func FuzzDecideOnAnyState(f *testing.F) {
	d := define(f, everyKind)
	f.Add([]byte(`{"status": "running", "tasks": {}}`), uint8(1), "a", 0, uint8(0), 0)
	f.Add([]byte(`{"status": "running", "done": ["a"], "tasks": {"b": {"status": "running", "items": 5, "total": 3, "next": 2, "open": 1}}}`), uint8(2), "b", 1, uint8(1), 0)
	f.Add([]byte(`{"status": "running", "paused": true, "tasks": {"c": {"status": "running", "open": 1}, "d": {"status": "ready", "arrived": ["a"]}}, "held": [{"task": "c"}]}`), uint8(4), "c", 0, uint8(1), 1)
	f.Add([]byte(`{"status": "running", "tasks": {"d": {"status": "running", "open": -1}, "e": {"status": "waiting"}, "z": {"status": "running"}}}`), uint8(7), "x", 0, uint8(2), 9)
	f.Add([]byte(`{"status": "running", "tasks": {"d": {"status": "running", "total": 2, "next": 2, "open": 2}, "x": {"status": "running", "open": 1, "next": 1, "total": 1}}, "held": [{"task": "gone"}]}`), uint8(5), "d", 0, uint8(3), 0)
	f.Fuzz(func(t *testing.T, raw []byte, kind uint8, task string, index int, status uint8, retries int) {
		state, err := workflow.ParseState(raw)
		if err != nil {
			return
		}
		state.Variables = map[string]any{"n": int64(1)}
		happened := []workflow.Happening{
			{
				Kind: workflow.HappeningKind(kind % 9), Task: task, Index: index,
				Status: lifecycle.Statuses[int(status)%len(lifecycle.Statuses)], Retries: retries,
			},
			{Kind: workflow.Rechecked},
		}
		facts := workflow.Facts{Results: map[string]workflow.Result{}, Children: map[workflow.Child]any{}}
		for range 20 {
			plan, err := d.Decide(state, happened, facts)
			need, asks := errors.AsType[*workflow.NeedError](err)
			if !asks {
				if err == nil {
					goesOn(t, d, plan)
				}
				return
			}
			for _, name := range need.Results {
				facts.Results[name] = d.Task(name).ResultOf(nil, map[int]any{0: "r"})
			}
			for _, child := range need.Children {
				facts.Children[child] = map[string]any{"code": int64(1)}
			}
			if len(need.Items) > 0 {
				return
			}
		}
		require.Fail(t, "it asks for ever")
	})
}

func goesOn(t *testing.T, d *workflow.Definition, plan *workflow.Plan) {
	t.Helper()
	if plan.State.Status.Terminal() || len(plan.State.Tasks) == 0 {
		return
	}
	for name, st := range plan.State.Tasks { // also one that is canceling waits for its children
		known := d.Task(name) != nil && (st.Status == workflow.TaskRunning || st.Status == workflow.TaskReady)
		if known || st.Status == workflow.TaskRunning && st.Open > 0 {
			return
		}
	}
	require.Fail(t, "it waits for nothing", "%v", plan.Log)
}

// Every definition that is read without mistakes can be run to an end.
func FuzzEveryDefinitionEnds(f *testing.F) {
	f.Add([]byte("version: 1\n"+everyKind), uint64(7))
	f.Add([]byte("version: 1\ntasks:\n- {name: a, action: core.a, on_success: b, on_failure: c}\n- {name: b, action: core.b}\n- {name: c, action: core.c}\n"), uint64(1))
	f.Add([]byte(`{"version": "1", "tasks": [{"name": "a", "action": "x.y", "with_items": "{{ range(9) }}", "concurrency": 4, "retry": {"count": 2}}]}`), uint64(99))
	f.Fuzz(func(t *testing.T, content []byte, seed uint64) {
		d, mistakes, _ := workflow.Parse("w", content)
		if d == nil || len(mistakes) > 0 || len(d.All()) > 200 {
			return
		}
		w := worldOf(t, d)
		w.tell(workflow.Happening{Kind: workflow.Started})
		for range 1000 {
			open := w.openKeys()
			if w.end != nil || len(open) > 1000 {
				return
			}
			require.NotEmpty(t, open, "nothing runs, and it has not ended")
			seed = seed*6364136223846793005 + 1442695040888963407
			key := open[int(seed>>33)%len(open)]
			status := lifecycle.TerminalStatuses[int(seed>>40)%len(lifecycle.TerminalStatuses)]
			w.tell(w.ended(key.Task, key.Index, status, map[string]any{"code": int64(seed>>50) % 3}))
			w.holds()
		}
	})
}
