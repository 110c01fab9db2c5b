package scheduler_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// relay records the committed messages of batches, in place of a broker.
type relay struct {
	mu       sync.Mutex
	messages []outbox.Message
}

func (r *relay) Published(_ int64, messages []outbox.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, messages...)
}

func (r *relay) take() []outbox.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.messages
	r.messages = nil
	return out
}

type bundle struct {
	store     *store.Store
	scheduler *scheduler.Scheduler
	relay     *relay
}

func setup(t *testing.T, change ...func(*scheduler.Config)) *bundle {
	t.Helper()
	b := &bundle{store: testkit.Store(t, func(c *store.Config) { c.HotPath = true }), relay: &relay{}}
	b.scheduler = b.replica(t, change...)
	return b
}

// replica makes one more engine's batches on the same database.
func (b *bundle) replica(t *testing.T, change ...func(*scheduler.Config)) *scheduler.Scheduler {
	t.Helper()
	var cfg scheduler.Config
	for _, c := range change {
		c(&cfg)
	}
	return scheduler.New(cfg, scheduler.Deps{Store: b.store, Relay: b.relay, Logger: testkit.Logger(t)})
}

func (b *bundle) request(t *testing.T, action testkit.ActionRow, n int) []int64 {
	t.Helper()
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = testkit.Execution(t, b.store, action).ID
	}
	return ids
}

func (b *bundle) dispatch(t *testing.T, ids ...int64) scheduler.Result {
	t.Helper()
	result, err := b.scheduler.Run(testkit.Context(t), scheduler.FillStep{}, scheduler.NewRequestStep(ids))
	require.NoError(t, err)
	return result
}

func (b *bundle) complete(t *testing.T, ids ...int64) scheduler.Result {
	t.Helper()
	result, err := b.scheduler.Run(testkit.Context(t), scheduler.NewReleaseStep(ids), scheduler.FillStep{})
	require.NoError(t, err)
	return result
}

// finish ends executions as a worker does.
func (b *bundle) finish(t *testing.T, status lifecycle.Status, ids ...int64) {
	t.Helper()
	testkit.Exec(t, b.store, `UPDATE execution SET status = $1::text::execution_status_enum WHERE id = ANY($2)`,
		string(status), ids)
}

func (b *bundle) statuses(t *testing.T, ids []int64) []lifecycle.Status {
	t.Helper()
	out := make([]lifecycle.Status, len(ids))
	for i, id := range ids {
		out[i] = testkit.StatusOf(t, b.store, id)
	}
	return out
}

