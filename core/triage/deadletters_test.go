package triage_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// deadLetterRow is a row of the ledger; empty values are NULL.
type deadLetterRow struct {
	kind, key, exchange, reason, action, decision string
	execution, worker                             int64
	age                                           time.Duration
	body                                          []byte
}

// deadLetter stores an expired dispatch to worker 7, unless change says otherwise.
func (b *bundle) deadLetter(t *testing.T, change ...func(*deadLetterRow)) int64 {
	t.Helper()
	r := deadLetterRow{
		kind: message.TypeExecutionRequested, key: message.DispatchKey(7), exchange: message.ExchangeExecutions,
		reason: "expired", worker: 7, body: []byte(`{"of": "a dispatch"}`),
	}
	for _, c := range change {
		c(&r)
	}
	var id int64
	err := b.store.Pool().QueryRow(t.Context(), `
		INSERT INTO dead_letter (fingerprint, message_type, routing_key, exchange, reason, action_ref, decision, decided_by, decided_at, execution,
			worker, created, body, evidence)
		VALUES (gen_random_uuid()::text, $1, $2, $3, $4, nullif($5, ''), nullif($6, ''), CASE WHEN $6 <> '' THEN 'dead_letter_handler' END,
			CASE WHEN $6 <> '' THEN now() END, nullif($7::bigint, 0), $8, now() - make_interval(secs => $9), $10, '{"execution": {"status": "scheduled"}}')
		RETURNING id`, r.kind, r.key, r.exchange, r.reason, r.action, r.decision, r.execution, r.worker, r.age.Seconds(), r.body).Scan(&id)
	require.NoError(t, err)
	return id
}

func event(r *deadLetterRow) {
	r.kind, r.key, r.exchange, r.body = message.TypeEventCreated, message.KeyEventCreated, message.ExchangeEvents,
		[]byte("the body\xff")
}

