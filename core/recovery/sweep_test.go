package recovery_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// sweep starts a sweep with a short interval and returns its finds, one tick at a time.
func sweep(t *testing.T, st *store.Store, change ...func(*recovery.Config)) <-chan recovery.Found {
	t.Helper()
	_, found := sweeper(t, st, change...)
	return found
}

func sweeper(
	t *testing.T, st *store.Store, change ...func(*recovery.Config),
) (*recovery.Sweep, <-chan recovery.Found) {
	t.Helper()
	found := make(chan recovery.Found, 100)
	cfg := recovery.Config{Interval: 20 * time.Millisecond, RequestAge: time.Nanosecond, HolderAge: time.Nanosecond}
	for _, c := range change {
		c(&cfg)
	}
	s := recovery.New(cfg, st, func(ctx context.Context, f recovery.Found) error {
		select {
		case found <- f:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, testkit.Logger(t), nil)
	require.NoError(t, s.Start(testkit.Context(t)))
	t.Cleanup(s.Stop)
	return s, found
}

func next(t *testing.T, found <-chan recovery.Found) recovery.Found {
	t.Helper()
	select {
	case f := <-found:
		return f
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was found")
		return recovery.Found{}
	}
}

// requireQuiet checks that a whole tick passes without a find: the first one that ends may have begun before.
func requireQuiet(t *testing.T, s *recovery.Sweep, found <-chan recovery.Found) {
	t.Helper()
	for range 2 {
		last := s.LastTick()
		testkit.Eventually(t, func() bool { return s.LastTick().After(last) }, 30*time.Second, "a tick ends")
	}
	require.Empty(t, found)
}

// upstream 13: a request whose message was lost is found, without any message.
func TestALostRequestIsFound(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	lost := testkit.Execution(t, st, action)
	testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusCompleted })
	found := sweep(t, st)
	require.Equal(t, []int64{lost.ID}, next(t, found).Requested)
}

// Any program may write workflow_task: a number that is no index hides no lost request.
func TestAnOddIndexOfATaskHidesNoLostRequest(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	parent := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning })
	testkit.Exec(t, st, `
		WITH def AS (INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
			SELECT 'pk.flow', id, ref, 'flow', '1.0.0', '{}' FROM pack LIMIT 1 RETURNING id)
		INSERT INTO workflow_execution (execution, workflow_def, task_graph, status, open, state)
		SELECT $1, id, '{}', 'running', true, '{"tasks": {"t": {"next": 1}}}' FROM def`, parent.ID)
	var all []int64
	for _, index := range []string{"0.5", "1e30", `"0"`, "null"} {
		child := testkit.Execution(t, st, action)
		testkit.Exec(t, st, `UPDATE execution e SET workflow_task = jsonb_build_object('task_name', 't', 'task_index', $2::jsonb,
			'workflow_execution', (SELECT id FROM workflow_execution)) WHERE id = $1`, child.ID, index)
		if index != "1e30" { // this is beyond the next item, which the workflow requests
			all = append(all, child.ID)
		}
	}
	require.Equal(t, all, next(t, sweep(t, st)).Requested)
}

