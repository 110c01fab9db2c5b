package deadletter_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// Upstream 1, ruling 5: an expired dispatch of a worker with fencing moves to another one in place, and its evidence
// is stored in the same transaction.
func TestAnExpiredDispatchMoves(t *testing.T) {
	d := newService(t)
	action := testkit.Action(t, d.store, "pk.do")
	old := testkit.Worker(t, d.store, "old", fenced, func(w *testkit.WorkerRow) { w.Status = "inactive" })
	other := testkit.Worker(t, d.store, "other", fenced)
	testkit.Exec(t, d.store,
		`INSERT INTO worker_probe (worker, verdict, reason, consumers, ready) VALUES ($1, 'dead', 'no consumer', 0, 3)`, old.ID)
	e := d.scheduled(t, action, old.ID)
	d.open(t)
	m := expired(t, old.ID, message.Dispatch{ExecutionID: e.ID, ActionRef: action.Ref, Attempt: 1})
	d.send(t, m)

	got := d.settled(t, 1)[0]
	require.Equal(t, deadletter.Retried, got.Decision, got.Detail)
	require.Equal(t, deadletter.HandledBy, got.By)
	require.NotNil(t, got.At)
	require.Equal(t, m.ID, got.MessageID)
	require.Equal(t, []any{
		message.TypeExecutionRequested, message.ExchangeExecutions, m.RoutingKey,
		message.WorkerExecutionsQueue(old.ID), "expired",
	},
		[]any{got.Type, got.Exchange, got.Key, got.Queue, got.Reason})
	require.Equal(t, []any{e.ID, "scheduled", old.ID, int32(1), "pk.do"},
		[]any{got.Execution, got.Status, got.Worker, got.Attempt, got.ActionRef})
	require.Equal(t, "expired", at(t, got.XDeath, 0, "reason"))
	require.Equal(t, "expired", got.Headers["x-first-death-reason"])
	require.Equal(t, "scheduled", at(t, got.Evidence, "execution", "status"))
	require.Equal(t, true, at(t, got.Evidence, "execution", "holds_slot"))
	require.Equal(t, "old", at(t, got.Evidence, "worker", "name"))
	require.NotNil(t, at(t, got.Evidence, "worker", "heartbeat_age_seconds"))
	require.Equal(t, "dead", at(t, got.Evidence, "probe", "verdict"))
	require.Equal(t, 1, testkit.Count(t, d.store, `SELECT count(*) FROM execution WHERE id = $1 AND status = 'scheduled' AND worker = $2 AND attempt = 2 AND retry_count = 0`, e.ID, other.ID))
	require.Equal(t, 1, testkit.Count(t, d.store,
		`SELECT count(*) FROM lost_work WHERE execution = $1 AND cause = 'dead_letter' AND outcome = 'moved'`, e.ID))
	require.Equal(t, 1, testkit.Count(t, d.store, `SELECT count(*) FROM outbox WHERE $1 = ANY (routing_keys)`,
		message.DispatchKey(other.ID)))
	testkit.Invariants(t, d.store)
}

// Upstream 34: if the worker could still start it, the row ends with the published result, and its end is announced,
// from which release and retry follow.
func TestAnExpiredDispatchEndsWithThePublishedResult(t *testing.T) {
	d := newService(t)
	action := testkit.Action(t, d.store, "pk.do")
	w := testkit.Worker(t, d.store, "stranger")
	e := d.scheduled(t, action, w.ID)
	d.open(t)
	m := expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1})
	d.send(t, m)

	got := d.settled(t, 1)[0]
	require.Equal(t, deadletter.Failed, got.Decision, got.Detail)
	require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, d.store, e.ID))
	require.Equal(t, 1, testkit.Count(t, d.store, `SELECT count(*) FROM execution WHERE id = $1
		AND result->>'error' = 'Worker queue TTL expired' AND result->>'failed_by' = 'dead_letter_handler'
		AND result->>'message' LIKE 'Worker did not process execution within configured TTL%'
		AND (result->>'expired_at')::timestamptz > now() - interval '1 minute'
		AND (result->>'worker_id')::bigint = $2 AND result->>'original_status' = 'scheduled'`, e.ID, w.ID))
	require.Equal(t, 1,
		testkit.Count(t, d.store, `SELECT count(*) FROM outbox WHERE 'execution.completed' = ANY (routing_keys)`))
}

