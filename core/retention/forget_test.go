package retention_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// queues is a broker that refuses to delete the busy queues.
type queues struct {
	mu      sync.Mutex
	busy    map[string]string
	states  map[string]broker.QueueState
	deleted []string
	unbound []int64
	fail    error
	during  func() // runs during the deletion of a queue
}

func (q *queues) delete(name string) (bool, string, error) {
	if q.during != nil {
		q.during()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return false, "", q.fail
	}
	if reason := q.busy[name]; reason != "" {
		return false, reason, nil
	}
	q.deleted = append(q.deleted, name)
	return true, "", nil
}

func (q *queues) QueueState(_ context.Context, name string) (broker.QueueState, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.states[name], q.fail
}

func (q *queues) DeleteQueueIfIdle(_ context.Context, name string) (bool, string, error) {
	return q.delete(name)
}

func (q *queues) DeleteQueueIfUnused(_ context.Context, name string) (bool, int, string, error) {
	deleted, reason, err := q.delete(name)
	return deleted, 1, reason, err
}

func (q *queues) UnbindWorkerDeadLetters(_ context.Context, worker int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unbound = append(q.unbound, worker)
	return q.fail
}

const week = 7 * 24 * time.Hour

// silent makes a worker that has been inactive for a time.
func silent(t *testing.T, st *store.Store, name string, age time.Duration, options ...func(*testkit.WorkerRow)) int64 {
	t.Helper()
	options = append(options, func(w *testkit.WorkerRow) {
		w.Status = "inactive"
		if !w.NoHeartbeat {
			w.HeartbeatAge = age
		}
	})
	id := testkit.Worker(t, st, name, options...).ID
	testkit.Exec(t, st, `ALTER TABLE worker DISABLE TRIGGER USER`)
	testkit.Exec(t, st, `UPDATE worker SET updated = now() - make_interval(secs => $2) WHERE id = $1`, id,
		age.Seconds())
	testkit.Exec(t, st, `ALTER TABLE worker ENABLE TRIGGER USER`)
	testkit.Exec(t, st, `INSERT INTO worker_load (worker) VALUES ($1) ON CONFLICT DO NOTHING`, id)
	return id
}

func ran(worker int64, status lifecycle.Status) func(*testkit.ExecutionRow) {
	return func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker, status }
}

func forget(t *testing.T, st *store.Store, q retention.Broker, workers ...int64) map[int64]retention.Forgotten {
	t.Helper()
	order := retention.ForgetRequest{Workers: workers, Silent: week, Settled: time.Hour}
	all, err := retention.ForgetWorkers(testkit.Context(t), st, q, order, testkit.Logger(t))
	require.NoError(t, err)
	answers := map[int64]retention.Forgotten{}
	for _, one := range all {
		answers[one.ID] = one
	}
	return answers
}

func TestAnUnneededWorkerIsForgotten(t *testing.T) {
	st, q := testkit.Store(t), &queues{}
	action := testkit.Action(t, st, "pk.a")
	worker := silent(t, st, "gone", 2*week)
	for range 3 {
		testkit.Execution(t, st, action, ran(worker, lifecycle.StatusCompleted))
	}

	one := forget(t, st, q, worker)[worker]
	require.True(t, one.Done, one.Reason)
	require.Equal(t, "gone", one.Name)
	require.Equal(t, 2, one.Discarded)
	require.Equal(t, []string{
		message.WorkerExecutionsQueue(worker), message.WorkerCancelQueue(worker), message.WorkerPacksQueue(worker),
	}, q.deleted)
	require.Equal(t, []int64{worker}, q.unbound)
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM worker`))
	require.Equal(t, 3,
		testkit.Count(t, st, `SELECT count(*) FROM execution WHERE worker IS NULL AND status = 'completed'`))
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM late_write`),
		"that its worker is forgotten is no late write")
	require.Equal(t, 3, testkit.Count(t, st, `SELECT count(*) FROM execution_history
		WHERE old_values ->> 'worker' = $1::bigint::text`, worker), "the history keeps its worker")
	require.Equal(t, "there is no such worker", forget(t, st, q, worker)[worker].Reason)
}

