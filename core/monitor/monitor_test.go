package monitor

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// fakeBroker answers with fixed data or with an error.
type fakeBroker struct {
	broker *Broker
	wiring *broker.Wiring
	err    error
}

func (f fakeBroker) ReadWiring(context.Context) (*broker.Wiring, error) { return f.wiring, f.err }

func (f fakeBroker) ReadDepth(context.Context, string) ([]PastDepth, error) {
	return []PastDepth{{At: time.Unix(1, 0), Ready: 3}}, f.err
}

func (f fakeBroker) ReadBroker(context.Context) (*Broker, error) { return f.broker, f.err }

type testBundle struct {
	*Monitor
	store *store.Store
}

func setup(t *testing.T, broker BrokerReader) *testBundle {
	t.Helper()
	st := testkit.Store(t)
	return &testBundle{Monitor: New(Config{}, Deps{Store: st, Broker: broker}), store: st}
}

func status(s attune.Status) func(*testkit.ExecutionRow) {
	return func(r *testkit.ExecutionRow) { r.Status = s }
}

func aged(d time.Duration) func(*testkit.ExecutionRow) {
	return func(r *testkit.ExecutionRow) { r.Age = d }
}

// What matches a filter is counted by the search that lists it.
func TestMatchingCountsWhatAFilterMatches(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	echo, sleep := testkit.Action(t, b.store, "demo.echo"), testkit.Action(t, b.store, "demo.sleep")
	for range 3 {
		testkit.Execution(t, b.store, echo, status(attune.StatusFailed))
		testkit.Execution(t, b.store, sleep)
	}
	for want, filter := range map[int64]ExecutionFilter{
		6: {}, 3: {Statuses: []attune.Status{attune.StatusFailed}, Or: []ExecutionFilter{{Statuses: []attune.Status{attune.StatusFailed}}}}, 0: {Action: "no.such"},
	} {
		n, err := b.Matching(t.Context(), filter)
		require.NoError(t, err)
		require.Equal(t, Count{Value: want}, n.Count)
	}
}

func TestOverviewCountsWhatIsThere(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	action := testkit.Action(t, b.store, "demo.sleep")
	testkit.State(t, b.store, action, 4, func(r *testkit.StateRow) { r.Active, r.Queued = 3, 2 })
	testkit.Worker(t, b.store, "well")
	testkit.Worker(t, b.store, "ill", func(r *testkit.WorkerRow) { r.HeartbeatAge = 5 * time.Minute })
	testkit.Worker(t, b.store, "sensing", func(r *testkit.WorkerRow) { r.Role = "sensor" })
	// Ids and times grow together, as they do in a live system.
	testkit.Execution(t, b.store, action, status(attune.StatusCompleted), aged(time.Hour))
	testkit.Execution(t, b.store, action, status(attune.StatusScheduled), aged(20*time.Minute))
	testkit.Execution(t, b.store, action, status(attune.StatusCompleted), aged(5*time.Minute))
	testkit.Execution(t, b.store, action, status(attune.StatusFailed))
	testkit.Execution(t, b.store, action, status(attune.StatusRunning))
	testkit.Execution(t, b.store, action)

	o, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), o.At, time.Minute)
	source, ok := o.Source(SourceDatabase)
	require.True(t, ok)
	require.True(t, source.OK())
	require.Positive(t, source.Latency)
	require.Equal(t, Count{Value: 1}, o.Live.Requested)
	require.Equal(t, Count{Value: 1}, o.Live.Running)
	require.Equal(t, Count{Value: 1}, o.Live.Stuck, "scheduled for twenty minutes")
	require.Equal(t, Count{Value: 1}, o.Recent.Completed, "the one of an hour ago is outside the window")
	require.Equal(t, Count{Value: 1}, o.Recent.Failed)
	require.Equal(t, &Count{Value: 1}, o.Recent.FailedLastMinute)
	require.Equal(t, QueueTotals{Queues: 1, Busy: 1, Queued: 2, Active: 3, Slots: 4}, o.Queues)
	require.Equal(t, WorkerTotals{Total: 2, Active: 1, Stale: 1, Capacity: 10}, o.Workers)
	require.Equal(t, "ill", o.WorkerList[0].Name, "the unwell come first")
}