// S9: a dead letter moves an execution only if it is about the dispatch in force and that can have expired. Published
// copies change nothing.
func TestCopiesOfADispatchMoveNothing(t *testing.T) {
	d := newService(t)
	d.queueTTL = 10 * time.Minute
	action := testkit.Action(t, d.store, "pk.do")
	w := testkit.Worker(t, d.store, "old", fenced)
	testkit.Worker(t, d.store, "other", fenced)
	e := d.scheduled(t, action, w.ID)
	d.open(t)
	headless := expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1})
	headless.Headers = nil
	copies := []broker.Message{headless, expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1})}
	for range 6 {
		copies = append(copies, expired(t, w.ID, message.Dispatch{ExecutionID: e.ID}))
	}
	d.send(t, copies...)
	for _, got := range d.settled(t, len(copies)) {
		require.Equal(t, deadletter.Stale, got.Decision, "%s %s", got.Reason, got.Detail)
	}
	require.Equal(t, 1, testkit.Count(t, d.store,
		`SELECT count(*) FROM execution WHERE status = 'scheduled' AND attempt = 1 AND worker = $1`, w.ID))

	testkit.Exec(t, d.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, d.store, `UPDATE execution SET updated = now() - interval '10 minutes'`)
	testkit.Exec(t, d.store, `ALTER TABLE execution ENABLE TRIGGER USER`)
	d.send(t, expired(t, w.ID, message.Dispatch{ExecutionID: e.ID}))
	d.settled(t, len(copies)+1)
	attempt := func() int {
		return testkit.Count(t, d.store, `SELECT attempt FROM execution WHERE status = 'scheduled'`)
	}
	require.Equal(t, 1, attempt(), "a dead letter that names no attempt is forged")
	d.send(t, expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1}))
	d.settled(t, len(copies)+2)
	require.Equal(t, 2, attempt())

	at := int64(testkit.Count(t, d.store, `SELECT worker FROM execution`))
	testkit.Exec(t, d.store, `UPDATE worker SET status = 'inactive' WHERE id = $1`, at)
	d.send(t, expired(t, at, message.Dispatch{ExecutionID: e.ID, Attempt: 2}))
	d.settled(t, len(copies)+3)
	require.Equal(t, 3, attempt(), "at a dead worker nothing is too early")
}

// Of two dead letters of one dispatch of an engine without attempts, one decides.
func TestOneOfTwoDeadLettersOfADispatchDecides(t *testing.T) {
	d := newService(t)
	action := testkit.Action(t, d.store, "pk.do")
	w := testkit.Worker(t, d.store, "old", fenced, func(w *testkit.WorkerRow) { w.Status = "inactive" })
	testkit.Worker(t, d.store, "other", fenced)
	e := d.scheduled(t, action, w.ID)
	var handed time.Time
	require.NoError(t, d.store.Pool().QueryRow(t.Context(), `SELECT updated FROM execution`).Scan(&handed))
	one := message.Dispatch{ExecutionID: e.ID, ScheduledAttemptUpdatedAt: handed}
	d.send(t, expired(t, w.ID, one), expired(t, w.ID, one))
	d.open(t)
	var decisions []string
	for _, got := range d.settled(t, 2) {
		decisions = append(decisions, got.Decision)
	}
	require.ElementsMatch(t, []string{deadletter.Retried, deadletter.Stale}, decisions)
	require.Equal(t, 2, testkit.Count(t, d.store, `SELECT attempt FROM execution`))
}

// A worker that rejected a dispatch does not get it again, even if it has the most room.
func TestARejectedDispatchGoesToAnotherWorker(t *testing.T) {
	d := newService(t)
	action := testkit.Action(t, d.store, "pk.do")
	w := testkit.Worker(t, d.store, "rejects", fenced,
		func(w *testkit.WorkerRow) { w.Capabilities["max_concurrent_executions"] = 100 })
	other := testkit.Worker(t, d.store, "other", fenced,
		func(w *testkit.WorkerRow) { w.Capabilities["max_concurrent_executions"] = 10 })
	testkit.Exec(t, d.store, `UPDATE worker_load SET assigned = 9 WHERE worker = $1`, other.ID)
	e := d.scheduled(t, action, w.ID)
	m := expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1})
	m.Headers = death(message.WorkerExecutionsQueue(w.ID), "rejected", message.ExchangeExecutions, m.RoutingKey,
		time.Now().Truncate(time.Second))
	d.send(t, m)
	d.open(t)
	require.Equal(t, deadletter.Retried, d.settled(t, 1)[0].Decision)
	require.EqualValues(t, other.ID, testkit.Count(t, d.store, `SELECT worker FROM execution`))
}

