package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/workflow"
)

// portions lets a workflow begin, and lists how many children each of its plans makes
// as long as there are more.
func (w *world) portions() (made, bytes []int) {
	w.t.Helper()
	happened := workflow.Happening{Kind: workflow.Started}
	for {
		plan := w.once(happened)
		made, bytes = append(made, len(plan.Start)), append(bytes, plan.Bytes)
		if happened = look; !plan.More {
			return made, bytes
		}
		require.NotEmpty(w.t, plan.Start)
	}
}

func TestAPlanMakesABoundedNumberOfItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
- {name: one, action: core.a}
- {name: a, action: core.a, with_items: "{{ range(2500) }}", concurrency: 2400, input: {x: "{{ item }}"}}
- {name: b, action: core.b, with_items: "{{ range(300) }}", concurrency: 300, input: {x: "{{ item }}"}}
`)
	made, _ := w.portions()
	require.Equal(t, []int{1000, 1000, 701}, made)
	require.Len(t, w.open(), 2701)
	require.Equal(t, map[string]any{"x": int64(2399)}, w.config("a", 2399))
	for _, need := range w.asked {
		for task, part := range need.Items {
			require.LessOrEqual(t, part.Count, 1000, "more of %s than a plan makes", task)
		}
	}
}

// A list without parameters of its own passes on those of the workflow to every one
// of its items.
func TestAPlanMakesItemsOfABoundedSize(t *testing.T) {
	t.Parallel()
	const mega = 1 << 20
	for name, input := range map[string]string{
		"those of the workflow": "",
		"its own":               `, input: {all: "{{ parameters }}", x: "{{ item }}"}`,
		"as a text":             `, input: {all: "{{ parameters.text }} {{ item }}"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fmt.Sprintf(`
- {name: a, action: core.a, with_items: "{{ range(100) }}", concurrency: 100%s}
`, input))
			w.facts.Parameters = map[string]any{"text": strings.Repeat("x", mega)}
			made, bytes := w.portions()
			require.Equal(t, []int{16, 16, 16, 16, 16, 16, 4}, made)
			for i, size := range bytes {
				require.InDelta(t, made[i]*mega, size, float64(made[i]*200))
			}
			require.Len(t, w.open(), 100)
		})
	}
	w := newWorld(t, `
- {name: a, action: core.a, with_items: "{{ range(3) }}", concurrency: 3}
`)
	w.facts.Parameters = map[string]any{"text": strings.Repeat("x", 20*mega)}
	made, _ := w.portions()
	require.Equal(t, []int{1, 1, 1}, made, "an item beyond the bound of a plan is alone in it")
}

// The look that a plan asks for may be lost, or come together with something else.
func TestEveryPlanSaysThatThereIsMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
- {name: a, action: core.a, with_items: "{{ range(10) }}", concurrency: 5}
- {name: b, action: core.b, next: [{do: [c]}]}
- {name: c, action: core.c}
`)
	w.def.StartAtMost(2)
	require.True(t, w.once(workflow.Happening{Kind: workflow.Started}).More)
	plan := w.once(w.ended("b", 0, completed, nil))
	require.True(t, plan.More)
	require.Equal(t, "c", plan.Start[0].Task)
	plan = w.once(w.ended("a", 0, completed, nil))
	require.True(t, plan.More)
	require.Len(t, plan.Start, 2)
	require.False(t, w.once(pause).More, "while it is paused there is not")
	plan = w.once(resume)
	require.Equal(t, w.state.Tasks["a"].Open < 5, plan.More)
	require.Len(t, plan.Start, 2)
	require.False(t, w.once(workflow.Happening{Kind: workflow.Cancelled}).More, "nor when it has ended")
	require.NotNil(t, w.end)
}

// Each time something is asked for, all is decided anew.
func TestRetriesOfManyItemsAreAskedAboutAtOnce(t *testing.T) {
	t.Parallel()
	const items = 1500
	w := start(t, fmt.Sprintf(`
- name: a
  action: core.a
  with_items: "{{ range(%d) }}"
  concurrency: %d
  retry: {count: 1, delay: 1, on_error: "{{ failed() and result().code == 3 }}"}
`, items, items))
	w.asked = nil
	var ends []workflow.Happening
	for i := range items {
		status, code := []lifecycle.Status{failed, failed, completed, timeout, cancelled}[i%5], int64(3+i%5)
		ends = append(ends, w.ended("a", i, status, map[string]any{"code": code}))
	}
	w.tell(ends...)
	require.Len(t, w.asked, 1)
	require.Len(t, w.asked[0].Children, 3*items/5, "of the ones that may be retried, and of no others")
	require.Len(t, w.repeats, items/5)
	require.Equal(t, 5, w.repeats[1].Index)
}

// A list with costly parameters is started in portions, also if each evaluation ends at its bound, so that other
// workflows are not delayed.
func TestAPlanTakesABoundedTime(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]string{"costly": "30000", "too costly": "99999"} {
		w := newWorld(t, `
- {name: a, action: core.a, with_items: "{{ range(60) }}", concurrency: 60, input: {x: "{{ sum(range(`+bound+`)) }}"}}
`)
		plans, happened := 0, workflow.Happening{Kind: workflow.Started}
		for more := true; more; plans++ {
			plan := w.once(happened)
			more, happened = plan.More, look
		}
		require.Greater(t, plans, 1, name)
	}
}