// TestOnlySlotsThatAreFilledAreCapacity: a worker that is suspected or cordoned
// is told of with the reason, and what it could run is nobody's to fill.
func TestOnlySlotsThatAreFilledAreCapacity(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.replica(t)
	testkit.Worker(t, b.store, "well")
	testkit.Worker(t, b.store, "kept", func(r *testkit.WorkerRow) { r.Cordoned = true })
	mute := testkit.Worker(t, b.store, "mute")
	testkit.Exec(t, b.store, `update worker set suspect_since = now() - interval '2 minutes', suspect_reason = 'its queue is gone' where id = $1`, mute.ID)

	o, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.Equal(t, WorkerTotals{Total: 3, Active: 1, Suspect: 1, Cordoned: 1, Capacity: 10}, o.Workers)
	w := o.WorkerList[0]
	require.Equal(t, "mute", w.Name, "the unwell come first")
	require.Equal(t, WorkerSuspect, w.Health(o.At, time.Minute))
	require.Equal(t, "its queue is gone", w.SuspectReason)
	require.InDelta(t, 120, o.At.Sub(*w.SuspectSince).Seconds(), 5)
	require.Nil(t, o.WorkerList[2].SuspectSince, "of one that is trusted")
	found := Attention(o, nil, nil)
	require.Len(t, found, 1)
	require.WithinDuration(t, *w.SuspectSince, *found[0].Since, time.Millisecond)
	found[0].Since = nil
	require.Equal(t, []Finding{{
		Level: LevelWarning, Target: "workers", Filter: "mute", Text: "mute suspect, no new work", Hint: "its queue is gone", Rule: "worker_suspect",
		About: "mute",
	}}, found)

	action := testkit.Action(t, b.store, "demo.sleep")
	why := b.ask(t, testkit.Execution(t, b.store, action, func(r *testkit.ExecutionRow) { r.Status, r.Worker = attune.StatusRunning, &mute.ID }).ID)
	require.Contains(t, why.Summary, "The worker is suspect.")
}

func TestQueuesShowHeadLimitAndWhyTheyStand(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	action := testkit.Action(t, b.store, "demo.sleep")
	group := "tenant=acme"
	state := testkit.State(t, b.store, action, 2, func(r *testkit.StateRow) { r.GroupKey, r.Active, r.Queued = &group, 2, 2 })
	free := testkit.State(t, b.store, testkit.Action(t, b.store, "demo.free"), 1<<31-1, func(r *testkit.StateRow) { r.Unlimited = true })
	var waiting []int64
	for i := range 2 {
		e := testkit.Execution(t, b.store, action)
		waiting = append(waiting, e.ID)
		testkit.Exec(t, b.store, `insert into execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at)
			values ($1, $2, 'queued', $3, now() - make_interval(mins => $4))`, state.ID, e.ID, i+1, 10-i)
	}
	testkit.Exec(t, b.store, `insert into admission_blocked (state_id, ticket, reason) values ($1, 1, 'no worker has room')`, state.ID)

	q, err := b.Queues(t.Context(), QueueFilter{})
	require.NoError(t, err)
	require.Len(t, q.List, 2)
	head := q.List[0]
	require.Equal(t, "demo.sleep tenant=acme", head.Name())
	require.True(t, head.Full())
	require.NotNil(t, head.Oldest)
	require.InDelta(t, (10 * time.Minute).Seconds(), q.At.Sub(*head.Oldest).Seconds(), 2)
	require.Equal(t, "no worker has room", head.Blocked)
	require.Equal(t, free.ID, q.List[1].ID)
	require.Nil(t, q.List[1].Limit, "no limit is not a large limit")
	require.Nil(t, q.List[1].Oldest, "nobody waits")

	q, err = b.Queues(t.Context(), QueueFilter{Text: "ACME"})
	require.NoError(t, err)
	require.Len(t, q.List, 1)
	q, err = b.Queues(t.Context(), QueueFilter{Text: "%", Limit: 1})
	require.NoError(t, err)
	require.Empty(t, q.List, "a wildcard of the database is taken literally")
	q, err = b.Queues(t.Context(), QueueFilter{Limit: 1})
	require.NoError(t, err)
	require.True(t, q.More)

	d, err := b.Execution(t.Context(), waiting[1])
	require.NoError(t, err)
	require.NotNil(t, d.Waiting)
	require.Equal(t, Count{Value: 1}, d.Waiting.Ahead)
	require.Equal(t, "demo.sleep tenant=acme", d.Waiting.Queue)
}

