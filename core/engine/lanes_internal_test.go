package engine

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// stand is a broker and a database on which the hot loop runs by itself.
type stand struct {
	t     *testing.T
	store *store.Store
	amqp  string
	wire  *broker.Broker // publishes
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{t: t, store: testkit.Store(t, func(c *store.Config) { c.HotPath = true }), amqp: testkit.VHost(t)}
	s.wire = s.connect("requests")
	require.NoError(t, s.wire.DeclareExecutor(testkit.Context(t)))
	testkit.Worker(t, s.store, "w1")
	return s
}

func (s *stand) connect(name string) *broker.Broker {
	s.t.Helper()
	wire := broker.New(broker.Config{URL: s.amqp, ConnectionName: name}, testkit.Logger(s.t), nil)
	require.NoError(s.t, wire.Start(testkit.Context(s.t)))
	s.t.Cleanup(wire.Stop)
	return wire
}

// run starts a hot loop. The returned function stops it and its connection, as the engine does.
func (s *stand) run(lanes int) (h *hot, stop func()) {
	s.t.Helper()
	wire := s.connect("hot")
	consume := func(queue string) *broker.Consumer {
		c := wire.Consume(broker.ConsumerConfig{Queue: queue, Prefetch: 100, MaxBatch: 20})
		require.NoError(s.t, c.Start(testkit.Context(s.t)))
		s.t.Cleanup(c.Stop)
		return c
	}
	completed, requested := consume(message.QueueExecutionCompleted), consume(message.QueueExecutionRequests)
	sched := scheduler.New(scheduler.Config{HeartbeatStaleAfter: time.Hour}, // the worker sends no heartbeats
		scheduler.Deps{Store: s.store, Relay: noRelay{}, Logger: testkit.Logger(s.t)})
	h = newHot(completed, requested, lanes, sched, stepConfig{}, testkit.Logger(s.t),
		NewMetrics(prometheus.NewRegistry()))
	require.NoError(s.t, h.Start(testkit.Context(s.t)))
	stop = func() {
		h.Stop()
		completed.Stop()
		requested.Stop()
		wire.Stop()
	}
	s.t.Cleanup(stop)
	return h, stop
}

// request publishes the requests of executions.
func (s *stand) request(action testkit.ActionRow, ids ...int64) {
	s.t.Helper()
	messages := make([]broker.Message, len(ids))
	for i, id := range ids {
		asked := message.ExecutionRequested{ExecutionID: id, ActionRef: action.Ref}
		if id%2 == 0 { // the published message may leave it out
			asked.ActionID = &action.ID
		}
		envelope := message.New(message.TypeExecutionRequested, asked, time.Now(), "test")
		body, err := envelope.Encode()
		require.NoError(s.t, err)
		messages[i] = broker.Message{
			ID: envelope.MessageID, Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionRequested,
			Type: message.TypeExecutionRequested, Body: body,
		}
	}
	for _, outcome := range s.wire.Publisher().Publish(testkit.Context(s.t), messages) {
		require.NoError(s.t, outcome.Err)
	}
}

// of makes an action whose messages belong to one of two lanes.
func (s *stand) of(lane int, name string) testkit.ActionRow {
	for i := 0; ; i++ {
		if ref := fmt.Sprintf("pk.%s%d", name, i); LaneOf(ref, 2) == lane {
			return testkit.Action(s.t, s.store, ref)
		}
	}
}

func (s *stand) execution(action testkit.ActionRow) int64 {
	return testkit.Execution(s.t, s.store, action).ID
}

func (s *stand) scheduled(id int64) bool {
	return testkit.StatusOf(s.t, s.store, id) == lifecycle.StatusScheduled
}