// A request that waits in a queue, and a retry before its time, are not lost.
func TestRequestsThatWaitAreNotLost(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	state := testkit.State(t, st, action, 1, func(s *testkit.StateRow) { s.Queued, s.Active = 1, 1 })
	waits, early := testkit.Execution(t, st, action).ID, testkit.Execution(t, st, action).ID
	failed := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusFailed }).ID
	testkit.Exec(t, st, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
		VALUES ($1, $2, 'queued', 1)`, state.ID, waits)
	testkit.Exec(t, st, `UPDATE execution SET retry_count = 1 WHERE id = $1`, early)
	testkit.Exec(t, st, `INSERT INTO execution_retry (failed, execution, reason, due, waiting)
		VALUES ($2, $1, 'transient_error', now() + interval '1 hour', true)`, early, failed)
	lost := testkit.Execution(t, st, action).ID
	require.Equal(t, []int64{lost}, next(t, sweep(t, st)).Requested)
}

func TestAFreshRequestIsLeftToItsMessage(t *testing.T) {
	st := testkit.Store(t)
	testkit.Execution(t, st, testkit.Action(t, st, "pk.a"))
	s, found := sweeper(t, st, func(c *recovery.Config) { c.RequestAge = time.Hour })
	requireQuiet(t, s, found)
}

// S6: a sweep releases the slot of an ended execution that was not reported. A running execution keeps
// its slot.
func TestAnEndedHolderIsFound(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	state := testkit.State(t, st, action, 2, func(s *testkit.StateRow) { s.Active = 2 })
	ended := testkit.Execution(t, st, action)
	running := testkit.Execution(t, st, action)
	testkit.Exec(t, st, `UPDATE execution SET status = 'running'`)
	testkit.Hold(t, st, ended.ID, state.ID)
	testkit.Hold(t, st, running.ID, state.ID)
	testkit.Exec(t, st, `UPDATE execution SET status = 'failed' WHERE id = $1`, ended.ID)
	found := sweep(t, st)
	require.Equal(t, []int64{ended.ID}, next(t, found).Ended)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, st, running.ID))
	testkit.Exec(t, st, `DELETE FROM execution_holder WHERE execution = $1`, ended.ID)
	testkit.Exec(t, st, `UPDATE execution SET status = 'failed' WHERE id = $1`, running.ID)
	testkit.Eventually(t, func() bool {
		return slices.Equal(next(t, found).Ended, []int64{running.ID}) // others are of ticks before the release
	}, 20*time.Second, "only the second end is found")
}

// The slot of every end is released, also of one that no worker reports.
func TestAnEndedHolderIsFoundWhateverItsEnd(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	state := testkit.State(t, st, action, 5, func(s *testkit.StateRow) { s.Active = 5 })
	var ids []int64
	for _, status := range []lifecycle.Status{
		lifecycle.StatusCompleted, lifecycle.StatusFailed, lifecycle.StatusCancelled, lifecycle.StatusTimeout,
		lifecycle.StatusAbandoned,
	} {
		id := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = status }).ID
		testkit.Hold(t, st, id, state.ID)
		ids = append(ids, id)
	}
	require.Equal(t, ids, next(t, sweep(t, st)).Ended)
	lost := testkit.Execution(t, st, action).ID // shows that the sweep has looked
	f := next(t, sweep(t, st, func(c *recovery.Config) { c.HolderAge = time.Hour }))
	require.Equal(t, []int64{lost}, f.Requested)
	require.Empty(t, f.Ended, "their reports may be under way")
}

// An unfinished claim is requested again, unless it holds a slot: that one was dispatched.
func TestAnUnfinishedClaimIsPutBackUnlessItHoldsASlot(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	state := testkit.State(t, st, action, 1, func(s *testkit.StateRow) { s.Active = 1 })
	claimed := func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusScheduling }
	held, free := testkit.Execution(t, st, action, claimed).ID, testkit.Execution(t, st, action, claimed).ID
	testkit.Hold(t, st, held, state.ID)
	lost := testkit.Execution(t, st, action).ID // shows that the sweep has looked
	require.Equal(t, []int64{lost}, next(t, sweep(t, st)).Requested)
	require.Equal(t, lifecycle.StatusScheduling, testkit.StatusOf(t, st, free), "it is being finished")
	found := sweep(t, st, func(c *recovery.Config) { c.ClaimAge = time.Nanosecond })
	require.ElementsMatch(t, []int64{lost, free}, next(t, found).Requested)
	require.Equal(t, lifecycle.StatusScheduling, testkit.StatusOf(t, st, held))
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, st, free))
}

func TestEndedQueuedExecutionsAndUnfilledQueuesAreFound(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	state := testkit.State(t, st, action, 1, func(s *testkit.StateRow) { s.Queued = 1 })
	waiting := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusCancelled })
	testkit.Exec(t, st, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order) VALUES ($1, $2, 'queued', 1)`,
		state.ID, waiting.ID)
	f := next(t, sweep(t, st))
	require.Equal(t, []int64{waiting.ID}, f.Ended)
	require.Equal(t, []int64{state.ID}, f.Queues)
}

// One replica at a time runs a sweep: while another holds the lock, a tick
// does nothing and does not wait.
func TestASweepThatIsTakenIsLeftAlone(t *testing.T) {
	st := testkit.Store(t)
	testkit.Execution(t, st, testkit.Action(t, st, "pk.a"))
	held, released := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	done := make(chan error, 1)
	go func() {
		done <- st.Tx(testkit.Context(t), "hold", func(ctx context.Context, tx *store.Tx) error {
			won, err := tx.TryLoopLock(ctx, "recovery")
			if err != nil || !won {
				return err
			}
			if _, err = tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
				return err
			}
			close(held)
			<-released
			return nil
		})
	}()
	<-held
	s, found := sweeper(t, st)
	requireQuiet(t, s, found)
	release()
	require.NoError(t, <-done)
	require.Len(t, next(t, found).Requested, 1)
}

// After a fault of the installation the time in a queue begins anew.
func TestAnExecutionExpiresOnlyAfterAnUndisturbedTimeInItsQueue(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	state := testkit.State(t, st, action, 1, func(s *testkit.StateRow) { s.Queued = 1 })
	waiting := testkit.Execution(t, st, action)
	testkit.Exec(t, st, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at)
		VALUES ($1, $2, 'queued', 1, now() - interval '2 hours')`, state.ID, waiting.ID)
	within := func(undisturbed time.Duration) func(*recovery.Config) {
		return func(c *recovery.Config) {
			c.QueueTimeout, c.Undisturbed = time.Hour, func() time.Duration { return undisturbed }
		}
	}
	for _, undisturbed := range []time.Duration{0, 59 * time.Minute} {
		found := sweep(t, st, within(undisturbed))
		for range 3 { // every tick finds the queue itself: no batch fills it
			require.Empty(t, next(t, found).Expired)
		}
	}
	require.Equal(t, []int64{waiting.ID}, next(t, sweep(t, st, within(61*time.Minute))).Expired)
	hour := func(c *recovery.Config) { c.QueueTimeout = time.Hour }
	require.Equal(t, []int64{waiting.ID}, next(t, sweep(t, st, hour)).Expired)

	// The time in a pause does not count, and it begins anew at the end of the pause.
	testkit.Exec(t, st, `UPDATE execution_admission_state SET resumed_at = now() - interval '59 minutes'`)
	require.Empty(t, next(t, sweep(t, st, hour)).Expired)
	testkit.Exec(t, st, `UPDATE execution_admission_state SET resumed_at = NULL, paused = true`)
	lost := testkit.Execution(t, st, action).ID // shows that the sweep has looked
	f := next(t, sweep(t, st, hour))
	require.Equal(t, []int64{lost}, f.Requested)
	require.Empty(t, f.Expired)
}
