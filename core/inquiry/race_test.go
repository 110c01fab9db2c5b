package inquiry_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// gateLock is the advisory lock that a gated transaction waits for.
const gateLock = 4711

// gate stops every transaction that has given an inquiry the status before its commit, until open is called.
func (b *bundle) gate(t *testing.T, status inquiry.Status) (open func()) {
	t.Helper()
	testkit.Exec(t, b.store, fmt.Sprintf(`CREATE FUNCTION stop_at_gate() RETURNS trigger LANGUAGE plpgsql AS $f$
		BEGIN PERFORM pg_advisory_xact_lock_shared(%d); RETURN NULL; END $f$`, gateLock))
	testkit.Exec(t, b.store, fmt.Sprintf(`CREATE TRIGGER stop_at_gate AFTER UPDATE OF status ON inquiry FOR EACH ROW
		WHEN (NEW.status = '%s') EXECUTE FUNCTION stop_at_gate()`, status))
	conn, err := b.store.Pool().Acquire(t.Context())
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, gateLock)
	require.NoError(t, err)
	open = sync.OnceFunc(func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), `SELECT pg_advisory_unlock($1)`, gateLock)
		conn.Release()
		require.NoError(t, err)
	})
	t.Cleanup(open) // also of a failed test: the pool waits for its connections
	return open
}

