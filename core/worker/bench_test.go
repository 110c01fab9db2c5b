package worker_test

import (
	"testing"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/worker"
)

// BenchmarkNoop measures dispatches of an action that does nothing, from the
// queue to the published completion. The rows and messages are made before the
// clock starts; the queue is then consumed by a freshly started worker.
func BenchmarkNoop(b *testing.B) {
	bundle := setup(b)
	set := func(c *worker.Config) { c.MaxConcurrent, c.HeartbeatInterval = 200, time.Second }
	first := bundle.worker(b, set)
	first.Stop() // the queue and the id stay
	action := bundle.core(b, "core.noop")
	rows, err := bundle.store.Pool().Query(testkit.Context(b), `
		insert into execution (action, action_ref, worker, status, attempt)
		select $1, $2, $3, 'scheduled', 1 from generate_series(1, $4) returning id`, action.ID, action.Ref, first.ID(), b.N)
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]int64, 0, b.N)
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, id)
	}
	bundle.dispatch(b, first, ids...)
	second := bundle.unstarted(b, set)
	b.ResetTimer()
	if err := second.Start(testkit.Context(b)); err != nil {
		b.Fatal(err)
	}
	testkit.Eventually(b, func() bool {
		bundle.mu.Lock()
		defer bundle.mu.Unlock()
		return len(bundle.completed) == b.N
	}, time.Minute)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "executions/s")
	second.Stop()
	if n := testkit.Count(b, bundle.store, "select count(*) from execution where status <> $1::text::execution_status_enum",
		string(attune.StatusCompleted)); n != 0 {
		b.Fatalf("%d executions did not complete", n)
	}
}
