package scheduler_test

import (
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// announces adds this to the capabilities of a worker.
func announces(capacity int, more map[string]any) func(*testkit.WorkerRow) {
	return func(w *testkit.WorkerRow) {
		w.Capabilities = map[string]any{"runtimes": []string{"python3", "shell"}, "max_concurrent_executions": capacity}
		maps.Copy(w.Capabilities, more)
	}
}

func inZone(zone string) map[string]any {
	return map[string]any{"labels": map[string]any{"zone": zone}}
}

func (b *bundle) workerOf(t *testing.T, id int64) int64 {
	t.Helper()
	return int64(testkit.Count(t, b.store, `SELECT coalesce(worker, 0) FROM execution WHERE id = $1`, id))
}

func (b *bundle) text(t *testing.T, query string, args ...any) string {
	t.Helper()
	var text string
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), query, args...).Scan(&text))
	return text
}

// fill runs one batch for the queues with waiting executions.
func (b *bundle) fill(t *testing.T, replica *scheduler.Scheduler) scheduler.Result {
	t.Helper()
	ids := testkit.Column[int64](t, b.store.Pool(),
		`SELECT id FROM execution_admission_state WHERE queued_count > 0 ORDER BY id`)
	result, err := replica.Run(testkit.Context(t), scheduler.FillStep{Queues: ids})
	require.NoError(t, err)
	return result
}

// runtime gives an action the runtime python.
func (b *bundle) python(t *testing.T, action testkit.ActionRow, constraint string) {
	t.Helper()
	testkit.Exec(t, b.store, `INSERT INTO runtime (ref, name, aliases, distributions) VALUES ('core.python', 'Python', '{python3}', '{}')
		ON CONFLICT (ref) DO NOTHING`)
	testkit.Exec(t, b.store, `UPDATE action SET runtime = (SELECT id FROM runtime WHERE ref = 'core.python'),
		runtime_version_constraint = nullif($2, '') WHERE id = $1`, action.ID, constraint)
}

func TestAVersionConstraintChoosesTheWorker(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "old",
		announces(9, map[string]any{"runtime_versions": map[string]any{"python": []string{"3.9"}}}))
	found := testkit.Worker(t, b.store, "found", announces(9, map[string]any{
		"detected_interpreters": []any{map[string]any{
			"name": "python3", "path": "/usr/bin/python3",
			"version": "3.12.1",
		}},
	}))
	testkit.Worker(t, b.store, "silent about it", announces(9, nil))
	action := testkit.Action(t, b.store, "pk.new")
	b.python(t, action, ">=3.11,<4")
	ids := b.request(t, action, 3)
	require.Equal(t, scheduler.Result{Granted: 3}, b.dispatch(t, ids...))
	for _, id := range ids {
		require.Equal(t, found.ID, b.workerOf(t, id))
	}

	node := testkit.Action(t, b.store, "pk.node", func(r *testkit.ActionRow) {
		r.RequiredWorkerRuntimes = map[string]any{"nodejs": ">=20", "bash": "*"}
	})
	none := b.request(t, node, 1)[0]
	require.Equal(t, scheduler.Result{Ended: 1}, b.dispatch(t, none))
	require.Equal(t, "no compatible worker: 3 live workers lack the required runtime node >=20",
		b.text(t, `SELECT result->>'error' FROM execution WHERE id = $1 AND status = 'failed' AND result->>'message' = result->>'error'`, none))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

