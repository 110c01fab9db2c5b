package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/worker"
)

// queue waits until so many consume the worker's dispatches and so many of them
// lie there.
func (b *bundle) queue(t testing.TB, w *worker.Worker, consumers, ready int) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		state, err := b.engine.QueueState(testkit.Context(t), message.WorkerExecutionsQueue(w.ID()))
		return err == nil && state.Consumers == consumers && state.Ready == ready
	}, waitTimeout, "%d consumers and %d messages", consumers, ready)
}

func (b *bundle) drainRow(t testing.TB, draining bool) {
	t.Helper()
	testkit.Exec(t, b.store, "update worker set cordoned = $1, draining = $1", draining)
}

// Upstream 31, for a requested drain: the worker reads it from its row, returns unstarted executions and starts no
// others. Running ones continue and can be cancelled, and heartbeats continue. It works again after the drain, any
// number of times.
func TestAWorkerDrainsByItsRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) { c.MaxConcurrent = 1 })
	long := b.script(t, "drain.long", "exec sleep 600", nil)
	for range 2 {
		running, waiting := b.schedule(t, w, long, nil), b.schedule(t, w, b.core(t, "core.noop"), nil)
		b.dispatch(t, w, running, waiting)
		b.awaitRunning(t, running)
		b.drainRow(t, true)
		b.queue(t, w, 0, 1)
		late := b.schedule(t, w, b.core(t, "core.noop"), nil)
		b.dispatch(t, w, late)
		var before time.Time
		require.NoError(t,
			b.store.Pool().QueryRow(testkit.Context(t), "select last_heartbeat from worker").Scan(&before))
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, b.store, "select count(*) from worker where last_heartbeat > $1 and status = 'active' and draining", before) == 1
		}, waitTimeout, "it beats on, and is not called deaf")
		require.Equal(t, attune.StatusRunning, testkit.StatusOf(t, b.store, running))
		testkit.Exec(t, b.store, "update execution set status = 'canceling' where id = $1", running)
		b.cancel(t, w, running)
		status, _ := b.await(t, running)
		require.Equal(t, attune.StatusCancelled, status)
		b.queue(t, w, 0, 2)
		require.Equal(t, attune.StatusScheduled, testkit.StatusOf(t, b.store, waiting),
			"there is room, and it is not begun")

		b.drainRow(t, false)
		for _, id := range []int64{waiting, late} {
			status, _ = b.await(t, id)
			require.Equal(t, attune.StatusCompleted, status)
		}
		b.queue(t, w, 1, 0)
	}
}

// A worker that drains can be stopped; the cordon outlives it, the drain does not.
func TestADrainingWorkerStops(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.worker(t)
	running := b.schedule(t, w, b.core(t, "core.sleep"), map[string]any{"seconds": 0.7})
	b.dispatch(t, w, running)
	b.awaitRunning(t, running)
	b.drainRow(t, true)
	b.queue(t, w, 0, 0)
	w.Stop()
	status, _ := b.await(t, running)
	require.Equal(t, attune.StatusCompleted, status)
	require.Equal(t, 1, testkit.Count(t, b.store, "select count(*) from worker where status = 'inactive' and cordoned and not draining"))
	again := b.worker(t)
	require.Equal(t, w.ID(), again.ID())
	b.queue(t, again, 1, 0)
	require.Equal(t, 1, testkit.Count(t, b.store, "select count(*) from worker where status = 'active' and cordoned and not draining"))
}

// Scenario 4: a worker that stops is out of placement at once, hands back what it
// has not begun while it still runs the rest, and beats until it has ended.
func TestAWorkerThatStopsIsNotMistakenForDead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	release := make(chan struct{})
	w := b.worker(t, func(c *worker.Config) {
		c.MaxConcurrent, c.ShutdownTimeout = 1, time.Minute
		c.Actions = worker.Actions{"core.sleep": func(context.Context, worker.Task) (any, error) {
			<-release
			return nil, nil
		}}
	})
	running := b.schedule(t, w, b.core(t, "core.sleep"), nil)
	waiting := b.schedule(t, w, b.core(t, "core.noop"), nil)
	b.dispatch(t, w, running, waiting)
	b.awaitRunning(t, running)
	stopped := make(chan struct{})
	go func() { defer close(stopped); w.Stop() }()
	b.queue(t, w, 0, 1)
	testkit.Eventually(t, func() bool { // a concurrent beat may undo it, the next one repeats it
		return testkit.Count(t, b.store, "select count(*) from worker where status = 'inactive' and draining") == 1
	}, waitTimeout)
	require.Equal(t, attune.StatusRunning, testkit.StatusOf(t, b.store, running))
	const seen = "select (extract(epoch from heartbeat_seen) * 1000000)::bigint from worker"
	for range 3 { // it goes on beating
		before := testkit.Count(t, b.store, seen)
		testkit.Eventually(t, func() bool { return testkit.Count(t, b.store, seen) > before }, testkit.TestTimeout)
	}
	close(release)
	<-stopped
	require.Equal(t, attune.StatusCompleted, testkit.StatusOf(t, b.store, running))
	require.Equal(t, attune.StatusScheduled, testkit.StatusOf(t, b.store, waiting))
	require.Equal(t, 1, testkit.Count(t, b.store, "select count(*) from worker where status = 'inactive' and not draining"))
}
