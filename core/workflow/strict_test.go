package workflow_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/workflow"
)

// after runs a task with one transition, which publishes x and leads to b.
func after(t *testing.T, head, transition, status string, result any) *world {
	t.Helper()
	w := start(t, head+`
tasks:
- name: a
  action: core.a
  next: [{`+transition+`, do: [b]}]
- {name: b, action: core.b}
`)
	w.ends("a", statusNamed(status), result)
	return w
}

// In a lenient workflow a condition is evaluated, and one with an error counts as
// published.
func TestALenientConditionWithAnErrorCountsAsPublished(t *testing.T) {
	t.Parallel()
	succeeds, fails, times := []string{"completed"}, []string{"failed", "cancelled", "abandoned"}, []string{"timeout"}
	everyTime := []string{"completed", "failed", "cancelled", "abandoned", "timeout"}
	for when, fires := range map[string][]string{
		"{{ succeeded() }}":                  succeeds,
		"not succeeded()":                    append(slices.Clone(fails), times...),
		"{{ failed() or succeeded() }}":      append(slices.Clone(fails), succeeds...),
		"{{ timed_out() or failed() }}":      append(slices.Clone(fails), times...),
		"not failed()":                       append(slices.Clone(succeeds), times...),
		"{{ not timed_out() }}":              append(slices.Clone(fails), succeeds...),
		"SUCCEEDED ( ) and false":            succeeds, // an error: the first call that it mentions decides
		"failed() or result().count > 3":     fails,
		"{{ succeeded() and result().x.y }}": succeeds,
		"result().code == 3":                 everyTime,
		"{{ result().code == 3 }}":           everyTime,
		"result().code == 4":                 nil,
		"{{ result().code == 4 }}":           nil,
		"result().count > 3":                 everyTime, // an error, and no braces
		"no":                                 nil,
		"Yes":                                everyTime,
		"n > > 1":                            everyTime,
		"{{ result().count > 3 }}":           succeeds, // an error between braces
		"{{ n > > 1 }}":                      succeeds,
		"{{ result().count }} > 3":           succeeds,
		"{{ result().code }} > 9":            everyTime, // a text
		"{{ result().word }}":                nil,       // no
		"{{ '' }}":                           nil,
		"{{ result().list }}":                everyTime, // the text []
		"result().list":                      nil,
		"result().text == '{{ no braces }}'": nil,
	} {
		for _, status := range everyTime {
			t.Run(when+" after "+status, func(t *testing.T) {
				t.Parallel()
				w := after(t, "vars: {n: 1}", `when: "`+when+`", publish: [{x: 1}]`, status, map[string]any{
					"code": 3, "word": " NO ", "list": []any{}, "text": "t",
				})
				want := workflow.TaskStatus("")
				for _, one := range fires {
					if one == status {
						want = workflow.TaskRunning
					}
				}
				require.Equal(t, want, w.status("b"), "%v", w.log)
			})
		}
	}
}

// The consequences of an error, in both modes.
func TestAnErrorFailsNothingInALenientWorkflow(t *testing.T) {
	t.Parallel()
	const publish = `publish: [{x: "{{ nothing }}"}, {y: "{{ result().k }}"}, {z: "{{ | }}"}]`
	w := after(t, "vars: {x: 0}", publish, "completed", map[string]any{"k": "v"})
	w.runs("b")
	require.Equal(t, map[string]any{"x": int64(0), "y": "v"}, w.state.Variables)
	w.said("a does not publish x: column 4: there is no nothing")
	w.said("a does not publish z: ")
	w.ends("b", completed)
	w.hasEnded(completed)
	require.Equal(t, map[string]any{"succeeded": true}, w.end.Result)

	w = after(t, "strict: true\nvars: {x: 0}", `publish: [{x: "{{ nothing }}"}]`, "completed", nil)
	w.hasEnded(failed)
	require.Contains(t, w.end.Error, "publish x")

	const output = "output_map: {x: \"{{ nothing }}\", y: \"{{ y }}\"}\n"
	w = after(t, "vars: {y: 2}\n"+output, "publish: [{z: 1}]", "completed", nil)
	w.ends("b", completed)
	w.hasEnded(completed)
	require.Equal(t, map[string]any{"y": int64(2), "succeeded": true}, w.end.Result)
	w.said("output_map leaves x out: ")
	w = after(t, "strict: true\nvars: {y: 2}\n"+output, "publish: [{z: 1}]", "completed", nil)
	w.ends("b", completed)
	w.hasEnded(failed)
	require.Contains(t, w.end.Error, "output_map x")

	for head, runs := range map[string]bool{"": true, "strict: true\n": false} {
		w = start(t, head+`
tasks:
- {name: a, action: core.a, when: "{{ nothing }}"}
`)
		require.Equal(t, runs, w.status("a") == workflow.TaskRunning)
	}
	for _, keys := range []string{
		`input: {x: "{{ now() }}"}`, `with_items: "{{ | }}"`,
		`worker_selector: {x: "{{ nothing }}"}`,
	} {
		w = start(t, "- {name: a, action: core.a, "+keys+", next: [{when: failed(), publish: [{why: \"{{ result().error }}\"}], do: [b]}]}\n- {name: b, action: core.b}\n")
		w.runs("b")
		require.NotEmpty(t, w.state.Variables["why"])
	}
}

