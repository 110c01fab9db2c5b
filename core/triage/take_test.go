package triage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// brokered is a bundle whose operator has a broker.
type brokered struct {
	*bundle
	t     testing.TB
	amqp  string
	link  *broker.Broker
	plain *amqp.Channel
	relay *outbox.Relay
}

func newBrokered(t *testing.T) *brokered {
	t.Helper()
	m := &brokered{bundle: setup(t), t: t, amqp: testkit.VHost(t)}
	m.link, m.plain = linkTo(t, m.amqp)
	require.NoError(t, m.link.DeclareExecutor(testkit.Context(t)))
	m.relay = outbox.New(outbox.Config{}, m.store, m.link.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, m.relay.Start(testkit.Context(t)))
	t.Cleanup(m.relay.Stop)
	m.operator = triage.New(triage.Config{Actor: "ann@desk"}, m.store, m.relay).With(m.link)
	return m
}

func linkTo(t testing.TB, address string) (*broker.Broker, *amqp.Channel) {
	t.Helper()
	link := broker.New(broker.Config{URL: address}, testkit.Logger(t), nil)
	require.NoError(t, link.Start(testkit.Context(t)))
	t.Cleanup(link.Stop)
	conn, err := amqp.Dial(address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // may be closed already
	plain, err := conn.Channel()
	require.NoError(t, err)
	return link, plain
}

// queue declares a queue.
func (m *brokered) queue(name string, arguments amqp.Table) {
	m.t.Helper()
	_, err := m.plain.QueueDeclare(name, true, false, false, false, arguments)
	require.NoError(m.t, err)
}

// deadDispatch is the dead dispatch of an execution to worker 7.
func deadDispatch(t testing.TB, execution int64, id string) amqp.Publishing {
	t.Helper()
	body, err := message.New(message.TypeExecutionRequested,
		message.Dispatch{ExecutionID: execution, WorkerID: 7, ActionRef: "pk.do", Attempt: 1},
		time.Now(), "test").Encode()
	require.NoError(t, err)
	return amqp.Publishing{
		MessageId: id, Type: message.TypeExecutionRequested, Body: body, DeliveryMode: amqp.Persistent,
		Headers: amqp.Table{"x-death": []any{amqp.Table{
			"count": int64(1), "reason": "expired", "queue": message.WorkerExecutionsQueue(7),
			"exchange": message.ExchangeExecutions,
			"time":     time.Now().Truncate(time.Second), "routing-keys": []any{message.DispatchKey(7)},
		}}},
	}
}

// fill puts n dead letters into a queue.
func (m *brokered) fill(queue string, n int) {
	m.t.Helper()
	for i := range n {
		dead := deadDispatch(m.t, int64(i+1), fmt.Sprintf("m%d", i))
		require.NoError(m.t, m.plain.Publish("", queue, false, false, dead))
	}
	m.holds(queue, n)
}

// holds waits until a queue has n messages.
func (m *brokered) holds(queue string, n int) {
	m.t.Helper()
	testkit.Eventually(m.t, func() bool {
		q, err := m.plain.QueueDeclarePassive(queue, true, false, false, false, nil)
		require.NoError(m.t, err)
		return q.Messages == n
	}, 20*time.Second, "%s holds %d messages", queue, n)
}

func (m *brokered) take(request triage.TakeRequest) *triage.TakeReceipt {
	m.t.Helper()
	plan, err := m.operator.PlanTake(m.t.Context(), request)
	require.NoError(m.t, err)
	receipt, err := m.operator.Take(m.t.Context(), plan)
	require.NoError(m.t, err)
	return receipt
}

func (m *brokered) waiting() int {
	m.t.Helper()
	return testkit.Count(m.t, m.store, `select count(*) from dead_letter where decision is null`)
}

// Dead letters are taken in the order of the queue, up to the bound of the plan, with their evidence and one audit row.
func TestDeadLettersAreTakenIntoTheLedger(t *testing.T) {
	m := newBrokered(t)
	m.fill(message.QueueDeadLetter, 50)
	plan, err := m.operator.PlanTake(t.Context(),
		triage.TakeRequest{First: 30, Note: "the worker is gone", Match: triage.DeadLetterMatch{Execution: 7}})
	require.NoError(t, err)
	require.Equal(t, []int{50, 0, 30}, []int{plan.Ready, plan.Consumers, plan.Bound})
	r, err := m.operator.Take(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, []int{30, 30, 30, 0, 0, 0, 50, 20, 1},
		[]int{r.Planned, r.Taken, r.New, r.Known, r.Left, r.Absent, r.Before, r.After, r.Matching})
	require.Equal(t, "done", r.Outcome)
	require.Equal(t, 30, m.waiting())
	require.Equal(t, 30, testkit.Count(t, m.store, `select count(*) from (select message_id, row_number() over (order by id) - 1 as n from dead_letter) o where message_id = 'm' || n`))
	require.Equal(t, 1, testkit.Count(t, m.store, `select count(*) from dead_letter where id = $1 and execution = 7 and worker = 7 and reason = 'expired'
		and queue = 'worker.7.executions' and exchange = 'attune.executions' and routing_key = 'execution.dispatch.worker.7' and decided_by is null
		and evidence -> 'taken' ->> 'by' = 'ann@desk' and evidence -> 'taken' ->> 'queue' = 'attune.dlx.queue' and evidence -> 'taken' ->> 'op' = $2`, r.Matched[0], r.Op))
	require.Equal(t, 1, testkit.Count(t, m.store, `select count(*) from operator_audit where id = $1 and action = 'dead_letter.take' and outcome = 'done'
		and reason = 'the worker is gone' and request -> 'receipt' ->> 'taken' = '30'`, r.Audit))

	rest := m.take(triage.TakeRequest{})
	require.Equal(t, []int{20, 20, 0}, []int{rest.Planned, rest.New, rest.After})
	require.Equal(t, 50, m.waiting())
	nothing := m.take(triage.TakeRequest{})
	require.Equal(t, []any{0, "nothing to do"}, []any{nothing.Taken, nothing.Outcome})
}

// Messages of other programs may be alike to the last byte, and have no ids.
func TestMessagesWithTheSameContentAreAllTaken(t *testing.T) {
	m := newBrokered(t)
	for _, id := range []string{"", "", "", "m", "m"} {
		same := amqp.Publishing{MessageId: id, Body: []byte("the same"), DeliveryMode: amqp.Persistent}
		require.NoError(t, m.plain.Publish("", message.QueueDeadLetter, false, false, same))
	}
	m.holds(message.QueueDeadLetter, 5)
	r := m.take(triage.TakeRequest{})
	require.Equal(t, []int{5, 4, 1}, []int{r.Taken, r.New, r.Known}, "only an id says that two are one")
	require.Equal(t, 4, m.waiting())
}

// Messages that left the queue between plan and take are lost, and the receipt says who purged them if that is known.
func TestMessagesThatWerePurgedAreLost(t *testing.T) {
	m := newBrokered(t)
	for _, known := range []bool{false, true} {
		m.fill(message.QueueDeadLetter, 15)
		plan, err := m.operator.PlanTake(t.Context(), triage.TakeRequest{})
		require.NoError(t, err)
		if known {
			_, err = m.operator.As("bob@desk").With(&manyReady{Broker: m.link}).PurgeBroker(t.Context(), "", "")
		} else {
			_, err = m.link.PurgeQueue(t.Context(), message.QueueDeadLetter)
		}
		require.NoError(t, err)
		r, err := m.operator.Take(t.Context(), plan)
		require.NoError(t, err)
		require.Equal(t, []any{0, 15, "unchanged"}, []any{r.Taken, r.Absent, r.Outcome})
		require.Contains(t, r.Lost, "they are lost")
		require.Equal(t, known, strings.Contains(r.Lost, "bob@desk purged attune.dlx.queue at "), r.Lost)
		require.Equal(t, 1, testkit.Count(t, m.store, `select count(*) from operator_audit
			where id = $1 and request -> 'receipt' ->> 'lost' = $2`, r.Audit, r.Lost))
	}
}

// A dead letter that is delivered twice finds its row. A live message in the queue of a worker is
// taken as it is.
func TestARedeliveredDeadLetterFindsItsRow(t *testing.T) {
	m := newBrokered(t)
	one := deadDispatch(t, 5, "twice")
	require.NoError(t, m.plain.Publish("", message.QueueDeadLetter, false, false, one))
	require.NoError(t, m.plain.Publish("", message.QueueDeadLetter, false, false, one))
	m.holds(message.QueueDeadLetter, 2)
	r := m.take(triage.TakeRequest{})
	require.Equal(t, []int{2, 1, 1}, []int{r.Taken, r.New, r.Known})
	require.Equal(t, 1, m.waiting())

	queue := message.WorkerExecutionsQueue(9)
	m.queue(queue, nil)
	alive := deadDispatch(t, 6, "not dead")
	alive.Headers = nil
	require.NoError(t, m.plain.Publish("", queue, false, false, alive))
	m.holds(queue, 1)
	r = m.take(triage.TakeRequest{Queue: queue})
	require.Equal(t, 1, r.New)
	require.Equal(t, 1, testkit.Count(t, m.store,
		`select count(*) from dead_letter where reason = 'taken' and queue = $1 and died is null`, queue))
	_, err := m.operator.PlanTake(t.Context(), triage.TakeRequest{Queue: "nowhere"})
	require.ErrorIs(t, err, triage.ErrQueueMissing)
}

// A queue with a delivery limit loses no message after many stopped takes, and no taken message returns to it.
func TestAStoppedTakeLosesNothing(t *testing.T) {
	m := newBrokered(t)
	m.queue("limited", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(3)})
	m.fill("limited", 900)
	taken := 0
	for range 6 {
		plan, err := m.operator.PlanTake(t.Context(), triage.TakeRequest{Queue: "limited"})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		r, err := m.operator.Take(triage.WithProgress(ctx, func(int64, int64) { stop() }), plan)
		require.NoError(t, err)
		require.Equal(t, []any{"interrupted", "stopped by hand"}, []any{r.Outcome, r.Stopped})
		require.Equal(t, r.Planned, r.Taken+r.Left)
		taken += r.Taken
		require.LessOrEqual(t, r.Taken, 2*triage.TakePrefetch)
		require.Equal(t, taken, m.waiting())
		m.holds("limited", 900-taken)
	}
	r := m.take(triage.TakeRequest{Queue: "limited"})
	require.Equal(t, 900, taken+r.Taken)
	require.Equal(t, 900, m.waiting())
}

