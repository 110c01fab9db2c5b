package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
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
	require.NoError(b, err)
	ids := make([]int64, 0, b.N)
	for rows.Next() {
		var id int64
		require.NoError(b, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(b, rows.Err())
	bundle.dispatch(b, first, ids...)
	second, err := worker.New(worker.Config{Name: first.Name(), MaxConcurrent: 200, Actions: builtin.Actions()},
		worker.Deps{Store: bundle.store, Broker: bundle.broker(b, "second")})
	require.NoError(b, err)
	b.ResetTimer()
	require.NoError(b, second.Start(testkit.Context(b)))
	testkit.Eventually(b, func() bool {
		bundle.mu.Lock()
		defer bundle.mu.Unlock()
		return len(bundle.completed) == b.N
	}, time.Minute)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "executions/s")
	second.Stop()
	require.Zero(b, testkit.Count(b, bundle.store, "select count(*) from execution where status <> 'completed'"))
}
