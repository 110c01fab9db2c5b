package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

func (b *bundle) run(t *testing.T, steps ...scheduler.Step) scheduler.Result {
	t.Helper()
	result, err := b.scheduler.Run(testkit.Context(t), steps...)
	require.NoError(t, err)
	return result
}

// nudge delivers a request once more and runs the batches that it leads to.
func (b *bundle) nudge(t *testing.T, id int64) scheduler.Result {
	t.Helper()
	result := b.dispatch(t, id)
	for len(result.Unfilled) > 0 {
		next := b.run(t, scheduler.FillStep{Queues: result.Unfilled})
		next.Granted += result.Granted
		result = next
	}
	return result
}

func (b *bundle) requestWith(t *testing.T, action testkit.ActionRow, change func(*testkit.ExecutionRow)) int64 {
	t.Helper()
	return testkit.Execution(t, b.store, action, change).ID
}

// result reads one field of an execution's result.
func (b *bundle) result(t *testing.T, id int64, field string) string {
	t.Helper()
	var text string
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
		`SELECT coalesce(result ->> $2, '') FROM execution WHERE id = $1`, id, field).Scan(&text))
	return text
}

func (b *bundle) quiet(t *testing.T) {
	t.Helper()
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// upstream 29, S3 and S4: a pack policy is one limit over all actions of the
// pack; its slots go to the executions in the order in which they began to wait,
// whatever their action; a slot of each limit that applies, all or none.
func TestS3S4PackAndGlobalLimitsAreSharedAndServedByTicket(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(100) })
	one, two := testkit.Action(t, b.store, "pk.one"), testkit.Action(t, b.store, "pk.two")
	other := testkit.Action(t, b.store, "elsewhere.a")
	testkit.Policy(t, b.store, one, 2, testkit.OfPack(one))
	testkit.Policy(t, b.store, one, 3, testkit.Global)
	testkit.Policy(t, b.store, one, 1) // its own limit is narrower still

	var ids []int64
	for range 3 {
		ids = append(ids, b.request(t, one, 1)[0], b.request(t, two, 1)[0])
	}
	// one, two | one(2) one(3) wait for their own slot, two(2) two(3) for the pack's
	require.Equal(t, scheduler.Result{Granted: 2, Enqueued: 4}, b.dispatch(t, ids...))
	free := b.request(t, other, 2)
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 1}, b.dispatch(t, free...), "three of everything")
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT active_count FROM admission_scope WHERE kind = 'pack'`))
	require.Equal(t, 3, testkit.Count(t, b.store, `SELECT active_count FROM admission_scope WHERE kind = 'global'`))
	require.Equal(t, 5, testkit.Count(t, b.store, `SELECT count(*) FROM execution_slot`))
	b.quiet(t)

	// The released slot of the pack goes to the execution that has waited longest for it
	// and can use it: pk.one is full, so the next of pk.two.
	b.finish(t, lifecycle.StatusCompleted, ids[1])
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, ids[1]))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[3]))
	// When pk.one releases its slot, its own next execution has waited longer than pk.two's.
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, ids[0]))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[2]))
	// S7: the same completions again, and nothing moves.
	require.Equal(t, scheduler.Result{}, b.complete(t, ids[0], ids[1]))
	// The global slot of elsewhere.a goes to its own second, the only one that the
	// pack's limit does not keep.
	b.finish(t, lifecycle.StatusCompleted, free[0])
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, free[0]))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, free[1]))
	b.quiet(t)

	// Everything ends and nothing is left of any limit.
	all := append(append([]int64{}, ids...), free...)
	for range all {
		testkit.Exec(t, b.store, `UPDATE execution SET status = 'completed' WHERE status = 'scheduled'`)
		b.complete(t, all...)
	}
	require.Equal(t, len(all), testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'completed'`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution_slot`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM admission_blocked`))
	b.quiet(t)
}