func TestTaintsSelectorsAndAffinityChooseTheWorker(t *testing.T) {
	b := setup(t)
	plain := testkit.Worker(t, b.store, "plain", announces(9, inZone("a")))
	gpu := testkit.Worker(t, b.store, "gpu", announces(9, map[string]any{
		"labels": map[string]any{"zone": "b", "gpu": "nvidia"},
		"taints": []any{map[string]any{"key": "gpu", "value": "true", "effect": "no_schedule"}},
	}))
	spot := testkit.Worker(t, b.store, "spot", announces(9, map[string]any{
		"labels": map[string]any{"zone": "b"},
		"taints": []any{map[string]any{"key": "spot", "effect": "prefer_no_schedule"}},
	}))
	place := func(ref string, change func(*testkit.ActionRow)) int64 {
		id := b.request(t, testkit.Action(t, b.store, ref, change), 1)[0]
		b.dispatch(t, id)
		return b.workerOf(t, id)
	}
	tolerant := []any{map[string]any{"key": "gpu", "operator": "equal", "value": "true"}}
	zoneB := map[string]any{"match_labels": map[string]any{"zone": "b"}}
	for ref, c := range map[string]struct {
		change func(*testkit.ActionRow)
		want   int64
	}{
		"pk.plain": {func(*testkit.ActionRow) {}, plain.ID}, // not the tainted one, and rather not the spot one
		"pk.gpu": {func(r *testkit.ActionRow) {
			r.WorkerSelector, r.WorkerTolerations = map[string]any{"gpu": "nvidia"}, tolerant
		}, gpu.ID},
		"pk.required": {
			func(r *testkit.ActionRow) { r.WorkerAffinity = map[string]any{"required": []any{zoneB}} },
			spot.ID,
		},
		"pk.anti": {func(r *testkit.ActionRow) {
			r.WorkerAffinity = map[string]any{"anti_affinity": []any{
				map[string]any{"match_expressions": []any{map[string]any{
					"key": "zone", "operator": "in",
					"values": []string{"a"},
				}}},
			}}
		}, spot.ID},
		"pk.preferred": {func(r *testkit.ActionRow) {
			r.WorkerTolerations = tolerant
			r.WorkerAffinity = map[string]any{"preferred": []any{
				map[string]any{"weight": 10, "preference": zoneB},
				map[string]any{"preference": map[string]any{"match_expressions": []any{map[string]any{
					"key":      "gpu",
					"operator": "exists",
				}}}},
			}}
		}, gpu.ID},
	} {
		require.Equal(t, c.want, place(ref, c.change), ref)
	}
	require.Zero(t,
		place("pk.untolerated", func(r *testkit.ActionRow) { r.WorkerSelector = map[string]any{"gpu": "nvidia"} }))
	require.Equal(t, "no compatible worker: 2 live workers lack the label gpu=nvidia; 1 has the taint gpu=true:no_schedule that is not tolerated",
		b.text(t, `SELECT result->>'error' FROM execution WHERE action_ref = 'pk.untolerated'`))
}

