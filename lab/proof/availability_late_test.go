package proof

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// S8, S9, upstream 31, 32: a worker that was presumed dead continues and finishes. By then the engine has closed
// and retried its execution: it refuses and stores what the worker writes.
func finishesAfterDeath(c *scenario) {
	act := c.action("act", retries(1))
	gate := make(chan struct{})
	silent := c.fake(false, testkit.FakeWorkerConfig{Behave: until(gate)})
	id := c.request(act.Ref, 1)[0]
	c.reach(lifecycle.StatusRunning, id)
	silent.StopHeartbeat()
	c.disturb()
	c.reach(lifecycle.StatusAbandoned, id)
	c.requireDecidedWithin(id)
	c.requireReported(id)
	c.open()
	c.startWorker("rescue")
	c.settled()
	require.Equal(c.t, "abandoned 1, completed 1", c.attempts(id))
	close(gate)
	// After a cut connection the broker may redeliver the message, and an existing worker then runs it twice.
	c.await(func() bool { return strings.Contains(c.late(id), "abandoned stays, not completed") },
		"S9: its late write is refused and stored, and not: %s",
		lazily(func() string { return c.late(id) }))
	require.Equal(c.t, "abandoned 1, completed 1", c.attempts(id), "S8: it ended once, and is retried once")
	require.Equal(c.t, "worker_gone abandoned", c.lost(id))
	require.Equal(c.t, 1, c.starts(c.retry(id)))
}

// F2, for a worker as a process; S2, S8, S9: it is frozen for longer than its heartbeat may be old, and continues.
// The engine has closed what it ran; the worker does not overwrite that, and it gets work again.
func goesOn(c *scenario) {
	act := c.action("act", retries(1))
	frozen := c.startWorkerProcess("frozen")
	id := c.request(act.Ref, 1)[0]
	c.begun(id)
	require.NoError(c.t, frozen.cmd.Process.Signal(syscall.SIGSTOP))
	c.reach(lifecycle.StatusAbandoned, id)
	c.requireDecidedWithin(id)
	c.requireReported(id)
	marked := func(status string) func() bool {
		return func() bool {
			return c.count(`SELECT count(*) FROM worker WHERE name = 'w-' || $1 || '-frozen' AND status = $2::text::worker_status_enum`, c.label, status) == 1
		}
	}
	c.await(marked("inactive"), "it is marked")
	c.disturb()
	require.NoError(c.t, frozen.cmd.Process.Signal(syscall.SIGCONT))
	c.await(marked("active"), "its heartbeats count again")
	c.open()
	c.settled() // there is no other worker: it gets its own retry
	require.Equal(c.t, "abandoned 1, completed 1", c.attempts(id))
	require.Equal(c.t, "worker_gone abandoned", c.lost(id))
	require.Zero(c.t, frozen.stop(c.t))
	require.Equal(c.t, "none", c.late(id), "a worker of ours asks before it writes")
	for _, one := range []int64{id, c.retry(id)} {
		require.Equal(c.t, 1, c.starts(one), "S2: the starts of execution %d", one)
		c.requireReported(one)
	}
}

// Upstream 37: an action may take a second. Its worker forgets that. The engine ends the execution and asks the
// worker to stop; it refuses and stores what the worker then writes.
func forgetsTheTimeout(c *scenario) {
	second := int32(1)
	act := c.action("act", func(a *testkit.ActionRow) { a.TimeoutSeconds = &second })
	forgetful := c.fake(false, testkit.FakeWorkerConfig{Behave: until(nil)})
	id := c.request(act.Ref, 1)[0]
	c.oneOf(id, lifecycle.StatusRunning, lifecycle.StatusTimeout) // the test may look only after the timeout
	c.disturb()
	c.reach(lifecycle.StatusTimeout, id)
	c.settled()
	result := c.result(id)
	require.Regexp(c.t, `^Execution timeout: still running \d+ seconds after its start, 1 are allowed$`,
		result["error"])
	require.Equal(c.t, "execution_timeout_monitor", result["failed_by"])
	require.Equal(c.t, "action_timeout timeout", c.lost(id))
	require.Equal(c.t, "timeout 1", c.attempts(id))
	c.await(func() bool { return strings.Contains(c.late(id), "timeout stays, not cancelled") },
		"the engine asked it to stop, and refuses and stores its late write")
	require.Equal(c.t, lifecycle.StatusTimeout, testkit.StatusOf(c.t, c.store, id), "S8")
	require.NotEmpty(c.t, forgetful.Runs())
}