func TestExecutionsPageByKeyAndFilter(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	action, other := testkit.Action(t, b.store, "demo.sleep"), testkit.Action(t, b.store, "core.http_request")
	worker := testkit.Worker(t, b.store, "worker-1")
	var ids []int64
	for i := range 10 {
		s := []attune.Status{attune.StatusCompleted, attune.StatusFailed, attune.StatusRunning, attune.StatusRequested}[i%4]
		a := action
		if i%5 == 0 {
			a = other
		}
		ids = append(ids, testkit.Execution(t, b.store, a, status(s), aged(time.Duration(10-i)*time.Hour), func(r *testkit.ExecutionRow) {
			r.Result = map[string]string{"message": "went wrong"}
			if s == attune.StatusRunning {
				r.Worker = &worker.ID
			}
		}).ID)
	}
	failed := []attune.Status{attune.StatusFailed}
	list := func(f ExecutionFilter, limit int, cursor int64) *Executions {
		t.Helper()
		f.Limit = limit
		x, err := b.Executions(t.Context(), f, cursor)
		require.NoError(t, err)
		return x
	}
	var paged []int64
	for cursor := int64(0); ; {
		x := list(ExecutionFilter{}, 3, cursor)
		for _, r := range x.List {
			paged = append(paged, r.ID)
		}
		if cursor = x.Next; cursor == 0 {
			break
		}
	}
	require.Len(t, paged, 10)
	require.Equal(t, ids[9], paged[0])
	require.IsDecreasing(t, paged)

	require.Len(t, list(ExecutionFilter{Statuses: failed}, 0, 0).List, 3)
	require.Equal(t, "went wrong", list(ExecutionFilter{Statuses: failed}, 0, 0).List[0].Reason)
	require.Len(t, list(ExecutionFilter{Statuses: []attune.Status{attune.StatusRunning, attune.StatusRequested}}, 0, 0).List, 4)
	require.Len(t, list(ExecutionFilter{Statuses: []attune.Status{attune.StatusFailed, attune.StatusRunning}}, 0, 0).List, 5)
	require.Len(t, list(ExecutionFilter{Action: "core.*"}, 0, 0).List, 2)
	require.Len(t, list(ExecutionFilter{Action: "*http_request*"}, 0, 0).List, 2)
	require.Empty(t, list(ExecutionFilter{Action: "core"}, 0, 0).List, "without a star the whole name must match")
	require.Len(t, list(ExecutionFilter{Worker: "worker-1"}, 0, 0).List, 2)
	require.Len(t, list(ExecutionFilter{Worker: strconv.FormatInt(worker.ID, 10)}, 0, 0).List, 2)
	require.Equal(t, "worker-1", list(ExecutionFilter{Worker: "worker-1"}, 0, 0).List[0].WorkerName)
	require.Empty(t, list(ExecutionFilter{Worker: "nobody"}, 0, 0).List)
	require.Len(t, list(ExecutionFilter{MaxAge: 210 * time.Minute}, 0, 0).List, 3)
	require.Len(t, list(ExecutionFilter{Statuses: failed, MaxAge: 7 * time.Hour}, 0, 0).List, 2)
}