func TestANeededWorkerStays(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	q := &queues{busy: map[string]string{}}
	why := map[int64]string{}
	keep := func(name, reason string, age time.Duration, options ...func(*testkit.WorkerRow)) int64 {
		id := silent(t, st, name, age, options...)
		why[id] = reason
		return id
	}
	for _, status := range []lifecycle.Status{lifecycle.StatusScheduled, lifecycle.StatusRunning,
		lifecycle.StatusCanceling} {
		testkit.Execution(t, st, action, ran(keep("has "+string(status), "not ended", 2*week), status))
	}
	state := testkit.State(t, st, action, 1)
	testkit.Execution(t, st, action, ran(keep("unreleased", "not ended", 2*week), lifecycle.StatusCompleted),
		func(e *testkit.ExecutionRow) { e.AdmissionState = &state.ID })
	assigned := keep("assigned", "holds 2 executions", 2*week)
	testkit.Exec(t, st, `UPDATE worker_load SET assigned = 2 WHERE worker = $1`, assigned)
	keep("cordoned", "cordoned", 2*week, func(w *testkit.WorkerRow) { w.Cordoned = true })
	keep("drains", "drains", 2*week, func(w *testkit.WorkerRow) { w.Draining = true })
	keep("young", "heartbeat", week-time.Minute)
	keep("never beat and young", "heartbeat", week-time.Minute, func(w *testkit.WorkerRow) { w.NoHeartbeat = true })
	active := keep("active", "it is active", 2*week)
	testkit.Exec(t, st, `UPDATE worker SET status = 'active' WHERE id = $1`, active)
	enrols := keep("comes back", "write is recent", 2*week)
	testkit.Exec(t, st, `UPDATE worker SET incarnation = gen_random_uuid() WHERE id = $1`, enrols)
	busy := keep("consumed", "in use", 2*week)
	q.busy[message.WorkerExecutionsQueue(busy)] = "PRECONDITION_FAILED - queue in use"
	q.states = map[string]broker.QueueState{
		message.WorkerExecutionsQueue(keep("dispatched to", "is not empty: 3", 2*week)): {Exists: true, Ready: 3},
		message.WorkerExecutionsQueue(keep("still consumed", "in use: it has 1 consumer", 2*week)): {
			Exists:    true,
			Consumers: 1,
		},
	}
	for id := range why { // the executions of a remaining worker keep its name
		if id != busy {
			testkit.Execution(t, st, action, ran(id, lifecycle.StatusFailed))
		}
	}
	gone := silent(t, st, "never beat", week+time.Minute, func(w *testkit.WorkerRow) { w.NoHeartbeat = true })

	workers := []int64{gone}
	for id := range why {
		workers = append(workers, id)
	}
	answers := forget(t, st, q, workers...)
	require.True(t, answers[gone].Done)
	for id, reason := range why {
		require.False(t, answers[id].Done, answers[id].Name)
		require.Contains(t, answers[id].Reason, reason)
	}
	require.Equal(t, len(why), testkit.Count(t, st, `SELECT count(*) FROM worker`))
	require.Equal(t, 4,
		testkit.Count(t, st, `SELECT count(*) FROM execution WHERE worker IS NOT NULL AND status <> 'failed'`))
	named := testkit.Count(t, st,
		`SELECT count(DISTINCT worker) FROM execution WHERE worker IS NOT NULL AND status = 'failed'`)
	require.Equal(t, len(why)-2, named, "all but the two of which it shows only in the end")
	require.Len(t, q.deleted, 3, "no queue of a worker that stays is deleted")
}

// The heartbeat monitor marks a worker that died during its drain or stop, and from then on it is deleted like any
// other; a cordon keeps it.
func TestAWorkerThatDiedWhileItDrainedIsForgotten(t *testing.T) {
	st, q := testkit.Store(t), &queues{}
	drains := func(w *testkit.WorkerRow) { w.Draining = true }
	stopped := silent(t, st, "killed while it stopped", 2*week, drains)
	drained := silent(t, st, "drained and died", 2*week, drains)
	cordoned := silent(t, st, "drained by a person", 2*week, drains, func(w *testkit.WorkerRow) { w.Cordoned = true })
	testkit.Exec(t, st, `UPDATE worker SET status = 'active' WHERE id <> $1`, stopped)
	settle := func() {
		testkit.Exec(t, st, `ALTER TABLE worker DISABLE TRIGGER USER`)
		testkit.Exec(t, st, `UPDATE worker SET updated = now() - interval '2 hours'`)
		testkit.Exec(t, st, `ALTER TABLE worker ENABLE TRIGGER USER`)
	}
	forgettable := func() (ids []int64) {
		settle()
		rows, err := st.FindForgettableWorkers(testkit.Context(t), store.FindForgettableWorkersParams{
			Silent: week.Seconds(), Settled: time.Hour.Seconds(), Page: 100,
		})
		require.NoError(t, err)
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return ids
	}
	require.Empty(t, forgettable())
	marked, err := st.DeactivateWorkers(testkit.Context(t), 90, 0, 100)
	require.NoError(t, err)
	require.Len(t, marked, 3)
	require.Equal(t, []int64{stopped, drained}, forgettable())
	answers := forget(t, st, q, stopped, drained, cordoned)
	require.True(t, answers[stopped].Done, answers[stopped].Reason)
	require.True(t, answers[drained].Done, answers[drained].Reason)
	require.Equal(t, "an operator has cordoned it", answers[cordoned].Reason)
}

