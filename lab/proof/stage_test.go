package proof

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// stage is a database and a virtual host for processes of the program, and for the checks of a test.
type stage struct {
	servers

	t           testing.TB
	store       *store.Store
	wire        *broker.Broker
	submitter   *submit.Submitter
	operator    *triage.Triage
	asked       []int64 // all requested executions
	number      int     // of the last request
	flaky       []int64 // requested executions of actFlaky
	runLog      *runLog
	completions *completions
}

// The actions of a stage: one without a limit, one with a limit of three, and one that fails the first time and
// is retried.
const (
	actFree    = "stage.free"
	actLimited = "stage.limited"
	actFlaky   = "stage.flaky"
)

func newStage(t testing.TB) *stage {
	t.Helper()
	return newStageAt(t,
		servers{Database: testkit.Database(t), AMQP: testkit.VHost(t), Management: testkit.ManagementURL(t)})
}

func newStageAt(t testing.TB, at servers) *stage {
	t.Helper()
	s := &stage{servers: at, t: t, store: testkit.OpenStore(t, at.Database), runLog: newRunLog()}
	s.wire = s.connect("stage")
	require.NoError(t, s.wire.DeclareExecutor(testkit.Context(t)))
	relay := outbox.New(outbox.Config{}, s.store, s.wire.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	s.submitter, s.operator = submit.New(s.store, relay), triage.New(triage.Config{}, s.store, relay)
	testkit.Action(t, s.store, actFree)
	testkit.Policy(t, s.store, testkit.Action(t, s.store, actLimited), 3)
	flaky := testkit.Action(t, s.store, actFlaky, func(a *testkit.ActionRow) { a.MaxRetries = 3 })
	testkit.Policy(t, s.store, flaky, 2)
	if at.QueueType == "" {
		s.completions = s.recordCompletions()
	}
	return s
}

func (s *stage) connect(name string) *broker.Broker {
	wire := broker.New(broker.Config{
		URL: s.AMQP, ManagementURL: s.Management, ConnectionName: name,
		QuorumQueues: s.QueueType == "quorum",
	},
		testkit.Logger(s.t), nil)
	require.NoError(s.t, wire.Start(testkit.Context(s.t)))
	s.t.Cleanup(wire.Stop)
	return wire
}

// runLog is the actions' own record of their starts, independent of the database.
type runLog struct {
	mu     sync.Mutex
	starts map[int64][]int // the attempts of an execution, in order
	failed map[int]bool    // the numbers with which actFlaky has failed
	begun  map[int64]time.Time
	gate   <-chan struct{} // actions end after it closes; may be nil

	longest time.Duration // their longest duration
}

func newRunLog() *runLog {
	return &runLog{
		starts: map[int64][]int{}, failed: map[int]bool{}, begun: map[int64]time.Time{},
		longest: 15 * time.Millisecond,
	}
}

// run is an action that takes some milliseconds.
func (d *runLog) run(ctx context.Context, task worker.Task) (any, error) {
	d.mu.Lock()
	d.starts[task.ExecutionID] = append(d.starts[task.ExecutionID], task.Attempt)
	d.begun[task.ExecutionID] = time.Now()
	gate, longest := d.gate, d.longest
	d.mu.Unlock()
	if gate != nil {
		select {
		case <-ctx.Done():
		case <-gate:
		}
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(rand.N(longest)):
		return nil, nil
	}
}

// flaky is an action that fails at the first run with each number.
func (d *runLog) flaky(ctx context.Context, task worker.Task) (any, error) {
	var params struct {
		Number int `json:"number"`
	}
	if err := task.Decode(&params); err != nil {
		return nil, err
	}
	d.mu.Lock()
	again := d.failed[params.Number]
	d.failed[params.Number] = true
	d.mu.Unlock()
	value, err := d.run(ctx, task)
	if err == nil && !again {
		err = errors.New("out of luck")
	}
	return value, err
}

// worker starts a worker in this process.
func (s *stage) worker(name string) {
	s.startWorkerWith(worker.Config{
		Name: name, MaxConcurrent: 20, HeartbeatInterval: time.Second,
		Actions: worker.Actions{actFree: s.runLog.run, actLimited: s.runLog.run, actFlaky: s.runLog.flaky},
	})
}

func (s *stage) startWorkerWith(cfg worker.Config) *worker.Worker {
	s.t.Helper()
	w, err := worker.New(cfg, worker.Deps{Store: s.store, Broker: s.connect(cfg.Name), Logger: testkit.Logger(s.t)})
	require.NoError(s.t, err)
	require.NoError(s.t, w.Start(testkit.Context(s.t)))
	s.t.Cleanup(w.Stop)
	return w
}

// serveTwo starts two replicas that soon notice the loss of a connection.
func (s *stage) serveTwo() (replicas []*process) {
	s.t.Helper()
	for range 2 {
		replicas = append(replicas, s.serve("ATTUNE__MESSAGE_QUEUE__RABBITMQ__HEARTBEAT_SECS=1",
			"ATTUNE__MESSAGE_QUEUE__RABBITMQ__RECONNECT_DELAY_SECS=1"))
	}
	return replicas
}

// completions are the published execution.completed messages of a stage.
type completions struct {
	mu       sync.Mutex
	statuses map[int64][]string // by execution
}

// recordCompletions starts to record the completions.
func (s *stage) recordCompletions() *completions {
	all := &completions{statuses: map[int64][]string{}}
	s.subscribe(message.KeyExecutionCompleted, func(_, _ string, body []byte) { all.record(body) })
	return all
}

// subscribe passes copies of all messages with the routing key to record.
func (s *stage) subscribe(key string, record func(routingKey, kind string, body []byte)) {
	conn, err := amqp.Dial(s.AMQP)
	require.NoError(s.t, err)
	channel, err := conn.Channel()
	require.NoError(s.t, err)
	queue, err := channel.QueueDeclare("", false, true, true, false, nil)
	require.NoError(s.t, err)
	require.NoError(s.t, channel.QueueBind(queue.Name, key, message.ExchangeExecutions, false, nil))
	deliveries, err := channel.Consume(queue.Name, "", true, true, false, false, nil)
	require.NoError(s.t, err)
	var listening sync.WaitGroup
	listening.Go(func() {
		for delivery := range deliveries {
			record(delivery.RoutingKey, delivery.Type, delivery.Body)
		}
	})
	s.t.Cleanup(func() {
		_ = conn.CloseDeadline(time.Now().Add(5 * time.Second)) // it only listened
		listening.Wait()
	})
}

func (h *completions) record(body []byte) {
	envelope, err := message.Decode[message.ExecutionCompleted](body)
	if err != nil || envelope.MessageType != message.TypeExecutionCompleted {
		return // another test checks unreadable messages
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses[envelope.Payload.ExecutionID] = append(h.statuses[envelope.Payload.ExecutionID], envelope.Payload.Status)
}

// of returns the distinct statuses in the completions of an execution.
func (h *completions) of(id int64) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(h.statuses[id])))
}

