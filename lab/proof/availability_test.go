package proof

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// The five published scenarios of worker availability, on three replicas with all loops, with every connection cut
// in the middle of each:
//
//	1  a worker stops mid-execution       Scenario1
//	2  a worker never picks up            Scenario2
//	3  all workers are down               TestScenario3AllWorkersAreDown
//	4  a worker stops gracefully          Scenario4
//	5  a message expires in the queue     Scenario5
func published() map[string]func(*scenario) {
	return map[string]func(*scenario){
		"Scenario1AWorkerStopsMidExecution":           stopsMidExecution,
		"Scenario2AWorkerThatFencesNeverPicksUp":      neverPicksUp,
		"Scenario2AnExistingWorkerPicksUpTooLate":     picksUpTooLate,
		"Scenario4AWorkerStopsGracefully":             stopsGracefully,
		"Scenario5AMessageExpiresAtAWorkerThatFences": expiresAndMoves,
		"Scenario5AMessageExpiresAtAnExistingWorker":  expiresAndFails,
		"AWorkerThatWasTakenForDeadFinishes":          finishesAfterDeath,
		"AFrozenWorkerGoesOn":                         goesOn,
		"AWorkerForgetsTheTimeout":                    forgetsTheTimeout,
		"HeartbeatsEndAndResume":                      heartbeats,
	}
}

// TestThePublishedScenariosOfWorkerAvailability runs them side by side: all in the slow tests, six in the fast
// ones. Package engine runs the five published ones on one replica.
//
//nolint:tparallel // the scenes are parallel, one level further down
func TestThePublishedScenariosOfWorkerAvailability(t *testing.T) {
	t.Parallel()
	scenarios := map[string]func(*scenario){}
	for _, name := range testkit.Some(t, slices.Sorted(maps.Keys(published())), 3) {
		scenarios[name] = published()[name]
	}
	newCluster(newStage(t)).play(t, scenarios)
}

// Scenario 1; L4, upstream 33: the first sweep after the heartbeat of a killed worker is stale closes what it ran,
// and another worker runs the retry if the action allows one.
func stopsMidExecution(c *scenario) {
	once, repeated := c.action("once"), c.action("repeated", retries(1))
	doomed := c.startWorkerProcess("doomed")
	ids := append(c.request(once.Ref, 1), c.request(repeated.Ref, 1)...)
	c.begun(ids...)
	doomed.kill()
	c.disturb()
	c.startWorker("rescue")
	c.open()
	c.reach(lifecycle.StatusAbandoned, ids...)
	c.settled()
	require.Equal(c.t, "abandoned 1", c.attempts(ids[0]))
	require.Equal(c.t, "abandoned 1, completed 1", c.attempts(ids[1]))
	for _, id := range append(ids, c.retry(ids[1])) {
		require.Equal(c.t, 1, c.starts(id), "S2: the starts of execution %d", id)
		c.requireReported(id)
	}
	for _, id := range ids {
		require.Equal(c.t, "worker_gone abandoned", c.lost(id))
		require.Equal(c.t, "execution_timeout_monitor", c.result(id)["abandoned_by"])
		c.requireDecidedWithin(id)
	}
}

// requireDecidedWithin checks L4 by the database's clock: not before the worker's heartbeat is stale, and not long
// after it.
func (c *scenario) requireDecidedWithin(id int64) {
	c.t.Helper()
	var silent float64
	require.NoError(c.t, c.store.Pool().QueryRow(testkit.Context(c.t), `SELECT extract(epoch FROM e.finished_at - w.heartbeat_seen)::float8
		FROM execution e JOIN worker w ON w.id = e.worker WHERE e.id = $1`, id).Scan(&silent))
	require.GreaterOrEqual(c.t, silent, staleness.Seconds(), "not before its heartbeat is stale")
	require.Less(c.t, silent, staleness.Seconds()+30,
		"L4: within staleness and a sweep, and some time for a machine that is busy")
	c.t.Logf("decided %.2f s after the last heartbeat, %s are allowed before a sweep", silent, staleness)
}

