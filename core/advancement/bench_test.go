package advancement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/advancement"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// BenchmarkChain measures the time to advance a chain of 100 tasks, per task: at its beginning, at its end, and
// their ratio, the cost of the tasks already completed. 50,000 executions of other workflows exist (upstream 48: 33
// ms per step with as many).
func BenchmarkChain(b *testing.B) {
	const n = 100
	w := bench(b)
	var definition strings.Builder
	definition.WriteString("version: \"1\"\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&definition, "  - {name: t%d, action: pk.t, input: {n: %d}", i, i)
		if i+1 < n {
			fmt.Fprintf(&definition, ", next: [{publish: [{last: \"{{ result().n }}\"}], do: [t%d]}]", i+1)
		}
		definition.WriteString("}\n")
	}
	action := w.define("pk.long", definition.String())
	w.crowded(50_000)
	var first, last time.Duration
	for b.Loop() {
		id := w.request(action, nil)
		w.take(nil, []int64{id})
		for i := range n {
			child := w.dispatched()[0]
			w.finish(child)
			result, err := w.batches.Run(testkit.Context(b), completionOf(child.ID))
			require.NoError(b, err)
			began := time.Now()
			w.advance(result)
			switch took := time.Since(began); {
			case i >= 5 && i < 25:
				first += took
			case i >= n-25 && i < n-5:
				last += took
			}
		}
		require.Equal(b, lifecycle.StatusCompleted, testkit.StatusOf(b, w.store, id))
	}
	b.ReportMetric(first.Seconds()*1000/20/float64(b.N), "ms/early-task")
	b.ReportMetric(last.Seconds()*1000/20/float64(b.N), "ms/late-task")
	b.ReportMetric(last.Seconds()/first.Seconds(), "late/early")
}

// BenchmarkList measures the time to advance a list of 1,000 items, ten at a time, per item: in its first tenth and
// in its last.
func BenchmarkList(b *testing.B) {
	const n = 1000
	w := bench(b)
	action := w.define("pk.list", strings.Replace(strings.Replace(list, "concurrency: 3", "concurrency: 10", 1),
		"{{ parameters.list }}", "{{ range(1000) }}", 1))
	w.crowded(50_000)
	w.does = func(_ string, index, _ int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"index": index}}
	}
	var first, last time.Duration
	for b.Loop() {
		id := w.request(action, nil)
		w.take(nil, []int64{id})
		for i := range n {
			child := w.dispatched()[0]
			w.finish(child)
			result, err := w.batches.Run(testkit.Context(b), completionOf(child.ID))
			require.NoError(b, err)
			began := time.Now()
			w.advance(result)
			switch took := time.Since(began); {
			case i >= 10 && i < n/10:
				first += took
			case i >= n-n/10 && i < n-10:
				last += took
			}
		}
		w.run()
		require.Equal(b, lifecycle.StatusCompleted, testkit.StatusOf(b, w.store, id))
	}
	tasks := float64(n/10 - 10)
	b.ReportMetric(first.Seconds()*1000/tasks/float64(b.N), "ms/early-item")
	b.ReportMetric(last.Seconds()*1000/tasks/float64(b.N), "ms/late-item")
	b.ReportMetric(last.Seconds()/first.Seconds(), "late/early")
}

func bench(b *testing.B) *world {
	b.Helper()
	w := &world{
		t: b, store: testkit.Store(b, func(c *store.Config) { c.HotPath = true }), relay: &relay{},
		sources: advancement.NewSources(),
		does:    func(string, int, int) end { return end{lifecycle.StatusCompleted, map[string]any{"n": 1}} },
	}
	w.begin()
	testkit.Exec(b, w.store, `UPDATE worker SET heartbeat_seen = now() + interval '1 hour'`)
	return w
}

// crowded fills the table with children of other workflows that have ended.
func (w *world) crowded(n int) {
	w.t.Helper()
	testkit.Exec(w.t, w.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(w.t, w.store, `INSERT INTO execution (action_ref, status, result, workflow_task)
		SELECT 'pk.t', 'completed', '{"n": 1}', jsonb_build_object('workflow_execution', 1000000 + i / 100, 'task_name', 't' || i % 100, 'task_index', NULL)
		FROM generate_series(1, $1::int) i`, n)
	testkit.Exec(w.t, w.store, `ALTER TABLE execution ENABLE TRIGGER USER`)
	testkit.Exec(w.t, w.store, `VACUUM ANALYZE execution`)
}
