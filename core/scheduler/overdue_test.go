package scheduler_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// age moves the last change of executions into the past.
func (b *bundle) age(t *testing.T, by time.Duration, ids ...int64) {
	t.Helper()
	testkit.Exec(t, b.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, b.store, `UPDATE execution SET updated = now() - make_interval(secs => $2) WHERE id = ANY ($1)`,
		ids, by.Seconds())
	testkit.Exec(t, b.store, `ALTER TABLE execution ENABLE TRIGGER USER`)
}

// overdue dispatches n executions to a live worker that starts none of them for 320 seconds, and registers another
// one.
func overdue(t *testing.T, b *bundle, n int) (late []scheduler.Unstarted, old, other int64) {
	t.Helper()
	ids, old, other := unstartedAtDeadWorker(t, b, n)
	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now() WHERE id = $1`, old)
	b.age(t, 320*time.Second, ids...)
	b.scheduler = b.replica(t)
	for _, id := range ids {
		late = append(late, scheduler.Unstarted{
			Execution: id, Worker: old, Attempt: 1,
			Late: &scheduler.Late{Allowed: 300 * time.Second},
		})
	}
	return late, old, other
}

func (b *bundle) decide(t *testing.T, late []scheduler.Unstarted, move bool) scheduler.Result {
	t.Helper()
	result, err := b.scheduler.Run(testkit.Context(t), scheduler.NewReassignStep(late, move))
	require.NoError(t, err)
	return result
}

// S9, upstream 18: executions that a live worker does not start in time move to another one, in place. An execution
// that it starts meanwhile, or that was dispatched again, stays.
func TestOverdueExecutionsMoveToAnotherWorker(t *testing.T) {
	b := setup(t)
	late, old, other := overdue(t, b, 4)
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'running' WHERE id = $1`, late[0].Execution)
	late[1].Attempt = 0              // it was found before it was dispatched again
	late[2].Late.Allowed = time.Hour // its action allows more
	require.Equal(t, scheduler.Result{Moved: 1}, b.decide(t, late, true))
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE worker = $1 AND attempt = 2 AND id = $2`, other, late[3].Execution))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM lost_work WHERE cause = 'scheduled_timeout' AND outcome = 'moved'
		AND execution = $1 AND worker = $2 AND attempt = 1 AND age_seconds BETWEEN 319 AND 420`, late[3].Execution, old))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM lost_work`))
	require.Equal(t, scheduler.Result{}, b.decide(t, late, true), "the same again changes nothing")
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// If overdue executions may not move, they fail with the published words. The message about the end has all
// consequences.
func TestOverdueExecutionsFailInThePublishedWords(t *testing.T) {
	b := setup(t)
	late, old, _ := overdue(t, b, 1)
	require.Equal(t, scheduler.Result{Ended: 1}, b.decide(t, late, false))
	var raw []byte
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `SELECT result FROM execution WHERE id = $1`,
		late[0].Execution).Scan(&raw))
	var result map[string]any
	require.NoError(t, json.Unmarshal(raw, &result))
	require.Regexp(t,
		`^Execution timeout: worker did not pick up task within 300 seconds \(scheduled for (3[2-9]|4[01])\d seconds\)$`,
		result["error"])
	require.Equal(t, "execution_timeout_monitor", result["failed_by"])
	require.EqualValues(t, 300, result["timeout_seconds"])
	require.InDelta(t, 370, result["age_seconds"], 50)
	require.Equal(t, "scheduled", result["original_status"])
	sent := b.relay.take()
	require.Len(t, sent, 1, "a worker with fencing gets no cancel request")
	require.Equal(t, message.KeyExecutionCompleted, sent[0].RoutingKey)

	retry := lifecycle.RetryPolicy{
		Enabled: true, BaseDelay: time.Minute, Multiplier: 2, MaxDelay: time.Hour, Unstarted: 3,
	}
	result2, err := b.scheduler.Run(testkit.Context(t),
		scheduler.NewCompletionStep(scheduler.CompletionConfig{Retry: retry},
			[]scheduler.Report{{Execution: late[0].Execution}}))
	require.NoError(t, err)
	require.Equal(t, 1, result2.Released)
	require.Len(t, result2.Repeated, 1)
	require.Equal(t, 1,
		testkit.Count(t, b.store, `SELECT count(*) FROM execution_retry WHERE avoid = ARRAY[$1::bigint]`, old))
}

// A live worker without fencing gets a cancel request for an overdue execution.
func TestAWorkerWithoutFencingGetsACancelRequest(t *testing.T) {
	b := setup(t)
	late, old, _ := overdue(t, b, 1)
	testkit.Exec(t, b.store, `UPDATE worker SET capabilities = '{"max_concurrent_executions": 5}' WHERE id = $1`, old)
	b.scheduler = b.replica(t)
	require.Equal(t, scheduler.Result{Ended: 1}, b.decide(t, late, true))
	sent := b.relay.take()
	require.Len(t, sent, 2)
	require.Equal(t, message.KeyExecutionCompleted, sent[0].RoutingKey)
	require.Equal(t, message.CancelKey(old), sent[1].RoutingKey)
	drop, err := message.Decode[message.ExecutionCancelRequested](sent[1].Body)
	require.NoError(t, err)
	require.Equal(t, message.ExecutionCancelRequested{ExecutionID: late[0].Execution, WorkerID: old}, drop.Payload)
}

// Unstarted executions of a full worker stay with it while no other worker has room, and move when
// one has.
func TestUnstartedExecutionsOfAFullWorkerStay(t *testing.T) {
	b := setup(t)
	late, old, other := overdue(t, b, 1)
	late[0].Late.Full = true
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true WHERE id = $1`, other)
	b.scheduler = b.replica(t)
	require.Equal(t, scheduler.Result{}, b.decide(t, late, true))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, late[0].Execution))
	require.Equal(t, 1,
		testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE worker = $1 AND attempt = 1`, old))
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = false WHERE id = $1`, other)
	b.scheduler = b.replica(t)
	require.Equal(t, scheduler.Result{Moved: 1}, b.decide(t, late, true))
}