// result() is never null after a task has ended, and null before.
func TestResultIsTheViewOfTheTaskThatHasEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ result, want any }{
		{nil, map[string]any{}},
		{"text", "text"},
		{map[string]any{"stdout": `{"id": 4}`}, map[string]any{"stdout": `{"id": 4}`, "id": int64(4)}},
		{map[string]any{"data": map[string]any{"id": 4}, "succeeded": true}, map[string]any{
			"data": map[string]any{"id": int64(4)}, "succeeded": true, "id": int64(4),
		}},
	} {
		w := after(t, "", "publish: [r]", "completed", c.result)
		require.Equal(t, c.want, w.state.Variables["r"])
	}
	w := start(t, `
- {name: a, action: core.a, input: {r: "{{ result() }}"}}
`)
	require.Equal(t, map[string]any{"r": nil}, w.config("a", 0))
}

// A transition to an earlier task starts nothing twice, and handles no failure.
func TestALenientWorkflowMayLeadBack(t *testing.T) {
	t.Parallel()
	const back = `
- {name: s, action: core.s, next: [{do: [a]}]}
- {name: a, action: core.a, next: [{do: [b]}]}
- {name: b, action: core.b, next: [{do: [a]}]}
`
	for status, want := range map[string]string{"completed": "completed", "failed": "failed"} {
		w := start(t, back)
		w.ends("s", completed)
		w.ends("a", completed)
		w.ends("b", statusNamed(status))
		w.hasEnded(statusNamed(want))
		require.Len(t, w.order, 3)
	}
	w := start(t, `
output_map: {x: 1}
tasks:
- {name: a, action: core.a, next: [{do: [b]}]}
- {name: b, action: core.b, next: [{do: [a]}]}
`)
	w.hasEnded(completed)
	require.Empty(t, w.order)
	require.Equal(t, map[string]any{"succeeded": true}, w.end.Result)
	w.said("nothing is started")
}

func TestATaskWithoutActionIsSkipped(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, next: [{do: [b]}]}
- {name: b, action: core.b}
- {name: c, action: core.c, next: [{do: [d]}]}
- {name: d, next: [{do: [b]}]}
- name: p
  type: parallel
  tasks: [{name: x}, {name: y, action: core.y}]
`)
	w.runs("c", "y")
	w.said("warning: a is skipped: it has no action")
	w.ends("c", completed)
	w.ends("y", completed)
	w.hasEnded(completed)
	require.Equal(t, []string{"a", "d", "x"}, w.lists4().Skipped)
}

// A workflow that is cancelled ends with its last child, and no transition fires.
func TestACancelledWorkflowEndsWithItsLastChild(t *testing.T) {
	t.Parallel()
	canceling := workflow.Happening{Kind: workflow.Canceling}
	w := start(t, `
tasks:
- {name: a, action: core.a, next: [{publish: [{x: 1}], do: [c]}]}
- {name: b, action: core.b, with_items: "{{ range(5) }}", concurrency: 2, retry: {count: 3, delay: 1}}
- {name: c, action: core.c}
- name: p
  type: parallel
  tasks: [{name: q, action: core.q}]
`)
	plan := w.tell(canceling)
	require.Equal(t, []string{"a", "b", "q"}, plan.Stop)
	require.Equal(t, canceled, w.state.Status)
	w.ends("a", completed)
	w.item("b", 1, failed)
	w.tell(canceling, look, pause)
	w.ends("q", cancelled)
	require.Nil(t, w.end)
	w.item("b", 0, completed)
	w.hasEnded(cancelled)
	require.Equal(t, map[string]any{"error": "Workflow cancelled", "succeeded": false}, w.end.Result)
	require.Empty(t, w.state.Variables)
	require.Empty(t, w.repeats)
	require.Len(t, w.order, 4)

	w = start(t, "- {name: a, action: core.a}\n")
	w.tell(canceling)
	w.tell(workflow.Happening{Kind: workflow.Cancelled})
	w.hasEnded(cancelled)
}
