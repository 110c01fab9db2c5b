package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/workflow"
)

func TestNamesOfExpressions(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]any{
		"{{ parameters.who }}":                    "me",
		"{{ workflow.n + vars.n }}":               int64(14),
		"{{ variables.n }}{{ n }}":                "77",
		"{{ workflow }}":                          map[string]any{"n": int64(7)},
		"{{ task.a.k }}":                          "v",
		"{{ task.a.result.k }}":                   "v",
		"{{ tasks.a['result']['k'] }}":            "v",
		"{{ task.a.result }}":                     map[string]any{"data": map[string]any{"k": "v"}, "k": "v"},
		"{{ task.gate.result }}":                  "done",
		"{{ task.gate.result + '!' }}":            "done!",
		"{{ 'result' in task.a }}":                false,
		"{{ task.own.result }}":                   "mine",
		"{{ task.list.result.failed_count }}":     int64(0),
		"{{ task.both.result.part.k }}":           "x",
		"{{ tasks['a'].data }}":                   map[string]any{"k": "v"},
		"{{ task.list.succeeded_count }}":         int64(2),
		"{{ task.list.results[1].k }}":            "w",
		"{{ task.skipped }}":                      nil,
		"{{ task.both.part.k }}":                  "x",
		"{{ task.part.k }}":                       "x",
		"{{ keys(task) }}":                        []any{"a", "both", "broken", "list", "own", "part", "skipped"},
		"{{ 'b' in task }}":                       false,
		"{{ task.broken.error != '' }}":           true,
		"{{ system.workflow_start }}":             "2026-01-02T03:04:05Z",
		"{{ system.execution_id }}":               int64(7),
		"{{ [config, keystore] }}":                []any{nil, nil},
		"{{ [result(), succeeded(), failed()] }}": []any{"done", true, false},
		"{{ length(string(task)) > 100 }}":        true,
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			w := start(t, `
strict: true
vars: {n: 7}
tasks:
- {name: a, action: core.a}
- {name: list, action: core.l, with_items: "{{ [1, 2] }}", concurrency: 2}
- {name: own, action: core.o}
- {name: skipped, action: core.s, when: "{{ false }}"}
- {name: broken, action: core.b, input: {x: "{{ nothing }}"}, next: [{do: [gate]}]}
- name: both
  type: parallel
  tasks: [{name: part, action: core.p}]
- {name: gate, action: core.g, next: [{do: [b]}]}
- {name: b, action: core.b, input: {x: "`+source+`"}}
`)
			w.ends("a", completed, map[string]any{"data": map[string]any{"k": "v"}})
			w.item("list", 1, completed, map[string]any{"stdout": `{"k": "w"}`})
			w.item("list", 0, completed)
			w.ends("own", completed, map[string]any{"data": map[string]any{"result": "mine"}})
			w.ends("part", completed, map[string]any{"k": "x"})
			if strings.Contains(source, "keys(") || strings.Contains(source, "' in task") {
				require.Equal(t, workflow.TaskRunning, w.status("gate"))
			}
			w.ends("gate", completed, "done")
			require.Equal(t, workflow.TaskRunning, w.status("b"), "%v", w.log)
			got := w.config("b", 0)["x"]
			if list, ok := got.([]any); ok && source == "{{ keys(task) }}" {
				got = remove(list, "gate")
			}
			require.Equal(t, want, got)
		})
	}
}

func remove(list []any, item any) []any {
	rest := []any{}
	for _, v := range list {
		if v != item {
			rest = append(rest, v)
		}
	}
	return rest
}

func TestNamesThatExpressionsLack(t *testing.T) {
	t.Parallel()
	for source, why := range map[string]string{
		"{{ task.b }}":             "there is no field b",
		"{{ task.a.text }}":        "a string has no field text",
		"{{ task.a.result.text }}": "a string has no field text",
		"{{ task.none }}":          "there is no field none",
		"{{ item }}":               "there is no item",
		"{{ batch }}":              "there is no batch",
		"{{ result(1) }}":          "it takes no arguments",
		"{{ succeeded(1) }}":       "it takes no arguments",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			d, mistakes, _ := workflow.Parse("w", []byte(`
version: 1.0.0
tasks:
- {name: a, action: core.a, next: [{do: [b]}]}
- {name: b, action: core.b, input: {x: "`+source+`"}}
`))
			require.NotNil(t, d, mistakes)
			w := worldOf(t, d)
			w.tell(workflow.Happening{Kind: workflow.Started})
			w.ends("a", completed, "text")
			w.hasEnded(failed)
			require.Contains(t, w.end.Error, why)
		})
	}
}

func TestTheLogReadsLikeAStory(t *testing.T) {
	t.Parallel()
	w := start(t, `
strict: true
tasks:
- {name: a, action: core.a, retry: {count: 1, delay: 4}, next: [{when: "{{ failed() }}", publish: [{x: 1}], do: [c, d]}]}
- {name: b, action: core.b, next: [{do: [d]}]}
- {name: c, action: core.c, when: "{{ x > 1 }}"}
- {name: d, action: core.d, join: all, with_items: "{{ range(3) }}", concurrency: 2}
`)
	w.ends("a", timeout)
	w.ends("a", failed)
	w.ends("b", failed)
	w.item("d", 1, completed)
	w.item("d", 0, completed)
	w.item("d", 2, failed)
	w.hasEnded(failed)
	require.Equal(t, strings.TrimSpace(`
a is started
b is started
a timed out and is repeated in 4s (1 of 1)
a failed
a publishes x
c is skipped: its condition {{ x > 1 }} is false: x is 1
join of d: 1 of 2 have arrived
b failed
d runs over 3 items, 2 at a time after b
item 2 of d failed
d ended: 2 of 3 succeeded, 1 failed
the workflow ends failed: 1 task failed: d (1 of 3)
`), strings.Join(w.log, "\n"))
}

// A condition of a transition that is false is logged with its values, in lenient and strict
// workflows; one that only asks how the task has ended is not.
func TestTheLogShowsWhyATransitionDoesNotFire(t *testing.T) {
	t.Parallel()
	for _, rules := range []string{"", "strict: true\n"} {
		w := start(t, rules+`
vars: {x: 1, go: false}
tasks:
- {name: a, action: core.a, next: [{when: "{{ failed() }}", do: b}, {when: "{{ succeeded() and x > 1 }}", do: b}, {when: "{{ x - 1 }}", do: b}, {when: "{{ workflow.go }}"}]}
- {name: b, action: core.b}
`)
		w.ends("a", completed)
		w.hasEnded(completed)
		log := strings.Join(w.log, "\n")
		require.NotContains(t, log, "transition 1 of a does not fire")
		require.Contains(t, log,
			"transition 2 of a does not fire: {{ succeeded() and x > 1 }} is false: succeeded() is true, x is 1\n")
		require.Contains(t, log, "transition 3 of a does not fire: {{ x - 1 }} is false: x is 1\n")
		require.Contains(t, log, "transition 4 of a does not fire: {{ workflow.go }} is false\n")
	}
}