// While one lane waits for a queue that another transaction holds, the others go on, and its
// own messages keep their order.
func TestALaneThatWaitsForAQueueDelaysNoOther(t *testing.T) {
	s := newStand(t)
	held, free := s.of(0, "held"), s.of(1, "free")
	testkit.Policy(t, s.store, held, 1)
	testkit.State(t, s.store, held, 1)
	tx := testkit.Begin(t, s.store)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	_, err := tx.Exec(testkit.Context(t), `SELECT FROM execution_admission_state WHERE action_id = $1 FOR UPDATE`,
		held.ID)
	require.NoError(t, err)
	h, _ := s.run(2)
	waits := h.lanes[0]
	var asked []int64
	passed := false
	for try := 0; try < 5 && !passed; try++ { // a wait may end by its own deadline on a busy machine
		asked = append(asked, s.execution(held))
		s.request(held, asked[try])
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, s.store,
				`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
		}, testkit.TestTimeout, "the lane waits")
		since := waits.begun.Load()
		id := s.execution(free)
		s.request(free, id)
		testkit.Eventually(t, func() bool { return s.scheduled(id) }, testkit.TestTimeout)
		passed = since != 0 && waits.begun.Load() == since
	}
	require.True(t, passed, "a request of another lane passes while one waits")
	require.NoError(t, tx.Rollback(context.WithoutCancel(testkit.Context(t))))
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, s.store, `SELECT count(*) FROM execution WHERE action = $1 AND status = 'scheduled'`,
			held.ID) == 1 &&
			testkit.Count(t, s.store, `SELECT count(*) FROM execution_admission_entry e JOIN execution_admission_state s ON s.id = e.state_id
				WHERE s.action_id = $1 AND e.status = 'queued'`, held.ID) == len(asked)-1
	}, testkit.TestTimeout)
}

// A message that keeps failing costs its own lane some halved batches and the others none.
func TestAPoisonousMessageHarmsNoOtherLane(t *testing.T) {
	s := newStand(t)
	sick, well := s.of(0, "sick"), s.of(1, "well")
	var others []int64
	for range 5 {
		others = append(others, s.execution(sick), s.execution(well))
	}
	bad := s.execution(sick)
	testkit.Exec(t, s.store, fmt.Sprintf(`ALTER TABLE execution ADD CHECK (id <> %d OR status = 'requested')`, bad))
	h, stop := s.run(2)
	for i := range 5 {
		s.request(sick, others[2*i])
		s.request(well, others[2*i+1])
		if i == 2 {
			s.request(sick, bad)
		}
	}
	for _, id := range others {
		testkit.Eventually(t, func() bool { return s.scheduled(id) }, testkit.TestTimeout)
	}
	testkit.Eventually(t, func() bool { return h.lanes[0].begun.Load() == 0 }, testkit.TestTimeout)
	stop()
	require.Empty(t, h.lanes[1].later.items)
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, s.store, bad))
}

// Queues keep the order of delivery, and no message is lost or processed twice, while deliveries return and lanes
// stop with messages in process.
func TestLanesKeepTheOrderOfQueues(t *testing.T) {
	s := newStand(t)
	const actions, each = 7, 30
	var list []testkit.ActionRow
	asked := map[int64][]int64{}
	for i := range actions {
		action := testkit.Action(t, s.store, fmt.Sprintf("pk.a%d", i))
		testkit.Policy(t, s.store, action, 1)
		list = append(list, action)
	}
	h, stop := s.run(3)
	for i := range each {
		for _, action := range list {
			id := s.execution(action)
			asked[action.ID] = append(asked[action.ID], id)
			s.request(action, id)
			if i%4 == 3 {
				s.request(action, id) // twice
			}
		}
		switch i {
		case 8, 16:
			h.requested.GiveBack()
		case 12, 20:
			stop()
			h, stop = s.run(i / 6)
		}
	}
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, s.store, `SELECT count(*) FROM execution_admission_entry`) == actions*(each-1)
	}, testkit.TestTimeout, "one of each action runs, and the others wait")
	require.Equal(t, actions,
		testkit.Count(t, s.store, `SELECT count(*) FROM execution WHERE status = 'scheduled' AND attempt = 1`))
	for _, action := range list {
		line := testkit.Column[int64](t, s.store.Pool(), `SELECT e.execution_id FROM execution_admission_entry e
			JOIN execution_admission_state s ON s.id = e.state_id WHERE s.action_id = $1 ORDER BY e.queue_order`, action.ID)
		require.Equal(t, asked[action.ID][1:], line)
		require.True(t, s.scheduled(asked[action.ID][0]))
	}
	testkit.Eventually(t, func() bool {
		state, err := s.wire.QueueState(testkit.Context(t), message.QueueExecutionRequests)
		return err == nil && state.Ready == 0
	}, testkit.TestTimeout)
	stop() // unacknowledged messages would return
	state, err := s.wire.QueueState(testkit.Context(t), message.QueueExecutionRequests)
	require.NoError(t, err)
	require.Zero(t, state.Ready)
	testkit.Exec(t, s.store, `DELETE FROM outbox`)
	testkit.Invariants(t, s.store)
}

// A request does not pass an earlier one of its action that a half of the same batch has left.
func TestAHalvedBatchKeepsTheOrderOfAHeldQueue(t *testing.T) {
	s := newStand(t)
	h := newHot(nil, nil, 1,
		scheduler.New(scheduler.Config{}, scheduler.Deps{Store: s.store, Relay: noRelay{}, Logger: testkit.Logger(t)}),
		stepConfig{}, testkit.Logger(t), nil).lanes[0]
	a, b := testkit.Action(t, s.store, "pk.a"), testkit.Action(t, s.store, "pk.b")
	of := func(action testkit.ActionRow) item { return item{execution: s.execution(action), action: action.Ref} }
	first, second, other := of(a), of(a), of(b)
	end := item{execution: s.execution(a), action: a.Ref, ended: true}
	h.held = []item{first}
	require.NoError(t, h.runBatch(testkit.Context(t), []item{second, other, end}, noChores))
	require.True(t, s.scheduled(other.execution))
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, s.store, second.execution))
	require.Equal(t, []item{first, second}, takeHeld(h))
}

// An unfilled queue is filled by the lane of its action, and a queue that another batch
// holds is waited for in the end.
func TestAnUnfilledQueueBelongsToTheLaneOfItsAction(t *testing.T) {
	t.Parallel()
	h := newHot(nil, nil, 4, nil, stepConfig{}, testkit.Logger(t), nil)
	refs := []string{"pk.a", "pk.b", "pk.c", "pk.d", "pk.e", "pk.f"}
	h.fill(scheduler.Result{Unfilled: []int64{1, 2, 3, 4, 5, 6}, UnfilledOf: refs})
	for i, ref := range refs {
		require.Contains(t, h.LaneOf(ref).unfilled.Take(10), int64(i+1))
		for queue, other := range refs { // taken with it
			if queue != i && h.LaneOf(other) == h.LaneOf(ref) {
				h.LaneOf(other).unfilled.Put(int64(queue + 1))
			}
		}
	}

	s := h.lanes[0]
	e := chores{queues: []int64{7, 8}, waited: map[int64]int{7: insistAfter}}
	require.Equal(t, scheduler.FillStep{Queues: []int64{7}, Spare: []int64{8}}, e.fill())
	s.keepQueues(work{requested: []int64{1}, chores: e}, scheduler.Result{Held: []int64{8}})
	require.Equal(t, map[int64]int{8: 1}, s.heldQueues)
	s.heldQueues = map[int64]int{}
	s.keepQueues(work{chores: chores{queues: []int64{8}, waited: map[int64]int{8: 1}}},
		scheduler.Result{Held: []int64{8}})
	require.Equal(t, map[int64]int{8: insistAfter}, s.heldQueues, "there was nothing else to do")
}

// The backlog of a blocked lane stays bounded, however often deliveries return.
func TestDeliveriesThatCameAgainDoNotPileUp(t *testing.T) {
	s := newStand(t)
	h := newHot(nil, nil, 1, nil, stepConfig{}, testkit.Logger(t), nil)
	wire := s.connect("piles")
	c := wire.Consume(broker.ConsumerConfig{Queue: message.QueueExecutionRequests, Prefetch: 300, MaxBatch: 300})
	require.NoError(t, c.Start(testkit.Context(t)))
	t.Cleanup(c.Stop)
	action := testkit.Action(t, s.store, "pk.a")
	ids := make([]int64, 300)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	s.request(action, ids...)
	waits := h.lanes[0].requested
	for range 8 {
		for again := 0; again < len(ids); {
			items := h.read(testkit.Context(t), <-c.Batches(), message.TypeExecutionRequested)
			again += len(items)
			h.spread(items, func(s *lane) *Box[item] { return s.requested })
		}
		c.GiveBack()
	}
	require.LessOrEqual(t, waits.Len(), manyWaiting+2*len(ids))
}

// Messages without a row have one bound for all lanes, which share the prefetch.
func TestLanesShareTheBoundOfMissingRows(t *testing.T) {
	t.Parallel()
	var absents atomic.Int64
	laters := []*later{newLater(&absents), newLater(&absents)}
	now, given := time.Now(), 0
	for i := range 2 * maxAbsent {
		if _, full := laters[i%2].await(item{execution: int64(i), alone: true}, now); full {
			given++
		}
	}
	require.Equal(t, maxAbsent, given)
	require.Equal(t, maxAbsent, len(laters[0].items)+len(laters[1].items))
	for _, l := range laters {
		l.timer.Stop()
	}
}

// A delivery of several executions is acknowledged with the last of them.
func TestADeliveryIsSettledWithItsLastItem(t *testing.T) {
	t.Parallel()
	alone := item{}
	require.True(t, alone.settled())
	var open atomic.Int32
	open.Store(3)
	parts := []item{{open: &open}, {open: &open}, {open: &open}}
	require.Equal(t, []bool{false, false, true}, []bool{parts[2].settled(), parts[0].settled(), parts[1].settled()})
}

// A small connection pool means fewer lanes, which the log reports.
func TestFewConnectionsMeanFewerLanes(t *testing.T) {
	url := testkit.Database(t)
	for most, want := range map[int32]int{1: 1, 12: 2, 20: 8, 50: 8} {
		cfg := config.Default()
		cfg.Database.URL, cfg.Database.Schema, cfg.Database.MaxConnections = url, testkit.Schema, most
		cfg.Executor.Schedulers, cfg.Executor.HTTP.Listen = 8, ""
		var log bytes.Buffer
		e, err := New(testkit.Context(t), cfg, Deps{Logger: slog.New(slog.NewTextHandler(&log, nil)), Version: "test"})
		require.NoError(t, err)
		e.close()
		require.Len(t, e.hot.lanes, want)
		require.EqualValues(t, want+batchConnections, e.store.Pool().Config().MaxConns)
		require.EqualValues(t, max(int(most)-want-batchConnections, restConnections), e.query.Pool().Config().MaxConns)
		require.Equal(t, want < 8, bytes.Contains(log.Bytes(), []byte("Fewer schedulers run than configured")),
			log.String())
	}
	require.Equal(t, []int{2, 2, 5, 8, 3}, []int{
		config.Executor{}.SchedulersOn(1), config.Executor{}.SchedulersOn(2), config.Executor{}.SchedulersOn(5),
		config.Executor{}.SchedulersOn(64), config.Executor{Schedulers: 3}.SchedulersOn(64),
	})
}

// Only the first lane takes items without an action.
func TestTheFirstLaneTakesItemsWithoutAnAction(t *testing.T) {
	t.Parallel()
	h := newHot(nil, nil, 3, nil, stepConfig{}, testkit.Logger(t), nil)
	for i, s := range h.lanes {
		require.Equal(t, i == 0, s.finds != nil && s.deadLetters != nil && s.alarms != nil)
	}
	require.Equal(t, "pk.a", actionOf("pk.a", new(int64(3))))
	require.Equal(t, "7", actionOf("", new(int64(7))))
	require.Empty(t, actionOf("", nil))
	require.Empty(t, actionOf("", new(int64)), "zero stands for an unknown one")
}
