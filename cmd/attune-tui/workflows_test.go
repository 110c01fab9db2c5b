package main

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
)

// TestAWorkflowIsControlledByKeys pauses a workflow between two tasks, resumes, cancels and retries it.
func TestAWorkflowIsControlledByKeys(t *testing.T) {
	i := install(t)
	i.flow("shop.deliver")
	id := i.request("shop.deliver", 1)[0]
	name := "workflow " + strconv.FormatInt(id, 10)
	i.began(1)
	x := i.open("--view", "workflows")
	x.shows("▶")
	x.shows("shop.deliver")
	x.shows(" RW ")

	x.plans(act.PauseWorkflow, "Pause "+name)
	x.runs("Pause " + name)
	i.ends <- struct{}{}
	i.becomes(1, `select count(*) from workflow_execution where paused and completed_tasks = '{pay}'`)
	require.Len(t, i.worker.Runs(), 1, "a paused workflow starts no task")
	x.plans(act.ResumeWorkflow, "Resume "+name)
	x.runs("Resume " + name)
	i.began(2)
	i.running(1)
	x.plans(act.CancelWorkflow, "Cancel "+name)
	x.runs("Cancel " + name)
	i.ends <- struct{}{}
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, i.store, id) == lifecycle.StatusCancelled }, wait,
		"it ends")
	x.plans(act.RetryWorkflow, "Retry "+name)
	x.runs("Retry " + name)
	i.becomes(1, `select count(*) from execution where original_execution = $1 and retry_reason = 'manual_retry'`, id)
	i.began(3)
	for _, done := range []string{"workflow.pause", "workflow.resume", "execution.cancel", "execution.retry"} {
		i.audited(done)
	}
}

// TestDeadLettersOfTheLedgerAreActedUponByKeys requeues one, whose retry completes, discards one, reopens it and
// discards the rest.
func TestDeadLettersOfTheLedgerAreActedUponByKeys(t *testing.T) {
	i := install(t)
	action := testkit.Action(t, i.store, "demo.hold")
	for range 4 {
		failed := testkit.Execution(t, i.store, action,
			func(e *testkit.ExecutionRow) { e.Status, e.Worker = lifecycle.StatusFailed, &i.worker.ID })
		testkit.Exec(t, i.store, `insert into dead_letter (message_id, message_type, exchange, routing_key, queue, reason, execution, worker, attempt, body)
			values (gen_random_uuid()::text, 'ExecutionScheduled', 'attune.executions', 'execution.dispatch.worker.1', 'worker.1.executions', 'expired', $1, $2, 1, '{}')`,
			failed.ID, i.worker.ID)
	}
	open := `select count(*) from dead_letter where decision is null`
	x := i.open("--view", "dlq")
	x.shows("waiting for a person 4")
	x.shows(" RW ")
	x.press("z") // only waiting dead letters, so the cursor is always on one

	x.asks(keymap.Requeue, "Requeue dead letter")
	x.runs("Requeue dead letter")
	i.began(1)
	require.Equal(t, 3, testkit.Count(t, i.store, open))
	x.shows("waiting for a person 3")
	x.asks(keymap.Discard, "Discard dead letter")
	x.runs("Discard dead letter")
	require.Equal(t, 2, testkit.Count(t, i.store, open))
	x.shows("waiting for a person 2")
	x.asks(keymap.Undo, "Reopen 1 dead letter")
	x.runs("Reopen 1 dead letter")
	require.Equal(t, 3, testkit.Count(t, i.store, open))
	x.shows("waiting for a person 3")
	x.asks(keymap.Purge, "Discard 3 dead letters") // all that match, marked first
	x.runs("Discard 3 dead letters")
	require.Zero(t, testkit.Count(t, i.store, open))
	i.ends <- struct{}{}
	i.becomes(1, `select count(*) from execution where status = 'completed' and original_execution is not null`)
}
