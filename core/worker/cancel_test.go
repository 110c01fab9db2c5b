package worker_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/cancellation"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// stop cancels executions as an engine does, without its messages, and returns the outcome of each.
func (b *bundle) stop(ctx context.Context, ids ...int64) (page *cancellation.Page, err error) {
	return b.stopBecause(ctx, "", ids...)
}

func (b *bundle) stopBecause(ctx context.Context, reason string, ids ...int64) (page *cancellation.Page, err error) {
	err = b.store.Tx(ctx, "cancel", func(ctx context.Context, tx *store.Tx) (err error) {
		page, err = cancellation.Apply(ctx, tx, cancellation.Request{Actor: "ann", Reason: reason}, ids)
		return err
	})
	return page, err
}

// requireOneEnd checks S14: every announcement of an execution agrees with its row.
func (b *bundle) requireOneEnd(t *testing.T, id int64) {
	t.Helper()
	for _, said := range b.completions(id) {
		require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from execution
			where id = $1 and status::text = $2 and coalesce(result, 'null') = $3 and finished_at = $4`,
			id, said.Status, orNull(said.Result), said.CompletedAt), "execution %d: %+v", id, said)
	}
}

func orNull(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	return string(raw)
}

// S15: of a concurrent cancel and start of an execution one wins: it never runs, or it is stopped.
func TestCancelAgainstTheStart(t *testing.T) {
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) { c.MaxConcurrent = 20 })
	ran := filepath.Join(t.TempDir(), "ran")
	action := b.script(t, "race.start", `echo "$ATTUNE_EXEC_ID" >> `+ran+"; exec sleep 600", nil)
	const n = 40
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = b.schedule(t, w, action, nil)
	}
	outcomes := make([]cancellation.Result, n)
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() {
			time.Sleep(rand.N(20 * time.Millisecond))
			b.dispatch(t, w, id)
		})
		group.Go(func() {
			time.Sleep(rand.N(25 * time.Millisecond))
			page, err := b.stop(t.Context(), id)
			if err != nil {
				panic(err)
			}
			outcomes[i] = page.Results[0]
		})
	}
	group.Wait()
	b.drained(t, w)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `select count(*) from execution e where e.finished_status is null`) == 0
	}, waitTimeout)
	text, err := os.ReadFile(ran)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	started := strings.Fields(string(text))
	for i, id := range ids {
		require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, id))
		if outcomes[i].Outcome == cancellation.Cancelled {
			require.NotContains(t, started, idText(id), "S15: it was acknowledged as cancelled")
			require.Equal(t, 1,
				testkit.Count(t, b.store, `select count(*) from execution where id = $1 and started_at is null`, id))
		}
		b.requireOneEnd(t, id)
	}
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from late_write`))
}

func idText(id int64) string { raw, _ := json.Marshal(id); return string(raw) }

// Of a concurrent cancel and end the row decides, and every announcement agrees with it.
func TestCancelAgainstTheEnd(t *testing.T) {
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) { c.MaxConcurrent = 20 })
	action := b.core(t, "core.noop")
	var group sync.WaitGroup
	ids := make([]int64, 60)
	for i := range ids {
		ids[i] = b.schedule(t, w, action, nil)
		group.Go(func() {
			time.Sleep(rand.N(10 * time.Millisecond))
			b.dispatch(t, w, ids[i])
		})
		group.Go(func() {
			time.Sleep(rand.N(40 * time.Millisecond))
			if _, err := b.stop(t.Context(), ids[i]); err != nil {
				panic(err)
			}
			b.cancel(t, w, ids[i])
		})
	}
	group.Wait()
	b.drained(t, w)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `select count(*) from execution e where e.finished_status is null`) == 0
	}, waitTimeout)
	for _, id := range ids {
		b.requireOneEnd(t, id)
	}
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from late_write`), "S8: an end is never overwritten")
}

// A delivered execution that waits for a place is cancelled at once and never started.
func TestCancelOfAnExecutionThatWaitsForAPlace(t *testing.T) {
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) { c.MaxConcurrent = 1 })
	long := b.script(t, "place.long", "exec sleep 600", nil)
	first, second := b.schedule(t, w, long, nil), b.schedule(t, w, long, nil)
	b.dispatch(t, w, first, second)
	b.awaitRunning(t, first)
	page, err := b.stop(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, cancellation.Cancelled, page.Results[0].Outcome)
	b.cancel(t, w, second) // the worker has nothing to stop
	_, err = b.stop(t.Context(), first)
	require.NoError(t, err)
	b.await(t, first)
	testkit.Eventually(t, func() bool { return len(b.completions(second)) == 1 }, waitTimeout)
	b.requireOneEnd(t, second)
	require.Zero(t,
		testkit.Count(t, b.store, `select count(*) from execution where id = $1 and started_at is not null`, second))
}

// A cancel request that arrives while its execution is being started, before its row says so, is not forgotten.
func TestCancelDuringTheStart(t *testing.T) {
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) { c.CancelPoll = time.Hour })
	id := b.schedule(t, w, b.script(t, "start.long", "exec sleep 600", nil), nil)
	holder := testkit.Begin(t, b.store)
	_, err := holder.Exec(t.Context(), "select from execution where id = $1 for update", id)
	require.NoError(t, err)
	b.dispatch(t, w, id)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `select count(*) from pg_stat_activity where datname = current_database()
			and wait_event_type = 'Lock' and query like '%StartExecutions%'`) == 1
	}, waitTimeout, "the start waits for the row")
	begin := time.Now()
	b.cancel(t, w, id)
	testkit.Eventually(t, func() bool {
		state, err := b.engine.QueueState(testkit.Context(t), message.WorkerCancelQueue(w.ID()))
		return err == nil && state.Ready == 0
	}, waitTimeout)
	require.NoError(t, holder.Rollback(t.Context()))
	b.awaitRunning(t, id)
	testkit.Exec(t, b.store, "update execution set status = 'canceling' where id = $1", id)
	if time.Since(begin) > 2*time.Second { // a worker reads the row for five seconds after the message
		b.cancel(t, w, id)
	}
	status, _ := b.await(t, id)
	require.Equal(t, lifecycle.StatusCancelled, status)
}

// The result and the announcement of the worker name the author and the reason of a cancel.
func TestTheWorkersResultNamesTheReasonOfACancel(t *testing.T) {
	b := setup(t)
	w := b.worker(t)
	id := b.schedule(t, w, b.script(t, "why.long", "echo begun; exec sleep 600", nil), nil)
	b.dispatch(t, w, id)
	b.awaitRunning(t, id)
	_, err := b.stopBecause(t.Context(), "wrong host", id)
	require.NoError(t, err)
	b.cancel(t, w, id)
	status, r := b.await(t, id)
	require.Equal(t, lifecycle.StatusCancelled, status)
	require.True(t, r.Cancelled)
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from execution where id = $1
		and result->>'message' = 'wrong host' and result->>'cancelled_by' = 'ann' and result->>'error' = 'Execution cancelled by user'`, id))
	testkit.Eventually(t, func() bool { return len(b.completions(id)) == 1 }, waitTimeout)
	b.requireOneEnd(t, id)
}

