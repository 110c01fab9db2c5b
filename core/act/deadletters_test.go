package act_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// deadLetter stores a waiting dead letter of a dispatch.
func (b *bundle) deadLetter(execution, worker int64) int64 {
	b.t.Helper()
	var id int64
	require.NoError(b.t, b.store.Pool().QueryRow(b.t.Context(), `
		insert into dead_letter (message_id, message_type, exchange, routing_key, queue, reason, execution, worker, attempt, body)
		values (gen_random_uuid()::text, 'ExecutionScheduled', 'attune.executions', 'execution.dispatch.worker.' || $2::bigint,
			'worker.' || $2::bigint || '.executions', 'expired', $1, $2, 1, '{}')
		returning id`, execution, worker).Scan(&id))
	return id
}

func TestADeadLetterIsRequeuedOnce(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.dead_letter")
	failed := testkit.Execution(t, b.store, testkit.Action(t, b.store, "pk.dead_letter"),
		func(e *testkit.ExecutionRow) {
			e.Status, e.Worker = lifecycle.StatusFailed, &worker.ID
		})
	target := act.Target{ID: b.deadLetter(failed.ID, worker.ID)}
	plan := b.plan(act.RequeueDeadLetter, target)
	require.Contains(t, text(plan.Lines), "ended as failed: it is repeated as a new execution")
	receipt := b.run(plan)
	require.Contains(t, receipt.Text, "as attempt 2")
	require.Empty(t, plan.Word)
	require.NotEmpty(t, b.plan(act.RequeueDeadLetter, target).Nothing)
	require.Contains(t, b.plan(act.DiscardDeadLetter, target).Nothing, "it is decided")
}

// TestTwoDeadLettersOfOneExecutionRepeatItOnce, and the plan says so.
func TestTwoDeadLettersOfOneExecutionRepeatItOnce(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.twins")
	action := testkit.Action(t, b.store, "pk.twins")
	var targets []act.Target
	for range 2 {
		failed := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) {
			e.Status, e.Worker = lifecycle.StatusFailed, &worker.ID
		})
		for range 2 {
			targets = append(targets, act.Target{ID: b.deadLetter(failed.ID, worker.ID)})
		}
	}
	plan := b.planMany(act.RequeueDeadLetter, targets)
	require.Contains(t, text(plan.Lines), "4 marked: 2 will be requeued")
	require.Contains(t, text(plan.Lines), "2 are about executions that others of them repeat")
	require.Equal(t, "Requeue: 2 of 2 done.", b.run(plan).Text)
}

func TestARequeueDecidesAgainWhetherItIsOfUse(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.late")
	action := testkit.Action(t, b.store, "pk.late")
	parent := testkit.Execution(t, b.store, action)
	failed := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) {
		e.Status, e.Worker, e.Parent = lifecycle.StatusFailed, &worker.ID, &parent.ID
	})
	plan := b.plan(act.RequeueDeadLetter, act.Target{ID: b.deadLetter(failed.ID, worker.ID)})
	require.Empty(t, plan.Word)
	testkit.Exec(t, b.store, `update execution set status = 'cancelled' where id = $1`, parent.ID)
	_, err := b.Run(t.Context(), plan, "", &act.Progress{})
	require.ErrorIs(t, err, triage.ErrUseless, "its parent has ended since the plan was made")
}