func TestARequestIsAdmittedPlacedAndDispatchedInOneCommit(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	ids := b.request(t, action, 2)

	require.Equal(t, scheduler.Result{Granted: 2}, b.dispatch(t, ids...))

	var attempt int
	var updated time.Time
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
		`SELECT attempt, updated FROM execution WHERE id = $1 AND status = 'scheduled' AND worker = $2 AND EXISTS (SELECT FROM execution_holder h WHERE h.execution = execution.id)`,
		ids[0], worker.ID).Scan(&attempt, &updated))
	require.Equal(t, 1, attempt)
	messages := b.relay.take()
	require.Len(t, messages, 2)
	require.Equal(t, message.DispatchKey(worker.ID), messages[0].RoutingKey)
	sent, err := message.Decode[message.Dispatch](messages[0].Body)
	require.NoError(t, err)
	require.Equal(t, message.TypeExecutionRequested, sent.MessageType)
	require.Equal(t, ids[0], sent.Payload.ExecutionID)
	require.Equal(t, int32(1), sent.Payload.Attempt)
	require.True(t, updated.Equal(sent.Payload.ScheduledAttemptUpdatedAt), "the fence is execution.updated: %s, %s",
		updated, sent.Payload.ScheduledAttemptUpdatedAt)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM outbox`), "one row for the whole batch")

	// S1, S2: the message once more, to this replica and to another.
	require.Equal(t, scheduler.Result{}, b.dispatch(t, ids...))
	require.Empty(t, b.relay.take())
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

func TestALimitQueuesInOrderAndCompletionPromotes(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.limited")
	testkit.Policy(t, b.store, action, 2)
	ids := b.request(t, action, 5)
	require.Equal(t, scheduler.Result{Granted: 2, Enqueued: 3}, b.dispatch(t, ids...))
	require.Equal(t, scheduler.Result{}, b.dispatch(t, ids...),
		"a redelivered request keeps its place")

	// S7: an end that is reported k times releases its slot once.
	b.finish(t, lifecycle.StatusFailed, ids[0])
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, ids[0], ids[0]))
	require.Equal(t, scheduler.Result{}, b.complete(t, ids[0]))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[2]), "S4: the next of its queue")

	// A completion of an execution that has not ended changes nothing.
	require.Equal(t, scheduler.Result{}, b.complete(t, ids[1]))

	// S5: a new request goes behind the waiting executions even when a slot is free.
	b.finish(t, lifecycle.StatusCompleted, ids[1], ids[2])
	late := b.request(t, action, 1)
	result, err := b.scheduler.Run(testkit.Context(t), scheduler.NewReleaseStep([]int64{ids[1], ids[2]}),
		scheduler.FillStep{}, scheduler.NewRequestStep(late))
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Released: 2, Granted: 2, Enqueued: 1}, result)
	require.Equal(t, []lifecycle.Status{lifecycle.StatusScheduled, lifecycle.StatusScheduled,
		lifecycle.StatusRequested},
		b.statuses(t, append(ids[3:], late...)))

	var length, active, enqueued, completed int
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
		`SELECT queue_length, active_count, total_enqueued, total_completed FROM queue_stats WHERE action_id = $1`,
		action.ID,
	).Scan(&length, &active, &enqueued, &completed))
	require.Equal(t, []int{1, 2, 6, 3}, []int{length, active, enqueued, completed},
		"queue_stats is true with every commit")
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// Strict FIFO: an execution whose request was lost goes before the waiting executions that
// were requested after it, and behind the earlier ones.
func TestALostRequestEntersItsQueueInTheOrderOfRequests(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.late")
	testkit.Policy(t, b.store, action, 1)
	ids := b.request(t, action, 9)
	b.dispatch(t, ids[0], ids[2], ids[4], ids[5], ids[8]) // the others' messages are lost
	result, err := b.scheduler.Run(testkit.Context(t), scheduler.FillStep{},
		scheduler.NewRequestStep([]int64{ids[1], ids[3], ids[6], ids[7]}).
			WithLate([]int64{ids[1], ids[3], ids[6], ids[7]}))
	require.NoError(t, err)
	require.Equal(t, 4, result.Enqueued)
	testkit.Invariants(t, b.store)
	newest := b.request(t, action, 1)
	b.dispatch(t, newest...)
	for _, next := range append(ids, newest...) {
		require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, next), "%d of %v", next, ids)
		b.finish(t, lifecycle.StatusCompleted, next)
		b.complete(t, next)
	}
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

func TestGroupsOfParametersAreQueuesOfTheirOwn(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.grouped")
	testkit.Policy(t, b.store, action, 1, func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant"} })
	one := testkit.Execution(t, b.store, action,
		func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": "a"} }).ID
	two := testkit.Execution(t, b.store, action,
		func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": "a", "x": 1} }).ID
	other := testkit.Execution(t, b.store, action,
		func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": "b"} }).ID
	require.Equal(t, scheduler.Result{Granted: 2, Enqueued: 1}, b.dispatch(t, one, two, other))
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, b.store, two))
	require.Equal(t, 1,
		testkit.Count(t, b.store, `SELECT count(*) FROM execution_admission_state WHERE group_key = '{"tenant":"a"}'`))
	testkit.Invariants(t, b.store)
}

// upstream 19 and 20: a cancel by another service leaks no slot and blocks no queue.
func TestCancelsByOthersNeitherLeakNorBlock(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.one")
	testkit.Policy(t, b.store, action, 1)
	ids := b.request(t, action, 4)
	b.dispatch(t, ids...)
	b.finish(t, lifecycle.StatusCancelled, ids[1]) // while it waits, without a message
	b.finish(t, lifecycle.StatusCancelled, ids[0]) // while it holds the slot
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, ids[0]))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[2]), "promotion skips the hole")
	b.finish(t, lifecycle.StatusCancelled, ids[3])
	require.Equal(t, scheduler.Result{}, b.complete(t, ids[3])) // reported: it leaves the queue at once
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution_admission_entry`))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// upstream 22: a lowered limit drains, a raised one is filled.
func TestALimitMayChangeWhileExecutionsWait(t *testing.T) {
	b := setup(t)
	now := time.Now()
	b.scheduler = b.replica(t, func(c *scheduler.Config) { c.Now = func() time.Time { return now } })
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(50) })
	action := testkit.Action(t, b.store, "pk.change")
	policy := testkit.Policy(t, b.store, action, 3)
	ids := b.request(t, action, 8)
	b.dispatch(t, ids...)
	setLimit := func(n int) {
		testkit.Exec(t, b.store, `UPDATE policy SET threshold = $1 WHERE id = $2`, n, policy.ID)
		now = now.Add(time.Minute) // the cached rule is read again
	}
	setLimit(1)
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	require.Equal(t, scheduler.Result{Released: 1}, b.complete(t, ids[0]), "two still run under a limit of one")
	b.finish(t, lifecycle.StatusCompleted, ids[1], ids[2])
	require.Equal(t, 1, b.complete(t, ids[1], ids[2]).Granted)
	setLimit(4)
	b.finish(t, lifecycle.StatusCompleted, ids[3])
	granted := 0
	for result := b.complete(t, ids[3]); ; {
		granted += result.Granted
		if len(result.Unfilled) == 0 {
			break
		}
		var err error
		result, err = b.scheduler.Run(testkit.Context(t), scheduler.FillStep{Queues: result.Unfilled})
		require.NoError(t, err)
	}
	require.Equal(t, 4, granted, "a raised limit is filled at once")
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

