package app

import (
	"time"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/monitor"
)

// sampleDeadLetters wait for a person, or were decided by the handler and by people.
func sampleDeadLetters() []monitor.LedgerEntry {
	dispatch := monitor.LedgerEntry{
		What: "dispatch", Type: "ExecutionRequested", Reason: "expired", Queue: "worker.7.executions",
		ActionRef: "core.http_request",
		WorkerID:  ptr(7), WorkerName: "worker-node-02", DecidedBy: "dead_letter_handler",
	}
	failed, retried, requeued := dispatch, dispatch, dispatch
	failed.ID, failed.At, failed.Died, failed.Execution = 3, *ago(22 * time.Minute), ago(22*time.Minute+2*time.Second),
		ptr(884301)
	failed.Decision, failed.StatusNow, failed.Detail = "failed", "failed", "no other worker was allowed to take it"
	retried.ID, retried.At, retried.Execution = 2, *ago(40 * time.Minute), ptr(884300)
	retried.Decision, retried.StatusNow, retried.WorkerName = "retried", "completed", ""
	requeued.ID, requeued.At, requeued.Execution = 1, *ago(27 * time.Hour), ptr(884120)
	requeued.Decision, requeued.StatusNow, requeued.DecidedBy = "requeued", "timeout", "ann@desk"
	list := []monitor.LedgerEntry{
		{
			ID: 5, At: *ago(3 * time.Hour), Died: ago(3*time.Hour + time.Minute), What: "event", Type: "EventCreated",
			Reason:   "rejected",
			Decision: monitor.DecisionOpen, Queue: "attune.events.queue",
			Detail: "no part of this engine decides about EventCreated",
		},
		{
			ID: 4, At: *ago(26 * time.Hour), What: "unknown", Type: "-", Reason: "poison",
			Decision: monitor.DecisionOpen,
			Queue:    "attune.execution.requests.queue",
		},
		failed, retried, requeued,
	}
	list[0].Exchange, list[0].RoutingKey = "attune.events", "event.created"
	for i := range list {
		e := &list[i]
		facts := deadletter.Facts{Entry: e}
		if e.Execution != nil {
			e.Exchange, e.RoutingKey, e.MaxTries = "attune.executions", "execution.dispatch.worker.7", ptr(3)
			facts.Execution = &monitor.DeadLetterExecution{
				ID: *e.Execution, Status: e.StatusNow,
				ActionRef: e.ActionRef,
				Attempt:   1, WorkerID: ptr(7), Updated: *ago(22 * time.Minute),
			}
		}
		if e.Type == "-" {
			facts.Unreadable = "not JSON"
		}
		e.Verdict = deadletter.Evaluate(facts)
	}
	return list
}