// request requests n executions of an action.
func (s *stage) request(ref string, n int) []int64 {
	requests := make([]submit.Request, n)
	for i := range requests {
		s.number++
		requests[i] = submit.Request{ActionRef: ref, Params: fmt.Appendf(nil, `{"number":%d}`, s.number)}
	}
	done, err := s.submitter.RequestMany(testkit.Context(s.t), requests)
	require.NoError(s.t, err)
	ids := make([]int64, n)
	for i, r := range done {
		ids[i] = r.ID
	}
	s.asked = append(s.asked, ids...)
	return ids
}

// load requests five executions every 20 ms, at least ten times, until enough returns true. It returns all
// except those of actFlaky.
func (s *stage) load(enough func() bool) (ids []int64) {
	deadline := time.Now().Add(testkit.TestTimeout)
	for len(ids) < 40 || !enough() {
		require.True(s.t, time.Now().Before(deadline), "the load does not end")
		ids = append(ids, s.request(actFree, 2)...)
		ids = append(ids, s.request(actLimited, 2)...)
		s.flaky = append(s.flaky, s.request(actFlaky, 1)...)
		time.Sleep(20 * time.Millisecond)
	}
	return ids
}

func (s *stage) count(sql string, args ...any) int {
	s.t.Helper()
	return testkit.Count(s.t, s.store, sql, args...)
}

// age makes the unpublished messages of dead replicas old enough for others to publish.
func (s *stage) age() {
	testkit.Exec(s.t, s.store,
		`UPDATE outbox SET created = created - interval '6 s', claimed_at = claimed_at - interval '6 s'`)
	// live replicas renew theirs within a second
	testkit.Exec(s.t, s.store, `UPDATE outbox_owner SET renewed = renewed - interval '6 s'`)
}

