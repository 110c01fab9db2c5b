package alerting

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// watchBroker answers with fixed data or with an error.
type fakeBroker struct {
	broker *monitor.Broker
	wiring *broker.Wiring
	err    error
}

func (f fakeBroker) ReadWiring(context.Context) (*broker.Wiring, error) { return f.wiring, f.err }

func (f fakeBroker) ReadDepth(context.Context, string) ([]monitor.PastDepth, error) {
	return []monitor.PastDepth{{At: time.Unix(1, 0), Ready: 3}}, f.err
}

func (f fakeBroker) ReadBroker(context.Context) (*monitor.Broker, error) { return f.broker, f.err }

type testBundle struct {
	*Reader
	*monitortest.Fixture
}

// watching makes a watcher by the built-in rules.
func watching(cfg monitor.Config, deps monitor.Deps) *Reader {
	return NewReader(monitor.New(cfg, deps), nil, nil)
}

func setup(t *testing.T, broker monitor.BrokerReader) *testBundle {
	t.Helper()
	st := testkit.Store(t)
	return &testBundle{
		Reader:  watching(monitor.Config{}, monitor.Deps{Store: st, Broker: broker}),
		Fixture: &monitortest.Fixture{Store: st},
	}
}

func TestTheOverviewCountsItsParts(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.sleep")
	testkit.State(t, b.Store, action, 4, func(r *testkit.StateRow) { r.Active, r.Queued = 3, 2 })
	testkit.Worker(t, b.Store, "well")
	testkit.Worker(t, b.Store, "ill", func(r *testkit.WorkerRow) { r.HeartbeatAge = 5 * time.Minute })
	testkit.Worker(t, b.Store, "sensing", func(r *testkit.WorkerRow) { r.Role = "sensor" })
	// Ids and times grow together, as they do in a live system.
	testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusCompleted), monitortest.Aged(time.Hour))
	testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusScheduled),
		monitortest.Aged(20*time.Minute))
	testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusCompleted),
		monitortest.Aged(5*time.Minute))
	testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusFailed))
	testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusRunning))
	testkit.Execution(t, b.Store, action)
	record(t, b.Store)

	o, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), o.At, time.Minute)
	source, ok := o.Source(monitor.SourceDatabase)
	require.True(t, ok)
	require.True(t, source.OK())
	require.Positive(t, source.Latency)
	require.Equal(t, monitor.Count{Value: 1}, o.Live.Requested)
	require.Equal(t, monitor.Count{Value: 1}, o.Live.Running)
	require.Equal(t, monitor.Count{Value: 1}, o.Live.Stuck, "scheduled for twenty minutes")
	require.Equal(t, monitor.Count{Value: 1}, o.Recent.Completed, "the one of an hour ago is outside the window")
	require.Equal(t, monitor.Count{Value: 1}, o.Recent.Failed)
	require.Equal(t, &monitor.Count{Value: 1}, o.Recent.FailedLastMinute)
	require.Equal(t, monitor.QueueTotals{Queues: 1, Busy: 1, Queued: 2, Active: 3, Slots: 4}, o.Queues)
	require.Equal(t, monitor.WorkerTotals{Total: 2, Active: 1, Stale: 1, Capacity: 10}, o.Workers)
	require.Equal(t, "ill", o.WorkerList[0].Name, "the unwell come first")
}