// Upstream 30: one of three replicas marks a worker with stale heartbeats, publishes that in the published words
// whatever its role, and marks it active again when heartbeats resume. It also marks a worker that never sent one.
func heartbeats(c *scenario) {
	act := c.fake(false, testkit.FakeWorkerConfig{})
	sensor := testkit.Worker(c.t, c.store, c.label+"-sensor", func(w *testkit.WorkerRow) { w.Role = "sensor" })
	never := testkit.Worker(c.t, c.store, c.label+"-never", func(w *testkit.WorkerRow) { w.NoHeartbeat = true })
	steady := c.startWorker("steady")
	gap := c.heartbeats(steady.ID())
	act.StopHeartbeat()
	status := func(id int64) (text string) {
		require.NoError(c.t, c.store.Pool().QueryRow(testkit.Context(c.t),
			`SELECT status::text FROM worker WHERE id = $1`, id).Scan(&text))
		return text
	}
	is := func(want string, ids ...int64) func() bool {
		return func() bool {
			for _, id := range ids {
				if status(id) != want {
					return false
				}
			}
			return true
		}
	}
	c.await(is("inactive", act.ID, sensor.ID, never.ID), "they are marked")
	// said counts the messages about a stale worker and about its return. On a busy machine a worker's heartbeats
	// may also become stale while it starts.
	said := func(name string, id int64) (silent, back int) {
		worker := fmt.Sprintf("Worker %s (ID: %d) ", name, id)
		return c.cluster.logged(worker+"heartbeat is stale (") + c.cluster.logged(worker+
				"has no heartbeat, marking as inactive"),
			c.cluster.logged(worker + "sends heartbeats again, marking as active")
	}
	for name, id := range map[string]int64{act.Name: act.ID, sensor.Name: sensor.ID, never.Name: never.ID} {
		c.await(func() bool { silent, back := said(name, id); return silent == back+1 },
			"one replica logs each silence of %s", name)
	}
	require.Equal(c.t, 1,
		c.cluster.logged(fmt.Sprintf("Worker %s (ID: %d) heartbeat is stale (", sensor.Name, sensor.ID)))
	require.Equal(c.t, 1,
		c.cluster.logged(fmt.Sprintf("Worker %s (ID: %d) has no heartbeat, marking as inactive", never.Name, never.ID)))
	c.await(func() bool { return c.cluster.logged("Deactivated ") > 0 }, "a replica says how many it marked")
	for _, replica := range c.cluster.replicas {
		require.Equal(c.t, 1, strings.Count(replica.log.String(), "Starting worker heartbeat monitor..."))
		require.Contains(c.t, replica.log.String(),
			fmt.Sprintf("Worker heartbeat monitor started (check interval: 0.3s, staleness threshold: %s)", staleness))
	}

	steadily := func() int { return c.cluster.logged("Worker " + steady.Name() + " ") }
	before := steadily() // nothing, unless its start took seconds
	c.disturb()
	c.await(func() bool {
		for _, id := range []int64{act.ID, sensor.ID} { // one statement locks both in any order
			testkit.Exec(c.t, c.store, `UPDATE worker SET last_heartbeat = now() WHERE id = $1`, id)
		}
		return is("active", act.ID, sensor.ID)()
	}, "they send heartbeats again, and are active again")
	for name, id := range map[string]int64{act.Name: act.ID, sensor.Name: sensor.ID} {
		c.await(func() bool { silent, back := said(name, id); return back > 0 && (silent == back || silent == back+1) },
			"one replica logs its return: %s", name)
	}
	require.Equal(c.t, "inactive", status(never.ID))
	if longest := gap(); longest < staleness { // if the machine paused, its heartbeats may have become stale
		require.NotEqual(c.t, "inactive", status(steady.ID()))
		require.Equal(c.t, before, steadily(), "a worker with heartbeats stays active; its heartbeats came within %s", longest)
	}
}

