package redrive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/installation"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, goleak.Cleanup(func(code int) {
		if program, err := buildOperator(); err == nil {
			_ = os.RemoveAll(filepath.Dir(program)) // what is left of a temporary folder does no harm
		}
		os.Exit(code)
	}))
}

const requests = message.QueueExecutionRequests

// site is an installation that has none of our tables, with a dead-letter queue that
// nobody takes from.
type site struct {
	*Desk
	t      *testing.T
	ctx    context.Context
	store  *store.Store
	plain  *amqp.Channel
	url    string
	amqp   string
	folder string
}

func newSite(t *testing.T, arguments amqp.Table, options ...func(*Config)) *site {
	t.Helper()
	return newSiteOf(t, false, arguments, options...)
}

// newSiteOf is newSite, with a ledger if the tables are to be ours.
func newSiteOf(t *testing.T, ours bool, arguments amqp.Table, options ...func(*Config)) *site {
	t.Helper()
	s := &site{t: t, ctx: testkit.Context(t), amqp: testkit.VHost(t), folder: filepath.Join(t.TempDir(), "spool")}
	if ours {
		s.url = testkit.Database(t)
	} else {
		s.url = testkit.Installation(t, installation.Newest)
	}
	s.store = testkit.OpenStore(t, s.url)
	conn, err := amqp.Dial(s.amqp)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // may be closed already
	s.plain, err = conn.Channel()
	require.NoError(t, err)
	require.NoError(t, s.plain.Confirm(false))
	require.NoError(t, s.plain.ExchangeDeclare(message.ExchangeExecutions, "topic", true, false, false, false, nil))
	s.queue(message.QueueDeadLetter, arguments)
	s.queue(requests, nil)
	require.NoError(t, s.plain.QueueBind(requests, message.KeyExecutionRequested, message.ExchangeExecutions, false, nil))
	s.Desk = s.desk(options...)
	return s
}

func (s *site) desk(options ...func(*Config)) *Desk {
	s.t.Helper()
	management, err := broker.NewManagement(testkit.ManagementURL(s.t), testkit.VHostName(s.t, s.amqp), 10*time.Second)
	require.NoError(s.t, err)
	s.t.Cleanup(management.Close)
	cfg := Config{
		Actor: "ann@desk", Source: "attune-tui", Context: "test", Broker: broker.Config{URL: s.amqp}, Management: management, Spool: s.folder,
		Rate: 1000, Direct: true,
	}
	for _, option := range options {
		option(&cfg)
	}
	return New(cfg, s.store)
}

func (s *site) queue(name string, arguments amqp.Table) {
	s.t.Helper()
	_, err := s.plain.QueueDeclare(name, true, false, false, false, arguments)
	require.NoError(s.t, err)
}

// expired makes executions that a handler failed, the action of which exists.
func (s *site) expired(n int) (ids []int64) {
	s.t.Helper()
	testkit.Exec(s.t, s.store, `insert into pack (ref, label, version) values ('pk', 'P', '1.0.0') on conflict do nothing`)
	testkit.Exec(s.t, s.store, `insert into action (ref, pack, pack_ref, label, entrypoint) select 'pk.a', id, ref, 'A', 'a.sh' from pack where ref = 'pk' on conflict do nothing`)
	for range n {
		var id int64
		require.NoError(s.t, s.store.Pool().QueryRow(s.ctx, `insert into execution (action, action_ref, status, result, config)
			select id, ref, 'failed', '{"error": "Worker queue TTL expired"}', '{"k": 1}' from action where ref = 'pk.a' returning id`).Scan(&id))
		ids = append(ids, id)
	}
	return ids
}

// letters puts one dead hand-over for each execution into the queue.
func (s *site) letters(ids ...int64) {
	s.t.Helper()
	for _, id := range ids {
		w := dispatched(s.t, id)
		s.send(amqp.Publishing{
			MessageId: fmt.Sprintf("m%d", id), Type: w.Type, Headers: w.Headers, Body: w.Body, DeliveryMode: amqp.Persistent, Expiration: "",
		})
	}
}

