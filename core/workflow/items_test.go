package workflow_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/workflow"
)

func TestItemsRunAsManyAtATimeAsAllowed(t *testing.T) {
	t.Parallel()
	w := start(t, `
- name: a
  action: core.a
  with_items: "{{ range(5) }}"
  concurrency: 2
  input: {x: "{{ item * 10 }}", i: "{{ index }}"}
  next: [{publish: [{got: "{{ result() }}"}], do: [b]}]
- {name: b, action: core.b, input: {view: "{{ task.a }}"}}
`)
	w.runs("a[0]", "a[1]")
	w.said("a runs over 5 items, 2 at a time")
	require.Equal(t, map[string]any{"x": int64(10), "i": int64(1)}, w.config("a", 1))
	w.item("a", 1, completed, "one")
	w.runs("a[0]", "a[2]")
	w.tell(w.ended("a", 2, completed, "two"),
		w.ended("a", 0, completed, map[string]any{"data": map[string]any{"k": int64(1)}}))
	w.runs("a[3]", "a[4]")
	require.Equal(t, map[string]any{"x": int64(40), "i": int64(4)}, w.config("a", 4))
	w.item("a", 4, timeout)
	w.item("a", 3, completed, "three")
	w.runs("b")
	data := map[string]any{"k": int64(1)}
	require.Equal(t, []any{map[string]any{"data": data, "k": int64(1)}, "one", "two", "three", nil},
		w.state.Variables["got"])
	require.Equal(t, map[string]any{
		"results":     []any{map[string]any{"data": data, "k": int64(1)}, "one", "two", "three", nil},
		"items_total": int64(5), "succeeded_count": int64(4), "failed_count": int64(0), "timed_out_count": int64(1),
		"succeeded": false, "failed": false, "timed_out": true,
	}, w.config("b", 0)["view"])
	w.said("a ended: 4 of 5 succeeded, 1 timed out")
}

func TestConcurrencyIsOneByDefault(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, with_items: "{{ ['x', 'y'] }}", input: {x: "{{ item }}"}}
`)
	w.runs("a[0]")
	w.item("a", 0, failed)
	w.said("item 0 of a failed")
	w.runs("a[1]")
	w.item("a", 1, completed)
	w.hasEnded(failed)
	require.Equal(t, "1 task failed: a (1 of 2)", w.end.Error)
}

func TestBatchesTakeSeveralItems(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, with_items: "{{ range(5) }}", batch_size: 2, input: {b: "{{ batch }}", same: "{{ item == batch }}", i: "{{ index }}"}}
`)
	for i, want := range [][]any{{int64(0), int64(1)}, {int64(2), int64(3)}, {int64(4)}} {
		w.runs(fmt.Sprintf("a[%d]", i))
		require.Equal(t, map[string]any{"b": want, "same": true, "i": int64(i)}, w.config("a", i))
		child := w.children[workflow.Child{Task: "a", Index: i}].start
		require.Equal(t, i, *child.Batch)
		w.item("a", i, completed)
	}
	w.hasEnded(completed)
}

func TestASingleValueIsAListOfOne(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]any{
		"{{ 3 }}": int64(3), "text": "text",
		"{{ parameters }}": map[string]any{"who": "me", "n": int64(3)},
	} {
		w := start(t, `
- {name: a, action: core.a, with_items: "`+source+`", input: {x: "{{ item }}"}}
`)
		w.runs("a[0]")
		require.Equal(t, want, w.config("a", 0)["x"])
		w.item("a", 0, completed)
		w.hasEnded(completed)
	}
}

func TestAListMayHaveTenThousandItems(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, with_items: "{{ range(10000) }}", concurrency: 10000, input: {x: "{{ item }}"}}
`)
	require.Len(t, w.open(), 10_000)
	w = start(t, `
- {name: a, action: core.a, with_items: "{{ range(10001) }}"}
`)
	w.hasEnded(failed)
	require.Contains(t, w.end.Error, "the list has 10001 items, and 10000 is the most")
}

func TestItemsWithWrongParametersFailAndTheOthersRun(t *testing.T) {
	t.Parallel()
	w := start(t, `
vars: {list: [{y: 0}, {x: 1}, {y: 2}, {y: 3}, {y: 4}, {x: 5}]}
tasks:
- name: a
  action: core.a
  with_items: "{{ list }}"
  input: {x: "{{ item.x }}"}
  next: [{do: [b], publish: [all]}]
- {name: b, action: core.b}
`)
	w.runs("a[1]")
	w.item("a", 1, completed, "one")
	w.runs("a[5]")
	w.item("a", 5, completed, "five")
	w.runs("b")
	require.Equal(t, []any{nil, "one", nil, nil, nil, "five"}, w.state.Variables["all"])
	st := w.state.Tasks["a"]
	require.Equal(t, []int{2, 4}, []int{st.Succeeded, st.Failed})
	require.Contains(t, st.Why, "item 0: input: x: column")
	require.Less(t, len(w.asked), 6, "more is asked for each time")
}

// A decision requests only the facts that it needs.
func TestADecisionRequestsOnlyItsFacts(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, next: [{when: "{{ succeeded() }}", do: [b]}]}
- {name: b, action: core.b, next: [{publish: [{x: "{{ task.a.v }}", y: "{{ 1 }}"}], do: [c]}]}
- {name: c, action: core.c, input: {a: "{{ task.a }}", b: "{{ result() }}", z: "{{ task['b'].v }}", l: "{{ task.b }}"}}
`)
	w.ends("a", completed, map[string]any{"v": 1})
	require.Empty(t, w.asked, "a is not read")
	w.ends("b", completed, map[string]any{"v": 2})
	require.Equal(t, []*workflow.NeedError{{Results: []string{"a"}}, {Results: []string{"b"}}}, w.asked)
	require.Equal(t, int64(2), w.config("c", 0)["z"])
	require.EqualError(t, w.asked[0], "decide a workflow: not given the results of a")
}

func TestItemsAreAskedForAsManyAsCanStart(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a, with_items: "{{ range(100) }}", concurrency: 4, input: {x: "{{ item }}"}}
`)
	w.tell(w.ended("a", 0, completed, nil), w.ended("a", 1, completed, nil), w.ended("a", 3, completed, nil))
	require.Equal(t, []*workflow.NeedError{{Items: map[string]workflow.Range{"a": {From: 4, Count: 3}}}}, w.asked)
	w.runs("a[2]", "a[4]", "a[5]", "a[6]")
	require.EqualError(t, w.asked[0], "decide a workflow: not given 3 items of a from 4 on")
}

func TestManyItemsWithWrongParametersNeedFewPortions(t *testing.T) {
	t.Parallel()
	w := start(t, `
vars: {broken: false}
tasks:
- {name: b, action: core.b, next: [{publish: [{broken: true}]}]}
- {name: a, action: core.a, with_items: "{{ range(1000) }}", input: {x: "{{ 1 / (1 - int(broken)) }}"}}
`)
	w.ends("b", completed)
	w.item("a", 0, completed)
	w.hasEnded(failed)
	require.Equal(t, 999, w.state.Tasks["a"].Failed)
	require.Less(t, len(w.asked), 15)
}