// S9: the worker starts the execution while its dead letter is decided: the first write wins, and
// the other changes nothing.
func TestAStartAtTheSameMomentWins(t *testing.T) {
	d := newService(t)
	action := testkit.Action(t, d.store, "pk.do")
	w := testkit.Worker(t, d.store, "stranger")
	const n = 40
	var starts sync.WaitGroup
	deadLetters, ids := make([]broker.Message, n), make([]int64, n)
	for i := range ids {
		e := d.scheduled(t, action, w.ID)
		ids[i], deadLetters[i] = e.ID, expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1})
	}
	d.send(t, deadLetters...)
	d.open(t)
	started := make([]bool, n)
	for i, id := range ids {
		starts.Go(func() {
			tag, err := d.store.Pool().Exec(testkit.Context(t), `UPDATE execution SET status = 'running', started_at = now()
				WHERE id = $1 AND status = 'scheduled' AND attempt = 1`, id)
			started[i] = err == nil && tag.RowsAffected() == 1
		})
	}
	starts.Wait()
	rows := d.settled(t, n)
	decisions := map[int64]string{}
	for _, got := range rows {
		decisions[got.Execution] = got.Decision
	}
	for i, id := range ids {
		if started[i] {
			require.Equal(t, "stale", decisions[id])
			require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, d.store, id))
		} else {
			require.Equal(t, "failed", decisions[id])
			require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, d.store, id))
		}
	}
	require.Zero(t, testkit.Count(t, d.store, `SELECT count(*) FROM late_write`))
}

// S13: the same dead letter several times, at two handlers at once, is one row with one effect; so
// are two dead letters of a dispatch that was published twice.
func TestADeadLetterThatComesAgainChangesNothing(t *testing.T) {
	d := newService(t)
	action := testkit.Action(t, d.store, "pk.do")
	w := testkit.Worker(t, d.store, "old", fenced, func(w *testkit.WorkerRow) { w.Status = "inactive" })
	testkit.Worker(t, d.store, "other", fenced,
		func(w *testkit.WorkerRow) { w.Capabilities["max_concurrent_executions"] = 100 })
	const n = 20
	var deadLetters []broker.Message
	for range n {
		e := d.scheduled(t, action, w.ID)
		m := expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1})
		deadLetters = append(deadLetters, m, m, m)
	}
	d.open(t)
	d.open(t)
	d.send(t, deadLetters...)
	for _, got := range d.settled(t, n) {
		require.Equal(t, deadletter.Retried, got.Decision, got.Detail)
	}
	require.Equal(t, n,
		testkit.Count(t, d.store, `SELECT count(*) FROM execution WHERE status = 'scheduled' AND attempt = 2`))
	require.Equal(t, n, testkit.Count(t, d.store, `SELECT count(*) FROM lost_work`))
	testkit.Invariants(t, d.store)
}

