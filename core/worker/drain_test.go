package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// queue waits until the worker's queue of dispatches has so many consumers and ready messages.
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
		}, waitTimeout, "its heartbeats continue, without an error status")
		require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, running))
		testkit.Exec(t, b.store, "update execution set status = 'canceling' where id = $1", running)
		b.cancel(t, w, running)
		status, _ := b.await(t, running)
		require.Equal(t, lifecycle.StatusCancelled, status)
		b.queue(t, w, 0, 2)
		require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, waiting),
			"a draining worker starts nothing")

		b.drainRow(t, false)
		for _, id := range []int64{waiting, late} {
			status, _ = b.await(t, id)
			require.Equal(t, lifecycle.StatusCompleted, status)
		}
		b.queue(t, w, 1, 0)
	}
}

// A draining worker can be stopped. The cordon stays, the drain does not.
func TestADrainingWorkerStops(t *testing.T) {
	b := setup(t)
	held, release := holding()
	w := b.worker(t, held)
	running := b.schedule(t, w, testkit.Action(t, b.store, "held.long"), nil)
	b.dispatch(t, w, running)
	b.awaitRunning(t, running)
	b.drainRow(t, true)
	b.queue(t, w, 0, 0)
	b.stopReleased(t, w, release)
	status, _ := b.await(t, running)
	require.Equal(t, lifecycle.StatusCompleted, status)
	require.Equal(t, 1, testkit.Count(t, b.store, "select count(*) from worker where status = 'inactive' and cordoned and not draining"))
	again := b.worker(t)
	require.Equal(t, w.ID(), again.ID())
	b.queue(t, again, 1, 0)
	require.Equal(t, 1, testkit.Count(t, b.store, "select count(*) from worker where status = 'active' and cordoned and not draining"))
}

// holding gives a worker the action held.long, which runs until release is called or the worker stops it.
func holding() (option func(*worker.Config), release func()) {
	released := make(chan struct{})
	return func(c *worker.Config) {
		c.ShutdownTimeout = testkit.TestTimeout
		c.Actions["held.long"] = func(ctx context.Context, _ worker.Task) (any, error) {
			select {
			case <-released:
			case <-ctx.Done():
			}
			return nil, ctx.Err()
		}
	}, func() { close(released) }
}

// stopReleased stops a worker and releases its executions when it has begun to leave.
func (b *bundle) stopReleased(t testing.TB, w *worker.Worker, release func()) {
	t.Helper()
	stopped := make(chan struct{})
	go func() { defer close(stopped); w.Stop() }()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, "select count(*) from worker where status = 'inactive' and draining") == 1
	}, waitTimeout, "the worker leaves")
	release()
	<-stopped
}

// Scenario 4: a stopping worker leaves the placement at once, returns unstarted executions while it still runs others,
// and sends heartbeats until it has ended.
func TestAStoppingWorkerIsNotMistakenForDead(t *testing.T) {
	b := setup(t)
	held, release := holding()
	w := b.worker(t, held, func(c *worker.Config) { c.MaxConcurrent = 1 })
	running := b.schedule(t, w, testkit.Action(t, b.store, "held.long"), nil)
	waiting := b.schedule(t, w, b.core(t, "core.noop"), nil)
	b.dispatch(t, w, running, waiting)
	b.awaitRunning(t, running)
	stopped := make(chan struct{})
	go func() { defer close(stopped); w.Stop() }()
	b.queue(t, w, 0, 1)
	testkit.Eventually(t, func() bool { // a concurrent heartbeat may undo it, the next one repeats it
		return testkit.Count(t, b.store, "select count(*) from worker where status = 'inactive' and draining") == 1
	}, waitTimeout)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, running))
	const seen = "select (extract(epoch from heartbeat_seen) * 1000000)::bigint from worker"
	for range 3 { // heartbeats continue
		before := testkit.Count(t, b.store, seen)
		testkit.Eventually(t, func() bool { return testkit.Count(t, b.store, seen) > before }, testkit.TestTimeout)
	}
	leaving := testkit.Count(t, b.store, "select count(*) from worker where status = 'inactive' and draining")
	release()
	<-stopped
	require.Equal(t, 1, leaving, "heartbeats do not undo it")
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, running))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, waiting))
	require.Equal(t, 1, testkit.Count(t, b.store, "select count(*) from worker where status = 'inactive' and not draining"))
}

// A heartbeat that the database executes late does not make a stopped worker look active: the final status follows it.
func TestTheFinalStatusFollowsALateHeartbeat(t *testing.T) {
	b := setup(t)
	w := b.worker(t)
	holder := testkit.Begin(t, b.store)
	_, err := holder.Exec(t.Context(), "select pg_advisory_xact_lock(1)")
	require.NoError(t, err)
	testkit.Exec(t, b.store, `create function late() returns trigger language plpgsql as $$ begin
		if current_query() like '%BeatWorker%' then perform pg_advisory_xact_lock(1); end if; return null; end $$`)
	testkit.Exec(t, b.store, "create trigger late before update on worker for each statement execute function late()")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `select count(*) from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database())`) == 1
	}, waitTimeout, "a heartbeat waits")
	stopped := make(chan struct{})
	go func() { defer close(stopped); w.Stop() }()
	testkit.Eventually(t, func() bool {
		state, err := b.engine.QueueState(testkit.Context(t), message.WorkerPacksQueue(w.ID()))
		return err == nil && state.Consumers == 0
	}, waitTimeout, "the worker closes")
	const final = "select count(*) from worker where status = 'inactive' and not draining"
	for range 100 { // long enough for a final status that does not wait
		require.Zero(t, testkit.Count(t, b.store, final))
	}
	require.NoError(t, holder.Rollback(t.Context()))
	<-stopped
	require.Equal(t, 1, testkit.Count(t, b.store, final))
}
