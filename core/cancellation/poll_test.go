package cancellation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/cancellation"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/lab/testkit"
)

// poll starts a poll with short intervals.
func (b *bundle) poll(t *testing.T, change ...func(*cancellation.Config)) *relay {
	t.Helper()
	cfg := cancellation.Config{Interval: 20 * time.Millisecond, Grace: time.Minute}
	for _, c := range change {
		c(&cfg)
	}
	sent := &relay{}
	p := cancellation.NewPoll(cfg, b.store, sent, testkit.Logger(t), nil)
	require.NoError(t, p.Start(testkit.Context(t)))
	t.Cleanup(p.Stop)
	return sent
}

// asked makes an execution with a cancel request of some age.
func (b *bundle) asked(t *testing.T, since time.Duration, status lifecycle.Status, worker *testkit.WorkerRow,
	started bool,
) int64 {
	t.Helper()
	id := b.at(t, status, worker, func(e *testkit.ExecutionRow) { e.Age = since })
	testkit.Exec(t, b.store, `INSERT INTO execution_cancel (execution, at, actor, reason)
		VALUES ($1, now() - make_interval(secs => $2), 'ann',
			'enough') ON CONFLICT (execution) DO UPDATE SET at = excluded.at`, id, since.Seconds())
	if !started {
		testkit.Exec(t, b.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
		testkit.Exec(t, b.store, `UPDATE execution SET started_at = NULL WHERE id = $1`, id)
		testkit.Exec(t, b.store, `ALTER TABLE execution ENABLE TRIGGER USER`)
	}
	return id
}

// A poll that is woken while another replica works waits for it: the pass of that one may have begun too early.
func TestAPollWaitsForThePassOfAnotherReplica(t *testing.T) {
	b := setup(t)
	tx, err := b.store.Pool().Begin(testkit.Context(t))
	require.NoError(t, err)
	won, err := store.New(tx).TryLoopLock(testkit.Context(t), "cancels")
	require.NoError(t, err)
	require.True(t, won)
	id := b.asked(t, time.Second, lifecycle.StatusCanceling, nil, true)
	b.poll(t, func(c *cancellation.Config) { c.Interval = time.Hour })
	// Its first try finds the lock taken, unless the machine pauses.
	supervise.Sleep(testkit.Context(t), 300*time.Millisecond)
	require.NoError(t, tx.Rollback(testkit.Context(t)))
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusCancelled },
		20*time.Second)
}

// A lost message is sent again, once after each interval.
func TestAWorkerIsAskedAgainAtGrowingDistance(t *testing.T) {
	b := setup(t)
	young := b.asked(t, time.Second, lifecycle.StatusCanceling, &b.plain, true)
	testkit.Exec(t, b.store, `UPDATE execution_cancel SET at = now() + interval '1 hour'`) // it stays young
	late := b.asked(t, 15*time.Second, lifecycle.StatusCanceling, &b.plain, true)
	sent := b.poll(t)
	var first []int64
	testkit.Eventually(t, func() bool {
		for _, m := range sent.take(message.TypeExecutionCancelRequested) {
			request, err := message.Decode[message.ExecutionCancelRequested](m.Body)
			require.NoError(t, err)
			first = append(first, request.Payload.ExecutionID)
		}
		return len(first) > 0
	}, testkit.TestTimeout)
	require.Equal(t, []int64{late}, first)
	// Nothing more is sent for some polls, until the next interval has passed.
	testkit.Exec(t, b.store, `UPDATE execution_cancel SET at = at - interval '30 seconds' WHERE execution = $1`, late)
	testkit.Eventually(t, func() bool { return len(sent.take(message.TypeExecutionCancelRequested)) == 1 },
		testkit.TestTimeout)
	testkit.Exec(t, b.store, `UPDATE execution_cancel SET at = now() - interval '11 seconds' WHERE execution = $1`,
		young)
	testkit.Eventually(t, func() bool { return len(sent.take(message.TypeExecutionCancelRequested)) == 1 },
		testkit.TestTimeout)
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, b.store, young))
}

// The poll ends executions that their worker never started or that have no worker, in the name of the requester;
// S14: once.
func TestAnExecutionWithoutAWorkerIsEnded(t *testing.T) {
	b := setup(t)
	waits := b.asked(t, 20*time.Second, lifecycle.StatusCanceling, &b.plain, false)
	unstarted := b.asked(t, 2*time.Minute, lifecycle.StatusCanceling, &b.plain, false)
	alone := b.asked(t, time.Second, lifecycle.StatusCanceling, nil, true)
	first, second := b.poll(t), b.poll(t)
	testkit.Eventually(t,
		func() bool { return b.count(t, `SELECT count(*) FROM execution WHERE status = 'cancelled'`) == 2 },
		testkit.TestTimeout)
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, b.store, waits))
	ends := append(first.take(message.TypeExecutionCompleted), second.take(message.TypeExecutionCompleted)...)
	testkit.Eventually(t, func() bool {
		ends = append(append(ends, first.take(message.TypeExecutionCompleted)...),
			second.take(message.TypeExecutionCompleted)...)
		return len(ends) == 2
	}, testkit.TestTimeout)
	for _, m := range ends {
		end, err := message.Decode[message.ExecutionCompleted](m.Body)
		require.NoError(t, err)
		require.Contains(t, []int64{unstarted, alone}, end.Payload.ExecutionID)
		b.requireEnd(t, end.Payload.ExecutionID, m)
	}
}

