package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// The engine of a workflow requests the end of its tasks, and a poll ends them seconds later. Until then no batch
// starts one of them: not the heads of a queue when a slot becomes free, not a new request, not a retry that is due.
func TestNothingStartsThatIsToBeCancelled(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "pk.task")
	testkit.Worker(t, b.store, "w")
	testkit.Policy(t, b.store, action, 1)
	ids := b.request(t, action, 6)
	b.dispatch(t, ids...)
	testkit.Exec(t, b.store, `INSERT INTO execution_cancel (execution) SELECT unnest($1::bigint[])`, ids[1:4])
	testkit.Exec(t, b.store, `UPDATE execution_cancel SET actor = 'ann', reason = 'wrong host' WHERE execution = $1`,
		ids[2])
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	unfilled := b.complete(t, ids[0]).Unfilled // one batch reads only the heads that its slots need
	require.NotEmpty(t, unfilled)
	b.run(t, scheduler.FillStep{Queues: unfilled})
	require.Equal(t, []lifecycle.Status{
		lifecycle.StatusCompleted, lifecycle.StatusCancelled, lifecycle.StatusCancelled, lifecycle.StatusCancelled,
		lifecycle.StatusScheduled, lifecycle.StatusRequested,
	}, b.statuses(t, ids))
	require.Equal(t, "Cancelled", b.result(t, ids[1], "error"))
	require.Equal(t, "cancelled on request before it started", b.result(t, ids[1], "message"))
	require.Equal(t, "ann: wrong host", b.result(t, ids[2], "cancelled_by")+": "+b.result(t, ids[2], "message"))

	free := testkit.Action(t, b.store, "pk.free") // without a limit: requests start at once
	failed := testkit.Execution(t, b.store, free,
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusFailed }).ID
	retry := testkit.Execution(t, b.store, free, func(e *testkit.ExecutionRow) {
		e.RetryCount, e.OriginalExecution = 1, &failed
	}).ID
	testkit.Exec(t, b.store, `INSERT INTO execution_retry (failed, execution, reason, due, waiting)
		VALUES ($1, $2, 'failed', now(), true)`, failed, retry)
	ids = append(b.request(t, free, 2), retry)
	testkit.Exec(t, b.store, `INSERT INTO execution_cancel (execution) SELECT unnest($1::bigint[])`, ids[1:])
	b.dispatch(t, ids...)
	require.Equal(t, []lifecycle.Status{lifecycle.StatusScheduled, lifecycle.StatusCancelled,
		lifecycle.StatusCancelled},
		b.statuses(t, ids))
	testkit.Invariants(t, b.store)
}

// S2: a dead worker without fencing gets a cancel request for executions that are retried elsewhere, since it may
// come back before its queue has expired. A worker with fencing refuses them itself, and a deleted worker has no
// queue.
func TestADeadWorkerGetsCancelRequestsForRetriedExecutions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		cancel bool
	}{
		"existing":  {`UPDATE worker SET capabilities = '{"max_concurrent_executions": 5}' WHERE id = $1`, true},
		"says no":   {`UPDATE worker SET capabilities = '{"attempt_fence": false}' WHERE id = $1`, true},
		"not known": {`UPDATE worker SET worker_role = 'sensor' WHERE id = $1`, true},
		"deleted":   {`DELETE FROM worker WHERE id = $1`, false},
		"fences":    {`UPDATE worker SET capabilities = '{"attempt_fence": true}' WHERE id = $1`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ids, old, other := unstartedAtDeadWorker(t, b, 1)
			testkit.Exec(t, b.store, c.change, old)
			testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true, capabilities = '{}' WHERE id = $1`, other)
			b.age(t, time.Hour, ids...)
			b.scheduler = b.replica(t)
			require.Equal(t, scheduler.Result{Ended: 1}, b.reassign(t, ids))
			require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, b.store, ids[0]))
			var requests []message.ExecutionCancelRequested
			for _, m := range b.relay.take() {
				if m.RoutingKey == message.CancelKey(old) {
					drop, err := message.Decode[message.ExecutionCancelRequested](m.Body)
					require.NoError(t, err)
					requests = append(requests, drop.Payload)
				}
			}
			if !c.cancel {
				require.Empty(t, requests)
				return
			}
			require.Equal(t, []message.ExecutionCancelRequested{{ExecutionID: ids[0], WorkerID: old}}, requests)
		})
	}
}