// keeps requires that the row still has its body and its evidence.
func (b *bundle) keeps(t *testing.T, id int64, decision string) {
	t.Helper()
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from dead_letter where id = $1 and decision = $2 and decided_by = 'ann@desk'
		and decided_at is not null and length(body) > 0 and evidence->'execution'->>'status' = 'scheduled'`, id, decision))
}

// A requeued dispatch is not sent to the worker again: the execution is retried.
func TestARequeuedDispatchIsANewAttempt(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "demo.sleep", 1)
	for _, decision := range []string{"", "failed", "stale"} {
		execution := b.ended(t, action, lifecycle.StatusFailed)
		id := b.deadLetter(t, func(r *deadLetterRow) { r.execution, r.decision = execution, decision })
		receipt, err := b.operator.Requeue(t.Context(), id, true, "the worker is back")
		require.NoError(t, err, decision)
		require.Equal(t, execution, receipt.Repeated.Failed)
		require.Equal(t, 1, receipt.Messages)
		sent := b.sent.take()
		require.Len(t, sent, 1)
		require.Equal(t, message.KeyExecutionRequested, sent[0].RoutingKey, "a request, not the dispatch")
		require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, b.store, receipt.Repeated.Execution))
		b.keeps(t, id, "requeued")
		row := b.audit(t, receipt.Audit)
		require.Equal(t, "dead_letter.requeue", row.Action)
		require.Equal(t, "dead_letter", row.TargetType)
		require.Equal(t, id, *row.TargetID)
		require.Equal(t, "the worker is back", row.Reason)

		_, err = b.operator.Requeue(t.Context(), id, true, "")
		decided, ok := errors.AsType[*triage.DecidedError](err)
		require.True(t, ok, err)
		require.Equal(t, "requeued", decided.Decision)
		require.Equal(t, "ann@desk", decided.By)
		require.WithinDuration(t, time.Now(), decided.At, time.Minute)
	}
	require.Equal(t, 3, testkit.Count(t, b.store, `select count(*) from operator_audit`), "refusals are not audited")
}

func TestARefusedRequeueChangesNothing(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "demo.sleep")
	running := b.ended(t, action, lifecycle.StatusRunning)
	repeated := b.ended(t, action, lifecycle.StatusFailed)
	again, err := b.operator.RetryExecution(t.Context(), repeated, "")
	require.NoError(t, err)
	about := func(execution int64) int64 {
		return b.deadLetter(t, func(r *deadLetterRow) { r.execution = execution })
	}
	for name, c := range map[string]struct {
		deadLetter int64
		is         error
		text       string
	}{
		"no dead letter": {999_999, triage.ErrNoDeadLetter, "no such dead letter: 999999"},
		"running":        {about(running), triage.ErrNotEnded, "the execution has not ended: it is running"},
		"gone":           {about(888_888), triage.ErrNoExecution, "there is no such execution"},
		"nameless":       {b.deadLetter(t), triage.ErrNoMessage, "names no execution"},
		"nowhere": {
			b.deadLetter(t, event, func(r *deadLetterRow) { r.exchange = "" }), triage.ErrNoMessage,
			"does not say where",
		},
		"retried": {
			b.deadLetter(t, func(r *deadLetterRow) { r.execution, r.decision = repeated, "retried" }),
			triage.ErrDecided, "retried by dead_letter_handler",
		},
		"stale event": {
			b.deadLetter(t, event, func(r *deadLetterRow) { r.decision = "stale" }), triage.ErrDecided,
			"stale by dead_letter_handler",
		},
	} {
		_, err := b.operator.Requeue(t.Context(), c.deadLetter, true, "")
		require.ErrorIs(t, err, c.is, name)
		require.Contains(t, err.Error(), c.text, name)
	}
	_, err = b.operator.Requeue(t.Context(), about(repeated), true, "")
	already, ok := errors.AsType[*triage.AlreadyRetriedError](err)
	require.True(t, ok, err)
	require.Equal(t, again.Execution, already.By)
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from dead_letter where decision = 'requeued'`))
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from operator_audit where action like 'dead_letter%'`))
}

// Another dead letter is sent again to its exchange, byte by byte.
func TestAnotherRequeuedMessageIsSentAgain(t *testing.T) {
	b := setup(t)
	id := b.deadLetter(t, event)
	receipt, err := b.operator.Requeue(t.Context(), id, true, "")
	require.NoError(t, err)
	require.Nil(t, receipt.Repeated)
	require.Equal(t, message.ExchangeEvents, receipt.Exchange)
	sent := b.sent.take()
	require.Len(t, sent, 1)
	require.Equal(t, "the body\xff", string(sent[0].Body))
	require.Equal(t, message.KeyEventCreated, sent[0].RoutingKey)
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from outbox where id = $1`, receipt.Rows[0]))
	b.keeps(t, id, "requeued")
}

// noExchange is a broker without exchanges.
type noExchange struct{ triage.WorkerQueues }

func (noExchange) ExchangeExists(context.Context, string) (bool, error) { return false, nil }

// A message is not sent to an exchange that does not exist, unless the operator insists.
func TestNothingIsSentToAMissingExchange(t *testing.T) {
	b := setup(t)
	id, operator := b.deadLetter(t, event), b.operator.With(noExchange{})
	testkit.Exec(t, b.store, `update dead_letter set exchange = 'shop' where id = $1`, id)
	_, err := operator.Requeue(t.Context(), id, false, "")
	require.ErrorIs(t, err, triage.ErrUseless)
	require.ErrorContains(t, err, "there is no exchange shop")
	err = operator.Accepts(t.Context(), "nowhere", "k")
	require.ErrorIs(t, err, triage.ErrNoMessage)
	require.Empty(t, b.sent.take())
	_, err = operator.Requeue(t.Context(), id, true, "")
	require.NoError(t, err)
	require.Len(t, b.sent.take(), 1)

	// Each replica declares its own exchanges at its start.
	_, err = operator.Requeue(t.Context(), b.deadLetter(t, event), false, "")
	require.NoError(t, err)
}