// Of two operators that take one queue at the same time, the second is refused with the name of the first. No message
// is taken twice.
func TestTwoOperatorsTakeOneQueue(t *testing.T) {
	m := newBrokered(t)
	m.fill(message.QueueDeadLetter, 100)
	link, _ := linkTo(t, m.amqp)
	other := triage.New(triage.Config{Actor: "bob@desk"}, m.store, nil).With(link)
	var mu sync.Mutex
	var both sync.WaitGroup
	taken, refused := 0, 0
	for _, operator := range []*triage.Triage{m.operator, other} {
		plan, err := operator.PlanTake(t.Context(), triage.TakeRequest{})
		require.NoError(t, err)
		both.Go(func() {
			r, err := operator.Take(t.Context(), plan)
			mu.Lock()
			defer mu.Unlock()
			var locked *triage.LockedError
			switch {
			case err == nil:
				taken += r.Taken
			case errors.As(err, &locked):
				refused++
			default:
				t.Errorf("another error: %v", err)
			}
		})
	}
	both.Wait()
	require.LessOrEqual(t, refused, 1)
	require.Equal(t, 100, taken)
	require.Equal(t, 100, m.waiting())
	m.holds(message.QueueDeadLetter, 0)
}

// A dead letter that the database refuses is stored without its headers, and does not delay the others.
func TestARefusedDeadLetterIsStoredReduced(t *testing.T) {
	m := newBrokered(t)
	testkit.Exec(t, m.store,
		`alter table dead_letter add constraint picky check (headers is null or not headers ? 'bad')`)
	for i := range 10 {
		one := deadDispatch(t, int64(i+1), fmt.Sprintf("m%d", i))
		if i == 4 {
			one.Headers["bad"] = "x"
		}
		require.NoError(t, m.plain.Publish("", message.QueueDeadLetter, false, false, one))
	}
	m.holds(message.QueueDeadLetter, 10)
	r := m.take(triage.TakeRequest{})
	require.Equal(t, []int{10, 10, 0}, []int{r.Taken, r.New, r.After})
	require.Equal(t, 1, testkit.Count(t, m.store,
		`select count(*) from dead_letter where headers is null and evidence ? 'reduced' and message_id = 'm4'`))
	require.Equal(t, 9, testkit.Count(t, m.store, `select count(*) from dead_letter where x_death is not null`))
}

