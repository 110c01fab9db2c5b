package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// takeHeld returns the items that the next batch takes first.
func takeHeld(l *lane) []item {
	held := l.held
	l.held = nil
	return held
}

// A queue that another batch holds keeps its own messages only, in hand, unacknowledged
// and in their order; the others of the batch are served. When there is nothing else to
// do, the loop waits for the queue.
func TestMessagesOfAHeldQueueStayInHand(t *testing.T) {
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	testkit.Worker(t, st, "w1")
	h := newHot(nil, nil, 1,
		scheduler.New(scheduler.Config{}, scheduler.Deps{Store: st, Relay: noRelay{}, Logger: testkit.Logger(t)}),
		stepConfig{}, testkit.Logger(t), nil).lanes[0]
	held, free := testkit.Action(t, st, "pk.held"), testkit.Action(t, st, "pk.free")
	testkit.Policy(t, st, held, 1)
	testkit.State(t, st, held, 1)
	items := []item{
		{execution: testkit.Execution(t, st, held).ID, action: held.Ref},
		{execution: testkit.Execution(t, st, free).ID, action: free.Ref},
		{execution: testkit.Execution(t, st, held).ID, action: held.Ref},
	}
	deliver(t, items)
	tx := testkit.Begin(t, st)
	_, err := tx.Exec(testkit.Context(t), `SELECT FROM execution_admission_state WHERE action_id = $1 FOR UPDATE`,
		held.ID)
	require.NoError(t, err)

	require.NoError(t, h.runBatch(testkit.Context(t), items, noChores))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, st, items[1].execution))
	kept := takeHeld(h)
	require.Equal(t, []int64{items[0].execution, items[2].execution}, []int64{kept[0].execution, kept[1].execution})
	require.Equal(t, []*broker.Delivery{items[1].delivery}, h.decided, "only the other one is acknowledged")
	require.Empty(t, insists(kept))
	require.NoError(t, h.runBatch(testkit.Context(t), kept, noChores))
	kept = takeHeld(h)
	require.Len(t, insists(kept), 2, "there was nothing else to do")

	done := make(chan error)
	go func() { done <- h.runBatch(testkit.Context(t), kept, noChores) }()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	}, testkit.TestTimeout, "it waits for the queue")
	require.NoError(t, tx.Rollback(context.WithoutCancel(testkit.Context(t))))
	require.NoError(t, <-done)
	require.Empty(t, takeHeld(h))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, st, items[0].execution))
	require.Equal(t, 1, testkit.Count(t, st,
		`SELECT queue_order FROM execution_admission_entry WHERE execution_id = $1`, items[2].execution))
}

// A batch waits for the queue of one action, the one that was left most often: it holds no
// other while it waits.
func TestABatchWaitsForOneAction(t *testing.T) {
	t.Parallel()
	items := []item{
		{execution: 1, action: "pk.a", left: 3},
		{execution: 2, action: "pk.b", left: 4},
		{execution: 3, left: 3},
		{execution: 4, action: "pk.b", left: 2},
		{execution: 5, action: "pk.b", left: 3},
	}
	require.Equal(t, map[int64]bool{2: true, 5: true}, insists(items))
	require.Equal(t, map[int64]bool{3: true}, insists(append(items[2:4:4], item{execution: 6, left: 3})),
		"a message without an action may concern any queue")
	require.Empty(t, insists(items[3:4]))
	require.Empty(t, insists(nil))
}
