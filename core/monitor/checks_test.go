package monitor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

func named(c *Checks) map[string]Check {
	found := map[string]Check{}
	for _, one := range c.List {
		found[one.Name] = one
	}
	return found
}

// TestChecksFindRowsThatDisagree: a slot that an ended execution keeps, a counter that no row
// confirms, a request outside all queues, and work at a silent worker.
func TestChecksFindRowsThatDisagree(t *testing.T) {
	b := setup(t, fakeBroker{wiring: declared()})
	ctx := testkit.Context(t)
	action := testkit.Action(t, b.Store, "demo.echo")
	state := testkit.State(t, b.Store, action, 4, func(r *testkit.StateRow) { r.Active = 2 })
	holding := func(r *testkit.ExecutionRow) { r.AdmissionState = &state.ID }
	testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusRunning), holding)
	testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusCompleted), holding)
	worker := testkit.Worker(t, b.Store, "silent")
	checks, err := b.Checks(ctx)
	require.NoError(t, err)
	found := named(checks)
	require.Equal(t, CheckOK, found[checkSlots].Status, found[checkSlots].Text)
	require.Equal(t, CheckOK, found[checkLeaked].Status, "slots of executions that just ended are released soon")
	require.Equal(t, CheckOK, found[checkForgotten].Status)
	require.Equal(t, CheckOK, found[checkStaleWork].Status)
	require.Equal(t, CheckOK, found[checkStats].Status)
	require.Equal(t, CheckProblem, found[checkOrphans].Status, "worker 7 has no row here")
	require.False(t, checks.At.IsZero())

	testkit.Exec(t, b.Store, "update execution set finished_at = now() - interval '1 hour' where status = 'completed'")
	testkit.Exec(t, b.Store, "update execution_admission_state set active_count = 5")
	testkit.Execution(t, b.Store, action, func(r *testkit.ExecutionRow) { r.Age = time.Hour })
	testkit.Exec(t, b.Store,
		"update worker set last_heartbeat = now() - interval '1 hour', heartbeat_seen = now() - interval '1 hour'")
	testkit.Exec(t, b.Store,
		"insert into worker_load (worker, assigned) values ($1, 3) on conflict (worker) do update set assigned = 3",
		worker.ID)
	checks, err = b.Checks(ctx)
	require.NoError(t, err)
	found = named(checks)
	for _, name := range []string{checkSlots, checkLeaked, checkForgotten, checkStaleWork} {
		require.Equal(t, CheckProblem, found[name].Status, "%s: %s", name, found[name].Text)
		require.NotEmpty(t, found[name].Fix, name)
	}
	require.Equal(t, "the queues count 5 slots, 2 executions hold one", found[checkSlots].Text)
	require.Equal(t, "demo.echo", found[checkLeaked].Filter)
	require.Equal(t, "silent", found[checkStaleWork].Filter)
}

// TestChecksOfASourceThatIsAwayAreUnknown, never well.
func TestChecksOfASourceThatIsAwayAreUnknown(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	b := setup(t, fakeBroker{err: errors.New("refused")})
	checks, err := b.Checks(ctx)
	require.NoError(t, err)
	for _, name := range brokerChecks {
		require.Equal(t, CheckUnknown, named(checks)[name].Status, name)
		require.Contains(t, named(checks)[name].Text, "refused")
	}
	require.Equal(t, CheckOK, named(checks)[checkSlots].Status)

	checks, err = New(Config{}, Deps{Broker: fakeBroker{wiring: declared()}}).Checks(ctx)
	require.NoError(t, err)
	require.Equal(t, CheckOK, named(checks)[checkExchange].Status)
	require.Equal(t, CheckUnknown, named(checks)[checkRoute].Status, "the replicas probe the routes")
	require.Equal(t, CheckUnknown, named(checks)[checkOrphans].Status, "without the rows no execution is an orphan")
	require.Equal(t, CheckUnknown, named(checks)[checkLeaked].Status)

	_, err = New(Config{}, Deps{Broker: fakeBroker{err: errors.New("refused")}}).Checks(ctx)
	require.ErrorContains(t, err, "refused")
}

// Declared queues are read with their effective settings and owners, and with the nodes.
func TestTheManagementReaderReadsARealBroker(t *testing.T) {
	ctx, url := testkit.Context(t), testkit.VHost(t)
	link := broker.New(broker.Config{URL: url, ConnectionName: t.Name()}, testkit.Logger(t), nil)
	require.NoError(t, link.Start(ctx))
	t.Cleanup(link.Stop)
	require.NoError(t, link.DeclareExecutor(ctx))
	require.NoError(t, link.DeclareWorker(ctx, 7, time.Minute))
	vhost := testkit.VHostName(t, url)
	client, err := broker.NewManagement(testkit.ManagementURL(t), vhost, 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(client.Close)

	m := New(Config{}, Deps{Broker: NewManagementReader(client, vhost)})
	b, err := m.Broker(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, b.Version)
	require.Empty(t, b.NodesUnknown)
	require.NotEmpty(t, b.Nodes)
	require.Empty(t, b.Blocked)
	require.Empty(t, b.BlockedUnknown)
	q, ok := b.Queue(message.WorkerExecutionsQueue(7))
	require.True(t, ok)
	require.EqualValues(t, 7, *q.Worker)
	require.Equal(t, time.Minute, *q.TTL)
	require.Equal(t, message.ExchangeDeadLetter, *q.DeadLetterExchange)
	require.Equal(t, "classic", q.Type)
	require.True(t, q.Durable)

	there, err := m.Route(ctx, message.ExchangeExecutions, message.DispatchKey(7))
	require.NoError(t, err)
	require.True(t, there.Exists)
	require.Equal(t, []string{message.WorkerExecutionsQueue(7)}, there.Queues)
	require.False(t, there.Lost)
	nowhere, err := m.Route(ctx, message.ExchangeExecutions, message.DispatchKey(8))
	require.NoError(t, err)
	require.True(t, nowhere.Unsure, "a pattern of another queue may match it")
	nowhere, err = m.Route(ctx, "", "no.such.queue")
	require.NoError(t, err)
	require.True(t, nowhere.Lost)
	require.Equal(t, "there is no queue no.such.queue", nowhere.Refuses())
	direct, err := m.Route(ctx, message.ExchangeDeadLetter, message.KeyEventCreated)
	require.NoError(t, err)
	require.Equal(t, []string{message.QueueDeadLetter}, direct.Queues)
	gone, err := m.Route(ctx, "no.such.exchange", "key")
	require.NoError(t, err)
	require.False(t, gone.Exists)
	require.Empty(t, gone.Queues)
}