// TestOnlySlotsThatAreFilledAreCapacity: a suspected or cordoned worker is listed
// with the reason, and its slots do not count as capacity.
func TestOnlySlotsThatAreFilledAreCapacity(t *testing.T) {
	b := setup(t, nil)
	b.Replica(t)
	testkit.Worker(t, b.Store, "well")
	testkit.Worker(t, b.Store, "kept", func(r *testkit.WorkerRow) { r.Cordoned = true })
	mute := testkit.Worker(t, b.Store, "mute")
	testkit.Exec(t, b.Store,
		`update worker set suspect_since = now() - interval '2 minutes', suspect_reason = 'its queue is gone' where id = $1`, mute.ID)

	o, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.Equal(t, monitor.WorkerTotals{Total: 3, Active: 1, Suspect: 1, Cordoned: 1, Capacity: 10}, o.Workers)
	w := o.WorkerList[0]
	require.Equal(t, "mute", w.Name, "the unwell come first")
	require.Equal(t, monitor.WorkerSuspect, w.Health(o.At, time.Minute))
	require.Equal(t, "its queue is gone", w.SuspectReason)
	require.InDelta(t, 120, o.At.Sub(*w.SuspectSince).Seconds(), 30)
	require.Nil(t, o.WorkerList[2].SuspectSince, "of one that is trusted")
	found := Attention(o, nil)
	require.Len(t, found, 1)
	require.Equal(t, []Finding{{
		Level: LevelWarning, Target: "workers", Filter: "mute", Text: "mute is suspect", Hint: "no new work: its queue is gone",
	}}, found)

	action := testkit.Action(t, b.Store, "demo.sleep")
	running := testkit.Execution(t, b.Store, action,
		func(r *testkit.ExecutionRow) { r.Status, r.Worker = lifecycle.StatusRunning, &mute.ID })
	why, err := b.Why(t.Context(), running.ID)
	require.NoError(t, err)
	require.Contains(t, why.Summary, "The worker is suspect.")
}

func TestWithoutADatabaseTheBrokersHalfRemains(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(),
		store.Config{URL: "postgres://nobody@127.0.0.1:1/none", ConnectTimeout: time.Second}, nil)
	require.NoError(t, err)
	t.Cleanup(st.Close)
	m := watching(monitor.Config{},
		monitor.Deps{
			Store: st,
			Broker: fakeBroker{broker: &monitor.Broker{Queues: []monitor.BrokerQueue{{
				Name:  monitor.DeadLetterQueue,
				Ready: 3,
			}}}},
		})
	o, err := m.Overview(t.Context())
	require.Error(t, err)
	require.Equal(t, store.ClassUnreachable, store.ClassOf(err))
	require.True(t, o.At.IsZero())
	d, err := m.DeadLetters(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), d.Queue.Ready)
	require.Nil(t, d.Ledger)
	source, _ := d.Source(monitor.SourceDatabase)
	require.False(t, source.OK())
}

func TestAPublishedSchemaIsReadAsItIs(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "worker-1")
	e := testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusFailed))
	testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusRunning),
		func(r *testkit.ExecutionRow) { r.Worker = &worker.ID })
	// Take away everything that Attune itself does not have.
	testkit.Exec(t, b.Store, `drop table worker_load, admission_blocked, dead_letter, execution_history cascade`)
	testkit.Exec(t, b.Store,
		`alter table execution drop column if exists finished_status cascade, drop column finished_at cascade, drop column attempt cascade`)
	testkit.Exec(t, b.Store, `alter table worker drop column draining cascade`)
	testkit.Exec(t, b.Store,
		`alter table execution_admission_state drop column active_count, drop column queued_count, drop column unlimited, drop column paused`)
	testkit.Exec(t, b.Store,
		`insert into queue_stats (action_id, queue_length, active_count, max_concurrent, total_completed) values ($1, 5, 1, 1, 40)`, action.ID)

	o, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.Equal(t, monitor.Count{Value: 1}, o.Live.Running)
	require.Equal(t, monitor.Count{Value: 1}, o.Recent.Failed)
	require.Nil(t, o.Recent.FailedLastMinute, "not recorded there, so unknown")
	require.Equal(t, monitor.QueueTotals{Queues: 1, Busy: 1, Queued: 5, Active: 1, Slots: 1, Completed: 40}, o.Queues)
	w, err := b.Workers(t.Context())
	require.NoError(t, err)
	require.Nil(t, w.List[0].Assigned, "it is not counted")
	x, err := b.Executions(t.Context(), monitor.ExecutionFilter{Statuses: []lifecycle.Status{lifecycle.StatusFailed}},
		0)
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