// In an existing installation other tables may refer to workers: such a worker
// keeps its queues too.
func TestAWorkerToWhichOtherTablesReferStays(t *testing.T) {
	st, q := testkit.Store(t), &queues{}
	worker := silent(t, st, "gone", 2*week)
	testkit.Exec(t, st, `CREATE TABLE lease (worker bigint REFERENCES worker (id))`)
	testkit.Exec(t, st, `INSERT INTO lease VALUES ($1)`, worker)
	one := forget(t, st, q, worker)[worker]
	require.False(t, one.Done)
	require.Contains(t, one.Reason, "lease_worker_fkey")
	require.Empty(t, q.deleted)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM worker`))
}

// An unreachable broker leaves the row, since it has the names of the queues.
func TestAWorkerStaysWhileTheBrokerIsAway(t *testing.T) {
	st := testkit.Store(t)
	worker := silent(t, st, "gone", 2*week)
	_, err := retention.ForgetWorkers(testkit.Context(t), st, &queues{fail: errors.New("away")},
		retention.ForgetRequest{Workers: []int64{worker}, Silent: week}, testkit.Logger(t))
	require.ErrorContains(t, err, "away")
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM worker`))
	require.True(t, forget(t, st, &queues{}, worker)[worker].Done, "the same again goes on")
}

// The broker is asked without an open transaction and without a locked row. A transaction that waited for the
// broker would be idle; active ones belong to other tests.
func TestQueuesAreDeletedOutsideOfTransactions(t *testing.T) {
	st := testkit.Store(t)
	worker, open := silent(t, st, "gone", 2*week), -1
	q := &queues{during: func() {
		open = testkit.Count(t, st, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND state LIKE 'idle in transaction%'`)
		testkit.Exec(t, st, `SELECT FROM worker FOR UPDATE NOWAIT`)
	}}
	loop := retention.NewWorkers(retention.WorkersConfig{Interval: 10 * time.Millisecond, Silent: week}, st, q,
		testkit.Logger(t), nil, nil)
	require.NoError(t, loop.Start(testkit.Context(t)))
	t.Cleanup(loop.Stop)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, `SELECT count(*) FROM worker WHERE id = $1`, worker) == 0
	}, 10*time.Second)
	loop.Stop()
	require.Zero(t, open)
}

// A worker that registers while its queues are being deleted keeps its row, and declares its queues again as
// always.
func TestAWorkerThatComesBackMeanwhileStays(t *testing.T) {
	st := testkit.Store(t)
	worker := silent(t, st, "back", 2*week)
	q := &queues{during: sync.OnceFunc(func() {
		testkit.Exec(t, st, `INSERT INTO worker (name, worker_type, worker_role) VALUES ('back', 'local', 'action')
			ON CONFLICT (name) DO UPDATE SET status = 'inactive', incarnation = gen_random_uuid()`)
	})}
	all, err := retention.ForgetWorkers(testkit.Context(t), st, q,
		retention.ForgetRequest{Workers: []int64{worker}, Silent: week}, testkit.Logger(t))
	require.NoError(t, err)
	require.False(t, all[0].Done)
	require.Equal(t, "it returned during the deletion of its queues", all[0].Reason)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM worker WHERE name = 'back' AND id = $1`, worker))
}

// A worker that gets an execution while its queues are being deleted keeps its row, whether or not its load was
// counted.
func TestAWorkerThatGetsAnExecutionMeanwhileStays(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	worker := silent(t, st, "needed", 2*week)
	q := &queues{during: sync.OnceFunc(func() {
		testkit.Execution(t, st, action, ran(worker, lifecycle.StatusScheduled))
	})}
	one := forget(t, st, q, worker)[worker]
	require.False(t, one.Done)
	require.Equal(t, "executions that have not ended refer to it", one.Reason)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE worker = $1`, worker))
}

// A million executions of one worker are not one transaction.
func TestExecutionsAreReleasedInWindows(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	worker := silent(t, st, "gone", 2*week)
	testkit.Exec(t, st, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, st,
		`INSERT INTO execution (action, action_ref, worker, status) SELECT $1, 'pk.a', $2, 'completed' FROM generate_series(1, 5000)`, action.ID, worker)
	testkit.Exec(t, st, `ALTER TABLE execution ENABLE TRIGGER USER`)
	require.True(t, forget(t, st, &queues{}, worker)[worker].Done)
	require.Equal(t, 3, testkit.Count(t, st, `SELECT count(DISTINCT xmin::text) FROM execution`))
	require.Equal(t, 5000, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE worker IS NULL`))
}