// Actions on taken dead letters send their messages through the outbox: to another exchange or queue, or back to the
// queue that they were taken from.
func TestTakenDeadLettersAreSentAndReturned(t *testing.T) {
	m := newBrokered(t)
	m.queue("parked", nil)
	m.fill(message.QueueDeadLetter, 3)
	m.take(triage.TakeRequest{})
	ids := m.ids()
	r, err := sendDeadLetters(m.operator, t.Context(), ids[:1], "", "parked", "a test of ours")
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{r.Planned, r.Done})
	require.Len(t, r.Audits, 1)
	m.holds("parked", 1)
	one, _, err := m.plain.Get("parked", true)
	require.NoError(t, err)
	require.Equal(t, "m0", one.MessageId)
	require.Contains(t, one.Headers, "x-attune-requeued-from")
	refused, err := sendDeadLetters(m.operator, t.Context(), ids[1:2], message.ExchangeExecutions,
		message.DispatchKey(8),
		"")
	require.NoError(t, err)
	require.Equal(t, 1, refused.Changed)
	require.ErrorContains(t, refused.Notes[0].Err, "could start twice")

	back, err := returnDeadLetters(m.operator, t.Context(), ids, "taken by mistake")
	require.NoError(t, err)
	require.Equal(t, []int{2, 1}, []int{back.Done, back.Changed}, "the sent one is decided")
	m.holds(message.QueueDeadLetter, 2)
	require.Zero(t, m.waiting())
	require.Equal(t, 2, testkit.Count(t, m.store,
		`select count(*) from dead_letter where decision = 'put_back' and fingerprint is null`))
	again := m.take(triage.TakeRequest{})
	require.Equal(t, []int{2, 0}, []int{again.New, again.Known}, "a returned message is another dead letter")
	require.Equal(t, 2, testkit.Count(t, m.store, `select count(*) from dead_letter where decision is null and reason = 'expired' and queue = 'worker.7.executions'
		and routing_key = 'execution.dispatch.worker.7' and exchange = 'attune.executions' and died is not null and message_id in ('m1', 'm2')`))
	require.Equal(t, 3, testkit.Count(t, m.store, `select count(*) from operator_audit where action in ('dead_letter.send', 'dead_letter.return') and outcome = 'done'`))
}

