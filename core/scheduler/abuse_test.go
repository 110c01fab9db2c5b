package scheduler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// Three replicas, one in five messages twice, cancels by others in between, limits of one, three and none: no limit
// is exceeded, and nothing is out of order, lost or done twice (S1–S7, S13, L3). One message in ten has a wrong
// hint.
func TestThreeReplicasUnderAbuse(t *testing.T) {
	b := setup(t)
	for i := range 3 {
		testkit.Worker(t, b.store, fmt.Sprintf("w%d", i),
			func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(4) })
	}
	limits := map[string]int{"pk.one": 1, "pk.three": 3, "pk.free": 0}
	requests := make(chan int64, 10_000)
	actions := map[int64]testkit.ActionRow{}
	other := testkit.Action(t, b.store, "pk.other")
	hint := func(id int64) scheduler.Hint { // one message in ten may be wrong
		if rand.IntN(10) > 0 {
			return named(actions[id])
		}
		return anyHint(actions[id], other)
	}
	for ref, limit := range limits {
		action := testkit.Action(t, b.store, ref)
		if limit > 0 {
			testkit.Policy(t, b.store, action, limit)
		}
		for _, id := range b.request(t, action, 150) {
			requests <- id
			actions[id] = action
			if rand.IntN(5) == 0 {
				requests <- id
			}
		}
	}
	ended := make(chan int64, 10_000)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	var wg sync.WaitGroup
	for range 3 {
		// The workers send no heartbeats.
		replica := b.replica(t, func(c *scheduler.Config) { c.HeartbeatStaleAfter = time.Hour })
		wg.Go(func() { b.abuse(ctx, t, replica, requests, ended, hint) })
	}
	wg.Go(func() { b.work(ctx, t, ended, cancel) })
	wg.Wait()
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution e WHERE e.finished_status IS NULL`),
		"lost")
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE attempt > 1`), "dispatched twice")
	b.requireOrder(t)
	testkit.Exec(t, b.store, `DELETE FROM outbox`)
	testkit.Invariants(t, b.store)
}

// abuse is one replica, which runs the present messages in small batches.
func (b *bundle) abuse(
	ctx context.Context, t *testing.T, replica *scheduler.Scheduler, requests, ended chan int64,
	hint func(int64) scheduler.Hint,
) {
	var unfilled []int64
	take := func(from chan int64, most int) (ids []int64) {
		for len(ids) < most {
			select {
			case id := <-from:
				ids = append(ids, id)
			default:
				return ids
			}
		}
		return ids
	}
	for ctx.Err() == nil {
		done, asked := take(ended, 7), take(requests, 13)
		if len(done)+len(asked)+len(unfilled) == 0 {
			select {
			case <-ctx.Done():
				return
			case id := <-ended:
				done = append(done, id)
			case id := <-requests:
				asked = append(asked, id)
			}
		}
		reports := make([]scheduler.Report, len(done))
		for i, id := range done {
			said := hint(id)
			reports[i] = scheduler.Report{Execution: id, ActionID: said.ActionID, ActionRef: said.ActionRef}
		}
		said := make(map[int64]scheduler.Hint)
		for _, id := range asked {
			said[id] = hint(id)
		}
		result, err := replica.Run(context.WithoutCancel(ctx),
			scheduler.NewCompletionStep(scheduler.CompletionConfig{}, reports),
			scheduler.FillStep{Queues: unfilled}, scheduler.NewRequestStep(asked).WithHints(said))
		if err != nil {
			t.Errorf("batch: %v", err)
			return
		}
		unfilled = result.Unfilled
	}
}

// work is the workers: it ends dispatched executions, reports one in five twice, and cancels some waiting
// executions.
func (b *bundle) work(ctx context.Context, t *testing.T, ended chan int64, finished func()) {
	defer finished()
	seen := map[int64]bool{}
	for ctx.Err() == nil {
		for _, m := range b.relay.take() {
			sent, err := message.Decode[message.Dispatch](m.Body)
			if err != nil || seen[sent.Payload.ExecutionID] {
				t.Errorf("dispatched twice, or unreadable: %v %v", sent.Payload, err)
				return
			}
			id := sent.Payload.ExecutionID
			seen[id] = true
			if _, err := b.store.Pool().Exec(ctx,
				`UPDATE execution SET status = 'completed', result = $2 WHERE id = $1 AND status = 'scheduled'`,
				id, json.RawMessage(`{}`)); err != nil && ctx.Err() == nil {
				t.Errorf("finish: %v", err)
			}
			ended <- id
			if rand.IntN(5) == 0 {
				ended <- id
			}
		}
		if rand.IntN(20) == 0 {
			var id int64
			err := b.store.Pool().QueryRow(ctx, `UPDATE execution SET status = 'cancelled' WHERE id = (
				SELECT execution_id FROM execution_admission_entry ORDER BY random() LIMIT 1) AND status = 'requested' RETURNING id`).Scan(&id)
			if err == nil && rand.IntN(2) == 0 {
				ended <- id
			}
		}
		var left int
		if err := b.store.Pool().QueryRow(ctx, `SELECT (SELECT count(*) FROM execution WHERE status NOT IN ('completed', 'cancelled'))
			+ (SELECT count(*) FROM execution_holder) + (SELECT count(*) FROM execution_admission_entry)`).Scan(&left); err == nil && left == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// requireOrder checks from the rows that no two executions of the queue with a limit of one overlap.
func (b *bundle) requireOrder(t *testing.T) {
	t.Helper()
	require.Zero(t, testkit.Count(t, b.store, `
		SELECT count(*) FROM (
			SELECT h.time AS began, lag(e.finished_at) OVER (ORDER BY h.time) AS before_ended
			FROM execution e
			JOIN execution_history h ON h.entity_id = e.id AND h.new_values->>'status' = 'scheduled'
			WHERE e.action_ref = 'pk.one') x
		WHERE before_ended > began`), "S3: two held the one slot at the same time")
}