// What has died again and again is requeued only if the operator insists.
func TestALoopIsRequeuedOnlyAnyway(t *testing.T) {
	b := setup(t)
	id := b.deadLetter(t, event)
	testkit.Exec(t, b.store, `update dead_letter set headers = '{"x-attune-deaths": 3}' where id = $1`, id)
	run, err := requeueMany(b.operator, t.Context(), []int64{id}, nil, "")
	require.NoError(t, err)
	require.Equal(t, 1, run.Changed)
	require.ErrorIs(t, run.Notes[0].Err, triage.ErrUseless)
	require.ErrorContains(t, run.Notes[0].Err, "it has died 4 times")
	run, err = requeueMany(b.operator, t.Context(), []int64{id}, []int64{id}, "")
	require.NoError(t, err)
	require.Equal(t, 1, run.Done)
	_, err = b.operator.Requeue(t.Context(), id, false, "")
	require.ErrorIs(t, err, triage.ErrDecided)
}

// Of ten concurrent requeues one succeeds, and the others fail with its author.
func TestOneOfManyConcurrentRequeuesSucceeds(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "demo.sleep")
	dispatch := b.deadLetter(t, func(r *deadLetterRow) { r.execution = b.ended(t, action, lifecycle.StatusFailed) })
	other := b.deadLetter(t, event)
	for _, id := range []int64{dispatch, other} {
		errs := make([]error, 10)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = b.operator.As(fmt.Sprint("user ", i)).Requeue(t.Context(), id, true, "")
			})
		}
		wg.Wait()
		done := 0
		for _, err := range errs {
			if err == nil {
				done++
				continue
			}
			require.ErrorIs(t, err, triage.ErrDecided)
		}
		require.Equal(t, 1, done)
	}
	require.Len(t, b.sent.take(), 2)
	require.Equal(t, 2, testkit.Count(t, b.store, `select count(*) from operator_audit`))
}