// Scenario 2; upstream 18: a worker sends heartbeats and accepts work without starting it. The work moves to
// another worker in place, and the messages that the first one still has expire and are outdated (S2, L5). The
// timeout passes only after the other worker is active again: without a worker the engine would retry the work as
// a new row.
func neverPicksUp(c *scenario) {
	act := c.action("act")
	// Nothing expires before the sweep: the first decision counts.
	holder := c.fake(true, testkit.FakeWorkerConfig{Gate: make(chan struct{}), QueueTTL: 40 * time.Second})
	c.startWorker("rescue")
	let := c.cordoned("w-" + c.label + "-rescue")
	ids := c.request(act.Ref, 2)
	c.reach(lifecycle.StatusScheduled, ids...)
	c.open()
	let()
	before := c.connectionsOf("rescue")
	c.disturb()
	c.undisturbed(func() {
		c.awaitReconnect("rescue", before)
		testkit.Exec(c.t, c.store, `UPDATE action SET scheduled_timeout_seconds = 1 WHERE id = $1`, act.ID)
		c.await(func() bool {
			return c.count(`SELECT count(*) FROM lost_work WHERE execution = ANY ($1)`, ids) == len(ids)
		}, "both are taken away")
	})
	c.settled()
	for _, id := range ids {
		require.Equal(c.t, "completed 2", c.attempts(id), "in place")
		require.Equal(c.t, "scheduled_timeout moved", c.lost(id))
		require.Equal(c.t, 1, c.starts(id), "S2")
		c.requireReported(id)
	}
	require.Empty(c.t, holder.Runs())
	holder.Kill()
	c.await(func() bool {
		return c.count(
			`SELECT count(DISTINCT execution) FROM dead_letter WHERE execution = ANY ($1) AND decision = 'stale'`,
			ids) == len(ids)
	}, "the messages in its queue expire and are stale")
}

// Scenario 2, with an existing worker; upstream 11, 18, 32: it could still start its work. So the engine closes
// the row with the published words and retries the work as a new row. When the worker does start it, the engine
// refuses and stores what it writes (S8, S9).
func picksUpTooLate(c *scenario) {
	act := c.action("act")
	gate := make(chan struct{})
	late := c.fake(false, testkit.FakeWorkerConfig{Gate: gate})
	id := c.request(act.Ref, 1)[0]
	c.reach(lifecycle.StatusScheduled, id)
	// This worker could also get the retry, and time out again.
	testkit.Exec(c.t, c.store, `UPDATE worker SET cordoned = true WHERE id = $1`, late.ID)
	c.disturb()
	testkit.Exec(c.t, c.store, `UPDATE action SET scheduled_timeout_seconds = 2 WHERE id = $1`, act.ID)
	c.reach(lifecycle.StatusFailed, id)
	result := c.result(id)
	require.Regexp(c.t,
		`^Execution timeout: worker did not pick up task within 2 seconds \(scheduled for \d+ seconds\)$`,
		result["error"])
	require.Equal(c.t, "execution_timeout_monitor", result["failed_by"])
	require.Equal(c.t, "scheduled", result["original_status"])
	require.InDelta(c.t, 2, result["timeout_seconds"], 0)
	require.GreaterOrEqual(c.t, result["age_seconds"], float64(2))
	require.Equal(c.t, "scheduled_timeout failed", c.lost(id))
	c.requireReported(id)
	// A busy machine may need longer to start the retry.
	testkit.Exec(c.t, c.store, `UPDATE action SET scheduled_timeout_seconds = 60 WHERE id = $1`, act.ID)
	c.open()
	c.startWorker("rescue")
	c.settled()
	last := c.retry(id)
	require.Equal(c.t, 1, c.starts(last), "the retry ran at the other worker")

	close(gate)
	c.await(func() bool {
		return strings.Contains(c.late(id), "failed stays, not running") &&
			strings.Contains(c.late(id), "failed stays, not completed")
	}, "S9: both of its writes are refused and kept, and not: %s",
		lazily(func() string { return c.late(id) }))
	require.Equal(c.t, lifecycle.StatusFailed, testkit.StatusOf(c.t, c.store, id), "S8: it ended once")
	require.Equal(c.t, lifecycle.StatusCompleted, testkit.StatusOf(c.t, c.store, last))
	require.NotEmpty(c.t, late.Runs())
}