func (s *site) send(p amqp.Publishing) {
	s.t.Helper()
	confirm, err := s.plain.PublishWithDeferredConfirmWithContext(s.ctx, "", message.QueueDeadLetter, true, false, p)
	require.NoError(s.t, err)
	require.True(s.t, confirm.Wait())
}

func (s *site) ready(queue string) int {
	s.t.Helper()
	q, err := s.plain.QueueDeclarePassive(queue, true, false, false, false, nil)
	require.NoError(s.t, err)
	return q.Messages
}

// becomes waits until so many messages are ready.
func (s *site) becomes(queue string, n int) {
	s.t.Helper()
	testkit.Eventually(s.t, func() bool { return s.ready(queue) == n }, 20*time.Second, "%s has %d ready", queue, n)
}

// drain takes all out of a queue.
func (s *site) drain(queue string) (all []amqp.Delivery) {
	s.t.Helper()
	for {
		one, ok, err := s.plain.Get(queue, true)
		require.NoError(s.t, err)
		if !ok {
			return all
		}
		all = append(all, one)
	}
}

func (s *site) count(sql string, args ...any) int { return testkit.Count(s.t, s.store, sql, args...) }

func (s *site) snapshot() *Snapshot {
	s.t.Helper()
	snap, err := s.Snapshot(s.ctx, false)
	require.NoError(s.t, err)
	return snap
}

// run plans and runs.
func (s *site) run(order Order) *Receipt {
	s.t.Helper()
	p, err := s.Plan(s.ctx, order)
	require.NoError(s.t, err)
	require.Empty(s.t, p.Nothing)
	r, err := s.Run(s.ctx, p, "because", nil)
	require.NoError(s.t, err)
	require.Empty(s.t, r.Errors)
	return r
}

func TestASnapshotLeavesEverythingInItsPlace(t *testing.T) {
	t.Parallel()
	for name, arguments := range map[string]amqp.Table{"Classic": nil, "Quorum": {"x-queue-type": "quorum"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, arguments)
			s.letters(s.expired(5)...)
			s.send(amqp.Publishing{Body: []byte("garbage")})
			s.becomes(message.QueueDeadLetter, 6)
			snap := s.snapshot()
			require.Len(t, snap.Letters, 6)
			require.NotEmpty(t, snap.Cost)
			require.Equal(t, 6, snap.Queue.Ready)
			require.NotEmpty(t, snap.Letters[5].Trouble)
			s.becomes(message.QueueDeadLetter, 6)
			var order []string
			for _, d := range s.drain(message.QueueDeadLetter) {
				require.True(t, d.Redelivered)
				order = append(order, d.MessageId)
			}
			want := []string{}
			for _, l := range snap.Letters {
				want = append(want, l.MessageID)
			}
			require.Equal(t, want, order)
		})
	}
}

func TestASnapshotBesideAHandlerIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	_, err := s.plain.Consume(message.QueueDeadLetter, "executor.dlq", false, false, false, false, nil)
	require.NoError(t, err)
	_, err = s.Snapshot(s.ctx, false)
	require.ErrorIs(t, err, ErrConsumers)
	snap, err := s.Snapshot(s.ctx, true)
	require.NoError(t, err)
	require.Empty(t, snap.Letters)
	s.looking.Lock()
	_, err = s.Snapshot(s.ctx, true)
	s.looking.Unlock()
	require.ErrorIs(t, err, ErrBusy)
}

func TestAMessageNearItsLimitIsNotLookedAtAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": 4})
	s.letters(s.expired(2)...)
	s.becomes(message.QueueDeadLetter, 2)
	var err error
	looks := 0
	for ; looks < 10 && err == nil; looks++ {
		_, err = s.Snapshot(s.ctx, false)
		s.becomes(message.QueueDeadLetter, 2)
	}
	require.ErrorIs(t, err, ErrNoPeek)
	require.LessOrEqual(t, looks, 4)
	require.Len(t, s.drain(message.QueueDeadLetter), 2, "none was looked at to death")
}