// over waits until every execution has ended, every slot is free and every message is published.
func (s *stage) over() {
	s.t.Helper()
	testkit.Eventually(s.t, func() bool {
		return s.count(`SELECT (SELECT count(*) FROM execution e WHERE e.finished_status IS NULL OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id))
			+ (SELECT count(*) FROM execution_admission_entry) + (SELECT count(*) FROM outbox)`) == 0
	}, testkit.TestTimeout, "L2, L3, L5: everything ends, is released and is published")
	testkit.Invariants(s.t, s.store)
	s.requireLegalMoves()
}

// requireLegalMoves checks S8 on the recorded history.
func (s *stage) requireLegalMoves() {
	s.t.Helper()
	rows, err := s.store.Pool().Query(testkit.Context(s.t), `
		SELECT DISTINCT old_values->>'status', new_values->>'status' FROM execution_history
		WHERE operation = 'UPDATE' AND new_values->>'status' IS DISTINCT FROM old_values->>'status'`)
	require.NoError(s.t, err)
	defer rows.Close()
	for rows.Next() {
		var from, to lifecycle.Status
		require.NoError(s.t, rows.Scan(&from, &to))
		require.True(s.t, lifecycle.CanMove(from, to), "S8: %s → %s", from, to)
	}
	require.NoError(s.t, rows.Err())
}

// requireRetried checks that each failed execution of actFlaky has one retry, which ran once and completed (S19).
func (s *stage) requireRetried() {
	s.t.Helper()
	rows, err := s.store.Pool().Query(testkit.Context(s.t), `
		SELECT coalesce(original_execution, id), array_agg(id ORDER BY id), array_agg(status::text || ' ' || retry_count ORDER BY id)
		FROM execution WHERE action_ref = $1 GROUP BY 1`, actFlaky)
	require.NoError(s.t, err)
	defer rows.Close()
	var chains []int64
	for rows.Next() {
		var origin int64
		var attempts []int64
		var ends []string
		require.NoError(s.t, rows.Scan(&origin, &attempts, &ends))
		require.Equal(s.t, []string{"failed 0", "completed 1"}, ends, "S19: the attempts of execution %d", origin)
		s.requireStarted(attempts)
		chains = append(chains, origin)
	}
	require.NoError(s.t, rows.Err())
	require.ElementsMatch(s.t, s.flaky, chains)
}

// requireStarted checks that the actions ran once.
func (s *stage) requireStarted(ids []int64) {
	s.t.Helper()
	s.runLog.mu.Lock()
	starts := maps.Clone(s.runLog.starts)
	s.runLog.mu.Unlock()
	for _, id := range ids {
		require.Equal(s.t, []int{1}, starts[id], "S2: the starts of execution %d", id)
	}
}

// requireOnce checks that these executions completed at their first attempt, ran once, and were published as
// completed, and that those of actFlaky were retried.
func (s *stage) requireOnce(ids []int64) {
	s.t.Helper()
	require.Equal(s.t, len(ids),
		s.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'completed' AND attempt = 1`, ids),
		"everything completes at its first attempt: %s", s.others(ids))
	require.Zero(s.t, s.count(`SELECT count(*) FROM late_write`), "S8: no late write had to be refused")
	s.requireStarted(ids)
	s.requireRetried()
	s.requireReported(ids...)
	require.Zero(s.t, s.count(`SELECT count(*) FROM dead_letter`), "nothing is given up")
}

// requireReported checks that the published completions of executions have the statuses of their rows (S14).
func (s *stage) requireReported(ids ...int64) {
	s.t.Helper()
	for _, id := range ids {
		testkit.Eventually(s.t, func() bool { return len(s.completions.of(id)) > 0 }, 30*time.Second,
			"S14: execution %d has a completion", id)
		require.Equal(s.t, []string{string(testkit.StatusOf(s.t, s.store, id))}, s.completions.of(id),
			"S14: the completion of execution %d", id)
	}
}

// ids returns the ids that a query selects.
func (s *stage) ids(sql string, args ...any) []int64 {
	s.t.Helper()
	return testkit.Column[int64](s.t, s.store.Pool(), sql, args...)
}

// others describes the executions that violate requireOnce.
func (s *stage) others(ids []int64) string {
	var text string
	err := s.store.Pool().QueryRow(testkit.Context(s.t), `SELECT coalesce(string_agg(format('%s %s attempt %s %s', id, status, attempt, result), E'\n'), 'none')
		FROM execution WHERE id = ANY ($1) AND NOT (status = 'completed' AND attempt = 1)`, ids).Scan(&text)
	return fmt.Sprint(text, err)
}