// Scenario 4; upstream 31: a worker that is asked to stop gets nothing new. Its running executions finish, although
// that takes longer than a heartbeat may be old, and another worker gets the unstarted ones.
func stopsGracefully(c *scenario) {
	act := c.action("act")
	leaver := c.startWorkerProcess("leaver", "ATTUNE__WORKER__MAX_CONCURRENT_TASKS=2",
		"ATTUNE__WORKER__SHUTDOWN_TIMEOUT=240s")
	ids := c.request(act.Ref, 4)
	running := func() int {
		return c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'running'`, ids)
	}
	c.await(func() bool {
		return running() == 2 &&
			c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'scheduled'`, ids) == 2
	},
		"two run, and two are unstarted")
	require.NoError(c.t, leaver.cmd.Process.Signal(syscall.SIGTERM))
	gone := `SELECT count(*) FROM worker WHERE name = 'w-' || $1 || '-leaver' AND (draining OR status = 'inactive')`
	c.await(func() bool { return c.count(gone, c.label) == 1 }, "it is marked as leaving")
	c.disturb()
	c.startWorker("other")
	fresh := c.request(act.Ref, 2)
	c.await(func() bool {
		return running() == 4 &&
			c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'running'`, fresh) == 2
	},
		"the other one runs new and unstarted executions")
	time.Sleep(staleness + time.Second) // no signal shows that something did not happen
	require.Equal(c.t, 4, running(), "a leaving worker is not presumed dead")
	c.open()
	c.await(func() bool { return leaver.ended() }, "it ends when its work has ended")
	require.Zero(c.t, leaver.cmd.ProcessState.ExitCode())
	c.settled()
	all, attempts := slices.Concat(ids, fresh), map[string]int{}
	for _, id := range all {
		attempts[c.attempts(id)]++
		require.Equal(c.t, 1, c.starts(id), "S2: the starts of execution %d", id)
		c.requireReported(id)
	}
	require.Equal(c.t, map[string]int{"completed 1": 4, "completed 2": 2}, attempts)
	require.Equal(c.t, 2, c.count(`SELECT count(*) FROM execution e JOIN worker w ON w.id = e.worker WHERE e.id = ANY ($1) AND w.name = 'w-' || $2 || '-leaver'`, all, c.label),
		"it finished what it had started, and got nothing more")
	require.Equal(c.t, 1,
		c.count(`SELECT count(*) FROM worker WHERE name = 'w-' || $1 || '-leaver' AND status = 'inactive'`, c.label))
	require.Equal(c.t, 0, c.cluster.logged(fmt.Sprintf("Worker w-%s-leaver", c.label)), "no replica presumed it dead")
}

// Scenario 5; S20, L5, upstream 1, 34: a message that expires in the queue of a worker becomes a dead letter, which
// is stored with its evidence, and another worker gets the execution in place.
func expiresAndMoves(c *scenario) {
	act := c.action("act")
	holder := c.fake(true,
		testkit.FakeWorkerConfig{Gate: make(chan struct{}), Prefetch: 1, QueueTTL: 1500 * time.Millisecond})
	ids := c.request(act.Ref, 3)
	c.reach(lifecycle.StatusScheduled, ids...)
	c.startWorker("rescue")
	c.disturb()
	c.open()
	var expired []int64
	c.await(func() bool {
		expired = c.among(ids, lifecycle.StatusCompleted)
		return len(expired) == 2
	}, "the two that it did not take expire, and run elsewhere")
	holder.Kill() // the broker requeues what it had accepted, and it expires there
	c.settled()
	for _, id := range ids {
		require.Regexp(c.t, `^completed [2-9]$`, c.attempts(id), "in place")
		require.Equal(c.t, 1, c.starts(id), "S2")
		c.requireReported(id)
	}
	require.Empty(c.t, holder.Runs())
	c.requireDeadLetters("retried", holder.ID, expired...)
}

// requireDeadLetters checks that a worker's dead letter with evidence and this decision was stored for each of these
// (S20).
func (c *scenario) requireDeadLetters(decision string, worker int64, ids ...int64) {
	c.t.Helper()
	for _, id := range ids {
		c.await(func() bool {
			return c.count(`SELECT count(*) FROM dead_letter WHERE execution = $1 AND worker = $2 AND reason = 'expired' AND decision = $3
				AND decided_by = 'dead_letter_handler' AND jsonb_array_length(x_death) > 0 AND length(body) > 0 AND attempt = 1 AND evidence->'execution'->>'status' = 'scheduled'
				AND evidence->'worker'->>'id' = $4 AND (evidence->'worker'->>'heartbeat_age_seconds')::float8 < 60`,
				id, worker, decision, strconv.FormatInt(worker, 10)) == 1
		}, "S20: the dead letter of execution %d is stored with its evidence: %s", id,
			lazily(func() string { return c.deadLetters("execution = " + strconv.FormatInt(id, 10)) }))
	}
}

// Scenario 5, with an existing worker; upstream 1, 34: it could still start an expired execution. So the engine ends
// the row with the published words, promotes the next queued execution, and retries the expired one as a new row.
func expiresAndFails(c *scenario) {
	act := c.action("act")
	testkit.Policy(c.t, c.store, act, 2)
	holder := c.fake(false, testkit.FakeWorkerConfig{Gate: make(chan struct{}), Prefetch: 1, QueueTTL: 3 * time.Second})
	ids := c.request(act.Ref, 3)
	c.await(func() bool {
		return c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND admitted_at IS NOT NULL`, ids) >= 2
	}, "two are dispatched")
	// Three replicas read the requests, in any order. The third may have a slot already, which expired at the worker.
	waits := c.stage.ids(`SELECT id FROM execution WHERE id = ANY ($1) ORDER BY admitted_at DESC NULLS FIRST LIMIT 1`, ids)
	dispatched := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return id == waits[0] })
	c.open()
	c.startWorker("rescue")
	c.disturb()
	var expired []int64
	c.await(func() bool {
		expired = c.among(dispatched, lifecycle.StatusFailed)
		return len(expired) == 1
	}, "the one that it did not take expires")
	result := c.result(expired[0])
	require.Equal(c.t, "Worker queue TTL expired", result["error"])
	require.Contains(c.t, result["message"], "Worker did not process execution within configured TTL")
	require.Equal(c.t, "dead_letter_handler", result["failed_by"])
	require.NotEmpty(c.t, result["expired_at"])
	require.Equal(c.t, "dead_letter failed", c.lost(expired[0]))
	c.requireDeadLetters("failed", holder.ID, expired...)
	c.await(func() bool { return testkit.StatusOf(c.t, c.store, waits[0]) != lifecycle.StatusRequested },
		"L3: the queued execution has its slot")
	holder.Kill()
	c.settled()
	for _, id := range ids {
		require.Regexp(c.t, `^(failed 1, ){0,3}completed 1$`, c.attempts(id))
	}
	for _, id := range dispatched {
		require.Contains(c.t, c.attempts(id), "failed 1, ", "its accepted execution expired, too")
	}
	require.Empty(c.t, holder.Runs())
	c.requireReported(append(ids, c.retry(dispatched[0]), c.retry(dispatched[1]))...)
}