// The database's time decides whether a worker is alive. A worker's clock that is ahead changes
// nothing (upstream 17).
func TestOnlyLiveWorkersGetWork(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "stale", func(w *testkit.WorkerRow) { w.HeartbeatAge = 2 * time.Minute })
	testkit.Worker(t, b.store, "mute", func(w *testkit.WorkerRow) { w.NoHeartbeat = true })
	testkit.Worker(t, b.store, "cordoned", func(w *testkit.WorkerRow) { w.Cordoned = true })
	testkit.Worker(t, b.store, "draining", func(w *testkit.WorkerRow) { w.Draining = true })
	testkit.Worker(t, b.store, "inactive", func(w *testkit.WorkerRow) { w.Status = "inactive" })
	testkit.Worker(t, b.store, "sensor", func(w *testkit.WorkerRow) { w.Role = "sensor" })
	suspect := testkit.Worker(t, b.store, "suspect")
	testkit.Exec(t, b.store,
		`UPDATE worker SET suspect_since = now(), suspect_reason = 'no queue took it' WHERE id = $1`, suspect.ID)
	ahead := testkit.Worker(t, b.store, "ahead", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	ids := b.request(t, testkit.Action(t, b.store, "pk.a"), 3)
	require.Equal(t, scheduler.Result{Granted: 3}, b.dispatch(t, ids...))
	for _, id := range ids {
		require.Equal(t, ahead.ID, b.workerOf(t, id))
	}

	// Only the suspected one is left: it is waited for, and fails nothing.
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true WHERE id = $1`, ahead.ID)
	later := b.replica(t)
	more := b.request(t, testkit.Action(t, b.store, "pk.b"), 1)
	result, err := later.Run(testkit.Context(t), scheduler.FillStep{}, scheduler.NewRequestStep(more))
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Enqueued: 1}, result)
	require.Equal(t,
		"waiting for a worker: the fitting workers receive no work now: suspect is suspected (no queue took it)",
		b.text(t, `SELECT reason FROM admission_blocked`))
	testkit.Exec(t, b.store, `UPDATE worker SET suspect_since = NULL, suspect_reason = NULL WHERE id = $1`, suspect.ID)
	require.Equal(t, scheduler.Result{Granted: 1}, b.fill(t, b.replica(t)))
	require.Equal(t, suspect.ID, b.workerOf(t, more[0]))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

func TestAnExecutionMayAskForAnotherWorkerThanItsAction(t *testing.T) {
	b := setup(t)
	here := testkit.Worker(t, b.store, "here", announces(9, inZone("a")))
	there := testkit.Worker(t, b.store, "there", announces(9, inZone("b")))
	action := testkit.Action(t, b.store, "pk.a",
		func(r *testkit.ActionRow) { r.WorkerSelector = map[string]any{"zone": "a"} })
	ids := b.request(t, action, 4)
	testkit.Exec(t, b.store, `UPDATE execution SET worker_selector = '{"zone": "b"}' WHERE id = $1`, ids[1])
	testkit.Exec(t, b.store, `UPDATE execution SET worker_selector = 'null', worker_affinity = 'null' WHERE id = $1`,
		ids[2])
	testkit.Exec(t, b.store, `UPDATE execution SET worker_selector = '{}', worker_affinity = $2 WHERE id = $1`, ids[3],
		`{"required": [{"match_labels": {"zone": "b"}}]}`)
	require.Equal(t, scheduler.Result{Granted: 4}, b.dispatch(t, ids...))
	for i, want := range []int64{here.ID, there.ID, here.ID, there.ID} {
		require.Equal(t, want, b.workerOf(t, ids[i]), "execution %d", i)
	}
}

// repeats makes an execution a retry of another that avoids workers.
func (b *bundle) repeats(t *testing.T, id, failed int64, avoid ...int64) {
	t.Helper()
	testkit.Exec(t, b.store, `UPDATE execution SET retry_count = 1, original_execution = $2 WHERE id = $1`, id, failed)
	testkit.Exec(t, b.store, `INSERT INTO execution_retry (failed, execution, reason, due, waiting, avoid)
		VALUES ($2, $1, 'unknown', now(), false, $3)`, id, failed, avoid)
}

// A retry avoids the worker on which it failed, then that worker's host,
// and waits for another rather than go back.
func TestARetryAvoidsWorkersAndTheirHosts(t *testing.T) {
	b := setup(t)
	failed := testkit.Worker(t, b.store, "w1", announces(9, nil))
	beside := testkit.Worker(t, b.store, "w2", announces(9, nil))
	elsewhere := testkit.Worker(t, b.store, "w3", announces(1, nil))
	testkit.Exec(t, b.store, `UPDATE worker SET host = CASE WHEN id = $1 THEN 'h2' ELSE 'h1' END`, elsewhere.ID)
	action := testkit.Action(t, b.store, "pk.a")
	first := b.request(t, action, 6)
	b.finish(t, lifecycle.StatusFailed, first...)
	ids := b.request(t, action, 5)
	for i, id := range ids {
		b.repeats(t, id, first[i], failed.ID)
	}
	require.Equal(t, scheduler.Result{Granted: 3, Enqueued: 1}, b.dispatch(t, ids[:4]...), "one, and the headroom")
	for _, id := range ids[:3] {
		require.Equal(t, elsewhere.ID, b.workerOf(t, id))
	}
	require.Equal(t, "waiting for a worker: the only fitting worker on which it has not failed is busy",
		b.text(t, `SELECT reason FROM admission_blocked`))
	require.Regexp(t, `^/[0-7]$`, b.text(t, `SELECT need FROM admission_blocked`))

	// It is dispatched as soon as that worker has capacity.
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, ids[0]))
	require.Equal(t, elsewhere.ID, b.workerOf(t, ids[3]))

	// Without another host it is another worker, and without another worker the same.
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true WHERE id = $1`, elsewhere.ID)
	later := b.replica(t)
	result, err := later.Run(testkit.Context(t), scheduler.NewRequestStep(ids[4:]))
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Granted: 1}, result)
	require.Equal(t, beside.ID, b.workerOf(t, ids[4]))
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true WHERE id = $1`, beside.ID)
	last := b.request(t, action, 1)
	b.repeats(t, last[0], first[5], failed.ID)
	result, err = b.replica(t).Run(testkit.Context(t), scheduler.NewRequestStep(last))
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Granted: 1}, result)
	require.Equal(t, failed.ID, b.workerOf(t, last[0]))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// A waiting execution is dispatched when any fitting worker has capacity again, whichever queue released it.
// Executions for other workers do not delay it.
func TestWaitingExecutionsAreDispatchedToAnyFittingWorker(t *testing.T) {
	b := setup(t)
	left := testkit.Worker(t, b.store, "left", announces(1, inZone("a")))
	right := testkit.Worker(t, b.store, "right", announces(1, inZone("b")))
	filler := testkit.Action(t, b.store, "pk.filler")
	full := b.request(t, filler, 6)
	require.Equal(t, scheduler.Result{Granted: 6}, b.dispatch(t, full...))
	inA := testkit.Action(t, b.store, "pk.a",
		func(r *testkit.ActionRow) { r.WorkerSelector = map[string]any{"zone": "a"} })
	anywhere := testkit.Action(t, b.store, "pk.any")
	waitsA, waitsAny := b.request(t, inA, 1)[0], b.request(t, anywhere, 1)[0]
	require.Equal(t, scheduler.Result{Enqueued: 2}, b.dispatch(t, waitsA, waitsAny))

	end := func(worker int64) scheduler.Result {
		id := int64(testkit.Count(t, b.store,
			`SELECT min(id) FROM execution WHERE worker = $1 AND status = 'scheduled'`, worker))
		b.finish(t, lifecycle.StatusCompleted, id)
		result, err := b.scheduler.Run(testkit.Context(t), scheduler.NewReleaseStep([]int64{id}), scheduler.FillStep{})
		require.NoError(t, err)
		return result
	}
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, end(right.ID))
	require.Equal(t, right.ID, b.workerOf(t, waitsAny), "the head of the queue cannot use it")
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, end(left.ID))
	require.Equal(t, left.ID, b.workerOf(t, waitsA))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// A worker that is only away is waited for, if the operator says so (upstream 14).
func TestAnAbsentWorkerThatWouldFitIsWaitedFor(t *testing.T) {
	b := setup(t, func(c *scheduler.Config) { c.WaitForWorkers = true })
	testkit.Worker(t, b.store, "other", announces(9, nil))
	able := testkit.Worker(t, b.store, "able", announces(9, inZone("a")),
		func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour })
	action := testkit.Action(t, b.store, "pk.a",
		func(r *testkit.ActionRow) { r.WorkerSelector = map[string]any{"zone": "a"} })
	ids := b.request(t, action, 2)
	require.Equal(t, scheduler.Result{Enqueued: 2}, b.dispatch(t, ids...))
	const reason = "no workers available that fit: able would fit but is silent; 1 live worker lacks the label zone=a"
	require.Equal(t, reason, b.text(t, `SELECT reason FROM admission_blocked`))

	// With the setting not to wait for workers it fails, with the same text.
	hasty := b.replica(t)
	other := b.request(t, testkit.Action(t, b.store, "pk.b",
		func(r *testkit.ActionRow) { r.WorkerSelector = map[string]any{"zone": "a"} }), 1)
	result, err := hasty.Run(testkit.Context(t), scheduler.NewRequestStep(other))
	require.NoError(t, err)
	require.Equal(t, 1, result.Ended)
	require.Equal(t, reason,
		b.text(t, `SELECT result->>'error' FROM execution WHERE id = $1 AND status = 'failed'`, other[0]))

	// An execution that no worker could ever run fails under both settings.
	never := b.request(t, testkit.Action(t, b.store, "pk.c",
		func(r *testkit.ActionRow) { r.WorkerSelector = map[string]any{"zone": "z"} }), 1)
	require.Equal(t, scheduler.Result{Ended: 1}, b.dispatch(t, never...))

	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now() WHERE id = $1`, able.ID)
	patient := b.replica(t, func(c *scheduler.Config) { c.WaitForWorkers = true })
	require.Equal(t, scheduler.Result{Granted: 2}, b.fill(t, patient))
	require.Equal(t, able.ID, b.workerOf(t, ids[0]))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// An invalid placement field fails its execution only, with a text that names the field.