func TestBusyWorkersKeepQueuesInOrder(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(1) })
	first, second := testkit.Action(t, b.store, "pk.first"), testkit.Action(t, b.store, "pk.second")
	a, c := b.request(t, first, 4), b.request(t, second, 2)
	// Room for 1 + 2 unstarted; both queues then wait, in order of waiting.
	require.Equal(t, scheduler.Result{Granted: 3, Enqueued: 1}, b.dispatch(t, a...))
	require.Equal(t, scheduler.Result{Enqueued: 2}, b.dispatch(t, c...))
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM admission_blocked`))
	b.finish(t, lifecycle.StatusCompleted, a[0], a[1])
	require.Equal(t, scheduler.Result{Released: 2, Granted: 2}, b.complete(t, a[0], a[1]))
	require.Equal(t, []lifecycle.Status{lifecycle.StatusScheduled, lifecycle.StatusScheduled,
		lifecycle.StatusRequested},
		b.statuses(t, []int64{a[3], c[0], c[1]}), "a free worker gets the execution that waited longest, of any queue")
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM admission_blocked`))
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// upstream 11 and 14: without a live worker an execution fails at once with the reason, or waits if the setting says
// so.
func TestWithoutALiveWorker(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]string{
		"none at all":      ``,
		"inactive":         `UPDATE worker SET status = 'inactive'`,
		"cordoned":         `UPDATE worker SET cordoned = true`,
		"draining":         `UPDATE worker SET draining = true`,
		"silent":           `UPDATE worker SET heartbeat_seen = now() - interval '91 seconds'`,
		"never heard from": `UPDATE worker SET last_heartbeat = NULL`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if kill != "" {
				testkit.Worker(t, b.store, "w1")
				b.dispatch(t) // the fleet is known before it dies
				testkit.Exec(t, b.store, kill)
			}
			id := b.request(t, testkit.Action(t, b.store, "pk.a"), 1)[0]
			require.Equal(t, scheduler.Result{Ended: 1}, b.dispatch(t, id))
			var status, reason, by string
			require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
				`SELECT status::text, result->>'error', result->>'failed_by' FROM execution WHERE id = $1`,
				id).Scan(&status, &reason, &by))
			require.Equal(t, []string{"failed", "no workers available", "execution_scheduler"},
				[]string{status, reason, by})
			messages := b.relay.take()
			require.Len(t, messages, 1)
			require.Equal(t, message.KeyExecutionCompleted, messages[0].RoutingKey)

			patient := b.replica(t, func(c *scheduler.Config) { c.WaitForWorkers = true })
			waiting := b.request(t, testkit.Action(t, b.store, "pk.b"), 1)[0]
			result, err := patient.Run(testkit.Context(t), scheduler.NewRequestStep([]int64{waiting}))
			require.NoError(t, err)
			require.Equal(t, scheduler.Result{Enqueued: 1}, result)
		})
	}
}

