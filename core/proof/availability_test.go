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

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/testkit"
)

// The five published scenarios of worker availability, on three replicas that all
// run all of their loops, with every connection cut in the middle of each:
//
//	1  a worker stops mid-execution       Scenario1
//	2  a worker never picks up            Scenario2
//	3  all workers are down               TestScenario3AllWorkersAreDown
//	4  a worker stops gracefully          Scenario4
//	5  a message expires in the queue     Scenario5
func published() map[string]func(*scene) {
	return map[string]func(*scene){
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

// TestThePublishedScenariosOfWorkerAvailability plays them side by side: the long course
// all, the short one six. Package engine has the five published ones on one replica.
//
//nolint:tparallel // the scenes are parallel, one level further down
func TestThePublishedScenariosOfWorkerAvailability(t *testing.T) {
	t.Parallel()
	scenes := map[string]func(*scene){}
	for _, name := range testkit.Some(t, slices.Sorted(maps.Keys(published())), 3) {
		scenes[name] = published()[name]
	}
	newHouse(newStage(t)).play(t, scenes)
}

// Scenario 1; L4, upstream 33: what runs at a worker that is killed is decided
// when its heartbeat is stale, and by the next sweep, and repeated elsewhere if its
// action allows it.
func stopsMidExecution(c *scene) {
	once, repeated := c.action("once"), c.action("repeated", retries(1))
	doomed := c.employ("doomed")
	ids := append(c.request(once.Ref, 1), c.request(repeated.Ref, 1)...)
	c.begun(ids...)
	doomed.kill()
	c.disturb()
	c.hire("rescue")
	c.open()
	c.reach(attune.StatusAbandoned, ids...)
	c.settled()
	require.Equal(c.t, "abandoned 1", c.course(ids[0]))
	require.Equal(c.t, "abandoned 1, completed 1", c.course(ids[1]))
	for _, id := range append(ids, c.repetition(ids[1])) {
		require.Equal(c.t, 1, c.starts(id), "S2: the starts of execution %d", id)
		c.requireTold(id)
	}
	for _, id := range ids {
		require.Equal(c.t, "worker_gone abandoned", c.lost(id))
		require.Equal(c.t, "execution_timeout_monitor", c.result(id)["abandoned_by"])
		c.requireDecidedWithin(id)
	}
}

// requireDecidedWithin checks L4 by the database's clock: not before the heartbeat
// of the worker is stale, and not long after it.
func (c *scene) requireDecidedWithin(id int64) {
	c.t.Helper()
	var silent float64
	require.NoError(c.t, c.store.Pool().QueryRow(testkit.Context(c.t), `SELECT extract(epoch FROM e.finished_at - w.heartbeat_seen)::float8
		FROM execution e JOIN worker w ON w.id = e.worker WHERE e.id = $1`, id).Scan(&silent))
	require.GreaterOrEqual(c.t, silent, staleness.Seconds(), "not before its heartbeat is stale")
	require.Less(c.t, silent, staleness.Seconds()+15,
		"L4: within staleness and a sweep, and some time for a machine that is busy")
	c.t.Logf("decided %.2f s after the last heartbeat, %s are allowed before a sweep", silent, staleness)
}

// Scenario 2; upstream 18: a worker lives, beats, takes what it is handed and never
// begins it. It loses it in place to another one, and what it still has of it
// expires and is stale (S2, L5). Its time is over when the other one is there and
// hears again: with nobody to take it, it would be repeated as a new row.
func neverPicksUp(c *scene) {
	act := c.action("act", unhurried)
	// Nothing expires before the sweep has come: the first decision counts.
	holder := c.fake(true, testkit.FakeWorkerConfig{Gate: make(chan struct{}), QueueTTL: 20 * time.Second})
	c.hire("rescue")
	let := c.cordoned("w-" + c.label + "-rescue")
	ids := c.request(act.Ref, 2)
	c.reach(attune.StatusScheduled, ids...)
	c.open()
	let()
	before := c.connectionsOf("rescue")
	c.disturb()
	c.undisturbed(func() {
		c.hearsAgain("rescue", before)
		testkit.Exec(c.t, c.store, `UPDATE action SET scheduled_timeout_seconds = 1 WHERE id = $1`, act.ID)
		c.await(func() bool {
			return c.count(`SELECT count(*) FROM lost_work WHERE execution = ANY ($1)`, ids) == len(ids)
		}, "both are taken away")
	})
	c.settled()
	for _, id := range ids {
		require.Equal(c.t, "completed 2", c.course(id), "in place")
		require.Equal(c.t, "scheduled_timeout moved", c.lost(id))
		require.Equal(c.t, 1, c.starts(id), "S2")
		c.requireTold(id)
	}
	require.Empty(c.t, holder.Runs())
	holder.Kill()
	c.await(func() bool {
		return c.count(
			`SELECT count(DISTINCT execution) FROM dead_letter WHERE execution = ANY ($1) AND decision = 'stale'`,
			ids) == len(ids)
	}, "what lay there expires and is stale")
}

// Scenario 2, with an existing worker; upstream 11, 18, 32: it could begin its work
// yet, so that its row is closed with the published words and the work is repeated
// as a new row. When it does begin at last, what it writes is refused and kept (S8,
// S9).
func picksUpTooLate(c *scene) {
	act := c.action("act")
	gate := make(chan struct{})
	late := c.fake(false, testkit.FakeWorkerConfig{Gate: gate})
	id := c.request(act.Ref, 1)[0]
	c.reach(attune.StatusScheduled, id)
	// The repetition is for the other worker: on a busy machine this one could be given it, too, and time out again.
	testkit.Exec(c.t, c.store, `UPDATE worker SET cordoned = true WHERE id = $1`, late.ID)
	c.disturb()
	c.reach(attune.StatusFailed, id)
	result := c.result(id)
	require.Regexp(c.t,
		`^Execution timeout: worker did not pick up task within 2 seconds \(scheduled for \d+ seconds\)$`,
		result["error"])
	require.Equal(c.t, "execution_timeout_monitor", result["failed_by"])
	require.Equal(c.t, "scheduled", result["original_status"])
	require.InDelta(c.t, 2, result["timeout_seconds"], 0)
	require.GreaterOrEqual(c.t, result["age_seconds"], float64(2))
	require.Equal(c.t, "scheduled_timeout failed", c.lost(id))
	c.requireTold(id)
	// A busy machine may need longer to begin the repetition.
	testkit.Exec(c.t, c.store, `UPDATE action SET scheduled_timeout_seconds = 60 WHERE id = $1`, act.ID)
	c.open()
	c.hire("rescue")
	c.settled()
	last := c.repetition(id)
	require.Equal(c.t, 1, c.starts(last), "the repetition ran at the other worker")

	close(gate)
	c.await(func() bool {
		return strings.Contains(c.late(id), "failed stays, not running") &&
			strings.Contains(c.late(id), "failed stays, not completed")
	}, "S9: both of its writes are refused and kept, and not: %s",
		lazily(func() string { return c.late(id) }))
	require.Equal(c.t, attune.StatusFailed, testkit.StatusOf(c.t, c.store, id), "S8: it ended once")
	require.Equal(c.t, attune.StatusCompleted, testkit.StatusOf(c.t, c.store, last))
	require.NotEmpty(c.t, late.Runs())
}

// Scenario 4; upstream 31: a worker that is asked to stop is given nothing new.
// What it runs ends by itself although that takes longer than a silent worker has,
// and what it has not begun goes to another one.
func stopsGracefully(c *scene) {
	act := c.action("act")
	leaver := c.employ("leaver", "ATTUNE__WORKER__MAX_CONCURRENT_TASKS=2", "ATTUNE__WORKER__SHUTDOWN_TIMEOUT=60s")
	ids := c.request(act.Ref, 4)
	running := func() int {
		return c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'running'`, ids)
	}
	c.await(func() bool {
		return running() == 2 &&
			c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'scheduled'`, ids) == 2
	},
		"two run, and two lie there")
	require.NoError(c.t, leaver.cmd.Process.Signal(syscall.SIGTERM))
	gone := `SELECT count(*) FROM worker WHERE name = 'w-' || $1 || '-leaver' AND (draining OR status = 'inactive')`
	c.await(func() bool { return c.count(gone, c.label) == 1 }, "it says that it leaves")
	c.disturb()
	c.hire("other")
	fresh := c.request(act.Ref, 2)
	c.await(func() bool {
		return running() == 4 &&
			c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'running'`, fresh) == 2
	},
		"the other one takes what it had not begun, and what is new")
	time.Sleep(staleness + time.Second) // what must not happen now has no signal
	require.Equal(c.t, 4, running(), "a worker that leaves is not taken for a dead one")
	c.open()
	c.await(func() bool { return leaver.ended() }, "it ends when its work has ended")
	require.Zero(c.t, leaver.cmd.ProcessState.ExitCode())
	c.settled()
	all, courses := slices.Concat(ids, fresh), map[string]int{}
	for _, id := range all {
		courses[c.course(id)]++
		require.Equal(c.t, 1, c.starts(id), "S2: the starts of execution %d", id)
		c.requireTold(id)
	}
	require.Equal(c.t, map[string]int{"completed 1": 4, "completed 2": 2}, courses)
	require.Equal(c.t, 2, c.count(`SELECT count(*) FROM execution e JOIN worker w ON w.id = e.worker WHERE e.id = ANY ($1) AND w.name = 'w-' || $2 || '-leaver'`, all, c.label),
		"it ended what it had begun, and was given nothing more")
	require.Equal(c.t, 1,
		c.count(`SELECT count(*) FROM worker WHERE name = 'w-' || $1 || '-leaver' AND status = 'inactive'`, c.label))
	require.Equal(c.t, 0, c.house.said(fmt.Sprintf("Worker w-%s-leaver", c.label)), "nobody took it for gone")
}

// Scenario 5; S20, L5, upstream 1, 34: what expires in the queue of a worker becomes
// a dead letter, which is stored with its evidence, and another worker gets the
// execution in place.
func expiresAndMoves(c *scene) {
	act := c.action("act", unhurried)
	holder := c.fake(true,
		testkit.FakeWorkerConfig{Gate: make(chan struct{}), Prefetch: 1, QueueTTL: 1500 * time.Millisecond})
	ids := c.request(act.Ref, 3)
	c.reach(attune.StatusScheduled, ids...)
	c.hire("rescue")
	c.disturb()
	c.open()
	var expired []int64
	c.await(func() bool {
		expired = c.among(ids, attune.StatusCompleted)
		return len(expired) == 2
	}, "the two that it did not take expire, and run elsewhere")
	holder.Kill() // and what it had taken returns to its queue, and expires there
	c.settled()
	for _, id := range ids {
		require.Regexp(c.t, `^completed [2-9]$`, c.course(id), "in place")
		require.Equal(c.t, 1, c.starts(id), "S2")
		c.requireTold(id)
	}
	require.Empty(c.t, holder.Runs())
	c.requireLetters("retried", holder.ID, expired...)
}

// requireLetters asks that for each of these a letter of a worker was stored with
// its evidence and decided so (S20).
func (c *scene) requireLetters(decision string, worker int64, ids ...int64) {
	c.t.Helper()
	for _, id := range ids {
		c.await(func() bool {
			return c.count(`SELECT count(*) FROM dead_letter WHERE execution = $1 AND worker = $2 AND reason = 'expired' AND decision = $3
				AND decided_by = 'dead_letter_handler' AND jsonb_array_length(x_death) > 0 AND length(body) > 0 AND attempt = 1 AND evidence->'execution'->>'status' = 'scheduled'
				AND evidence->'worker'->>'id' = $4 AND (evidence->'worker'->>'heartbeat_age_seconds')::float8 < 60`,
				id, worker, decision, strconv.FormatInt(worker, 10)) == 1
		}, "S20: the letter of execution %d is stored with its evidence: %s", id,
			lazily(func() string { return c.letters("execution = " + strconv.FormatInt(id, 10)) }))
	}
}

// Scenario 5, with an existing worker; upstream 1, 34: it could begin what has
// expired, for all that the engine knows, so that its row is closed in the published
// words. Its slot goes to who waits for it, and the work is repeated as a new row.
func expiresAndFails(c *scene) {
	act := c.action("act", unhurried)
	testkit.Policy(c.t, c.store, act, 2)
	holder := c.fake(false, testkit.FakeWorkerConfig{Gate: make(chan struct{}), Prefetch: 1, QueueTTL: 3 * time.Second})
	ids := c.request(act.Ref, 3)
	var waits []int64 // three replicas take the requests, in any order
	c.await(func() bool {
		waits = c.among(ids, attune.StatusRequested)
		return len(waits) == 1
	}, "two are handed over")
	handed := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return id == waits[0] })
	c.open()
	c.hire("rescue")
	c.disturb()
	var expired []int64
	c.await(func() bool {
		expired = c.among(handed, attune.StatusFailed)
		return len(expired) == 1
	}, "the one that it did not take expires")
	result := c.result(expired[0])
	require.Equal(c.t, "Worker queue TTL expired", result["error"])
	require.Contains(c.t, result["message"], "Worker did not process execution within configured TTL")
	require.Equal(c.t, "dead_letter_handler", result["failed_by"])
	require.NotEmpty(c.t, result["expired_at"])
	require.Equal(c.t, "dead_letter failed", c.lost(expired[0]))
	c.requireLetters("failed", holder.ID, expired...)
	c.await(func() bool { return testkit.StatusOf(c.t, c.store, waits[0]) != attune.StatusRequested },
		"L3: who waited has its slot")
	holder.Kill()
	c.settled()
	for _, id := range ids {
		require.Regexp(c.t, `^(failed 1, ){0,3}completed 1$`, c.course(id))
	}
	for _, id := range handed {
		require.Contains(c.t, c.course(id), "failed 1, ", "what it had taken expired, too")
	}
	require.Empty(c.t, holder.Runs())
	c.requireTold(append(ids, c.repetition(handed[0]), c.repetition(handed[1]))...)
}
