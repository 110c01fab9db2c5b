package main

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// TestActionsByKeysReachTheWorker acts on queues, executions and workers from one dashboard. It checks every action in
// the database and at the worker.
func TestActionsByKeysReachTheWorker(t *testing.T) {
	i := install(t)
	action := testkit.Action(t, i.store, "demo.hold")
	testkit.Policy(t, i.store, action, 1)
	i.request("demo.hold", 4)
	i.began(1)
	x := i.open("--view", "queues")
	x.shows("demo.hold")
	x.shows(" RW ")

	i.actOnQueue(x)
	i.actOnExecutions(x)
	i.actOnWorker(x)
}

// actOnQueue begins with one running and three waiting executions, and ends with three running ones.
func (i *deployment) actOnQueue(x *terminal) {
	t, waiting := i.t, `select queued_count from execution_admission_state`
	x.plans(act.PauseQueue, "Pause demo.hold")
	x.runs("Pause demo.hold")
	i.ends <- struct{}{}
	i.becomes(1, `select count(*) from execution where status = 'completed'`)
	i.becomes(0, `select active_count from execution_admission_state`)
	require.Len(t, i.worker.Runs(), 1, "no other execution starts in a paused queue")
	x.plans(act.ResumeQueue, "Resume demo.hold")
	x.runs("Resume demo.hold")
	i.began(2)

	x.plans(act.LimitQueue, "limit queue demo.hold")
	x.press("BSpace", "3", "Enter")
	x.shows("limit 1 → 3")
	x.runs("Limit to 3 demo.hold")
	i.began(4)
	i.running(3)
	require.Equal(t, 3, i.worker.MostAtOnce())
	x.plans(act.ResetQueue, "Reset the limit of demo.hold")
	x.runs("Reset the limit of demo.hold")
	require.Equal(t, 1, testkit.Count(t, i.store, `select max_concurrent from execution_admission_state`))

	i.request("demo.hold", 2)
	i.becomes(2, waiting)
	x.plans(act.ClearQueue, "clear the waiting executions of queue demo.hold")
	x.press("Enter")
	x.shows("2 executions in 1 queue")
	x.runs("Clear 2 executions of demo.hold")
	i.becomes(0, waiting)
	require.Equal(t, 2, testkit.Count(t, i.store, `select count(*) from execution where status = 'cancelled'`))
	i.becomes(0, `select count(*) from outbox`) // the broker has the messages
	for _, done := range []string{"queue.pause", "queue.resume", "queue.limit", "queue.reset", "queue.clear"} {
		i.audited(done)
	}
}

// actOnExecutions cancels one of three running executions, and retries it.
func (i *deployment) actOnExecutions(x *terminal) {
	t := i.t
	id := i.worker.Runs()[1].Job.ExecutionID
	name := strconv.FormatInt(id, 10)
	x.command("e " + name)
	x.shows("TIMELINE")
	x.plans(act.CancelExecution, "Cancel execution "+name)
	x.shows("worker worker-a is asked to stop it")
	x.runs("Cancel execution " + name)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, i.store, id) == lifecycle.StatusCancelled }, wait,
		"it ends as its worker says")
	require.EqualValues(t, 1, i.asked.Load(), "the worker was asked once, to stop this execution")
	x.plans(act.RetryExecution, "Retry execution "+name)
	x.runs("Retry execution " + name)
	require.Equal(t, 1, testkit.Count(t, i.store,
		`select count(*) from execution where original_execution = $1 and retry_reason = 'manual_retry'`, id))
	i.ends <- struct{}{}
	i.ends <- struct{}{} // both slots become free
	i.began(5)
	i.audited("execution.cancel")
	i.audited("execution.retry")
	require.Equal(t, "completed", i.end())
}

// end ends the last execution and returns its status.
func (i *deployment) end() string {
	i.t.Helper()
	i.ends <- struct{}{}
	var status string
	testkit.Eventually(i.t, func() bool {
		return i.store.Pool().QueryRow(i.t.Context(),
			`select status::text from execution where original_execution is not null and finished_at is not null`).Scan(
			&status) == nil
	}, wait, "the retry ends")
	return status
}

// actOnWorker drains the only worker and uncordons it.
func (i *deployment) actOnWorker(x *terminal) {
	t := i.t
	x.press("4")
	x.shows("▶● worker-a")
	x.plans(act.DrainWorker, "Drain worker worker-a")
	x.types("worker-a", "Drain worker worker-a") // it is the last one
	require.Equal(t, 1, testkit.Count(t, i.store, `select count(*) from worker where draining`))
	i.request("demo.hold", 1)
	i.becomes(1, `select count(*) from execution where status = 'failed'`)
	require.Len(t, i.worker.Runs(), 5, "a draining worker gets no execution, and there is no other worker")
	x.plans(act.UncordonWorker, "Uncordon worker worker-a")
	x.runs("Uncordon worker worker-a")
	i.request("demo.hold", 1)
	i.began(6)
	i.ends <- struct{}{}
	i.becomes(0, `select count(*) from execution where finished_at is null`)
	i.audited("worker.drain")
	i.audited("worker.uncordon")
}
