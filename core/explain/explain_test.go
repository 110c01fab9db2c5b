package explain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

func TestMain(m *testing.M) { testkit.Main(m) }

type testBundle struct {
	*Reader
	*monitortest.Fixture
}

func explaining(cfg monitor.Config, deps monitor.Deps) *Reader { return New(monitor.New(cfg, deps)) }

func setup(t *testing.T) *testBundle {
	t.Helper()
	st := testkit.Store(t)
	return &testBundle{
		Reader:  explaining(monitor.Config{}, monitor.Deps{Store: st}),
		Fixture: &monitortest.Fixture{Store: st},
	}
}

func TestQueuesShowHeadLimitAndWhyTheyStand(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	group := "tenant=acme"
	state := testkit.State(t, b.Store, action, 2,
		func(r *testkit.StateRow) { r.GroupKey, r.Active, r.Queued = &group, 2, 2 })
	free := testkit.State(t, b.Store, testkit.Action(t, b.Store, "demo.free"), 1<<31-1,
		func(r *testkit.StateRow) { r.Unlimited = true })
	var waiting []int64
	for i := range 2 {
		e := testkit.Execution(t, b.Store, action)
		waiting = append(waiting, e.ID)
		testkit.Exec(t, b.Store, `insert into execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at)
			values ($1, $2, 'queued', $3, now() - make_interval(mins => $4))`, state.ID, e.ID, i+1, 10-i)
	}
	testkit.Exec(t, b.Store,
		`insert into admission_blocked (state_id, ticket, reason) values ($1, 1, 'no worker has room')`, state.ID)

	q, err := b.Queues(t.Context(), monitor.QueueFilter{})
	require.NoError(t, err)
	require.Len(t, q.List, 2)
	head := q.List[0]
	require.Equal(t, "demo.sleep tenant=acme", head.Name())
	require.True(t, head.Full())
	require.NotNil(t, head.Oldest)
	require.InDelta(t, (10 * time.Minute).Seconds(), q.At.Sub(*head.Oldest).Seconds(), 30)
	require.Equal(t, "no worker has room", head.Blocked)
	require.Equal(t, free.ID, q.List[1].ID)
	require.Nil(t, q.List[1].Limit, "no limit is not a large limit")
	require.Nil(t, q.List[1].Oldest, "no execution waits")

	q, err = b.Queues(t.Context(), monitor.QueueFilter{Text: "ACME"})
	require.NoError(t, err)
	require.Len(t, q.List, 1)
	q, err = b.Queues(t.Context(), monitor.QueueFilter{Text: "%", Limit: 1})
	require.NoError(t, err)
	require.Empty(t, q.List, "a wildcard of the database is taken literally")
	q, err = b.Queues(t.Context(), monitor.QueueFilter{Limit: 1})
	require.NoError(t, err)
	require.True(t, q.More)

	d, err := b.Execution(t.Context(), waiting[1])
	require.NoError(t, err)
	require.NotNil(t, d.Waiting)
	require.Equal(t, monitor.Count{Value: 1}, d.Waiting.Ahead)
	require.Equal(t, "demo.sleep tenant=acme", d.Waiting.Queue)
}

func TestAnExecutionHasItsTimeline(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "worker-1")
	e := testkit.Execution(t, b.Store, action,
		func(r *testkit.ExecutionRow) { r.Config = map[string]int{"seconds": 3} })
	testkit.Execution(t, b.Store, action, func(r *testkit.ExecutionRow) { r.Parent = &e.ID })
	testkit.Exec(t, b.Store, `update execution set status = 'scheduled', worker = $2, attempt = 1 where id = $1`, e.ID,
		worker.ID)
	testkit.Exec(t, b.Store, `update execution set status = 'running', started_at = now() where id = $1`, e.ID)
	testkit.Exec(t, b.Store, `update execution set status = 'failed', result = '{"error": "exit 1"}' where id = $1`,
		e.ID)

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
	require.Equal(t, monitor.Count{Value: 1}, d.Children)
	require.Equal(t, int64(1), *d.Attempt)
	require.Nil(t, d.Waiting)

	children, err := b.Executions(t.Context(), monitor.ExecutionFilter{Parent: e.ID}, 0)
	require.NoError(t, err)
	require.Len(t, children.List, 1)
	_, err = b.Execution(t.Context(), 1<<40)
	require.ErrorIs(t, err, monitor.ErrNotFound)
}