// S4: a queue that another transaction holds keeps its turn at a shared limit. A later request waits,
// and one more batch runs.
func TestS4ALockedQueueKeepsItsPlaceAtASharedLimit(t *testing.T) {
	rechecks := 0
	b := setup(t, func(c *scheduler.Config) { c.Recheck = func() { rechecks++ } })
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(100) })
	first, one, two := testkit.Action(t, b.store, "pk.first"), testkit.Action(t, b.store, "pk.one"),
		testkit.Action(t, b.store, "pk.two")
	testkit.Policy(t, b.store, first, 1, testkit.OfPack(first))
	runs, waits := b.request(t, first, 1)[0], b.request(t, one, 1)[0]
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 1}, b.dispatch(t, runs, waits))
	later := b.request(t, two, 1)[0]
	b.finish(t, lifecycle.StatusCompleted, runs)

	held := testkit.Begin(t, b.store)
	defer func() { _ = held.Rollback(testkit.Context(t)) }() // the pool waits for it
	_, err := held.Exec(testkit.Context(t), `SELECT FROM execution_admission_state WHERE action_id = $1 FOR UPDATE`,
		one.ID)
	require.NoError(t, err)
	// A replica that has read no rule yet.
	b.scheduler = b.replica(t, func(c *scheduler.Config) { c.Recheck = func() { rechecks++ } })
	require.Equal(t, scheduler.Result{Released: 1, Enqueued: 1}, b.run(t, scheduler.NewReleaseStep([]int64{runs}),
		scheduler.FillStep{}, scheduler.NewRequestStep([]int64{later})))
	require.Equal(t, scheduler.Result{}, b.run(t, scheduler.FillStep{}), "it is held still")
	require.Equal(t, 2, rechecks, "each batch has another one tried")
	require.NoError(t, held.Rollback(testkit.Context(t)))

	require.Equal(t, scheduler.Result{Granted: 1}, b.run(t, scheduler.FillStep{}))
	require.Equal(t, []lifecycle.Status{lifecycle.StatusScheduled, lifecycle.StatusRequested},
		b.statuses(t, []int64{waits, later}))
	b.finish(t, lifecycle.StatusCompleted, waits)
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, waits))
	b.quiet(t)
}

// S4: the same before a queue that is free and began to wait later.
func TestS4ALockedQueueGoesBeforeQueuesThatWaitedLess(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(100) })
	first, one, two := testkit.Action(t, b.store, "pk.first"), testkit.Action(t, b.store, "pk.one"),
		testkit.Action(t, b.store, "pk.two")
	testkit.Policy(t, b.store, first, 1, testkit.OfPack(first))
	runs, waits, later := b.request(t, first, 1)[0], b.request(t, one, 1)[0], b.request(t, two, 1)[0]
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 2}, b.dispatch(t, runs, waits, later))
	b.finish(t, lifecycle.StatusCompleted, runs)

	held := testkit.Begin(t, b.store)
	defer func() { _ = held.Rollback(testkit.Context(t)) }() // the pool waits for it
	_, err := held.Exec(testkit.Context(t), `SELECT FROM execution_admission_state WHERE action_id = $1 FOR UPDATE`,
		one.ID)
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Released: 1}, b.complete(t, runs))
	require.NoError(t, held.Rollback(testkit.Context(t)))
	require.Equal(t, scheduler.Result{Granted: 1}, b.run(t, scheduler.FillStep{}))
	require.Equal(t, []lifecycle.Status{lifecycle.StatusScheduled, lifecycle.StatusRequested},
		b.statuses(t, []int64{waits, later}))
}

// Every waiting execution of a held queue that has a free slot keeps its turn, not only the first.
func TestS4EveryHeadOfAHeldQueueKeepsItsTurn(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(100) })
	first, one, two := testkit.Action(t, b.store, "pk.first"), testkit.Action(t, b.store, "pk.one"),
		testkit.Action(t, b.store, "pk.two")
	testkit.Policy(t, b.store, first, 4, testkit.OfPack(first))
	testkit.Policy(t, b.store, one, 2)
	run := b.request(t, first, 4)
	require.Equal(t, scheduler.Result{Granted: 4}, b.dispatch(t, run...))
	waiting := b.request(t, one, 3) // the third has no free slot of its own queue
	require.Equal(t, scheduler.Result{Enqueued: 3}, b.dispatch(t, waiting...))
	b.finish(t, lifecycle.StatusCompleted, run...)

	held := testkit.Begin(t, b.store)
	defer func() { _ = held.Rollback(testkit.Context(t)) }() // the pool waits for it
	_, err := held.Exec(testkit.Context(t), `SELECT FROM execution_admission_state WHERE action_id = $1 FOR UPDATE`,
		one.ID)
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Released: 4, Granted: 2, Enqueued: 1}, b.run(t, scheduler.NewReleaseStep(run),
		scheduler.FillStep{}, scheduler.NewRequestStep(b.request(t, two, 3))))
	require.NoError(t, held.Rollback(testkit.Context(t)))

	require.Equal(t, scheduler.Result{Granted: 2}, b.run(t, scheduler.FillStep{}))
	require.Equal(t, []lifecycle.Status{lifecycle.StatusScheduled, lifecycle.StatusScheduled,
		lifecycle.StatusRequested},
		b.statuses(t, waiting))
}

