package advancement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

const chain = `
version: "1"
vars: {sum: 1}
tasks:
  - name: a
    action: pk.a
    input: {n: "{{ parameters.n }}"}
    next:
      - when: "{{ succeeded() }}"
        publish: [{sum: "{{ sum + result().data.value }}"}]
        do: [b]
  - name: b
    action: pk.b
    input: {all: "{{ sum }}", text: "n is {{ task.a.value }}"}
output_map: {sum: "{{ sum }}"}
`

// A workflow starts in one transaction with its first children, which are handed
// over at once; the ends of children lead on, and its own end is announced
// (upstream 38: there is no moment between running and having children).
func TestAChainRunsToItsEnd(t *testing.T) {
	w := setup(t)
	w.does = func(string, int, int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 41}}}
	}
	id := w.request(w.define("pk.chain", chain), map[string]any{"n": 7})
	w.take(nil, []int64{id})
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, id))
	require.Len(t, w.dispatched(), 1, "the first task is at a worker")
	require.JSONEq(t, `{"n": 7}`, w.text(`SELECT config FROM execution WHERE parent = $1`, id))

	result := w.completes(id)
	require.Equal(t, map[string]any{"sum": 42.0, "succeeded": true}, result)
	require.Equal(t, []string{"a/0/0", "b/0/0"}, w.ran)
	require.JSONEq(t, `{"all": 42, "text": "n is 41"}`,
		w.text(`SELECT config FROM execution WHERE parent = $1 ORDER BY id DESC LIMIT 1`, id))
	require.Equal(t, `{a,b}`, w.text(`SELECT completed_tasks FROM workflow_execution WHERE execution = $1`, id))
	require.Equal(t, 1, w.reports(id), "its end is announced, once")
}

// Duplicate reports, late reports and reports from another replica change nothing (S10, S13).
func TestDuplicatesChangeNothing(t *testing.T) {
	w := setup(t)
	w.does = func(string, int, int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 1}}}
	}
	id := w.request(w.define("pk.chain", chain), map[string]any{"n": 1})
	for range 2 {
		w.take(nil, []int64{id})
	}
	for range 3 {
		children := w.dispatched()
		for _, child := range children {
			w.finish(child)
		}
		for range 2 {
			for _, ended := range w.ids(`SELECT id FROM execution WHERE status = 'completed'`) {
				w.take([]int64{ended}, []int64{id, ended})
			}
		}
	}
	w.completes(id)
	require.Equal(t, []string{"a/0/0", "b/0/0"}, w.ran)
}

const list = `
version: "1"
tasks:
  - name: each
    action: pk.each
    with_items: "{{ parameters.list }}"
    concurrency: 3
    input: {item: "{{ item }}", index: "{{ index }}"}
    next:
      - publish: [{all: "{{ result() }}"}]
        do: [after]
  - name: after
    action: pk.after
    input: {n: "{{ length(all) }}", failed: "{{ task.each.failed_count }}"}
output_map: {values: "{{ task.each.results }}"}
`

// A list runs as many at a time as it may, keeps the order of its results, and is
// complete at once when it is empty (S12, upstream 39, 41, 46).
func TestAListRunsThroughItsWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		items any
		n     int
	}{
		"empty": {[]int{}, 0}, "one": {[]int{5}, 1}, "ten": {[]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 10},
		"no list": {map[string]int{"a": 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			most := 0
			w.does = func(task string, index, _ int) end {
				most = max(most, testkit.Count(t, w.store, `SELECT count(*) FROM execution WHERE action_ref = 'pk.each' AND status IN ('scheduled', 'running')`))
				if task == "each" && index == 3 {
					return end{lifecycle.StatusAbandoned, nil}
				}
				return end{lifecycle.StatusCompleted, map[string]any{"index": index}}
			}
			id := w.request(w.define("pk.list", list), map[string]any{"list": c.items})
			result := w.completes(id)
			require.Len(t, result["values"], c.n)
			require.LessOrEqual(t, most, 3)
			failed := 0
			values, _ := result["values"].([]any)
			for i, value := range values {
				if i == 3 {
					require.Nil(t, value)
					failed++
					continue
				}
				require.Equal(t, map[string]any{"index": float64(i)}, value)
			}
			require.Equal(t, failed, testkit.Count(t, w.store,
				`SELECT (config ->> 'failed')::int FROM execution WHERE action_ref = 'pk.after'`))
			require.Equal(t, c.n,
				testkit.Count(t, w.store, `SELECT (config ->> 'n')::int FROM execution WHERE action_ref = 'pk.after'`))
		})
	}
}