// heartbeats watches the heartbeats of a worker. The returned function ends that and returns the longest time
// between two of them, by the database's clock.
func (c *scenario) heartbeats(worker int64) func() time.Duration {
	ctx, cancel := context.WithCancel(testkit.Context(c.t))
	c.t.Cleanup(cancel)
	longest := make(chan time.Duration, 1)
	go func() {
		last, most := time.Time{}, time.Duration(0)
		for ctx.Err() == nil {
			var seen, now time.Time
			err := c.store.Pool().QueryRow(ctx,
				`SELECT coalesce(heartbeat_seen, now()), now() FROM worker WHERE id = $1`, worker).Scan(&seen, &now)
			if err == nil && !last.IsZero() {
				most = max(most, seen.Sub(last), now.Sub(seen))
			}
			if err == nil {
				last = seen
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		longest <- most
	}()
	return func() time.Duration {
		cancel()
		return <-longest
	}
}

// Scenario 3: without a worker a request fails at once or, if the setting says so, waits and runs when a worker
// starts. Another setting makes what ran on a dead worker count as failed.
func TestScenario3AllWorkersAreDown(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "wait until work without workers is given up")
	h := &cluster{stage: newStage(t), disturb: func(testing.TB) {}}
	replica := h.serve(append(soon(), "ATTUNE__EXECUTOR__NO_WORKERS=fail", "ATTUNE__EXECUTOR__LOST_RUNNING=fail")...)
	c := h.scenario(t, "down")
	act := testkit.Action(t, c.store, "down.act", unhurried)
	require.Equal(t, "failed 0", failsAtOnce(c, act.Ref), "there was never one")

	last := c.fake(false, testkit.FakeWorkerConfig{Behave: until(nil)})
	var running int64
	c.await(func() bool { // on a busy machine its heartbeats may become stale once more
		running = c.request(act.Ref, 1)[0]
		return c.oneOf(running, lifecycle.StatusRunning, lifecycle.StatusFailed) == lifecycle.StatusRunning
	}, "it runs")
	last.Kill()
	c.reach(lifecycle.StatusFailed, running)
	result := c.result(running)
	require.Equal(t, "execution_timeout_monitor", result["failed_by"])
	require.NotContains(t, result, "abandoned_by")
	require.Equal(t, "worker_gone failed", c.lost(running))
	c.requireDecidedWithin(running)
	require.Equal(t, "failed 0", failsAtOnce(c, act.Ref), "the last one is gone")
	require.Zero(t, replica.stop(t))

	h.replicas = append(h.replicas, h.serve(soon()...), h.serve(soon()...))
	waiting := c.request(act.Ref, 3)
	c.await(func() bool {
		return c.count(`SELECT count(*) FROM execution_admission_entry WHERE execution_id = ANY ($1)`,
			waiting) == len(waiting)
	}, "they wait")
	require.Positive(t, c.closeConnections(t))
	time.Sleep(time.Second) // no signal shows that something did not happen
	require.Equal(t, 3, c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'requested'`, waiting))
	c.fake(false, testkit.FakeWorkerConfig{})
	// Like existing workers it registers before it declares its queue: the broker returns what is sent meanwhile,
	// and the engine sends it again.
	c.await(func() bool {
		return c.count(`SELECT count(*) FROM execution WHERE coalesce(original_execution, id) = ANY ($1) AND status = 'completed' AND attempt = 1`, waiting) == len(waiting)
	}, "they are done")
	c.settled()
	c.requireReported(running)
	require.Zero(t, c.count(`SELECT count(*) FROM execution WHERE coalesce(original_execution, id) = ANY ($1) AND status <> 'completed'
		AND result->>'error' <> 'Worker unavailable: it has no queue to take the execution from'`, waiting), "they had no other outcome")
	h.close()
}

// failsAtOnce requests an execution that must fail because there is no worker, and returns its outcome.
func failsAtOnce(c *scenario, ref string) string {
	c.t.Helper()
	id := c.request(ref, 1)[0]
	c.reach(lifecycle.StatusFailed, id)
	result := c.result(id)
	require.Equal(c.t, "no workers available", result["error"])
	require.Equal(c.t, "execution_scheduler", result["failed_by"])
	c.requireReported(id)
	return c.attempts(id)
}