func TestMarkedLettersAreRequeuedAndTheOthersStay(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ids := s.expired(60)
	done := s.expired(1)
	testkit.Exec(t, s.store, `update execution set status = 'completed', result = null where id = $1`, done[0])
	for i := range ids { // the youngest died first
		s.letters(ids[len(ids)-1-i])
	}
	s.letters(done...)
	snap := s.snapshot()
	require.Len(t, snap.Letters, 61)
	marked := append([]Letter{}, snap.Letters[45:]...) // the oldest fifteen and the completed one
	p, err := s.Plan(s.ctx, Order{Do: DoRequeue, Letters: marked})
	require.NoError(t, err)
	require.Equal(t, 15, p.Work())
	require.Equal(t, 61, p.Bound)
	require.Equal(t, []Check{
		{OK: true, Text: "exchange attune.executions exists"},
		{OK: true, Text: "execution.requested routes to 1 of the queues"},
		{Warn: true, Text: requests + " has 0 consumers"},
	}, p.Checks)
	var told [][2]int64
	r, err := s.Run(s.ctx, p, "because", func(p Progress) { told = append(told, [2]int64{p.Settled(), p.Total}) })
	require.NoError(t, err)
	require.Equal(t, &Receipt{Op: p.Op, Do: DoRequeue, Planned: 15, Done: 15, Before: 61, After: 46, Expected: 46, Seconds: r.Seconds}, r)
	require.Equal(t, [2]int64{15, 15}, told[len(told)-1])
	require.Equal(t, 15, s.count(`select count(*) from execution where status = 'requested' and retry_reason = 'manual_retry' and result is null`))
	require.Equal(t, 15, s.count(`select count(*) from audit_event where event_type = 'dlq.requeue' and details->>'op' = $1 and details->>'by' = 'ann@desk'
		and details->>'reason' = 'because' and details->'before'->>'status' = 'failed'`, p.Op))
	var order []int64
	for _, d := range s.drain(requests) {
		e, err := message.Decode[message.ExecutionRequested](d.Body)
		require.NoError(t, err)
		require.JSONEq(t, `{"k": 1}`, string(e.Payload.Config))
		require.NotContains(t, d.Headers, "x-death")
		require.Equal(t, p.Op, d.Headers["x-attune-requeue-op"])
		order = append(order, e.Payload.ExecutionID)
	}
	require.Equal(t, ids[:15], order, "in the order in which they were requested")
	rest := s.drain(message.QueueDeadLetter)
	require.Len(t, rest, 46, "what was held is back")
	require.Equal(t, fmt.Sprintf("m%d", ids[59]), rest[0].MessageId, "at its place")
	info, err := os.Stat(spoolPath(s.folder, p.Op))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestARowThatChangedSinceThePlanIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ids := s.expired(3)
	s.letters(ids...)
	p, err := s.Plan(s.ctx, Order{Do: DoRequeue, Letters: s.snapshot().Letters})
	require.NoError(t, err)
	testkit.Exec(t, s.store, `update execution set status = 'running', updated = now() + interval '1 second' where id = $1`, ids[1])
	r, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1, 0}, []int{r.Done, r.Changed, r.Failed})
	require.Equal(t, 1, r.After)
	require.Equal(t, 1, s.count(`select count(*) from execution where status = 'running'`))
	again, err := s.Plan(s.ctx, Order{Do: DoRequeue, Letters: s.snapshot().Letters})
	require.NoError(t, err)
	require.Contains(t, again.Nothing, "running")
}