// river#1397, #1564: a cancel request whose queue does not exist is not lost, because the worker polls the rows.
func TestCancelWithoutItsQueue(t *testing.T) {
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) { c.HeartbeatInterval = time.Hour }) // no beat declares it again
	id := b.schedule(t, w, b.script(t, "lost.long", "exec sleep 600", nil), nil)
	b.dispatch(t, w, id)
	b.awaitRunning(t, id)
	testkit.Manage(t, "DELETE", "/api/queues/"+testkit.VHostName(t, b.brokerURL)+"/"+message.WorkerCancelQueue(w.ID()),
		nil, nil)
	_, err := b.stop(t.Context(), id)
	require.NoError(t, err)
	status, r := b.await(t, id)
	require.Equal(t, lifecycle.StatusCancelled, status)
	require.True(t, r.Cancelled)
	b.requireOneEnd(t, id)
}

// A client that can only publish cannot stop an execution: the row decides, also if the message has another type, names
// another worker, or precedes the row.
func TestAForgedCancelStopsNothing(t *testing.T) {
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) { c.CancelPoll = time.Hour })
	long := b.script(t, "forged.long", "exec sleep 600", nil)
	forged, asked := b.schedule(t, w, long, nil), b.schedule(t, w, long, nil)
	b.dispatch(t, w, forged, asked)
	b.awaitRunning(t, forged)
	b.awaitRunning(t, asked)
	request := message.ExecutionCancelRequested{ExecutionID: forged, WorkerID: w.ID()}
	other := request
	other.WorkerID += 999
	strange := b.schedule(t, w, long, nil)
	b.publish(t,
		encode(t, message.TypePackDeleted, message.CancelKey(w.ID()), request),
		encode(t, message.TypeExecutionCancelRequested, message.CancelKey(w.ID()), other),
		encode(t, message.TypeExecutionCancelRequested, message.CancelKey(w.ID()), request),
		encode(t, message.TypeExecutionRequested, message.DispatchKey(w.ID()),
			message.Dispatch{ExecutionID: strange, WorkerID: w.ID() + 999}),
	)
	b.awaitDeadLetters(t, 3)
	begin := time.Now()
	b.cancel(t, w, asked)
	testkit.Exec(t, b.store, "update execution set status = 'canceling' where id = $1", asked)
	if time.Since(begin) > 2*time.Second { // a worker reads the row for five seconds after the message
		b.cancel(t, w, asked)
	}
	status, _ := b.await(t, asked)
	require.Equal(t, lifecycle.StatusCancelled, status, "the row says so after its message")
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, forged))
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, strange))
	_, err := b.stop(t.Context(), forged)
	require.NoError(t, err)
	b.cancel(t, w, forged)
	status, _ = b.await(t, forged)
	require.Equal(t, lifecycle.StatusCancelled, status)
}

// awaitDeadLetters waits until n messages are in the dead-letter queue.
func (b *bundle) awaitDeadLetters(t *testing.T, n int) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		state, err := b.engine.QueueState(t.Context(), message.QueueDeadLetter)
		return err == nil && state.Ready == n
	}, waitTimeout, "%d dead letters", n)
}
