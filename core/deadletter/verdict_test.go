package deadletter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
)

// A requeue has a defined result for every state of the execution.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	dispatch := deadletter.Entry{
		Decision: deadletter.Waiting, Type: message.TypeExecutionRequested, RoutingKey: message.DispatchKey(7),
		Execution: new(int64(5)), Attempt: new(int64(2)),
	}
	as := func(e deadletter.Entry, change func(*deadletter.Entry)) *deadletter.Entry { change(&e); return &e }
	sent := deadletter.Entry{Decision: deadletter.Waiting, Exchange: "attune.executions", Execution: new(int64(5))}
	at := func(status lifecycle.Status) *deadletter.Execution {
		return &deadletter.Execution{ID: 5, Status: string(status), Attempt: 2}
	}
	for name, c := range map[string]struct {
		facts           deadletter.Facts
		requeue, advice string
		why             string
	}{
		"sent to its queue": {
			deadletter.Facts{Entry: &deadletter.Entry{Decision: deadletter.Waiting, Queue: "q", RoutingKey: "q"}},
			deadletter.RequeueSends, deadletter.AdviseRequeue, "it is sent again to the queue q",
		},
		"sent to an unknown exchange": {
			deadletter.Facts{Entry: &deadletter.Entry{Decision: deadletter.Waiting, Queue: "q", RoutingKey: "k"}},
			deadletter.RequeueRefused, deadletter.AdviseExport, "does not say where",
		},
		"failed": {
			deadletter.Facts{Entry: &dispatch, Execution: at(lifecycle.StatusFailed)},
			deadletter.RequeueRepeats,
			deadletter.AdviseRequeue, "ended as failed",
		},
		"completed": {
			deadletter.Facts{Entry: &dispatch, Execution: at(lifecycle.StatusCompleted)},
			deadletter.RequeueRepeats, deadletter.AdviseDiscard, "once more",
		},
		"running": {
			deadletter.Facts{Entry: &dispatch, Execution: at(lifecycle.StatusRunning)},
			deadletter.RequeueRefused, deadletter.AdviseDiscard, "moved on",
		},
		"scheduled": {
			deadletter.Facts{Entry: &dispatch, Execution: at(lifecycle.StatusScheduled)},
			deadletter.RequeueRefused, deadletter.AdviseWait, "still scheduled",
		},
		"elsewhere": {
			deadletter.Facts{Entry: &dispatch, Execution: &deadletter.Execution{
				ID: 5, Status: "scheduled",
				Attempt: 3,
			}}, deadletter.RequeueRefused, deadletter.AdviseDiscard, "moved on",
		},
		"gone": {
			deadletter.Facts{Entry: &dispatch},
			deadletter.RequeueRefused, deadletter.AdviseDiscard,
			"does not exist",
		},
		"repeated": {
			deadletter.Facts{Entry: &dispatch, Execution: &deadletter.Execution{
				ID: 5, Status: "failed",
				RepeatedBy: 9,
			}}, deadletter.RequeueRefused, deadletter.AdviseRetry, "by execution 9",
		},
		"action gone": {
			deadletter.Facts{Entry: &dispatch, Execution: &deadletter.Execution{
				ID: 5, Status: "failed",
				ActionGone: true,
			}}, deadletter.RequeueRepeats, deadletter.AdviseDiscard, "was deleted",
		},
		"parent": {
			deadletter.Facts{Entry: &dispatch, Execution: &deadletter.Execution{
				ID: 5, Status: "failed",
				Parent: new(int64(1)), ParentStatus: "cancelled",
			}},
			deadletter.RequeueRepeats, deadletter.AdviseDiscard, "nothing waits",
		},
		"nameless": {
			deadletter.Facts{Entry: as(dispatch, func(e *deadletter.Entry) { e.Execution = nil })},
			deadletter.RequeueRefused, deadletter.AdviseExport, "names no execution",
		},
		"handled": {
			deadletter.Facts{
				Entry:     as(dispatch, func(e *deadletter.Entry) { e.Decision = "failed" }),
				Execution: at(lifecycle.StatusFailed),
			}, deadletter.RequeueRepeats, deadletter.AdviseRequeue, "",
		},
		"discarded": {
			deadletter.Facts{Entry: as(dispatch, func(e *deadletter.Entry) {
				e.Decision, e.DecidedBy = "discarded",
					"ann"
			})}, deadletter.RequeueRefused, deadletter.AdviseNothing, "discarded by ann",
		},
		"event": {
			deadletter.Facts{Entry: as(sent, func(e *deadletter.Entry) {
				e.Type, e.RoutingKey, e.Exchange, e.Execution = "EventCreated", "event.created", "attune.events", nil
			})}, deadletter.RequeueSends, deadletter.AdviseRequeue, "to attune.events with the key event.created",
		},
		"request": {
			deadletter.Facts{Entry: as(sent, func(e *deadletter.Entry) {
				e.Type, e.RoutingKey = message.TypeExecutionRequested, "execution.requested"
			}), Execution: at(lifecycle.StatusRequested)},
			deadletter.RequeueSends, deadletter.AdviseRequeue, "sent again",
		},
		"old request": {
			deadletter.Facts{Entry: as(sent, func(e *deadletter.Entry) {
				e.Type, e.RoutingKey = message.TypeExecutionRequested, "execution.requested"
			}), Execution: at(lifecycle.StatusRunning)},
			deadletter.RequeueSends, deadletter.AdviseDiscard, "moved on",
		},
		"cancel": {
			deadletter.Facts{Entry: as(sent, func(e *deadletter.Entry) {
				e.Type, e.RoutingKey = message.TypeExecutionCancelRequested, message.CancelKey(7)
			}), Execution: at(lifecycle.StatusCancelled)},
			deadletter.RequeueSends, deadletter.AdviseDiscard, "has ended",
		},
		"report of nothing": {
			deadletter.Facts{Entry: as(sent, func(e *deadletter.Entry) {
				e.Type, e.RoutingKey = message.TypeExecutionCompleted, "execution.completed"
			})},
			deadletter.RequeueSends, deadletter.AdviseDiscard, "does not exist",
		},
		"unreadable": {
			deadletter.Facts{
				Entry:      as(sent, func(e *deadletter.Entry) { e.RoutingKey = "event.created" }),
				Unreadable: "not JSON",
			}, deadletter.RequeueSends, deadletter.AdviseExport, "dies again",
		},
		"cut": {deadletter.Facts{
			Entry: as(sent, func(e *deadletter.Entry) { e.RoutingKey = "event.created" }),
			Cut:   true,
		}, deadletter.RequeueRefused, deadletter.AdviseExport, "beginning"},
		"placeless": {
			deadletter.Facts{Entry: &sent},
			deadletter.RequeueRefused, deadletter.AdviseExport,
			"where it was sent to",
		},
	} {
		v := deadletter.Evaluate(c.facts)
		require.Equal(t, c.requeue, v.Requeue, name)
		require.Equal(t, c.advice, v.Advice, name)
		require.Contains(t, v.Why, c.why, name)
	}
}