// A dispatch returns to the queue of its worker only while its execution is scheduled by it.
func TestAnOutdatedDispatchIsNotReturned(t *testing.T) {
	m := newBrokered(t)
	action := testkit.Action(t, m.store, "pk.do")
	queue := message.WorkerExecutionsQueue(7)
	m.queue(queue, nil)
	worker := testkit.Worker(t, m.store, "seven")
	for i := range 2 {
		e := testkit.Execution(t, m.store, action)
		testkit.Exec(t, m.store, `update execution set status = 'scheduled', worker = $2, attempt = 1 where id = $1`,
			e.ID, worker.ID)
		body, err := message.New(message.TypeExecutionRequested,
			message.Dispatch{ExecutionID: e.ID, WorkerID: worker.ID, Attempt: 1}, time.Now(), "test").Encode()
		require.NoError(t, err)
		require.NoError(t, m.plain.Publish(message.ExchangeExecutions, message.DispatchKey(worker.ID), false, false,
			amqp.Publishing{Body: body}))
		require.NoError(t,
			m.plain.QueueBind(queue, message.DispatchKey(worker.ID), message.ExchangeExecutions, false, nil))
		require.NoError(t, m.plain.Publish(message.ExchangeExecutions, message.DispatchKey(worker.ID), false, false,
			amqp.Publishing{MessageId: fmt.Sprint(i), Body: body}))
	}
	m.holds(queue, 3)
	m.take(triage.TakeRequest{Queue: queue})
	testkit.Exec(t, m.store, `update execution set status = 'failed' where id = (select max(id) from execution)`)
	r, err := returnDeadLetters(m.operator, t.Context(), m.ids(), "")
	require.NoError(t, err)
	require.Equal(t, 1, r.Done)
	require.ErrorContains(t, r.Notes[0].Err, "dispatch that is over")
	m.holds(queue, 1)
}

// A purge by the broker is refused for few messages, and its receipt counts the removed ones.
func TestTheBrokerPurgesOnlyMany(t *testing.T) {
	m := newBrokered(t)
	m.fill(message.QueueDeadLetter, 3)
	_, err := m.operator.PurgeBroker(t.Context(), "", "")
	require.ErrorContains(t, err, "take them")
	m.holds(message.QueueDeadLetter, 3)
	many := &manyReady{Broker: m.link}
	r, err := m.operator.With(many).PurgeBroker(t.Context(), "", "a flood")
	require.NoError(t, err)
	require.Equal(t, 3, r.Removed)
	m.holds(message.QueueDeadLetter, 0)
	var request struct {
		Before  int `json:"before"`
		Removed int `json:"removed"`
	}
	var raw string
	require.NoError(t, m.store.Pool().QueryRow(t.Context(),
		`select request from operator_audit where id = $1 and action = 'dead_letter.purge-broker' and outcome = 'done' and reason = 'a flood'`, r.Audit).Scan(&raw))
	require.NoError(t, json.Unmarshal([]byte(raw), &request))
	require.Equal(t, 3, request.Removed)
	require.Equal(t, triage.PurgeOffered+1, request.Before)
}

// manyReady is a broker that reports many ready messages.
type manyReady struct{ *broker.Broker }

func (m *manyReady) QueueState(context.Context, string) (broker.QueueState, error) {
	return broker.QueueState{Exists: true, Ready: triage.PurgeOffered + 1}, nil
}

func (m *brokered) ids() (ids []int64) {
	m.t.Helper()
	require.NoError(m.t,
		m.store.Pool().QueryRow(m.t.Context(), `select array_agg(id order by id) from dead_letter`).Scan(&ids))
	return ids
}