// A pack policy with parameters is a limit per group over the whole pack, created when it is first needed. Actions
// without a limit of their own have a queue for each of its groups, which blocks no other.
func TestSharedLimitsHaveGroupsToo(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(100) })
	one, two := testkit.Action(t, b.store, "pk.one"), testkit.Action(t, b.store, "pk.two")
	testkit.Policy(t, b.store, one, 1, testkit.OfPack(one),
		func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant"} })
	tenant := func(name string) func(*testkit.ExecutionRow) {
		return func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": name} }
	}
	var ids []int64
	for _, name := range []string{"a", "b", "c"} {
		ids = append(ids, b.requestWith(t, one, tenant(name)), b.requestWith(t, two, tenant(name)))
	}
	require.Equal(t, scheduler.Result{Granted: 3, Enqueued: 3}, b.dispatch(t, ids...))
	b.finish(t, lifecycle.StatusCompleted, ids[2], ids[4])
	require.Equal(t, scheduler.Result{Released: 2, Granted: 2}, b.complete(t, ids[2], ids[4]),
		"the first of pk.two waits for its own group only")
	require.Equal(t, 3,
		testkit.Count(t, b.store, `SELECT count(*) FROM admission_scope WHERE policy IS NOT NULL AND policy_ref <> ''`),
		"giving back does not forget whose limit it is")
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	// A replica that has never seen these groups.
	b.scheduler = b.replica(t)
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, ids[0]))
	b.quiet(t)
}

// The queue of an action with a limit of its own stays in order (S4): a head that a shared limit
// holds back also holds back the executions behind it.
func TestS4AnActionsOwnLimitKeepsItsQueueInOrder(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(100) })
	action := testkit.Action(t, b.store, "pk.one")
	testkit.Policy(t, b.store, action, 9)
	testkit.Policy(t, b.store, action, 1, testkit.OfPack(action),
		func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant"} })
	var ids []int64
	for _, name := range []string{"a", "a", "b", "c"} {
		ids = append(ids,
			b.requestWith(t, action, func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": name} }))
	}
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 3}, b.dispatch(t, ids...))
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	// Its executions wait in groups that a new replica does not know yet.
	b.scheduler = b.replica(t)
	require.Equal(t, scheduler.Result{Released: 1, Granted: 3}, b.complete(t, ids[0]))
	b.quiet(t)
}

// S22: a rate spaces starts evenly, and an execution that waits for its time starts when it comes. A
// quota admits its number in each period.
func TestS22RatesAndQuotasOnTheDatabasesClock(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(100) })
	action := testkit.Action(t, b.store, "pk.paced")
	testkit.Policy(t, b.store, action, 10,
		func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds, p.Burst = "rate", new(int32(1)), new(int32(2)) })
	ids := b.request(t, action, 5)
	result := b.dispatch(t, ids...)
	require.Equal(t, 2, result.Granted, "the burst")
	require.Positive(t, result.Wake)
	require.LessOrEqual(t, result.Wake, 100*time.Millisecond)
	for deadline := time.Now().Add(time.Minute); result.Wake > 0; {
		require.True(t, time.Now().Before(deadline))
		time.Sleep(result.Wake)
		result = b.run(t, scheduler.FillStep{})
	}
	require.Equal(t, 5, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'scheduled'`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM (
		SELECT e.admitted_at - lag(e.admitted_at, 2) OVER (ORDER BY e.admitted_at,
			e.id) AS gap FROM execution e) g WHERE gap < '90 ms'`),
		"no three within a tenth of a second but the burst")
	b.quiet(t)

	counted := testkit.Action(t, b.store, "pk.counted")
	testkit.Policy(t, b.store, counted, 2,
		func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "quota", new(int32(86_400)) })
	more := b.request(t, counted, 3)
	result = b.dispatch(t, more...)
	require.Equal(t, 2, result.Granted)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM admission_blocked
		WHERE until = date_trunc('day',
			now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' + interval '1 day' AND reason LIKE '%quota%'`))
	// The period passes.
	testkit.Exec(t, b.store, `UPDATE admission_scope SET period_start = period_start - interval '1 day'`)
	testkit.Exec(t, b.store,
		`UPDATE admission_blocked SET until = now() - interval '1 second', wake = now() - interval '1 second'`)
	require.Equal(t, 1, b.run(t, scheduler.FillStep{}).Granted)
	b.quiet(t)
}

