package proof

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// room is one database with the number of replicas that a test needs.
type room struct {
	t     *testing.T
	store *store.Store
	sent  *mailbox
	first *scheduler.Scheduler
}

// newRoom makes a database with a worker that has room for all executions.
func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{t: t, store: testkit.Store(t, func(c *store.Config) { c.HotPath = true }), sent: &mailbox{}}
	testkit.Worker(t, r.store, "w", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(1000) })
	r.first = r.replica()
	return r
}

// replica makes the batches of one more engine with no knowledge.
func (r *room) replica(change ...func(*scheduler.Config)) *scheduler.Scheduler {
	cfg := scheduler.Config{HeartbeatStaleAfter: time.Hour} // no worker sends heartbeats here
	for _, c := range change {
		c(&cfg)
	}
	return scheduler.New(cfg, scheduler.Deps{Store: r.store, Relay: r.sent, Logger: testkit.Logger(r.t)})
}

// limited makes an action with a limit; 0 is no limit.
func (r *room) limited(ref string, limit int, options ...func(*testkit.PolicyRow)) testkit.ActionRow {
	action := testkit.Action(r.t, r.store, ref)
	if limit > 0 {
		testkit.Policy(r.t, r.store, action, limit, options...)
	}
	return action
}

func (r *room) make(action testkit.ActionRow, n int, options ...func(*testkit.ExecutionRow)) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = testkit.Execution(r.t, r.store, action, options...).ID
	}
	return ids
}

func (r *room) ask(ids ...int64) scheduler.Result { return r.on(r.first, nil, ids) }

func (r *room) report(ids ...int64) scheduler.Result { return r.on(r.first, ids, nil) }

// on has a replica take ends and requests in one batch.
func (r *room) on(replica *scheduler.Scheduler, ended, asked []int64) scheduler.Result {
	r.t.Helper()
	result, err := replica.Run(testkit.Context(r.t), scheduler.NewReleaseStep(ended), scheduler.FillStep{},
		scheduler.NewRequestStep(asked))
	require.NoError(r.t, err)
	return result
}

// finish ends executions as a worker does, without a message to the engine.
func (r *room) finish(status lifecycle.Status, ids ...int64) {
	r.t.Helper()
	require.Equal(r.t, len(ids), testkit.Exec(r.t, r.store,
		`UPDATE execution SET status = $1::text::execution_status_enum WHERE id = ANY ($2)`, string(status), ids))
}

func (r *room) statuses(ids ...int64) []lifecycle.Status {
	r.t.Helper()
	out := make([]lifecycle.Status, len(ids))
	for i, id := range ids {
		out[i] = testkit.StatusOf(r.t, r.store, id)
	}
	return out
}

func (r *room) count(sql string, args ...any) int {
	r.t.Helper()
	return testkit.Count(r.t, r.store, sql, args...)
}

func (r *room) holders(action testkit.ActionRow) int {
	r.t.Helper()
	return r.count(`SELECT count(*) FROM execution_holder h JOIN execution e ON e.id = h.execution WHERE e.action = $1`,
		action.ID)
}

// settle deletes the messages that only a broker would read, and checks the invariants.
func (r *room) settle() {
	r.t.Helper()
	testkit.Exec(r.t, r.store, `DELETE FROM outbox`)
	testkit.Invariants(r.t, r.store)
}

// L3: an execution that one limit refuses reserves nothing of the limits before it, so that the next one finds them
// free.
func TestL3ARefusedExecutionReservesNothing(t *testing.T) {
	r := newRoom(t)
	paced, plain := r.limited("pk.paced", 0), r.limited("pk.plain", 0)
	testkit.Policy(t, r.store, paced, 1, testkit.OfPack(paced))
	testkit.Policy(t, r.store, paced, 1, func(p *testkit.PolicyRow) {
		p.Kind, p.WindowSeconds, p.Method = "rate", new(int32(3600)), "cancel"
	})
	first := r.make(paced, 1)
	require.Equal(t, scheduler.Result{Granted: 1}, r.ask(first...))
	r.finish(lifecycle.StatusCompleted, first...)
	require.Equal(t, scheduler.Result{Released: 1}, r.report(first...))

	second, next := r.make(paced, 1), r.make(plain, 1)
	require.Equal(t, scheduler.Result{Granted: 1, Ended: 1}, r.ask(append(second, next...)...))
	require.Equal(t, []lifecycle.Status{lifecycle.StatusCancelled, lifecycle.StatusScheduled}, r.statuses(second[0],
		next[0]))
	r.settle()
}