// waiting counts the transactions of the database that wait for locks.
func (b *bundle) waiting(t *testing.T) int {
	t.Helper()
	return testkit.Count(t, b.store,
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// act is one of the ends of an inquiry.
type act struct {
	run func(t *testing.T, b *bundle, a asked) error
	end lifecycle.Status // of the execution
}

var acts = map[inquiry.Status]act{
	inquiry.Responded: {func(t *testing.T, b *bundle, a asked) error {
		_, err := b.yes(testkit.Context(t), a.inquiry)
		return err
	}, lifecycle.StatusCompleted},
	inquiry.Expired: {func(t *testing.T, b *bundle, _ asked) error { return b.sweep(t) }, lifecycle.StatusTimeout},
	inquiry.Cancelled: {func(t *testing.T, b *bundle, a asked) error {
		return b.stop(testkit.Context(t), a.execution)
	}, lifecycle.StatusCancelled},
}

// S16: of an answer, an expiry and a cancellation, in every order of two, the first one wins and the second finds it.
func TestS16TheSecondEndFindsTheFirst(t *testing.T) {
	t.Parallel()
	for first := range acts {
		for second := range acts {
			t.Run(fmt.Sprintf("%s before %s", first, second), func(t *testing.T) {
				t.Parallel()
				timeout := time.Minute
				if second == inquiry.Expired {
					timeout = 5 * time.Second
				}
				// On a slow machine the inquiry may expire before the first end begins, so its timeout is lengthened.
				for !raced(t, first, second, timeout) {
					timeout *= 4
					require.Less(t, timeout, 2*time.Minute)
				}
			})
		}
	}
}

// raced ends an inquiry in two ways: the second begins before the commit of the first. It reports false if the inquiry
// expired before the first.
func raced(t *testing.T, first, second inquiry.Status, timeout time.Duration) bool {
	t.Helper()
	b := setup(t)
	a := b.task(t, func(q *inquiry.Question) { q.Timeout = timeout })
	open := b.gate(t, first)
	if first == inquiry.Expired {
		b.over(t, a.inquiry)
	}
	won := make(chan error, 1)
	go func() { won <- acts[first].run(t, b, a) }()
	testkit.Eventually(t, func() bool { return len(won) == 1 || b.waiting(t) > 0 }, testkit.TestTimeout)
	if len(won) == 1 { // it did not reach the gate
		require.Equal(t, inquiry.Expired, second)
		require.Equal(t, inquiry.TimeOver, refusal(t, <-won))
		return false
	}
	if second == inquiry.Expired { // the inquiry expires while the first has not committed
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, b.store,
				`SELECT count(*) FROM inquiry WHERE id = $1 AND timeout_at < now()`, a.inquiry) == 1
		}, testkit.TestTimeout)
	}
	lost := make(chan error, 1)
	go func() { lost <- acts[second].run(t, b, a) }()
	if first != inquiry.Expired || second != inquiry.Expired { // of two sweeps one does nothing
		testkit.Eventually(t, func() bool { return b.waiting(t) >= 2 }, testkit.TestTimeout)
	}
	open()
	require.NoError(t, <-won)
	err := <-lost
	require.Equal(t, first, b.status(t, a.inquiry))
	require.Equal(t, acts[first].end, testkit.StatusOf(t, b.store, a.execution))
	if second == inquiry.Responded {
		refusal(t, err)
	} else {
		require.NoError(t, err)
	}
	require.Equal(t, map[int64]int{a.execution: 1}, b.relay.completions(t))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM late_write`), "ended rows stayed unchanged")
	return true
}

// sweep runs the first tick of a replica's watch.
func (b *bundle) sweep(t *testing.T) error {
	w := inquiry.NewWatch(inquiry.WatchConfig{Interval: time.Hour}, b.store, b.relay, testkit.Logger(t), nil, nil)
	if err := w.Start(testkit.Context(t)); err != nil {
		return err
	}
	defer w.Stop()
	for w.LastTick().IsZero() && testkit.Context(t).Err() == nil {
		time.Sleep(2 * time.Millisecond)
	}
	return w.LastError()
}

// S16 and S13 under load: two replicas, answering people, cancelling operators and a service that answers without a
// check work on the same expiring questions. Each question has one end, its execution has the same, and all its
// messages agree.
func TestS16InAStorm(t *testing.T) {
	b := setup(t)
	const questions = 60
	var all []asked
	for i := range questions {
		all = append(all, b.task(t, func(q *inquiry.Question) { q.Timeout = time.Duration(1+i%3) * time.Second }))
	}
	testkit.Exec(t, b.store, `UPDATE inquiry SET timeout_at = now() + (id % 40) * interval '10 ms'`)
	b.watch(t)
	b.watch(t)
	ctx := testkit.Context(t)
	var answered, cancelled sync.Map
	var crowd sync.WaitGroup
	for who := range 6 {
		crowd.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(who), 16))
			for _, i := range dice.Perm(questions) {
				a := all[i]
				switch who {
				case 0, 1, 2:
					if _, err := b.yes(ctx, a.inquiry); err == nil {
						_, twice := answered.LoadOrStore(a.inquiry, who)
						require.False(t, twice, "two answers were taken for inquiry %d", a.inquiry)
					}
				case 3, 4:
					if dice.IntN(3) == 0 && b.stop(ctx, a.execution) == nil {
						cancelled.Store(a.inquiry, true)
					}
				default:
					_, err := b.store.Pool().Exec(ctx, `UPDATE inquiry SET status = 'responded', response = '"foreign"', responded_at = now()
						WHERE id = $1 AND $2`, a.inquiry, dice.IntN(3) == 0)
					require.NoError(t, err)
				}
			}
		})
	}
	crowd.Wait()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM inquiry WHERE status <> 'pending' AND settled`) == questions
	}, 15*time.Second)
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry i JOIN execution e ON e.id = i.execution WHERE e.status::text IS DISTINCT FROM
		CASE i.status WHEN 'responded' THEN 'completed' WHEN 'timeout' THEN 'timeout' ELSE 'cancelled' END
		AND NOT (i.status = 'responded' AND e.status = 'cancelled' AND i.response = '"foreign"')`),
		"the execution ends as its question, unless it was cancelled before an answer was heard of")
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry i JOIN execution e ON e.id = i.execution
		WHERE e.status = 'completed' AND e.result->'response' IS DISTINCT FROM i.response`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM late_write`))
	told := b.relay.completions(t)
	for _, a := range all {
		require.GreaterOrEqual(t, told[a.execution], 1, "execution %d", a.execution)
		if _, mine := answered.Load(a.inquiry); mine {
			require.Equal(t, inquiry.Responded, b.status(t, a.inquiry))
			require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, a.execution))
		}
	}
}