// The method cancel refuses at once an execution that a full limit would make wait, and names the limit.
func TestTheMethodCancelRefusesWithTheReason(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	refuse := func(p *testkit.PolicyRow) { p.Method = "cancel" }
	own := testkit.Policy(t, b.store, action, 2, refuse)
	ids := b.request(t, action, 3)
	require.Equal(t, scheduler.Result{Granted: 2, Ended: 1}, b.dispatch(t, ids...))
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, ids[2]))
	require.Equal(t, "policy violation", b.result(t, ids[2], "error"))
	require.Equal(t, own.Ref, b.result(t, ids[2], "policy"))

	other := testkit.Action(t, b.store, "pk.b")
	wide := testkit.Policy(t, b.store, other, 3, testkit.OfPack(other), refuse)
	more := b.request(t, other, 4)
	require.Equal(t, scheduler.Result{Granted: 1, Ended: 3}, b.dispatch(t, more...), "two of the three run already")
	require.Contains(t, b.result(t, more[3], "message"), wide.Ref)
	b.quiet(t)
}

// S17: a queue never exceeds its maximum, of the policy or of the installation, and a refused execution has the
// reason.
func TestS17AFullQueueRefusesAndSaysSo(t *testing.T) {
	b := setup(t, func(c *scheduler.Config) { c.MaxQueued = 4 })
	testkit.Worker(t, b.store, "w1")
	narrow, plain := testkit.Action(t, b.store, "pk.narrow"), testkit.Action(t, b.store, "pk.plain")
	testkit.Policy(t, b.store, narrow, 1, func(p *testkit.PolicyRow) { p.MaxQueueLength = new(int32(2)) })
	testkit.Policy(t, b.store, plain, 1)
	ids := b.request(t, narrow, 5)
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 2, Ended: 2}, b.dispatch(t, ids...))
	require.Equal(t, "Queue full (max length: 2)", b.result(t, ids[4], "error"))
	require.Equal(t, []string{"2", "2"},
		[]string{b.result(t, ids[4], "queue_length"), b.result(t, ids[4], "max_queue_length")})
	require.Equal(t, 2,
		testkit.Count(t, b.store, `SELECT max_queued FROM execution_admission_state WHERE action_id = $1`, narrow.ID))
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 4, Ended: 1}, b.dispatch(t, b.request(t, plain, 6)...))
	b.quiet(t)
}

// An execution that waits longer than its queue allows times out and leaves the queue. A pause stops the clock
// (upstream 26).
func TestAWaitThatIsTooLongEnds(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, 1, func(p *testkit.PolicyRow) { p.QueueTimeoutSeconds = new(int32(60)) })
	ids := b.request(t, action, 4)
	b.dispatch(t, ids...)
	age := func(id int64, seconds int) {
		testkit.Exec(t, b.store,
			`UPDATE execution_admission_entry SET enqueued_at = now() - make_interval(secs => $2) WHERE execution_id = $1`, id, float64(seconds))
	}
	age(ids[1], 61)
	age(ids[2], 30)
	expire := func() scheduler.Result {
		return b.run(t, scheduler.NewExpireStep(ids, time.Hour), scheduler.FillStep{})
	}

	testkit.Exec(t, b.store, `UPDATE execution_admission_state SET paused = true`)
	require.Equal(t, scheduler.Result{}, expire(), "no timeout runs while the queue is paused")
	testkit.Exec(t, b.store, `UPDATE execution_admission_state SET paused = false, resumed_at = now()`)
	require.Equal(t, scheduler.Result{}, expire(), "after a pause it begins anew")
	testkit.Exec(t, b.store, `UPDATE execution_admission_state SET resumed_at = now() - interval '1 day'`)
	require.Equal(t, scheduler.Result{Ended: 1}, expire())
	require.Equal(t, lifecycle.StatusTimeout, testkit.StatusOf(t, b.store, ids[1]))
	require.Equal(t, "Queue timeout", b.result(t, ids[1], "error"))
	require.Equal(t, "60", b.result(t, ids[1], "queue_timeout_seconds"))
	messages := b.relay.take()
	require.Equal(t, "execution.completed", messages[len(messages)-1].RoutingKey)
	// The hole is skipped.
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, ids[0]))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[2]))
	b.quiet(t)
}