// L3: an execution that is not due yet keeps no slot from others. It may be due much later, and nothing would
// return to these others meanwhile.
func TestL3AnExecutionThatIsNotDueHoldsNoSlot(t *testing.T) {
	r := newRoom(t)
	paced, plain := r.limited("pk.paced", 0), r.limited("pk.plain", 0)
	testkit.Policy(t, r.store, paced, 1, testkit.OfPack(paced))
	testkit.Policy(t, r.store, paced, 1,
		func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "rate", new(int32(3600)) })
	first := r.make(paced, 2)
	require.Equal(t, 1, r.ask(first...).Granted)
	r.finish(lifecycle.StatusCompleted, first[0])
	require.Equal(t, 1, r.report(first[0]).Released)

	later, next := r.make(paced, 1), r.make(plain, 1)
	result := r.ask(append(later, next...)...)
	require.Equal(t, []int{1, 1}, []int{result.Granted, result.Enqueued})
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, r.store, next[0]))
	require.Positive(t, result.Wake)
	r.settle()
}

// L3 and prefect#23183: the batch that releases a shared slot gives it to the next execution, also on a replica that
// has seen none of its queues.
func TestL3AFreshReplicaPromotesTheNextOfASharedLimit(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(testkit.ActionRow) func(*testkit.PolicyRow){
		"of the pack": testkit.OfPack,
		"of everything": func(testkit.ActionRow) func(*testkit.PolicyRow) {
			return testkit.Global
		},
		"of a group": func(action testkit.ActionRow) func(*testkit.PolicyRow) {
			return func(p *testkit.PolicyRow) {
				testkit.OfPack(action)(p)
				p.Parameters = []string{"tenant"}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			one, other := r.limited("pk.one", 0), r.limited("pk.other", 0)
			testkit.Policy(t, r.store, one, 1, of(one))
			holder, waiter := r.make(one, 1), r.make(other, 1)
			require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 1}, r.ask(append(holder, waiter...)...))
			r.finish(lifecycle.StatusCompleted, holder...)
			require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, r.on(r.replica(), holder, nil))
			require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, r.store, waiter[0]))
			r.settle()
		})
	}
}

// interruption is a step that calls act when its batch is planned for the nth time.
type interruption struct {
	nth int
	act func()
}

func (*interruption) Executions() []int64 { return nil }

func (s *interruption) Plan(context.Context, *scheduler.Plan) error {
	if s.nth--; s.nth == 0 {
		s.act()
	}
	return nil
}

func (*interruption) Apply(*scheduler.Batch) {}

// S3: a batch that is planned again and again because it learns its needs does not remember a limit that was
// lowered meanwhile.
func TestS3ALimitThatIsLoweredWhileABatchIsPlannedHolds(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 4; nth++ {
		t.Run(strconv.Itoa(nth), func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			one, other := r.limited("pk.one", 0), r.limited("pk.other", 0)
			limit := testkit.Policy(t, r.store, one, 2, testkit.OfPack(one))
			holders, waiters := r.make(one, 2), r.make(other, 2)
			require.Equal(t, scheduler.Result{Granted: 2, Enqueued: 2}, r.ask(append(holders, waiters...)...))
			r.finish(lifecycle.StatusCompleted, holders[0])
			lowered := false
			lower := &interruption{nth: nth, act: func() {
				lowered = true
				testkit.Exec(t, r.store, `UPDATE policy SET threshold = 1 WHERE id = $1`, limit.ID)
			}}
			result, err := r.replica().Run(testkit.Context(t), lower, scheduler.NewReleaseStep(holders[:1]),
				scheduler.FillStep{})
			require.NoError(t, err)
			if lowered {
				require.Equal(t, scheduler.Result{Released: 1}, result, "the other holder is the one that may run")
			} else {
				require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, result)
			}
			r.settle()
		})
	}
}