// A worker that writes running without a check has overwritten the cancel: the poll asks again, and the row shows
// it again.
func TestExecutionsWrittenBackToRunningAreStoppedAgain(t *testing.T) {
	b := setup(t)
	id := b.at(t, lifecycle.StatusScheduled, &b.plain)
	b.one(t, id)
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, b.store, id))
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'running', started_at = now() WHERE id = $1`, id)
	sent := b.poll(t)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusCanceling },
		testkit.TestTimeout)
	testkit.Eventually(t, func() bool { return len(sent.take(message.TypeExecutionCancelRequested)) == 1 },
		testkit.TestTimeout)
}

// The notes of ended executions are deleted after a while. The notes of executions that a repeated report of their
// end would retry are deleted later.
func TestNotesAreForgottenWhenNothingDependsOnThem(t *testing.T) {
	b := setup(t)
	done := b.asked(t, time.Hour, lifecycle.StatusCancelled, &b.plain, true)
	ancient := b.asked(t, 48*time.Hour, lifecycle.StatusTimeout, &b.plain, true)
	failed := b.asked(t, time.Hour, lifecycle.StatusFailed, &b.plain, true)
	young := b.asked(t, time.Second, lifecycle.StatusCompleted, &b.plain, true)
	held := b.asked(t, 48*time.Hour, lifecycle.StatusFailed, &b.plain,
		true) // the batch that releases it would retry it
	testkit.Exec(t, b.store,
		`INSERT INTO execution_holder (execution, state_id, attempt, granted_at) VALUES ($1, $2, 1, now())`,
		held, testkit.State(t, b.store, b.action, 5).ID)
	b.poll(t, func(c *cancellation.Config) { c.Keep, c.KeepFailed = time.Minute, 24*time.Hour })
	noted := func(id int64) bool {
		return b.count(t, `SELECT count(*) FROM execution_cancel WHERE execution = $1`, id) == 1
	}
	testkit.Eventually(t, func() bool { return !noted(done) && !noted(ancient) }, testkit.TestTimeout)
	require.True(t, noted(failed))
	require.True(t, noted(young))
	require.True(t, noted(held))
}

// With more than one page, none hides the ones after it.
func TestThePollReadsAllPages(t *testing.T) {
	b := setup(t)
	n := cancellation.MaxPage + 50
	for range n {
		b.at(t, lifecycle.StatusCanceling, nil)
	}
	testkit.Exec(t, b.store, `INSERT INTO execution_cancel (execution) SELECT id FROM execution ON CONFLICT DO NOTHING`)
	b.poll(t)
	testkit.Eventually(t,
		func() bool { return b.count(t, `SELECT count(*) FROM execution WHERE status = 'cancelled'`) == n },
		testkit.TestTimeout)
	require.Equal(t, n, b.count(t, `SELECT coalesce(sum(cardinality(message_ids)), 0) FROM outbox`), "one end each")
}

// A retry that an older engine made in spite of a cancel request is stopped; a later retry by an operator is not.
func TestARetryAgainstTheNoteIsStopped(t *testing.T) {
	b := setup(t)
	strayed := b.asked(t, time.Minute, lifecycle.StatusFailed, &b.plain, true)
	byHand := b.asked(t, time.Minute, lifecycle.StatusFailed, &b.plain, true)
	first, second := b.retryOf(t, strayed, lifecycle.StatusRequested, true), b.retryOf(t, byHand,
		lifecycle.StatusRequested,
		false)
	testkit.Exec(t, b.store, `UPDATE execution_retry SET requested_by = 'bob' WHERE failed = $1`, byHand)
	sent := b.poll(t)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, first) == lifecycle.StatusCancelled },
		testkit.TestTimeout)
	testkit.Eventually(t, func() bool { return len(sent.take(message.TypeExecutionCompleted)) == 1 },
		testkit.TestTimeout)
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, b.store, second))
}

// A row that cannot be written keeps no other execution from its end.
func TestARowThatCannotBeWrittenDelaysNoOther(t *testing.T) {
	b := setup(t)
	bad := b.asked(t, time.Minute, lifecycle.StatusCanceling, nil, true)
	good := b.asked(t, time.Minute, lifecycle.StatusCanceling, nil, true)
	testkit.RefuseUpdates(t, b.store, bad)
	b.poll(t)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, good) == lifecycle.StatusCancelled },
		testkit.TestTimeout)
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, b.store, bad))
}
