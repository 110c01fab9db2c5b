package monitor

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
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
	*monitortest.Fixture
}

func setup(t *testing.T, broker BrokerReader) *testBundle {
	t.Helper()
	st := testkit.Store(t)
	return &testBundle{
		Monitor: New(Config{}, Deps{Store: st, Broker: broker}),
		Fixture: &monitortest.Fixture{Store: st},
	}
}

// Matching counts with the search of the list.
func TestMatchingCountsByTheFilter(t *testing.T) {
	b := setup(t, nil)
	echo, sleep := testkit.Action(t, b.Store, "demo.echo"), testkit.Action(t, b.Store, "demo.sleep")
	for range 3 {
		testkit.Execution(t, b.Store, echo, monitortest.Status(lifecycle.StatusFailed))
		testkit.Execution(t, b.Store, sleep)
	}
	for want, filter := range map[int64]ExecutionFilter{
		6: {}, 3: {
			Statuses: []lifecycle.Status{lifecycle.StatusFailed},
			Or:       []ExecutionFilter{{Statuses: []lifecycle.Status{lifecycle.StatusFailed}}},
		}, 0: {Action: "no.such"},
	} {
		n, err := b.Matching(t.Context(), filter)
		require.NoError(t, err)
		require.Equal(t, Count{Value: want}, n.Count)
	}
}

func TestExecutionsPageByKeyAndFilter(t *testing.T) {
	b := setup(t, nil)
	action, other := testkit.Action(t, b.Store, "demo.sleep"), testkit.Action(t, b.Store, "core.http_request")
	worker := testkit.Worker(t, b.Store, "worker-1")
	var ids []int64
	for i := range 10 {
		s := []lifecycle.Status{
			lifecycle.StatusCompleted, lifecycle.StatusFailed, lifecycle.StatusRunning,
			lifecycle.StatusRequested,
		}[i%4]
		a := action
		if i%5 == 0 {
			a = other
		}
		ids = append(ids, testkit.Execution(t, b.Store, a, monitortest.Status(s),
			monitortest.Aged(time.Duration(10-i)*time.Hour), func(r *testkit.ExecutionRow) {
				r.Result = map[string]string{"message": "went wrong"}
				if s == lifecycle.StatusRunning {
					r.Worker = &worker.ID
				}
			}).ID)
	}
	failed := []lifecycle.Status{lifecycle.StatusFailed}
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
	require.Len(t,
		list(ExecutionFilter{Statuses: []lifecycle.Status{lifecycle.StatusRunning, lifecycle.StatusRequested}}, 0,
			0).List, 4)
	require.Len(t,
		list(ExecutionFilter{Statuses: []lifecycle.Status{lifecycle.StatusFailed, lifecycle.StatusRunning}}, 0,
			0).List, 5)
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

func TestDeadLettersKeepTheSourcesApart(t *testing.T) {
	up := fakeBroker{broker: &Broker{Queues: []BrokerQueue{{Name: DeadLetterQueue, Ready: 3, Consumers: 1}}}}
	b := setup(t, up)
	testkit.Exec(t, b.Store, `insert into dead_letter (message_type, reason, queue, execution, decision) values
		('ExecutionRequested', 'expired', 'worker.7.executions', 1, 'failed'), ('ExecutionRequested', 'expired',
			'worker.7.executions', 2, 'failed'),
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

// TestReadingNeverWalksTheTable is the promise that reading is cheap at any
// size: at two hundred thousand rows no read scans the table of executions, and
// each stays far below the budget of a poll.
func TestReadingNeverWalksTheTable(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.sleep")
	testkit.Exec(t, b.Store, `alter table execution disable trigger user`)
	testkit.Exec(t, b.Store, `insert into execution (action, action_ref, status, created, updated, finished_at)
		select $1, 'demo.sleep',
			(case when g > 190000 then 'requested' when g % 50 = 0 then 'failed' else 'completed' end)::execution_status_enum,
			now() - make_interval(secs => (200000 - g) * 0.1), now() - make_interval(secs => (200000 - g) * 0.1), now()
		from generate_series(1, 200000) g`, action.ID)
	testkit.Exec(t, b.Store, `alter table execution enable trigger user`)
	testkit.Exec(t, b.Store, `analyze execution`)

	queries := map[string]ExecutionFilter{
		"all": {}, "failed": {Statuses: []lifecycle.Status{lifecycle.StatusFailed}},
		"running": {Statuses: []lifecycle.Status{lifecycle.StatusRunning}},
		"recent":  {MaxAge: time.Hour}, "by action": {Action: "core.*"}, "children": {Parent: 7},
		"expression": {Match: []string{"^core"}}, "retried": {MinTries: 1}, "of others": {NotWorkers: []string{"7"}},
		"parameter": {Params: []ParamMatch{{Path: "tenant", Values: []string{"t7"}}}},
		"range":     {MinID: 150_000, MaxID: 150_500},
		"waiting": {
			Statuses: []lifecycle.Status{lifecycle.StatusRequested},
			Params:   []ParamMatch{{Path: "tenant", Values: []string{"t7"}}},
		},
		"reason":     {Statuses: []lifecycle.Status{lifecycle.StatusFailed}, Reasons: []string{"expired"}},
		"any reason": {Reasons: []string{"expired"}},
		"old failures": {
			Statuses: []lifecycle.Status{lifecycle.StatusFailed}, MinAge: 5 * time.Hour,
			Unmatch: []string{"sleep"},
		},
		"alternatives": {Match: []string{"^core"}, Or: []ExecutionFilter{{MinTries: 3}, {IDs: []int64{7, 9}}}},
	}
	for name, filter := range queries {
		monitortest.RequireIndexed(t, b.Store, name, func(ctx context.Context, tx *store.Tx) error {
			page, err := findExecutions(ctx, tx, Shape{Ours: true}, filter, 0)
			if err != nil {
				return err
			}
			_, err = ReadExecutions(ctx, tx, Shape{Ours: true}, page.ids)
			return err
		})
	}
	monitortest.RequireIndexed(t, b.Store, "overview", func(ctx context.Context, tx *store.Tx) error {
		counts, err := ReadCounts(ctx, tx, Shape{Ours: true})
		if err != nil {
			return err
		}
		require.True(t, counts.Live.Requested.AtLeast, "ten thousand wait, the count stopped before")
		return nil
	})
}