// A changed limit applies from the next batch, on every replica. A raised limit is filled. A lowered
// one ends no running execution (upstream 22). An operator's limit replaces it.
func TestAChangedLimitIsInForceInTheNextBatch(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	rule := testkit.Policy(t, b.store, action, 1)
	replicas := []*scheduler.Scheduler{b.scheduler, b.replica(t), b.replica(t)}
	ids := b.request(t, action, 9)
	for i := range replicas {
		b.scheduler = replicas[i]
		b.dispatch(t, ids...) // every replica knows the old limit
	}
	set := func(n int) { testkit.Exec(t, b.store, `UPDATE policy SET threshold = $1 WHERE id = $2`, n, rule.ID) }
	set(3)
	b.scheduler = replicas[1]
	require.Equal(t, scheduler.Result{Granted: 2}, b.nudge(t, ids[1]),
		"the request of a waiting execution, redelivered")
	set(2)
	for i := range 2 {
		b.scheduler = replicas[i]
		b.finish(t, lifecycle.StatusCompleted, ids[i])
		require.Equal(t, scheduler.Result{Released: 1, Granted: i}, b.complete(t, ids[i]),
			"it drains to two, and goes on at two")
	}
	testkit.Exec(t, b.store, `UPDATE execution_admission_state SET limit_override = 5`)
	b.scheduler = replicas[2]
	require.Equal(t, scheduler.Result{Granted: 3}, b.nudge(t, ids[8]))
	testkit.Exec(t, b.store, `DELETE FROM policy`)
	require.Equal(t, scheduler.Result{}, b.nudge(t, ids[8]), "the operator's override outlives the policy")
	testkit.Exec(t, b.store, `UPDATE execution_admission_state SET limit_override = NULL`)
	require.Equal(t, scheduler.Result{Granted: 2}, b.nudge(t, ids[8]))
	b.quiet(t)
}

// S23: an execution with a priority waits in its lane, before or after the
// others, and its lane is kept through the database.
func TestS23LanesThroughTheDatabase(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, 1)
	ids := b.request(t, action, 3) // the first runs
	low := b.requestWith(t, action, func(e *testkit.ExecutionRow) { e.Priority = new(int16(-1)) })
	high := make([]int64, 9)
	for i := range high {
		high[i] = b.requestWith(t, action, func(e *testkit.ExecutionRow) { e.Priority = new(int16(1)) })
	}
	b.dispatch(t, append(append([]int64{low}, ids...), high...)...)
	var got []int64
	running := low
	for range 12 {
		b.finish(t, lifecycle.StatusCompleted, running)
		require.Equal(t, 1, b.complete(t, running).Granted)
		require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
			`SELECT id FROM execution WHERE status = 'scheduled'`).Scan(&running))
		got = append(got, running)
	}
	require.Equal(t, append(append(append([]int64{}, high[:7]...), ids[0]),
		append(append([]int64{}, high[7:]...), ids[1:]...)...), got,
		"seven of the high lane, one of the others, the rest of the high lane, and then the others")
	b.quiet(t)
}

// An execution that moves to another queue waits there too, although a shared limit refuses new
// executions.
func TestAMovedExecutionIsNotRefused(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	rule := testkit.Policy(t, b.store, action, 1)
	testkit.Policy(t, b.store, action, 1, testkit.OfPack(action),
		func(p *testkit.PolicyRow) { p.Method = "cancel" })
	ids := make([]int64, 3)
	for i := range ids {
		ids[i] = b.requestWith(t, action,
			func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": fmt.Sprint(i)} })
	}
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 2}, b.dispatch(t, ids...))
	testkit.Exec(t, b.store, `UPDATE policy SET parameters = '{tenant}' WHERE id = $1`, rule.ID)
	require.Equal(t, scheduler.Result{Enqueued: 2}, b.run(t, scheduler.FillStep{}, scheduler.NewMoveStep(ids[1:])))
	for i, id := range ids[:2] {
		b.finish(t, lifecycle.StatusCompleted, id)
		require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, id))
		require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[i+1]))
	}
	b.quiet(t)
}

