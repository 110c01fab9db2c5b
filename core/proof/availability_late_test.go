package proof

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/testkit"
)

// S8, S9, upstream 31, 32: a worker that was taken for dead goes on and finishes.
// Its execution is decided and repeated by then; what it writes is refused and kept.
func finishesAfterDeath(c *scene) {
	act := c.action("act", retries(1))
	gate := make(chan struct{})
	silent := c.fake(false, testkit.FakeWorkerConfig{Behave: until(gate)})
	id := c.request(act.Ref, 1)[0]
	c.reach(attune.StatusRunning, id)
	silent.StopHeartbeat()
	c.disturb()
	c.reach(attune.StatusAbandoned, id)
	c.requireDecidedWithin(id)
	c.requireTold(id)
	c.open()
	c.hire("rescue")
	c.settled()
	require.Equal(c.t, "abandoned 1, completed 1", c.course(id))
	close(gate)
	// A cut connection may have brought it the message twice, and an existing worker
	// then runs it twice.
	c.await(func() bool { return strings.Contains(c.late(id), "abandoned stays, not completed") },
		"S9: what it writes is refused and kept, and not: %s",
		lazily(func() string { return c.late(id) }))
	require.Equal(c.t, "abandoned 1, completed 1", c.course(id), "S8: it ended once, and is repeated once")
	require.Equal(c.t, "worker_gone abandoned", c.lost(id))
	require.Equal(c.t, 1, c.starts(c.repetition(id)))
}

// F2, for a worker as a process; S2, S8, S9: it stands still for longer than its
// heartbeat may be old, and goes on. What it ran was decided; it does not write
// over that, and it is given work again.
func goesOn(c *scene) {
	act := c.action("act", retries(1))
	frozen := c.employ("frozen")
	id := c.request(act.Ref, 1)[0]
	c.begun(id)
	require.NoError(c.t, frozen.cmd.Process.Signal(syscall.SIGSTOP))
	c.reach(attune.StatusAbandoned, id)
	c.requireDecidedWithin(id)
	c.requireTold(id)
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
	c.settled() // nobody else is there: its own repetition comes to it
	require.Equal(c.t, "abandoned 1, completed 1", c.course(id))
	require.Equal(c.t, "worker_gone abandoned", c.lost(id))
	require.Zero(c.t, frozen.stop(c.t))
	require.Equal(c.t, "none", c.late(id), "a worker of ours asks before it writes")
	for _, one := range []int64{id, c.repetition(id)} {
		require.Equal(c.t, 1, c.starts(one), "S2: the starts of execution %d", one)
		c.requireTold(one)
	}
}

// Upstream 37: an action may take a second. Its worker forgets that, and the engine
// ends it, and tells the worker to stop; what it writes then is refused and kept.
func forgetsTheTimeout(c *scene) {
	second := int32(1)
	act := c.action("act", func(a *testkit.ActionRow) { a.TimeoutSeconds = &second })
	forgetful := c.fake(false, testkit.FakeWorkerConfig{Behave: until(nil)})
	id := c.request(act.Ref, 1)[0]
	c.reach(attune.StatusRunning, id)
	c.disturb()
	c.reach(attune.StatusTimeout, id)
	c.settled()
	result := c.result(id)
	require.Regexp(c.t, `^Execution timeout: still running \d+ seconds after its start, 1 are allowed$`,
		result["error"])
	require.Equal(c.t, "execution_timeout_monitor", result["failed_by"])
	require.Equal(c.t, "action_timeout timeout", c.lost(id))
	require.Equal(c.t, "timeout 1", c.course(id))
	c.await(func() bool { return strings.Contains(c.late(id), "timeout stays, not cancelled") },
		"it was told to stop, and what it writes then is refused and kept")
	require.Equal(c.t, attune.StatusTimeout, testkit.StatusOf(c.t, c.store, id), "S8")
	require.NotEmpty(c.t, forgetful.Runs())
}

