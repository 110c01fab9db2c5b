package scheduler_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// The log of every decision names its execution, in the published words if there are any.
func TestEveryDecisionNamesItsExecution(t *testing.T) {
	b := setup(t)
	logged := func() *bytes.Buffer {
		log := &bytes.Buffer{}
		logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		b.scheduler = scheduler.New(scheduler.Config{}, scheduler.Deps{Store: b.store, Relay: b.relay, Logger: logger})
		return log
	}
	late, old, other := overdue(t, b, 2)
	log := logged()
	b.decide(t, late[:1], true)
	require.Contains(t, log.String(),
		fmt.Sprintf("level=WARN msg=\"Execution moved to another worker\" execution_id=%d ", late[0].Execution))
	require.Contains(t, log.String(), fmt.Sprintf("worker_id=%d from_worker_id=%d cause=scheduled_timeout", other, old))
	b.decide(t, late[1:], false)
	require.Contains(t, log.String(),
		fmt.Sprintf(
			"level=WARN msg=\"Execution %d has been scheduled for too long, marking as failed\" execution_id=%d ",
			late[1].Execution, late[1].Execution))

	full := testkit.Action(t, b.store, "pk.full")
	testkit.Policy(t, b.store, full, 1, func(p *testkit.PolicyRow) { p.MaxQueueLength = new(int32(1)) })
	log = logged()
	ids := b.request(t, full, 3)
	b.dispatch(t, ids...)
	require.Contains(t, log.String(), fmt.Sprintf("msg=\"Execution admitted\" execution_id=%d ", ids[0]))
	require.Contains(t, log.String(),
		fmt.Sprintf("msg=\"Enqueued exec %d at position 1 for action %d\"", ids[1], full.ID))
	require.Contains(t, log.String(), fmt.Sprintf("msg=\"Execution ended before its start\" execution_id=%d ", ids[2]))
	require.Contains(t, log.String(), "Queue full (max length: 1)")
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	b.complete(t, ids[0])
	require.Contains(t, log.String(), fmt.Sprintf("msg=\"Execution promoted\" execution_id=%d ", ids[1]))
}