func TestDeadLettersAreDiscardedAndPurged(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.purge")
	action := testkit.Action(t, b.store, "pk.purge")
	running := testkit.Execution(t, b.store, action,
		func(e *testkit.ExecutionRow) { e.Status, e.Worker = lifecycle.StatusRunning, &worker.ID })
	var deadLetters []int64
	for range 53 {
		deadLetters = append(deadLetters, b.deadLetter(running.ID, worker.ID))
	}
	require.Contains(t, b.plan(act.RequeueDeadLetter, act.Target{ID: deadLetters[0]}).Nothing, "has moved on since")
	require.Equal(t, deadLetters[:1], b.plan(act.DiscardDeadLetter, act.Target{ID: deadLetters[0]}).DeadLetters)
	require.ElementsMatch(t, deadLetters, b.plan(act.DiscardAllDeadLetters, act.Target{}).DeadLetters)
	receipt := b.run(b.plan(act.DiscardDeadLetter, act.Target{ID: deadLetters[0]}))
	require.Contains(t, receipt.Text, "the ledger keeps it")
	require.Equal(t, "a test", b.reason(receipt))
	require.Equal(t, "none that waits matches",
		b.plan(act.DiscardAllDeadLetters, act.Target{}, act.FieldReason, "rejected").Nothing)
	plan := b.plan(act.DiscardAllDeadLetters, act.Target{ID: deadLetters[1]}, act.FieldReason, "expired",
		act.FieldWorker, "pk.purge")
	require.Equal(t, "discard 52", plan.Word)
	receipt = b.run(plan)
	require.Equal(t, "52 of 52 discarded.", receipt.Text)
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from dead_letter where decision is null`))
}

func TestAnUnadvisedRequeueNeedsATypedWord(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.done")
	done := testkit.Execution(t, b.store, testkit.Action(t, b.store, "pk.done"), func(e *testkit.ExecutionRow) {
		e.Status, e.Worker = lifecycle.StatusCompleted, &worker.ID
	})
	plan := b.plan(act.RequeueDeadLetter, act.Target{ID: b.deadLetter(done.ID, worker.ID)})
	require.Contains(t, text(plan.Lines), "a requeue would run it once more")
	require.Equal(t, "anyway", plan.Word)
	require.Contains(t, b.run(plan).Text, "as attempt 2", "then it is done")
}

// A plan names dead letters without a useful requeue, and their alternative. Discarded ones are reopened.
func TestAPlanForManyNamesTheAlternative(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.instead")
	done := testkit.Execution(t, b.store, testkit.Action(t, b.store, "pk.instead"), func(e *testkit.ExecutionRow) {
		e.Status, e.Worker = lifecycle.StatusCompleted, &worker.ID
	})
	targets := []act.Target{{ID: b.deadLetter(done.ID, worker.ID)}}
	for range 2 {
		var id int64
		require.NoError(t, b.store.Pool().QueryRow(t.Context(), `insert into dead_letter (exchange, routing_key, queue, reason, body)
			values ('x', 'k', 'q', 'rejected', 'garbage') returning id`).Scan(&id))
		targets = append(targets, act.Target{ID: id})
	}
	plan := b.planMany(act.RequeueDeadLetter, targets)
	require.Equal(t, "Requeue marked dead letters", plan.Title)
	require.Equal(t, "none of the 3 can usefully be requeued", plan.Nothing)
	require.Contains(t, text(plan.Lines), "1 cannot usefully be requeued: their executions have ended; discard them")
	require.Contains(t, text(plan.Lines),
		"2 cannot usefully be requeued: they are unreadable; export them, then discard them")

	receipt := b.run(b.planMany(act.DiscardDeadLetter, targets))
	require.Equal(t, "3 of 3 discarded.", receipt.Text)
	undo, err := b.Plan(t.Context(), *receipt.Undo)
	require.NoError(t, err)
	require.Contains(t, text(undo.Lines), "3 dead letters are open again; the history is kept.")
	require.Equal(t, "Reopen: 3 of 3 done.", b.run(undo).Text)
}

// A plan for many leaves out dead letters that died again and again. One for only those needs a word, and so does one
// for a single one.
func TestAPlanForManyLeavesLoopsOut(t *testing.T) {
	b := setup(t)
	add := func(deaths int) act.Target {
		var id int64
		require.NoError(t, b.store.Pool().QueryRow(t.Context(), `
			insert into dead_letter (message_type, exchange, routing_key, reason, body, headers)
			values ('EventCreated', 'attune.events', 'event.created', 'rejected', '{}', jsonb_build_object('x-attune-deaths', $1::int))
			returning id`, deaths-1).Scan(&id))
		return act.Target{ID: id}
	}
	once, loop, other := add(1), add(4), add(3)
	plan := b.planMany(act.RequeueDeadLetter, []act.Target{once, loop, other})
	require.Equal(t, "Requeue 1 dead letter", plan.Title)
	require.Contains(t, text(plan.Lines), "3 marked: 1 will be requeued")
	require.Contains(t, text(plan.Lines), "2 cannot usefully be requeued: they would end here again; "+
		"mend the cause, or mark only these and type the word")
	require.Equal(t, "Requeue: 1 of 1 done.", b.run(plan).Text)

	plan = b.planMany(act.RequeueDeadLetter, []act.Target{loop, other})
	require.Equal(t, "anyway 2", plan.Word)
	require.Contains(t, text(plan.Lines), "▲ 1 of 2: died 4 times")
	require.Equal(t, "anyway", b.plan(act.RequeueDeadLetter, loop).Word)
	require.Equal(t, "Requeue: 2 of 2 done.", b.run(plan).Text)
}