func TestExecutionTellsItsTimeline(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	action := testkit.Action(t, b.store, "demo.sleep")
	worker := testkit.Worker(t, b.store, "worker-1")
	e := testkit.Execution(t, b.store, action, func(r *testkit.ExecutionRow) { r.Config = map[string]int{"seconds": 3} })
	testkit.Execution(t, b.store, action, func(r *testkit.ExecutionRow) { r.Parent = &e.ID })
	testkit.Exec(t, b.store, `update execution set status = 'scheduled', worker = $2, attempt = 1 where id = $1`, e.ID, worker.ID)
	testkit.Exec(t, b.store, `update execution set status = 'running', started_at = now() where id = $1`, e.ID)
	testkit.Exec(t, b.store, `update execution set status = 'failed', result = '{"error": "exit 1"}' where id = $1`, e.ID)

	d, err := b.Execution(t.Context(), e.ID)
	require.NoError(t, err)
	require.True(t, d.TimelineKnown)
	var steps []string
	for _, s := range d.Timeline {
		steps = append(steps, s.Status)
	}
	require.Equal(t, []string{"requested", "scheduled", "running", "failed"}, steps)
	require.Equal(t, worker.ID, *d.Timeline[1].Worker)
	require.JSONEq(t, `{"seconds": 3}`, d.Config)
	require.JSONEq(t, `{"error": "exit 1"}`, d.Result)
	require.Equal(t, "exit 1", d.Reason)
	require.Equal(t, Count{Value: 1}, d.Children)
	require.Equal(t, int64(1), *d.Attempt)
	require.Nil(t, d.Waiting)

	children, err := b.Executions(t.Context(), ExecutionFilter{Parent: e.ID}, 0)
	require.NoError(t, err)
	require.Len(t, children.List, 1)
	_, err = b.Execution(t.Context(), 1<<40)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestDeadLettersKeepTheSourcesApart(t *testing.T) {
	t.Parallel()
	up := fakeBroker{broker: &Broker{Queues: []BrokerQueue{{Name: DeadLetterQueue, Ready: 3, Consumers: 1}}}}
	b := setup(t, up)
	testkit.Exec(t, b.store, `insert into dead_letter (message_type, reason, queue, execution, decision) values
		('ExecutionRequested', 'expired', 'worker.7.executions', 1, 'failed'), ('ExecutionRequested', 'expired', 'worker.7.executions', 2, 'failed'),
		(null, 'rejected', 'attune.events.queue', null, null)`)
	d, err := b.DeadLetters(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), d.Queue.Ready)
	require.Equal(t, Count{Value: 1}, d.Ledger.Open)
	require.Equal(t, Count{Value: 3}, d.Ledger.LastDay)
	require.Equal(t, int64(2), d.Ledger.ByReason[0].Count)
	require.Len(t, d.Ledger.Recent, 3)
	require.Equal(t, DecisionOpen, d.Ledger.Recent[0].Decision)

	refused := errors.New("connection refused")
	b.deps.Broker = fakeBroker{err: refused}
	d, err = b.DeadLetters(t.Context())
	require.NoError(t, err, "the database's half is an answer")
	require.Nil(t, d.Queue, "unreachable is not zero")
	require.False(t, d.QueueMissing)
	require.NotNil(t, d.Ledger)
	source, _ := d.Source(SourceBroker)
	require.Equal(t, "connection refused", source.Error)

	b.deps.Broker = fakeBroker{broker: &Broker{}}
	d, err = b.DeadLetters(t.Context())
	require.NoError(t, err)
	require.True(t, d.QueueMissing)
}

func TestWithoutADatabaseTheBrokersHalfRemains(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(), store.Config{URL: "postgres://nobody@127.0.0.1:1/none", ConnectTimeout: time.Second}, nil)
	require.NoError(t, err)
	t.Cleanup(st.Close)
	m := New(Config{}, Deps{Store: st, Broker: fakeBroker{broker: &Broker{Queues: []BrokerQueue{{Name: DeadLetterQueue, Ready: 3}}}}})
	o, err := m.Overview(t.Context())
	require.Error(t, err)
	require.Equal(t, store.ClassUnreachable, store.ClassOf(err))
	require.True(t, o.At.IsZero())
	d, err := m.DeadLetters(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), d.Queue.Ready)
	require.Nil(t, d.Ledger)
	source, _ := d.Source(SourceDatabase)
	require.False(t, source.OK())
}

func TestAPublishedSchemaIsReadAsItIs(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	action := testkit.Action(t, b.store, "demo.sleep")
	worker := testkit.Worker(t, b.store, "worker-1")
	e := testkit.Execution(t, b.store, action, status(attune.StatusFailed))
	testkit.Execution(t, b.store, action, status(attune.StatusRunning), func(r *testkit.ExecutionRow) { r.Worker = &worker.ID })
	// Take away everything that Attune itself does not have.
	testkit.Exec(t, b.store, `drop table worker_load, admission_blocked, dead_letter, execution_history cascade`)
	testkit.Exec(t, b.store, `alter table execution drop column if exists finished_status cascade, drop column finished_at cascade, drop column attempt cascade`)
	testkit.Exec(t, b.store, `alter table worker drop column draining cascade`)
	testkit.Exec(t, b.store, `alter table execution_admission_state drop column active_count, drop column queued_count, drop column unlimited, drop column paused`)
	testkit.Exec(t, b.store, `insert into queue_stats (action_id, queue_length, active_count, max_concurrent, total_completed) values ($1, 5, 1, 1, 40)`, action.ID)

	o, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.Equal(t, Count{Value: 1}, o.Live.Running)
	require.Equal(t, Count{Value: 1}, o.Recent.Failed)
	require.Nil(t, o.Recent.FailedLastMinute, "not recorded there, so unknown")
	require.Equal(t, QueueTotals{Queues: 1, Busy: 1, Queued: 5, Active: 1, Slots: 1, Completed: 40}, o.Queues)
	w, err := b.Workers(t.Context())
	require.NoError(t, err)
	require.Nil(t, w.List[0].Assigned, "nobody counts")
	x, err := b.Executions(t.Context(), ExecutionFilter{Statuses: []attune.Status{attune.StatusFailed}}, 0)
	require.NoError(t, err)
	require.Len(t, x.List, 1)
	d, err := b.Execution(t.Context(), e.ID)
	require.NoError(t, err)
	require.Nil(t, d.Attempt)
	require.False(t, d.TimelineKnown)
	dead, err := b.DeadLetters(t.Context())
	require.NoError(t, err)
	require.Nil(t, dead.Ledger)
}

