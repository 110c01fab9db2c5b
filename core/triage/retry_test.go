package triage_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// ended inserts an execution with an end.
func (b *bundle) ended(t *testing.T, action testkit.ActionRow, status lifecycle.Status,
	options ...func(*testkit.ExecutionRow),
) int64 {
	t.Helper()
	options = append(options, func(e *testkit.ExecutionRow) { e.Status = status })
	return testkit.Execution(t, b.store, action, options...).ID
}

func TestARetryIsANewExecutionThatIsDueAtOnce(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "demo.sleep", 1)
	id := b.ended(t, action, lifecycle.StatusFailed,
		func(e *testkit.ExecutionRow) { e.Config = map[string]any{"n": 7} })

	receipt, err := b.operator.RetryExecution(t.Context(), id, "the disk is free again")
	require.NoError(t, err)
	require.Equal(t, id, receipt.Failed)
	require.Equal(t, id, receipt.Original)
	require.Equal(t, 2, receipt.Attempt)
	require.Equal(t, "demo.sleep", receipt.ActionRef)
	require.Equal(t, 1, receipt.Messages)

	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution
		WHERE id = $1 AND status = 'requested' AND original_execution = $2 AND retry_count = 1 AND retry_reason = 'manual_retry'
		  AND enforcement IS NULL AND config = '{"n": 7}'`, receipt.Execution, id))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution_retry
		WHERE failed = $1 AND execution = $2 AND due <= now() AND requested_by = 'ann@desk'`, id, receipt.Execution))
	require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, b.store, id), "the ended execution stays unchanged")

	sent := b.sent.take()
	require.Len(t, sent, 1)
	require.Equal(t, message.KeyExecutionRequested, sent[0].RoutingKey)
	envelope, err := message.Decode[message.ExecutionRequested](sent[0].Body)
	require.NoError(t, err)
	require.Equal(t, receipt.Execution, envelope.Payload.ExecutionID)
	require.JSONEq(t, `{"n": 7}`, string(envelope.Payload.Config))

	row := b.audit(t, receipt.Audit)
	require.Equal(t, "ann@desk", row.Actor)
	require.Equal(t, "execution.retry", row.Action)
	require.Equal(t, "execution", row.TargetType)
	require.Equal(t, id, *row.TargetID)
	require.Equal(t, "the disk is free again", row.Reason)

	// It runs like any other.
	require.Equal(t, 1, b.dispatch(t, receipt.Execution).Granted)
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, receipt.Execution))
}

func TestAnOperatorCanRetryEveryEndRepeatedly(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "demo.sleep")
	for _, status := range lifecycle.TerminalStatuses {
		_, err := b.operator.RetryExecution(t.Context(), b.ended(t, action, status), "")
		require.NoError(t, err, status)
	}
	none := int32(0)
	id := b.ended(t, action, lifecycle.StatusFailed,
		func(e *testkit.ExecutionRow) { e.MaxRetries, e.RetryCount = &none, 9 })
	first, err := b.operator.RetryExecution(t.Context(), id, "")
	require.NoError(t, err, "max_retries binds the engine")
	require.Equal(t, 11, first.Attempt)
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'failed' WHERE id = $1`, first.Execution)
	second, err := b.operator.RetryExecution(t.Context(), first.Execution, "")
	require.NoError(t, err)
	require.Equal(t, id, second.Original, "the original is the first of all attempts")

	for _, old := range []int64{id, first.Execution} {
		_, err = b.operator.RetryExecution(t.Context(), old, "")
		already, ok := errors.AsType[*triage.AlreadyRetriedError](err)
		require.True(t, ok, err)
		require.Equal(t, triage.AlreadyRetriedError{ID: old, By: second.Execution}, *already)
	}
}

func TestRefusedRetries(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "demo.sleep")
	for _, status := range lifecycle.Statuses {
		if status.Terminal() {
			continue
		}
		_, err := b.operator.RetryExecution(t.Context(), b.ended(t, action, status), "")
		require.ErrorIs(t, err, triage.ErrNotEnded)
		require.ErrorContains(t, err, "it is "+string(status))
	}
	_, err := b.operator.RetryExecution(t.Context(), 4711, "")
	require.ErrorIs(t, err, triage.ErrNoExecution)
	require.ErrorContains(t, err, "execution 4711")

	// Another program's retry counts, although it is not recorded here.
	id := b.ended(t, action, lifecycle.StatusFailed)
	other := testkit.Execution(t, b.store, action,
		func(e *testkit.ExecutionRow) { e.OriginalExecution, e.RetryCount = &id, 1 }).ID
	_, err = b.operator.RetryExecution(t.Context(), id, "")
	require.EqualError(t, err, (&triage.AlreadyRetriedError{ID: id, By: other}).Error())
	id = b.ended(t, action, lifecycle.StatusFailed)
	uncounted := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) { e.OriginalExecution = &id }).ID
	_, err = b.operator.RetryExecution(t.Context(), id, "")
	require.EqualError(t, err, (&triage.AlreadyRetriedError{ID: id, By: uncounted}).Error())

	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution_retry`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM operator_audit`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM outbox`))
}