// Upstream 30: of three replicas one marks a worker whose heartbeats have ended, and
// says so in the published words, whatever its role; and marks it active again when
// they resume. One that never sent any is marked, too.
func heartbeats(c *scene) {
	act := c.fake(false, testkit.FakeWorkerConfig{})
	sensor := testkit.Worker(c.t, c.store, c.label+"-sensor", func(w *testkit.WorkerRow) { w.Role = "sensor" })
	never := testkit.Worker(c.t, c.store, c.label+"-never", func(w *testkit.WorkerRow) { w.NoHeartbeat = true })
	steady := c.hire("steady")
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
	// said is how often it was said that a worker fell silent, and that it beats again.
	// On a busy machine one may fall silent while it starts, too.
	said := func(name string, id int64) (silent, back int) {
		worker := fmt.Sprintf("Worker %s (ID: %d) ", name, id)
		return c.house.said(worker+"heartbeat is stale (") + c.house.said(worker+
				"has no heartbeat, marking as inactive"),
			c.house.said(worker + "sends heartbeats again, marking as active")
	}
	for name, id := range map[string]int64{act.Name: act.ID, sensor.Name: sensor.ID, never.Name: never.ID} {
		c.await(func() bool { silent, back := said(name, id); return silent == back+1 },
			"of each silence of %s one replica speaks", name)
	}
	require.Equal(c.t, 1, c.house.said(fmt.Sprintf("Worker %s (ID: %d) heartbeat is stale (", sensor.Name, sensor.ID)))
	require.Equal(c.t, 1,
		c.house.said(fmt.Sprintf("Worker %s (ID: %d) has no heartbeat, marking as inactive", never.Name, never.ID)))
	require.Positive(c.t, c.house.said("Deactivated "))
	for _, replica := range c.house.replicas {
		require.Equal(c.t, 1, strings.Count(replica.log.String(), "Starting worker heartbeat monitor..."))
		require.Contains(c.t, replica.log.String(),
			"Worker heartbeat monitor started (check interval: 0.3s, staleness threshold: 4s)")
	}

	steadily := func() int { return c.house.said("Worker " + steady.Name() + " ") }
	before := steadily() // nothing, unless its start took seconds
	c.disturb()
	c.await(func() bool {
		for _, id := range []int64{act.ID, sensor.ID} { // one statement locks both in any order
			testkit.Exec(c.t, c.store, `UPDATE worker SET last_heartbeat = now() WHERE id = $1`, id)
		}
		return is("active", act.ID, sensor.ID)()
	}, "they beat again, and are active again")
	for name, id := range map[string]int64{act.Name: act.ID, sensor.Name: sensor.ID} {
		c.await(func() bool { silent, back := said(name, id); return back > 0 && (silent == back || silent == back+1) },
			"of its return one replica speaks: %s", name)
	}
	require.Equal(c.t, "inactive", status(never.ID))
	if longest := gap(); longest < 4*time.Second { // on a machine that stood still it may have fallen silent
		require.NotEqual(c.t, "inactive", status(steady.ID()))
		require.Equal(c.t, before, steadily(), "one that beats is left alone; its heartbeats came within %s", longest)
	}
}

// heartbeats watches the heartbeats of a worker from now on. What it returns ends that, and says the longest
// time between two of them, by the database's clock.
func (c *scene) heartbeats(worker int64) func() time.Duration {
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

// Scenario 3: while no worker is there, what is requested fails at once, or waits
// where the setting says so, and runs when a worker comes. And where the setting
// says so, what ran at a worker that is gone counts as failed.
func TestScenario3AllWorkersAreDown(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "wait until work without workers is given up")
	h := &house{stage: newStage(t), disturb: func(testing.TB) {}}
	replica := h.serve(append(soon(), "ATTUNE__EXECUTOR__NO_WORKERS=fail", "ATTUNE__EXECUTOR__LOST_RUNNING=fail")...)
	c := h.scene(t, "down")
	act := testkit.Action(t, c.store, "down.act", unhurried)
	require.Equal(t, "failed 0", failsAtOnce(c, act.Ref), "there was never one")

	last := c.fake(false, testkit.FakeWorkerConfig{Behave: until(nil)})
	var running int64
	c.await(func() bool { // on a busy machine it may be taken for gone once more before it beats again
		running = c.request(act.Ref, 1)[0]
		return c.oneOf(running, attune.StatusRunning, attune.StatusFailed) == attune.StatusRunning
	}, "it runs")
	last.Kill()
	c.reach(attune.StatusFailed, running)
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
	time.Sleep(time.Second) // what must not happen now has no signal
	require.Equal(t, 3, c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'requested'`, waiting))
	c.fake(false, testkit.FakeWorkerConfig{})
	// Like existing workers it registers before it declares its queue: what it is
	// handed in between is returned, and repeated.
	c.await(func() bool {
		return c.count(`SELECT count(*) FROM execution WHERE coalesce(original_execution, id) = ANY ($1) AND status = 'completed' AND attempt = 1`, waiting) == len(waiting)
	}, "they are done")
	c.settled()
	c.requireTold(running)
	require.Zero(t, c.count(`SELECT count(*) FROM execution WHERE coalesce(original_execution, id) = ANY ($1) AND status <> 'completed'
		AND result->>'error' <> 'Worker unavailable: it has no queue to take the execution from'`, waiting), "nothing else became of them")
	h.close()
}

// failsAtOnce requests an execution that is to fail for want of workers, and
// returns how it went.
func failsAtOnce(c *scene, ref string) string {
	c.t.Helper()
	id := c.request(ref, 1)[0]
	c.reach(attune.StatusFailed, id)
	result := c.result(id)
	require.Equal(c.t, "no workers available", result["error"])
	require.Equal(c.t, "execution_scheduler", result["failed_by"])
	c.requireTold(id)
	return c.course(id)
}