// upstream 25: when a policy's parameters change, waiting executions move to their new queues, in
// order, and start from there.
func TestUpstream25QueuedExecutionsMoveWhenTheParametersChange(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	rule := testkit.Policy(t, b.store, action, 1)
	ids := make([]int64, 6)
	for i := range ids {
		ids[i] = b.requestWith(t, action,
			func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": fmt.Sprint(i % 2)} })
	}
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 5}, b.dispatch(t, ids...))
	testkit.Exec(t, b.store, `UPDATE policy SET parameters = '{tenant}' WHERE id = $1`, rule.ID)

	found := make(chan recovery.Found, 10)
	sweep(t, b, found)
	misplaced := (<-found).Misplaced
	require.Equal(t, ids[1:], misplaced)
	require.Equal(t, scheduler.Result{Granted: 2, Enqueued: 3},
		b.run(t, scheduler.FillStep{}, scheduler.NewMoveStep(misplaced)))
	require.Equal(t, scheduler.Result{}, b.run(t, scheduler.FillStep{}, scheduler.NewMoveStep(misplaced)), "moved once")
	require.Equal(t,
		[]lifecycle.Status{lifecycle.StatusScheduled, lifecycle.StatusScheduled, lifecycle.StatusScheduled,
			lifecycle.StatusRequested},
		b.statuses(t, ids[:4]), "the first of each group; executions from before the change hold their old slots")
	b.finish(t, lifecycle.StatusCompleted, ids[1])
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, ids[1]))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[3]))
	b.quiet(t)
}

func sweep(t *testing.T, b *bundle, found chan recovery.Found) {
	t.Helper()
	s := recovery.New(recovery.Config{Interval: 10 * time.Millisecond, QueueTimeout: time.Hour}, b.store,
		func(_ context.Context, f recovery.Found) error { found <- f; return nil }, testkit.Logger(t), nil)
	require.NoError(t, s.Start(testkit.Context(t)))
	t.Cleanup(s.Stop)
}

// Deleting executions that hold slots or wait releases their slots, whichever program deletes them.
func TestDeletedExecutionsReleaseTheirSlots(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, 2)
	testkit.Policy(t, b.store, action, 2, testkit.OfPack(action))
	ids := b.request(t, action, 7)
	require.Equal(t, scheduler.Result{Granted: 2, Enqueued: 5}, b.dispatch(t, ids...))
	b.finish(t, lifecycle.StatusCancelled, ids[6])
	testkit.Exec(t, b.store, `DELETE FROM execution WHERE id = ANY($1)`, []int64{ids[0], ids[2], ids[5], ids[6]})

	found := make(chan recovery.Found, 10)
	sweep(t, b, found)
	lost := (<-found).Lost
	require.Len(t, lost, 4)
	require.Equal(t, scheduler.Result{Granted: 1}, b.run(t, scheduler.NewReturnStep(lost), scheduler.FillStep{}))
	require.Equal(t, scheduler.Result{}, b.run(t, scheduler.NewReturnStep(lost), scheduler.FillStep{}),
		"given back once")
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[3]))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM lost_holder`))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT queue_length FROM queue_stats`))
	b.quiet(t)
}

// The place of a retry in the queue is set by the policy, or else by the configuration.
func TestARetryJoinsWhereThePolicySays(t *testing.T) {
	b := setup(t, func(c *scheduler.Config) { c.RetryPlace = policy.PlaceFront })
	testkit.Worker(t, b.store, "w1")
	front, back := testkit.Action(t, b.store, "pk.front"), testkit.Action(t, b.store, "pk.back")
	testkit.Policy(t, b.store, front, 1)
	testkit.Policy(t, b.store, back, 1, func(p *testkit.PolicyRow) { p.RetryPlace = new("back") })
	for _, action := range []testkit.ActionRow{front, back} {
		ids := b.request(t, action, 3)
		b.dispatch(t, ids...)
		retry := b.requestWith(t, action,
			func(e *testkit.ExecutionRow) { e.OriginalExecution, e.RetryCount = &ids[0], 1 })
		b.finish(t, lifecycle.StatusFailed, ids[0])
		require.Equal(t, scheduler.Result{Enqueued: 1}, b.dispatch(t, retry), "its original has not been released yet")
		require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, ids[0]))
		want := ids[1]
		if action.ID == front.ID {
			want = retry
		}
		require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, want))
		b.quiet(t)
	}
}