// Of concurrent retries of one execution one is created, and each other operator learns its id.
func TestConcurrentOperatorsCreateOneRetry(t *testing.T) {
	b := setup(t)
	id := b.ended(t, testkit.Action(t, b.store, "demo.sleep"), lifecycle.StatusAbandoned)
	const operators = 8
	receipts, failures := make([]*triage.RetryReceipt, operators), make([]error, operators)
	var group sync.WaitGroup
	begin := make(chan struct{})
	for n := range operators {
		group.Go(func() {
			<-begin
			receipts[n], failures[n] = b.operator.RetryExecution(t.Context(), id, "")
		})
	}
	close(begin)
	group.Wait()

	var made int64
	for _, receipt := range receipts {
		if receipt != nil {
			require.Zero(t, made, "two receipts of one retry")
			made = receipt.Execution
		}
	}
	require.NotZero(t, made)
	for n, err := range failures {
		if receipts[n] == nil {
			already, ok := errors.AsType[*triage.AlreadyRetriedError](err)
			require.True(t, ok, err)
			require.Equal(t, made, already.By)
		}
	}
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM execution`))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM operator_audit`))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM outbox`))
}

// The second retry begins before the first has committed, so it waits for the first and names it.
func TestTheLoserOfARaceLearnsTheWinner(t *testing.T) {
	b := setup(t)
	id := b.ended(t, testkit.Action(t, b.store, "demo.sleep"), lifecycle.StatusTimeout)
	ctx := testkit.Context(t)
	first := testkit.Begin(t, b.store)
	_, err := first.Exec(ctx,
		`INSERT INTO execution_retry (failed, execution, reason, due) VALUES ($1, 999, 'action_failure', now())`, id)
	require.NoError(t, err)

	result := make(chan error, 1)
	go func() {
		_, err := b.operator.RetryExecution(ctx, id, "")
		result <- err
	}()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	}, testkit.TestTimeout, "the second waits")
	require.NoError(t, first.Commit(ctx))
	already, ok := errors.AsType[*triage.AlreadyRetriedError](<-result)
	require.True(t, ok)
	require.Equal(t, int64(999), already.By)
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM outbox`))
}

// Replicas handle the same ends while operators retry the same executions: each gets one retry (S19).
func TestEnginesAndOperatorsCreateOneRetryOfEach(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "demo.sleep", func(a *testkit.ActionRow) { a.MaxRetries = 3 })
	const n = 30
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = b.ended(t, action, lifecycle.StatusFailed)
	}
	policy := scheduler.CompletionConfig{Retry: lifecycle.RetryPolicy{Enabled: true, Multiplier: 1}}
	begin := make(chan struct{})
	var group sync.WaitGroup
	var engine, operators atomic.Int64
	for range 2 {
		replica := b.replica(t)
		group.Go(func() {
			<-begin
			for part := range slices.Chunk(ids, 5) {
				reports := make([]scheduler.Report, len(part))
				for i, id := range part {
					reports[i].Execution = id
				}
				result, err := replica.Run(t.Context(), scheduler.NewCompletionStep(policy, reports))
				if err != nil {
					t.Error(err)
				}
				engine.Add(int64(len(result.Repeated)))
			}
		})
		group.Go(func() {
			<-begin
			for i := range ids {
				id := ids[n-1-i] // in the opposite order, so that they meet
				_, err := b.operator.RetryExecution(t.Context(), id, "")
				if _, already := errors.AsType[*triage.AlreadyRetriedError](err); err != nil && !already {
					t.Error(err)
				}
				if err == nil {
					operators.Add(1)
				}
			}
		})
	}
	close(begin)
	group.Wait()
	require.Equal(t, int64(n), engine.Load()+operators.Load(), "each retry is reported once")
	require.Equal(t, 2*n, testkit.Count(t, b.store, `SELECT count(*) FROM execution`))
	require.Equal(t, n,
		testkit.Count(t, b.store, `SELECT count(DISTINCT original_execution) FROM execution WHERE retry_count = 1`))
}
