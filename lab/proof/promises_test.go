package proof

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// S17: however many replicas accept newcomers at once, a queue never exceeds its maximum, and a newcomer that
// finds it full is refused with the reason.
func TestS17AQueueNeverExceedsItsMaximum(t *testing.T) {
	r := newRoom(t)
	const longest = 5
	action := r.limited("pk.one", 1, func(p *testkit.PolicyRow) { p.MaxQueueLength = new(int32(longest)) })
	// The database itself refuses to commit a longer queue.
	testkit.Exec(t, r.store,
		fmt.Sprintf(`ALTER TABLE execution_admission_state ADD CHECK (queued_count <= %d)`, longest))
	ids := r.make(action, 60)
	r.together(3, func(replica *scheduler.Scheduler, which int) {
		for batch := range slices.Chunk(ids[20*which:20*(which+1)], 4) {
			r.try(replica, nil, batch)
		}
	})
	require.Len(t, r.queued(action), longest)
	require.Equal(t, 1, r.holders(action))
	require.Equal(t, len(ids)-1-longest, r.count(`SELECT count(*) FROM execution WHERE status = 'cancelled' AND result->>'error' like 'Queue full (max length: %)'`))
	r.settle()
}

// S22: in every window at most threshold + burst − 1 executions start, on two replicas that try as often as they
// can, and no execution waits without a reason.
//
// A start happens between the start of its transaction, which is admitted_at, and the write of the row. A window
// certainly had too many starts only if the write of the last lies within a window of the first's admitted_at.
func TestS22NoWindowHasMoreStartsThanAllowed(t *testing.T) {
	r := newRoom(t)
	const threshold, burst, total = 10, 3, 20
	action := r.limited("pk.paced", 0)
	testkit.Policy(t, r.store, action, threshold, func(p *testkit.PolicyRow) {
		p.Kind, p.WindowSeconds, p.Burst = "rate", new(int32(1)), new(int32(burst))
	})
	testkit.Exec(t, r.store, `CREATE TABLE starts (execution bigint, begun timestamptz, written timestamptz)`)
	testkit.Exec(t, r.store, `
		CREATE FUNCTION note_start() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
		BEGIN INSERT INTO starts VALUES (NEW.id, NEW.admitted_at, clock_timestamp()); RETURN NULL; END $$`)
	testkit.Exec(t, r.store, `
		CREATE TRIGGER note_start AFTER UPDATE OF admitted_at ON execution FOR EACH ROW
		WHEN (OLD.admitted_at IS NULL AND NEW.admitted_at IS NOT NULL) EXECUTE FUNCTION note_start()`)
	ids := r.make(action, total)
	require.Equal(t, burst, r.ask(ids...).Granted)

	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	var wg sync.WaitGroup
	for range 2 {
		replica := r.replica()
		wg.Go(func() {
			var result scheduler.Result
			for ctx.Err() == nil {
				var err error
				if result, err = replica.Run(testkit.Context(t),
					scheduler.FillStep{Queues: result.Unfilled}); err != nil {
					t.Errorf("batch: %v", err)
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(min(result.Wake, 20*time.Millisecond)):
				}
			}
		})
	}
	testkit.Eventually(t, func() bool { return r.holders(action) == total }, 30*time.Second)
	cancel()
	wg.Wait()

	rows, err := r.store.Pool().Query(testkit.Context(t), `SELECT begun, written FROM starts ORDER BY begun, written`)
	require.NoError(t, err)
	type start struct{ Begun, Written time.Time }
	starts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[start])
	require.NoError(t, err)
	require.Len(t, starts, total, "each starts once")
	for i := range total - threshold - burst + 1 {
		span := starts[i+threshold+burst-1].Written.Sub(starts[i].Begun)
		require.GreaterOrEqual(t, span, time.Second, "%d executions from the %dth on", threshold+burst, i)
	}
	r.settle()
}

// S23: of eight promotions of a queue at least one goes to a lower waiting lane, whichever replicas make them, and
// each lane is in order.
func TestS23ALowerLaneWaitsForSevenAtMost(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.one", 1)
	lane := func(n int, priority int16) []int64 {
		return r.make(action, n, func(e *testkit.ExecutionRow) { e.Priority = new(priority) })
	}
	running := r.make(action, 1)[0]
	r.ask(running)
	low, normal, high := lane(2, -1), lane(2, 0), lane(34, 1)
	r.ask(slices.Concat(low, normal, high)...)
	replicas := []*scheduler.Scheduler{r.first, r.replica()}
	var order []int64
	for i := range len(low) + len(normal) + len(high) {
		r.finish(lifecycle.StatusCompleted, running)
		require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, r.on(replicas[i%2], []int64{running}, nil))
		running = int64(r.count(`SELECT execution FROM execution_holder`))
		order = append(order, running)
	}
	in := func(lane []int64) (got []int64) {
		for _, id := range order {
			if slices.Contains(lane, id) {
				got = append(got, id)
			}
		}
		return got
	}
	require.Equal(t, [][]int64{low, normal, high}, [][]int64{in(low), in(normal), in(high)}, "each lane in order")
	var turns []int
	for i, id := range order {
		if !slices.Contains(high, id) {
			turns = append(turns, i+1)
		}
	}
	require.Equal(t, []int{8, 16, 24, 32}, turns)
	require.Equal(t, []int64{low[0], low[1], normal[0], normal[1]}, []int64{order[7], order[15], order[23], order[31]},
		"the longest wait first")
	r.settle()
}

// L3: the first batch after the start of a worker dispatches the executions that waited for one, whatever else that
// batch does.
func TestL3AReturningWorkerGetsWaitingExecutions(t *testing.T) {
	r := newRoom(t)
	testkit.Exec(t, r.store, `UPDATE worker SET cordoned = true`)
	waiting := r.replica(func(c *scheduler.Config) { c.WaitForWorkers = true })
	one, other := r.limited("pk.one", 1), r.limited("pk.other", 0)
	ids := slices.Concat(r.make(one, 2), r.make(other, 2))
	require.Equal(t, scheduler.Result{Enqueued: 4}, r.on(waiting, nil, ids))
	testkit.Exec(t, r.store, `UPDATE worker SET cordoned = false`)
	back := r.replica(func(c *scheduler.Config) { c.WaitForWorkers = true })
	require.Equal(t, scheduler.Result{Granted: 3}, r.on(back, nil, nil), "any batch does")
	require.Equal(t, ids[1:2], r.queued(one))
	r.settle()
}