func TestRefusals(t *testing.T) {
	b := setup(t, func(c *scheduler.Config) { c.MaxQueued = 1 })
	testkit.Worker(t, b.store, "w1")
	reasonOf := func(id int64) string {
		var reason string
		require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
			`SELECT status::text || ': ' || (result->>'error') FROM execution WHERE id = $1`, id).Scan(&reason))
		return reason
	}
	// Under the method cancel no execution waits.
	strict := testkit.Action(t, b.store, "pk.strict")
	testkit.Policy(t, b.store, strict, 1, func(p *testkit.PolicyRow) { p.Method = "cancel" })
	ids := b.request(t, strict, 2)
	require.Equal(t, scheduler.Result{Granted: 1, Ended: 1}, b.dispatch(t, ids...))
	require.Equal(t, "cancelled: policy violation", reasonOf(ids[1]))
	// S17: a full queue refuses, with the reason.
	full := testkit.Action(t, b.store, "pk.full")
	testkit.Policy(t, b.store, full, 1)
	ids = b.request(t, full, 3)
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 1, Ended: 1}, b.dispatch(t, ids...))
	require.Equal(t, "cancelled: Queue full (max length: 1)", reasonOf(ids[2]))
	// upstream 12: an action that is gone fails its executions.
	gone := testkit.Action(t, b.store, "pk.gone")
	ids = b.request(t, gone, 1)
	testkit.Exec(t, b.store, `DELETE FROM action WHERE id = $1`, gone.ID)
	require.Equal(t, scheduler.Result{Ended: 1}, b.dispatch(t, ids...))
	require.Equal(t, "failed: action not found", reasonOf(ids[0]))
	// An execution that does not exist is named.
	require.Equal(t, scheduler.Result{Missing: []int64{987654}}, b.dispatch(t, 987654))
}

func TestAWorkerWithoutTheRuntimeIsNotChosen(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) {
		w.Capabilities = map[string]any{"runtimes": []string{"bash"}, "max_concurrent_executions": 2}
	})
	testkit.Exec(t, b.store, `INSERT INTO runtime (ref, name, aliases, distributions) VALUES
		('core.shell', 'Shell', '{sh}', '{}'), ('core.python', 'Python', '{python3}', '{}')`)
	withRuntime := func(ref, runtime string) int64 {
		action := testkit.Action(t, b.store, ref)
		testkit.Exec(t, b.store, `UPDATE action SET runtime = (SELECT id FROM runtime WHERE ref = $1) WHERE id = $2`,
			runtime, action.ID)
		return b.request(t, action, 1)[0]
	}
	shell, python := withRuntime("pk.shell", "core.shell"), withRuntime("pk.python", "core.python")
	require.Equal(t, scheduler.Result{Granted: 1, Ended: 1}, b.dispatch(t, shell, python))
	require.Equal(t, 1,
		testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = $1 AND worker = $2`, shell, worker.ID))
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE id = $1 AND result->>'error' LIKE 'no compatible worker%'`, python))
}