func TestWhatAHandlerTookIsRequeuedByItsRow(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ids := s.expired(2)
	r := s.run(Order{Do: DoRequeue, Rows: []int64{ids[1], ids[0]}})
	require.Equal(t, 2, r.Done)
	require.Len(t, s.drain(requests), 2)
	require.Equal(t, 2, s.count(`select count(*) from execution where status = 'requested'`))
	_, err := os.Stat(s.folder)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing left a queue")
}

func TestRowsAreResetOnlyWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, func(c *Config) { c.Direct = false })
	s.letters(s.expired(1)...)
	letters := s.snapshot().Letters
	_, err := s.Plan(s.ctx, Order{Do: DoRequeue, Letters: letters})
	require.ErrorIs(t, err, ErrDirect)
	s.Desk = s.desk(func(c *Config) { c.Spool = "" })
	_, err = s.Plan(s.ctx, Order{Do: DoDiscard, Letters: letters})
	require.ErrorIs(t, err, errNoSpool)
}

func TestDiscardedLettersCanBePutBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.letters(s.expired(30)...)
	letters := s.snapshot().Letters
	r := s.run(Order{Do: DoDiscard, Letters: append([]Letter{}, letters[3], letters[25])})
	require.Equal(t, 2, r.Done)
	require.True(t, r.Undoable)
	require.Equal(t, 28, s.ready(message.QueueDeadLetter))
	all, err := s.Spool()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, 2, all[0].Undoable())
	require.Equal(t, "because", all[0].Reason)

	back := s.run(Order{Do: DoUndo, Op: r.Op})
	require.Equal(t, []int{2, 30, 30}, []int{back.Done, back.Expected, back.After})
	drained := s.drain(message.QueueDeadLetter)
	require.Len(t, drained, 30)
	last := drained[29]
	require.Equal(t, letters[25].MessageID, last.MessageId)
	require.Equal(t, letters[25].Body, last.Body)
	require.Equal(t, r.Op, last.Headers["x-attune-undo-op"])
	require.Len(t, broker.Deaths(last.Headers), 1, "it is a letter still")
	p, err := s.Plan(s.ctx, Order{Do: DoUndo, Op: r.Op})
	require.NoError(t, err)
	require.Contains(t, p.Nothing, StateUndone)
}

func TestAPurgeTakesWhatLayThereWhenItWasPlanned(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.letters(s.expired(7)...)
	p, err := s.Plan(s.ctx, Order{Do: DoPurge})
	require.NoError(t, err)
	require.Equal(t, 7, p.Work())
	s.letters(s.expired(4)...)
	r, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, []int{7, 11, 4, 4}, []int{r.Done, r.Before, r.Expected, r.After})
	all, err := s.Spool()
	require.NoError(t, err)
	require.Equal(t, 7, all[0].Undoable())

	r = s.run(Order{Do: DoPurge, Real: true})
	require.Equal(t, 4, r.Done)
	require.False(t, r.Undoable)
	require.Zero(t, s.ready(message.QueueDeadLetter))
	p, err = s.Plan(s.ctx, Order{Do: DoPurge})
	require.NoError(t, err)
	require.Equal(t, "the queue is empty", p.Nothing)
}

