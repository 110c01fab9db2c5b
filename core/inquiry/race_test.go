package inquiry_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/testkit"
)

// gateLock is the advisory lock at which a gated transaction stands still.
const gateLock = 4711

// gate makes every transaction stand still that has given an inquiry the status,
// before its commit, until the gate is opened.
func (b *bundle) gate(t *testing.T, status inquiry.Status) (open func()) {
	t.Helper()
	testkit.Exec(t, b.store, fmt.Sprintf(`CREATE FUNCTION stand_still() RETURNS trigger LANGUAGE plpgsql AS $f$
		BEGIN PERFORM pg_advisory_xact_lock_shared(%d); RETURN NULL; END $f$`, gateLock))
	testkit.Exec(t, b.store, fmt.Sprintf(`CREATE TRIGGER stand_still AFTER UPDATE OF status ON inquiry FOR EACH ROW
		WHEN (NEW.status = '%s') EXECUTE FUNCTION stand_still()`, status))
	conn, err := b.store.Pool().Acquire(t.Context())
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, gateLock)
	require.NoError(t, err)
	open = sync.OnceFunc(func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), `SELECT pg_advisory_unlock($1)`, gateLock)
		conn.Release()
		require.NoError(t, err)
	})
	t.Cleanup(open) // also where the test fails: the pool waits for its connections
	return open
}

// waiters waits until so many transactions of the database wait for locks.
func (b *bundle) waiters(t *testing.T, n int) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) >= n
	}, 10*time.Second, "%d wait", n)
}

// S16: of an answer, an expiry and a cancellation, in every order of two, the one that
// comes first wins and the other finds it.
func TestS16WhoComesSecondFindsWhoCameFirst(t *testing.T) {
	t.Parallel()
	acts := map[inquiry.Status]func(t *testing.T, b *bundle, a asked) error{
		inquiry.Responded: func(t *testing.T, b *bundle, a asked) error {
			_, err := b.yes(testkit.Context(t), a.inquiry)
			return err
		},
		inquiry.Expired: func(t *testing.T, b *bundle, _ asked) error { return b.look(t) },
		inquiry.Cancelled: func(t *testing.T, b *bundle,
			a asked,
		) error {
			return b.stop(testkit.Context(t), a.execution)
		},
	}
	ends := map[inquiry.Status]attune.Status{
		inquiry.Responded: attune.StatusCompleted, inquiry.Expired: attune.StatusTimeout,
		inquiry.Cancelled: attune.StatusCancelled,
	}
	for first, begin := range acts {
		for second, follow := range acts {
			t.Run(fmt.Sprintf("%s before %s", first, second), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				timeout := time.Minute
				if second == inquiry.Expired {
					timeout = 5 * time.Second // the first act is under way long before
				}
				a := b.task(t, func(q *inquiry.Question) { q.Timeout = timeout })
				open := b.gate(t, first)
				if first == inquiry.Expired {
					b.over(t, a.inquiry)
				}
				var won, lost error
				var done sync.WaitGroup
				done.Go(func() { won = begin(t, b, a) })
				b.waiters(t, 1)
				if second == inquiry.Expired { // its time ends while the first has not committed
					testkit.Eventually(t, func() bool {
						return testkit.Count(t, b.store,
							`SELECT count(*) FROM inquiry WHERE id = $1 AND timeout_at < now()`, a.inquiry) == 1
					}, 15*time.Second)
				}
				done.Go(func() { lost = follow(t, b, a) })
				// of two that look for expired ones, one does nothing
				if first != inquiry.Expired || second != inquiry.Expired {
					b.waiters(t, 2)
				}
				open()
				done.Wait()
				require.NoError(t, won)
				require.Equal(t, first, b.status(t, a.inquiry))
				require.Equal(t, ends[first], testkit.StatusOf(t, b.store, a.execution))
				if second == inquiry.Responded {
					refusal(t, lost)
				} else {
					require.NoError(t, lost)
				}
				require.Equal(t, map[int64]int{a.execution: 1}, b.relay.completions(t))
				require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM late_write`),
					"ended rows stayed unchanged")
			})
		}
	}
}

// look lets a replica look once.
func (b *bundle) look(t *testing.T) error {
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
	t.Parallel()
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
			require.Equal(t, attune.StatusCompleted, testkit.StatusOf(t, b.store, a.execution))
		}
	}
}