// The windows are found by the primary key, however many executions there are.
func TestTheWindowOfExecutionsIsReadByKey(t *testing.T) {
	st := testkit.OwnStore(t)
	testkit.Exec(t, st, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, st,
		`INSERT INTO execution (action_ref, status) SELECT 'pk.a', 'completed' FROM generate_series(1, 20000)`)
	testkit.Exec(t, st, `ANALYZE execution`)
	how := plan(t, st, query(store.ReleaseWorkerWindow), []int64{1}, int64(100), int32(2000))
	require.Contains(t, how, "execution_pkey")
	require.NotContains(t, how, "Seq Scan on execution")
	require.Contains(t, plan(t, st, query(store.ReferredWorkers), []int64{1}), "attune_execution_live")
}

// With a real broker: waiting dispatches keep the worker, messages of cancels do not.
func TestQueuesOfForgottenWorkersGo(t *testing.T) {
	st := testkit.Store(t)
	url := testkit.VHost(t)
	b := broker.New(broker.Config{URL: url}, testkit.Logger(t), nil)
	require.NoError(t, b.Start(testkit.Context(t)))
	t.Cleanup(b.Stop)
	worker := silent(t, st, "gone", 2*week)
	ctx := testkit.Context(t)
	require.NoError(t, b.DeclareCommon(ctx))
	require.NoError(t, b.DeclareWorker(ctx, worker, 0))
	require.NoError(t, b.BindWorkerDeadLetters(ctx, worker))
	management, err := broker.NewManagement(testkit.ManagementURL(t), testkit.VHostName(t, url), 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(management.Close)
	routes := func() (keys []string) {
		bindings, err := management.QueueBindings(ctx, message.QueueDeadLetter)
		require.NoError(t, err)
		for _, one := range bindings {
			keys = append(keys, one.RoutingKey)
		}
		return keys
	}
	require.Contains(t, routes(), message.DispatchKey(worker))
	send := func(queue string) {
		outcome := b.Publisher().Publish(ctx, []broker.Message{{ID: "m", RoutingKey: queue}})[0]
		require.NoError(t, outcome.Err)
	}
	send(message.WorkerPacksQueue(worker))
	send(message.WorkerExecutionsQueue(worker))
	one := forget(t, st, b, worker)[worker]
	require.False(t, one.Done)
	require.Contains(t, one.Reason, "not empty")
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM worker`))

	consumer := b.Consume(broker.ConsumerConfig{Queue: message.WorkerExecutionsQueue(worker)})
	require.NoError(t, consumer.Start(ctx))
	require.NoError(t, (<-consumer.Batches()).Ack())
	consumer.Stop()
	one = forget(t, st, b, worker)[worker]
	require.True(t, one.Done, one.Reason)
	require.Equal(t, 1, one.Discarded)
	for _, queue := range []string{
		message.WorkerExecutionsQueue(worker), message.WorkerCancelQueue(worker),
		message.WorkerPacksQueue(worker),
	} {
		state, err := b.QueueState(ctx, queue)
		require.NoError(t, err)
		require.False(t, state.Exists, queue)
	}
	require.NotContains(t, routes(), message.DispatchKey(worker))
	require.NotContains(t, routes(), message.CancelKey(worker))
	require.NoError(t, b.UnbindWorkerDeadLetters(ctx, worker), "a missing binding counts as unbound")
}