func TestBadPlacementFieldsFailTheirExecutionOnly(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	bad := testkit.Action(t, b.store, "pk.bad",
		func(r *testkit.ActionRow) { r.WorkerAffinity = map[string]any{"required": "all"} })
	good := testkit.Action(t, b.store, "pk.good")
	versioned := testkit.Action(t, b.store, "pk.version")
	b.python(t, versioned, "newest")
	ids := append(b.request(t, bad, 2), b.request(t, good, 2)...)
	ids = append(ids, b.request(t, versioned, 1)...)
	testkit.Exec(t, b.store, `UPDATE execution SET worker_affinity = '{}' WHERE id = $1`, ids[1])
	testkit.Exec(t, b.store, `UPDATE execution SET worker_tolerations = '{"key": "gpu"}' WHERE id = $1`, ids[3])
	require.Equal(t, scheduler.Result{Granted: 2, Ended: 3}, b.dispatch(t, ids...))
	reason := func(id int64) string {
		return b.text(t, `SELECT status::text || ': ' || coalesce(result->>'error', '') FROM execution WHERE id = $1`,
			id)
	}
	require.Contains(t, reason(ids[0]),
		"failed: no worker fits: action.worker_affinity: it must be an object of required, preferred and anti_affinity")
	require.Equal(t, "scheduled: ", reason(ids[1]), "it replaces the requirement of its action")
	require.Equal(t, "scheduled: ", reason(ids[2]))
	require.Contains(t, reason(ids[3]),
		"failed: no worker fits: execution.worker_tolerations: it must be a list of tolerations")
	require.Contains(t, reason(ids[4]),
		`failed: no worker fits: action.runtime_version_constraint: "newest" is not a version constraint`)
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// Workers and their capabilities are read once a second, not for every batch (upstream 16). A new worker waits that
// long.
func TestWorkersAreNotReadForEveryBatch(t *testing.T) {
	var moment atomic.Int64
	b := setup(t, func(c *scheduler.Config) { c.Now = func() time.Time { return time.Unix(moment.Load(), 0) } })
	moment.Store(1_000_000)
	known := testkit.Worker(t, b.store, "known", announces(9, nil))
	ids := b.request(t, testkit.Action(t, b.store, "pk.a"), 3)
	b.dispatch(t, ids[0])
	idle := testkit.Worker(t, b.store, "new", announces(9, nil))
	b.dispatch(t, ids[1])
	moment.Add(2)
	b.dispatch(t, ids[2])
	require.Equal(t, []int64{known.ID, known.ID, idle.ID},
		[]int64{b.workerOf(t, ids[0]), b.workerOf(t, ids[1]), b.workerOf(t, ids[2])})
}
