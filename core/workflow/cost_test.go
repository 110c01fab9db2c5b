package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/workflow"
)

// midway is a workflow over a list of which so many items have ended.
func midway(t testing.TB, total,
	ended int,
) (*workflow.Definition, *workflow.State, []workflow.Happening, workflow.Facts) {
	t.Helper()
	d := define(t, fmt.Sprintf(`
- {name: a, action: core.a, with_items: "{{ range(%d) }}", concurrency: 10, input: {x: "{{ item }}"}, next: [{do: [b]}]}
- {name: b, action: core.b}
`, total))
	state := d.Begin()
	state.Tasks["a"] = &workflow.TaskState{
		Status: workflow.TaskRunning, Items: total, Total: total, Next: ended + 10, Open: 10, Succeeded: ended,
	}
	happened := []workflow.Happening{{Kind: workflow.ChildEnded, Task: "a", Index: ended, Status: completed}}
	next := []any{int64(ended + 10)}
	return d, state, happened, workflow.Facts{Items: map[string]workflow.Slice{"a": {From: ended + 10, Items: next}}}
}

// decideFully reads the state, decides and writes the state.
func decideFully(t testing.TB, d *workflow.Definition, raw []byte, happened []workflow.Happening,
	facts workflow.Facts,
) []byte {
	t.Helper()
	state, err := workflow.ParseState(raw)
	require.NoError(t, err)
	plan, err := d.Decide(state, happened, facts)
	require.NoError(t, err)
	raw, err = workflow.MarshalState(plan.State)
	require.NoError(t, err)
	return raw
}

// Upstream 48: the cost of an item depends neither on the length of its list nor on the number of ended items.
func TestTheCostOfAnItemIsIndependentOfItsList(t *testing.T) {
	cost := func(total, ended int) (allocations float64, size int) {
		d, state, happened, facts := midway(t, total, ended)
		raw, err := workflow.MarshalState(state)
		require.NoError(t, err)
		return testing.AllocsPerRun(20, func() { decideFully(t, d, raw, happened, facts) }), len(raw)
	}
	few, small := cost(100, 10)
	for _, c := range [][2]int{{100, 80}, {10_000, 10}, {10_000, 5_000}, {10_000, 9_900}} {
		many, size := cost(c[0], c[1])
		require.InDelta(t, few, many, 3, "%v", c)
		require.InDelta(t, small, size, 20, "%v", c)
	}
}

func chain(t testing.TB, length int) *workflow.Definition {
	t.Helper()
	var tasks strings.Builder
	for i := range length - 1 {
		fmt.Fprintf(&tasks, "- {name: t%d, action: core.a, next: [{when: '{{ succeeded() }}', publish: [{n: '{{ %d }}'}], do: [t%d]}]}\n", i, i, i+1)
	}
	fmt.Fprintf(&tasks, "- {name: t%d, action: core.a}\n", length-1)
	return define(t, tasks.String())
}

// run runs a chain to its end and returns how many decisions it took. Between any two
// the state is written and read, if it is kept.
func run(t testing.TB, d *workflow.Definition, kept bool) int {
	t.Helper()
	state, happened := d.Begin(), []workflow.Happening{{Kind: workflow.Started}}
	for decisions := 1; ; decisions++ {
		plan, err := d.Decide(state, happened, workflow.Facts{})
		require.NoError(t, err)
		if plan.End != nil {
			require.Equal(t, completed, plan.End.Status)
			return decisions
		}
		require.Len(t, plan.Start, 1)
		happened = []workflow.Happening{{Kind: workflow.ChildEnded, Task: plan.Start[0].Task, Status: completed}}
		if state = plan.State; kept {
			raw, err := workflow.MarshalState(state)
			require.NoError(t, err)
			state, err = workflow.ParseState(raw)
			require.NoError(t, err)
		}
	}
}

func TestAChainOfAThousandTasksTakesADecisionForEach(t *testing.T) {
	t.Parallel()
	require.Equal(t, 101, run(t, chain(t, 100), true))
	require.Equal(t, 1001, run(t, chain(t, 1000), false))
}

func BenchmarkDecideItem(b *testing.B) {
	for _, c := range [][2]int{{100, 10}, {10_000, 10}, {10_000, 9_900}} {
		b.Run(fmt.Sprintf("%d of %d ended", c[1], c[0]), func(b *testing.B) {
			d, state, happened, facts := midway(b, c[0], c[1])
			raw, err := workflow.MarshalState(state)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				decideFully(b, d, raw, happened, facts)
			}
		})
	}
}

func BenchmarkDecideChain(b *testing.B) {
	for _, length := range []int{100, 1000} {
		b.Run(fmt.Sprintf("%d tasks", length), func(b *testing.B) {
			d := chain(b, length)
			b.ReportAllocs()
			for b.Loop() {
				run(b, d, true)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(length), "µs/task")
		})
	}
}

func BenchmarkDecideStart10000Items(b *testing.B) {
	d := define(b, `
- {name: a, action: core.a, with_items: "{{ range(10000) }}", concurrency: 10000, input: {x: "{{ item }}"}}
`)
	for b.Loop() {
		_, err := d.Decide(nil, []workflow.Happening{{Kind: workflow.Started}}, workflow.Facts{})
		require.NoError(b, err)
	}
}
