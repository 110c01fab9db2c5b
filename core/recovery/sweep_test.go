package recovery_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// sweep starts a quick sweep and returns what it finds, one tick at a time.
func sweep(t *testing.T, st *store.Store, change ...func(*recovery.Config)) <-chan recovery.Found {
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
	return found
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

// requireQuiet checks that whole ticks pass without a find.
func requireQuiet(t *testing.T, found <-chan recovery.Found) {
	t.Helper()
	select {
	case f := <-found:
		t.Fatalf("found %+v", f)
	case <-time.After(300 * time.Millisecond):
	}
}

// upstream 13: a request whose message was lost is found, without any message.
func TestALostRequestIsFound(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	lost := testkit.Execution(t, st, action)
	testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = attune.StatusCompleted })
	found := sweep(t, st)
	require.Equal(t, []int64{lost.ID}, next(t, found).Requested)
}

func TestAFreshRequestIsLeftToItsMessage(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t)
	testkit.Execution(t, st, testkit.Action(t, st, "pk.a"))
	requireQuiet(t, sweep(t, st, func(c *recovery.Config) { c.RequestAge = time.Hour }))
}

// S6: an ended execution that nobody reported gives back its slot within a
// sweep; one that runs keeps it.
func TestAnEndedHolderIsFound(t *testing.T) {
	t.Parallel()
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
	require.Equal(t, attune.StatusRunning, testkit.StatusOf(t, st, running.ID))
	testkit.Exec(t, st, `DELETE FROM execution_holder WHERE execution = $1`, ended.ID)
	for len(found) > 0 {
		<-found // ticks from before the release
	}
	<-time.After(50 * time.Millisecond)
	for len(found) > 0 {
		<-found
	}
	requireQuiet(t, found)
}

func TestEndedQueuedExecutionsAndUnfilledQueuesAreFound(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	state := testkit.State(t, st, action, 1, func(s *testkit.StateRow) { s.Queued = 1 })
	waiting := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = attune.StatusCancelled })
	testkit.Exec(t, st, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order) VALUES ($1, $2, 'queued', 1)`,
		state.ID, waiting.ID)
	f := next(t, sweep(t, st))
	require.Equal(t, []int64{waiting.ID}, f.Ended)
	require.Equal(t, []int64{state.ID}, f.Queues)
}

// One replica at a time runs a sweep: while another holds the lock, a tick
// does nothing and does not wait.
func TestASweepThatIsTakenIsLeftAlone(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t)
	testkit.Execution(t, st, testkit.Action(t, st, "pk.a"))
	held, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- st.Tx(testkit.Context(t), "hold", func(ctx context.Context, tx *store.Tx) error {
			won, err := tx.TryLoopLock(ctx, "recovery")
			if err != nil || !won {
				return err
			}
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	found := sweep(t, st)
	requireQuiet(t, found)
	close(release)
	require.NoError(t, <-done)
	require.Len(t, next(t, found).Requested, 1)
}

// After a fault of the installation the time in a queue begins anew.
func TestAnExecutionExpiresOnlyAfterAnUndisturbedTimeInItsQueue(t *testing.T) {
	t.Parallel()
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
		for range 3 { // the queue itself is found by every tick: nobody fills it
			require.Empty(t, next(t, found).Expired)
		}
	}
	require.Equal(t, []int64{waiting.ID}, next(t, sweep(t, st, within(61*time.Minute))).Expired)
	require.Equal(t, []int64{waiting.ID},
		next(t, sweep(t, st, func(c *recovery.Config) { c.QueueTimeout = time.Hour })).Expired)
}