// TestReadingNeverWalksTheTable is the promise that reading is cheap at any
// size: at two hundred thousand rows no read scans the table of executions, and
// each stays far below the budget of a poll.
func TestReadingNeverWalksTheTable(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	action := testkit.Action(t, b.store, "demo.sleep")
	testkit.Exec(t, b.store, `alter table execution disable trigger user`)
	testkit.Exec(t, b.store, `insert into execution (action, action_ref, status, created, updated, finished_at)
		select $1, 'demo.sleep', (case when g > 190000 then 'requested' when g % 50 = 0 then 'failed' else 'completed' end)::execution_status_enum,
			now() - make_interval(secs => (200000 - g) * 0.1), now() - make_interval(secs => (200000 - g) * 0.1), now()
		from generate_series(1, 200000) g`, action.ID)
	testkit.Exec(t, b.store, `alter table execution enable trigger user`)
	testkit.Exec(t, b.store, `analyze execution`)

	queries := map[string]ExecutionFilter{
		"all": {}, "failed": {Statuses: []attune.Status{attune.StatusFailed}}, "running": {Statuses: []attune.Status{attune.StatusRunning}},
		"recent": {MaxAge: time.Hour}, "by action": {Action: "core.*"}, "children": {Parent: 7},
		"expression": {Match: []string{"^core"}}, "retried": {MinTries: 1}, "of others": {NotWorkers: []string{"7"}},
		"parameter": {Params: []ParamMatch{{Path: "tenant", Values: []string{"t7"}}}}, "range": {MinID: 150_000, MaxID: 150_500},
		"waiting":      {Statuses: []attune.Status{attune.StatusRequested}, Params: []ParamMatch{{Path: "tenant", Values: []string{"t7"}}}},
		"reason":       {Statuses: []attune.Status{attune.StatusFailed}, Reasons: []string{"expired"}},
		"any reason":   {Reasons: []string{"expired"}},
		"old failures": {Statuses: []attune.Status{attune.StatusFailed}, MinAge: 5 * time.Hour, Unmatch: []string{"sleep"}},
		"alternatives": {Match: []string{"^core"}, Or: []ExecutionFilter{{MinTries: 3}, {IDs: []int64{7, 9}}}},
	}
	for name, filter := range queries {
		requireIndexed(t, b.store, name, func(ctx context.Context, tx *store.Tx) error {
			page, err := findExecutions(ctx, tx, shape{ours: true}, filter, 0)
			if err != nil {
				return err
			}
			_, err = readExecutions(ctx, tx, shape{ours: true}, page.ids)
			return err
		})
	}
	requireIndexed(t, b.store, "overview", func(ctx context.Context, tx *store.Tx) error {
		return b.executionCounts(ctx, tx, shape{ours: true}, &Overview{})
	})
	o, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.True(t, o.Live.Requested.AtLeast, "ten thousand wait, the count stopped before")
	require.Equal(t, int64(0), o.Recent.Completed.Value, "the finished are older than the window")
}

// requireIndexed runs a read and asks the server whether it walked the table.
func requireIndexed(t *testing.T, st *store.Store, name string, read func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	const asked = `select sum(seq_scan)::bigint, sum(seq_tup_read + idx_tup_fetch)::bigint from pg_stat_xact_user_tables
		where relname in ('execution', 'execution_admission_entry')`
	var scansBefore, rowsBefore, scans, rows int64
	started := time.Now()
	err := st.ReadTx(t.Context(), name, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.QueryRow(ctx, asked).Scan(&scansBefore, &rowsBefore); err != nil {
			return err
		}
		if err := read(ctx, tx); err != nil {
			return err
		}
		return tx.QueryRow(ctx, asked).Scan(&scans, &rows)
	})
	scans, rows = scans-scansBefore, rows-rowsBefore
	require.NoError(t, err, name)
	require.Zero(t, scans, "%s walks the whole table", name)
	require.Less(t, rows, int64(30_000), "%s looks at too many rows", name)
	t.Logf("%s looked at %d rows and took %s", name, rows, time.Since(started))
}