// S20: a handler that dies between its commit and the acknowledgement is followed
// by another, which finds the row and changes nothing.
func TestADeathBetweenCommitAndAcknowledgementIsHarmless(t *testing.T) {
	d := newService(t)
	action := testkit.Action(t, d.store, "pk.do")
	w := testkit.Worker(t, d.store, "stranger")
	e := d.scheduled(t, action, w.ID)
	done := testkit.Execution(t, d.store, action, as(lifecycle.StatusCompleted))
	d.send(t, deadLetter(t, message.KeyExecutionCompleted, message.TypeExecutionCompleted,
		message.ExecutionCompleted{ExecutionID: done.ID, Status: "completed"}),
		expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1}))

	ctx := testkit.Context(t)
	dying := d.connect(t)
	consumer := dying.Consume(broker.ConsumerConfig{Queue: message.QueueDeadLetter, MaxBatch: 1, Prefetch: 1})
	committed := make(chan struct{})
	h := deadletter.NewHandler(deadletter.Deps{
		Store: d.store, Consumer: consumer, Logger: testkit.Logger(t),
		Ended: func(context.Context, []int64) error { dying.Stop(); close(committed); return nil },
	})
	require.NoError(t, h.Start(ctx))
	require.NoError(t, consumer.Start(ctx))
	<-committed
	h.Stop()
	consumer.Stop()
	require.Len(t, d.rows(t), 1)

	// The second dead letter's batch is committed, and its connection is gone.
	dying2 := d.connect(t)
	consumer2 := dying2.Consume(broker.ConsumerConfig{Queue: message.QueueDeadLetter})
	rounds := scheduler.New(scheduler.Config{},
		scheduler.Deps{Store: d.store, Relay: noRelay{}, Logger: testkit.Logger(t)})
	decided := make(chan struct{})
	var h2 *deadletter.Handler
	h2 = deadletter.NewHandler(deadletter.Deps{
		Store: d.store, Consumer: consumer2, Logger: testkit.Logger(t),
		Decide: func(ctx context.Context, deadLetters []*deadletter.Message) error {
			_, err := rounds.Run(ctx, deadletter.NewStep(deadLetters, deadletter.MaxOpen))
			dying2.Stop()
			h2.Settle(ctx, deadLetters[0])
			close(decided)
			return err
		},
	})
	require.NoError(t, h2.Start(ctx))
	require.NoError(t, consumer2.Start(ctx))
	<-decided
	h2.Stop()
	consumer2.Stop()

	testkit.Eventually(t, func() bool {
		state, err := d.wire.QueueState(ctx, message.QueueDeadLetter)
		return err == nil && state.Ready > 0
	}, 10*time.Second, "the unacknowledged dead letter is there again")
	before := d.rows(t)
	require.Len(t, before, 2)
	d.open(t)
	require.Equal(t, before, d.settled(t, 2))
	require.Equal(t, 1, testkit.Count(t, d.store, `SELECT count(*) FROM outbox`))
}

// While the database is down, no dead letter is acknowledged or lost, and the handler continues by itself.
func TestWithoutTheDatabaseNothingIsAcknowledged(t *testing.T) {
	d := newService(t)
	gate := testkit.OpenStore(t, d.store.Pool().Config().ConnString())
	d.open(t)
	testkit.Exec(t, gate, `ALTER TABLE dead_letter RENAME TO away`)
	d.send(t, broker.Message{
		ID: "m", Exchange: message.ExchangeDeadLetter, RoutingKey: message.KeyEventCreated,
		Body: []byte(`{}`),
	})
	testkit.Eventually(t, func() bool {
		state, err := d.wire.QueueState(testkit.Context(t), message.QueueDeadLetter)
		return err == nil && state.Ready == 0
	}, 10*time.Second, "it is delivered")
	for range 5 { // not by a goroutine of its own, which might look when the table is back
		require.Zero(t, testkit.Count(t, gate, `SELECT count(*) FROM away`))
		time.Sleep(100 * time.Millisecond)
	}
	testkit.Exec(t, gate, `ALTER TABLE away RENAME TO dead_letter`)
	require.Equal(t, "m", d.settled(t, 1)[0].MessageID)
}

// A dispatch whose row no batch can write is stored by itself, reduced and with the reason, for an operator.
func TestADispatchThatNoBatchCanDecideWaitsForAnOperator(t *testing.T) {
	d := newService(t)
	testkit.Exec(t, d.store, `ALTER TABLE dead_letter ADD CONSTRAINT picky CHECK (headers IS NULL)`)
	w := testkit.Worker(t, d.store, "stranger")
	e := d.scheduled(t, testkit.Action(t, d.store, "pk.do"), w.ID)
	d.open(t)
	d.send(t, expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1}))
	got := d.settled(t, 1)[0]
	require.Empty(t, got.Decision)
	require.Contains(t, got.Detail, "picky")
	require.NotNil(t, at(t, got.Evidence, "reduced", "headers"))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, d.store, e.ID), "its timeout will see to it")
}