// During a requeue the same dead letter is delivered to the handler again. The handler finds the row and changes
// nothing.
func TestARequeueAgainstTheHandler(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "demo.sleep")
	execution := b.ended(t, action, lifecycle.StatusFailed)
	id := b.deadLetter(t, func(r *deadLetterRow) { r.execution = execution })
	testkit.Exec(t, b.store, `update dead_letter set fingerprint = 'the same' where id = $1`, id)
	record := func() error {
		_, err := b.store.RecordDeadLetter(t.Context(), store.RecordDeadLetterParams{
			Fingerprint: "the same", Body: []byte("another"), Decision: new(deadletter.Failed),
			DecidedBy: new(deadletter.HandledBy), Evidence: []byte(`{}`),
		})
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() {
			if errs[i] = record(); i == len(errs)/2 {
				_, errs[i] = b.operator.Requeue(t.Context(), id, true, "")
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from dead_letter`))
	b.keeps(t, id, "requeued")
	require.Equal(t, 1,
		testkit.Count(t, b.store, `select count(*) from execution where original_execution = $1`, execution))
}

// A discarded dead letter keeps its body and evidence, and is decided once.
func TestADiscardedDeadLetterKeepsEverything(t *testing.T) {
	b := setup(t)
	id := b.deadLetter(t)
	receipt, err := b.operator.Discard(t.Context(), id, "a test of ours")
	require.NoError(t, err)
	b.keeps(t, id, "discarded")
	row := b.audit(t, receipt.Audit)
	require.Equal(t, "dead_letter.discard", row.Action)
	require.Equal(t, "a test of ours", row.Reason)
	_, err = b.operator.Discard(t.Context(), id, "")
	require.ErrorIs(t, err, triage.ErrDecided)
	_, err = b.operator.Requeue(t.Context(), id, true, "")
	require.ErrorIs(t, err, triage.ErrDecided)
	_, err = b.operator.Discard(t.Context(), 999_999, "")
	require.ErrorIs(t, err, triage.ErrNoDeadLetter)
	require.Empty(t, b.sent.take())
}

// A purge discards the undecided dead letters of its plan.
func TestAPurgeDiscardsTheDeadLettersOfItsPlan(t *testing.T) {
	b := setup(t)
	w := testkit.Worker(t, b.store, "far")
	b.deadLetter(t, func(r *deadLetterRow) { r.decision = "failed" })
	plain := b.deadLetter(t)
	old := b.deadLetter(t, func(r *deadLetterRow) { r.age = time.Hour })
	kind := b.deadLetter(t, event)
	rejected := b.deadLetter(t, func(r *deadLetterRow) { r.reason = "rejected" })
	acts := b.deadLetter(t, func(r *deadLetterRow) { r.action = "core.x" })
	away := b.deadLetter(t, func(r *deadLetterRow) { r.worker = w.ID })
	about := b.deadLetter(t, func(r *deadLetterRow) { r.execution = 12 })
	for name, c := range map[string]struct {
		request triage.DiscardRequest
		first   int64
		n       int
	}{
		"all": {triage.DiscardRequest{}, plain, 7}, "older": {triage.DiscardRequest{MinAge: 30 * time.Minute}, old, 1},
		"newer":     {triage.DiscardRequest{MaxAge: 30 * time.Minute}, plain, 6},
		"type":      {triage.DiscardRequest{Type: message.TypeEventCreated}, kind, 1},
		"reason":    {triage.DiscardRequest{Reason: "rejected"}, rejected, 1},
		"action":    {triage.DiscardRequest{Action: "core.*"}, acts, 1},
		"literal":   {triage.DiscardRequest{Action: "core_x"}, 0, 0},
		"worker":    {triage.DiscardRequest{Worker: "far"}, away, 1},
		"unknown":   {triage.DiscardRequest{Worker: "unknown"}, 0, 0},
		"execution": {triage.DiscardRequest{Execution: 12}, about, 1},
	} {
		plan, err := b.operator.PlanDiscard(t.Context(), c.request)
		require.NoError(t, err, name)
		require.Equal(t, c.n, plan.DeadLetters, name)
		require.Equal(t, c.first, plan.First, name)
	}
	plan, err := b.operator.PlanDiscard(t.Context(), triage.DiscardRequest{Note: "old tests"})
	require.NoError(t, err)
	require.Equal(t, triage.DiscardGroup{
		Reason: "expired", Type: message.TypeExecutionRequested, Count: 5,
		Oldest: plan.Groups[0].Oldest,
	}, plan.Groups[0])
	later := b.deadLetter(t)
	_, err = b.operator.Discard(t.Context(), old, "")
	require.NoError(t, err)
	receipt, err := b.operator.DiscardMany(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, 6, receipt.Discarded)
	require.Equal(t, 1, receipt.AlreadyDecided)
	require.Zero(t, receipt.Left)
	require.Equal(t, "done", receipt.Outcome)
	b.keeps(t, plain, "discarded")
	b.keeps(t, old, "discarded")
	require.Equal(t, 1,
		testkit.Count(t, b.store, `select count(*) from dead_letter where id = $1 and decision is null`, later))
	row := b.audit(t, receipt.Audit)
	require.Equal(t, "dead_letter.discard", row.Action)
	require.Equal(t, "done", row.Outcome)
	require.Equal(t, "old tests", row.Reason)
	require.Equal(t, 1, testkit.Count(t, b.store,
		`select count(*) from operator_audit where id = $1 and request->'receipt'->>'discarded' = '6'`, receipt.Audit))

	again, err := b.operator.DiscardMany(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, "unchanged", again.Outcome)
	require.Equal(t, 7, again.AlreadyDecided)
	none, err := b.operator.PlanDiscard(t.Context(), triage.DiscardRequest{Reason: "never"})
	require.NoError(t, err)
	nothing, err := b.operator.DiscardMany(t.Context(), none)
	require.NoError(t, err)
	require.Equal(t, "nothing to do", nothing.Outcome)
}

// A purge discards at most MaxDiscard dead letters, in pages.
func TestAPurgeIsBounded(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `insert into dead_letter (reason) select 'bulk' from generate_series(1, $1)`,
		triage.MaxDiscard+3)
	plan, err := b.operator.PlanDiscard(t.Context(), triage.DiscardRequest{})
	require.NoError(t, err)
	require.Equal(t, triage.MaxDiscard, plan.DeadLetters)
	require.True(t, plan.More)
	receipt, err := b.operator.DiscardMany(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, triage.MaxDiscard, receipt.Discarded)
	plan, err = b.operator.PlanDiscard(t.Context(), triage.DiscardRequest{})
	require.NoError(t, err)
	require.Equal(t, 3, plan.DeadLetters)
	require.False(t, plan.More)
}

// The verdict predicts the requeue, for every kind of dead letter and every state of its execution.
func TestTheVerdictPredictsTheRequeue(t *testing.T) {
	b := setup(t)
	look := monitor.New(monitor.Config{}, monitor.Deps{Store: b.store})
	action := testkit.Action(t, b.store, "demo.sleep")
	var deadLetters []int64
	for _, status := range lifecycle.Statuses {
		execution := b.ended(t, action, status)
		for _, decision := range []string{"", "failed", "stale", "retried", "released", "discarded"} {
			deadLetters = append(deadLetters, b.deadLetter(t, func(r *deadLetterRow) {
				r.execution, r.decision = execution,
					decision
			}))
		}
		deadLetters = append(deadLetters,
			b.deadLetter(t, func(r *deadLetterRow) { r.execution, r.key = execution, message.KeyExecutionRequested }))
	}
	parent := b.ended(t, action, lifecycle.StatusCancelled)
	orphan := b.ended(t, action, lifecycle.StatusFailed, func(e *testkit.ExecutionRow) { e.Parent = &parent })
	gone := b.ended(t, action, lifecycle.StatusFailed)
	testkit.Exec(t, b.store, `update execution set action = null where id = $1`, gone)
	for _, execution := range []int64{orphan, gone} {
		deadLetters = append(deadLetters, b.deadLetter(t, func(r *deadLetterRow) { r.execution = execution }))
	}
	deadLetters = append(deadLetters,
		b.deadLetter(t), b.deadLetter(t, event), b.deadLetter(t, event,
			func(r *deadLetterRow) { r.decision = "stale" }),
		b.deadLetter(t, event, func(r *deadLetterRow) { r.exchange = "" }),
		b.deadLetter(t, func(r *deadLetterRow) { r.execution = 999_999 }),
		b.deadLetter(t, func(r *deadLetterRow) {
			r.key, r.kind = message.CancelKey(7),
				message.TypeExecutionCancelRequested
		}),
		b.deadLetter(t, func(r *deadLetterRow) { r.key = "execution.dispatch.worker.x" }),
	)
	cut := b.deadLetter(t, event)
	testkit.Exec(t, b.store, `update dead_letter set evidence = '{"body": {"cut": true}}' where id = $1`, cut)
	seen := map[string]int{}
	for _, id := range append(deadLetters, cut) {
		deadLetter, err := look.DeadLetter(t.Context(), id)
		require.NoError(t, err)
		receipt, err := b.operator.Requeue(t.Context(), id, false, "")
		if deadLetter.Verdict.Requeue == monitor.RequeueRepeats && deadLetter.Verdict.Advice != monitor.AdviseRequeue {
			require.ErrorIs(t, err, triage.ErrUseless, "%+v", deadLetter.Verdict)
			receipt, err = b.operator.Requeue(t.Context(), id, true, "")
		}
		seen[deadLetter.Verdict.Requeue]++
		at := fmt.Sprintf("%+v: %+v: %v", deadLetter.LedgerEntry, deadLetter.Verdict, err)
		switch deadLetter.Verdict.Requeue {
		case monitor.RequeueRepeats:
			require.NoError(t, err, at)
			require.NotNil(t, receipt.Repeated, at)
		case monitor.RequeueSends:
			require.NoError(t, err, at)
			require.NotEmpty(t, receipt.Exchange, at)
		default:
			require.Error(t, err, at)
		}
	}
	require.Len(t, seen, 3, "all of them happened: %v", seen)
}