func TestLettersAreMovedToWhereTheyReachAQueue(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.queue("parking", nil)
	s.queue("loop", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": message.QueueDeadLetter})
	s.letters(s.expired(3)...)
	letters := s.snapshot().Letters
	order := Order{Do: DoMove, Letters: letters[:2], Key: "parking"}
	r := s.run(order)
	require.Equal(t, []int{2, 1, 2}, []int{r.Done, r.After, s.ready("parking")})
	for name, c := range map[string]struct{ exchange, key, why string }{
		"no queue": {"", "nowhere", "there is no queue nowhere"}, "no exchange": {"x", "k", "does not exist"},
		"no route": {message.ExchangeExecutions, "nobody.listens", "routes to no queue"},
	} {
		p, err := s.Plan(s.ctx, Order{Do: DoMove, Letters: letters[2:], Exchange: c.exchange, Key: c.key})
		require.NoError(t, err, name)
		require.Contains(t, p.Nothing, c.why, name)
	}
	_, err := s.Plan(s.ctx, Order{Do: DoMove, Letters: letters[2:], Key: message.QueueDeadLetter})
	require.ErrorContains(t, err, "the queue itself")
	p, err := s.Plan(s.ctx, Order{Do: DoMove, Letters: letters[2:], Key: "loop"})
	require.NoError(t, err)
	require.True(t, p.Back)

	s.run(Order{Do: DoUndo, Op: r.Op})
	s.becomes(message.QueueDeadLetter, 3)
}

func TestTwoOperatorsDoNotRunPlansOnOneQueue(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.letters(s.expired(1)...)
	p, err := s.Plan(s.ctx, Order{Do: DoPurge})
	require.NoError(t, err)
	other := s.desk(func(c *Config) { c.Actor = "bob@desk" })
	held, err := other.Lock(s.ctx, "01J9ZKAA")
	require.NoError(t, err)
	_, err = s.Run(s.ctx, p, "", nil)
	locked, ok := errors.AsType[*store.LockedError](err)
	require.True(t, ok, "%v", err)
	require.Regexp(t, `^attune-tui bob@desk op 01J9ZKAA since \d\d:\d\d:\d\dZ$`, locked.By)
	again, err := s.Plan(s.ctx, Order{Do: DoPurge})
	require.NoError(t, err)
	require.Equal(t, locked.By, again.Running, "before it is refused")
	require.NoError(t, held.Check(s.ctx))
	held.Release(s.ctx)
	again, err = s.Plan(s.ctx, Order{Do: DoPurge})
	require.NoError(t, err)
	require.Empty(t, again.Running)
	r, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, 1, r.Done)
}

func TestARunEndsWhenItsLockIsLostOrItIsStopped(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.letters(s.expired(3)...)
	letters := s.snapshot().Letters
	p, err := s.Plan(s.ctx, Order{Do: DoRequeue, Letters: letters})
	require.NoError(t, err)
	kill := func(p Progress) {
		if p.Settled() == 1 {
			testkit.Exec(t, s.store, `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'attune-tui ann@desk op %'
				and datname = current_database()`)
		}
	}
	r, err := s.Run(s.ctx, p, "", kill)
	require.NoError(t, err)
	require.Contains(t, r.Stopped, "lost")
	require.Equal(t, []int{1, 2, 2}, []int{r.Done, r.Left, r.After})

	ctx, cancel := context.WithCancel(s.ctx)
	p, err = s.Plan(s.ctx, Order{Do: DoRequeue, Letters: letters[1:]})
	require.NoError(t, err)
	r, err = s.Run(ctx, p, "", func(Progress) { cancel() })
	require.NoError(t, err)
	require.Equal(t, []any{"stopped by hand", 1, 1, 1}, []any{r.Stopped, r.Done, r.Left, r.After})
}

func TestThreeErrorsInARowEndARun(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.letters(s.expired(5)...)
	p, err := s.Plan(s.ctx, Order{Do: DoRequeue, Letters: s.snapshot().Letters})
	require.NoError(t, err)
	require.NoError(t, s.plain.QueueUnbind(requests, message.KeyExecutionRequested, message.ExchangeExecutions, nil))
	r, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Contains(t, r.Stopped, "3 errors in a row")
	require.Equal(t, []int{0, 3, 2, 5}, []int{r.Done, r.Failed, r.Left, r.After})
	require.NoError(t, s.plain.QueueBind(requests, message.KeyExecutionRequested, message.ExchangeExecutions, false, nil))
	r = s.run(Order{Do: DoRequeue, Letters: s.snapshot().Letters})
	require.Equal(t, []int{5, 0}, []int{r.Done, r.After}, "what was reset already is only published")
	require.Equal(t, 5, s.count(`select count(*) from audit_event where event_type like 'dlq.%'`), "and reset once")
}
