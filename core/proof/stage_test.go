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

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/core/worker"
)

// stage is a database and a virtual host on which processes of the program
// work, and from which they are looked at.
type stage struct {
	servers

	t         testing.TB
	store     *store.Store
	wire      *broker.Broker
	submitter *submit.Submitter
	operator  *triage.Triage
	asked     []int64 // everything that was requested
	number    int     // of the last request
	flaky     []int64 // the requests of what has to be repeated
	diary     *diary
	told      *told
}

// The actions of a stage: one that runs as often as anybody likes, one of which
// three may run at once, and one that fails the first time and is repeated.
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
	s := &stage{servers: at, t: t, store: testkit.OpenStore(t, at.Database), diary: newDiary()}
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
	s.told = s.listen()
	return s
}

func (s *stage) connect(name string) *broker.Broker {
	wire := broker.New(broker.Config{URL: s.AMQP, ManagementURL: s.Management, ConnectionName: name},
		testkit.Logger(s.t), nil)
	require.NoError(s.t, wire.Start(testkit.Context(s.t)))
	s.t.Cleanup(wire.Stop)
	return wire
}

// diary is what the actions themselves say about having been run. It is the
// judge of how often an execution was started: it believes no row.
type diary struct {
	mu     sync.Mutex
	starts map[int64][]int // the attempts of an execution, in the order of their starts
	failed map[int]bool    // the numbers with which the flaky one has failed
	begun  map[int64]time.Time
	gate   <-chan struct{} // keeps them from ending; may be nil

	longest time.Duration // how long they take at most
}

func newDiary() *diary {
	return &diary{starts: map[int64][]int{}, failed: map[int]bool{}, begun: map[int64]time.Time{},
		longest: 15 * time.Millisecond}
}

// run is an action that takes some milliseconds.
func (d *diary) run(ctx context.Context, task worker.Task) (any, error) {
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

// flaky is an action that fails the first time that it is run with a number.
func (d *diary) flaky(ctx context.Context, task worker.Task) (any, error) {
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
	cfg := worker.Config{
		Name: name, MaxConcurrent: 20, HeartbeatInterval: time.Second,
		Actions: worker.Actions{actFree: s.diary.run, actLimited: s.diary.run, actFlaky: s.diary.flaky},
	}
	w, err := worker.New(cfg, worker.Deps{Store: s.store, Broker: s.connect(name), Logger: testkit.Logger(s.t)})
	require.NoError(s.t, err)
	require.NoError(s.t, w.Start(testkit.Context(s.t)))
	s.t.Cleanup(w.Stop)
}

// told is every execution.completed that was published on a stage.
type told struct {
	mu   sync.Mutex
	said map[int64][]string // the statuses that were said of an execution
}

// listen hears which ends are told.
func (s *stage) listen() *told {
	heard := &told{said: map[int64][]string{}}
	s.overhear(message.KeyExecutionCompleted, func(_, _ string, body []byte) { heard.hear(body) })
	return heard
}

// overhear hears what is published beside those to whom it is addressed.
func (s *stage) overhear(key string, hear func(routingKey, kind string, body []byte)) {
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
			hear(delivery.RoutingKey, delivery.Type, delivery.Body)
		}
	})
	s.t.Cleanup(func() {
		_ = conn.CloseDeadline(time.Now().Add(5 * time.Second)) // it only listened
		listening.Wait()
	})
}

func (h *told) hear(body []byte) {
	envelope, err := message.Decode[message.ExecutionCompleted](body)
	if err != nil || envelope.MessageType != message.TypeExecutionCompleted {
		return // poison is somebody else's matter
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said[envelope.Payload.ExecutionID] = append(h.said[envelope.Payload.ExecutionID], envelope.Payload.Status)
}

// of are the distinct statuses that were said of an execution.
func (h *told) of(id int64) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(h.said[id])))
}

// request asks for n executions of an action.
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

// load requests five executions every 20 ms, ten times and on until enough says
// that it is enough. It returns those that run but once.
func (s *stage) load(enough func() bool) (ids []int64) {
	deadline := time.Now().Add(testkit.TestTimeout)
	for len(ids) < 40 || !enough() {
		require.True(s.t, time.Now().Before(deadline), "what the load waits for has not happened")
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

// age makes what the dead have left unpublished as old as it has to be for
// others to take it, so that nobody waits for it.
func (s *stage) age() {
	testkit.Exec(s.t, s.store,
		`UPDATE outbox SET created = created - interval '6 s', claimed_at = claimed_at - interval '6 s'`)
	// the living renew theirs within a second
	testkit.Exec(s.t, s.store, `UPDATE outbox_owner SET renewed = renewed - interval '6 s'`)
}

// over waits until everything has ended and been given back.
func (s *stage) over() {
	s.t.Helper()
	testkit.Eventually(s.t, func() bool {
		return s.count(`SELECT (SELECT count(*) FROM execution e WHERE e.finished_status IS NULL OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id))
			+ (SELECT count(*) FROM execution_admission_entry) + (SELECT count(*) FROM outbox)`) == 0
	}, testkit.TestTimeout, "L2, L3, L5: everything ends, is given back and is told")
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
		var from, to attune.Status
		require.NoError(s.t, rows.Scan(&from, &to))
		require.True(s.t, attune.CanMove(from, to), "S8: %s → %s", from, to)
	}
	require.NoError(s.t, rows.Err())
}

// requireRepeated asks that what failed was repeated once, as an execution of
// its own, which ran once and completed (S19).
func (s *stage) requireRepeated() {
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

// requireStarted asks the actions themselves how often they were run.
func (s *stage) requireStarted(ids []int64) {
	s.t.Helper()
	s.diary.mu.Lock()
	starts := maps.Clone(s.diary.starts)
	s.diary.mu.Unlock()
	for _, id := range ids {
		require.Equal(s.t, []int{1}, starts[id], "S2: the starts of execution %d", id)
	}
}

// requireOnce asks that all of these completed at their first attempt, ran once
// by the account of the actions themselves, and that this was told; and that what
// had to be repeated was.
func (s *stage) requireOnce(ids []int64) {
	s.t.Helper()
	require.Equal(s.t, len(ids),
		s.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'completed' AND attempt = 1`, ids),
		"everything completes at its first attempt: %s", s.others(ids))
	require.Zero(s.t, s.count(`SELECT count(*) FROM late_write`), "S8: no late write had to be refused")
	s.requireStarted(ids)
	s.requireRepeated()
	testkit.Eventually(s.t, func() bool {
		for _, id := range ids {
			if len(s.told.of(id)) == 0 {
				return false
			}
		}
		return true
	}, 30*time.Second, "S14: every end is told")
	for _, id := range ids {
		require.Equal(s.t, []string{"completed"}, s.told.of(id), "S14: what is told of execution %d", id)
	}
	require.Zero(s.t, s.count(`SELECT count(*) FROM dead_letter`), "nothing is given up")
}

// others says which executions are not as they should be.
func (s *stage) others(ids []int64) string {
	var text string
	err := s.store.Pool().QueryRow(testkit.Context(s.t), `SELECT coalesce(string_agg(format('%s %s attempt %s %s', id, status, attempt, result), E'\n'), 'none')
		FROM execution WHERE id = ANY ($1) AND NOT (status = 'completed' AND attempt = 1)`, ids).Scan(&text)
	return fmt.Sprint(text, err)
}
