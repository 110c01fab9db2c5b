package main

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
)

// unhandled is an installation without an engine, so dead letters stay in their queue.
type unhandled struct {
	t                 *testing.T
	database, address string
	store             *store.Store
	channel           *amqp.Channel
	action            testkit.ActionRow
}

func withoutHandler(t *testing.T) *unhandled {
	t.Helper()
	u := &unhandled{t: t, database: testkit.Database(t), address: testkit.VHost(t)}
	u.store = testkit.OpenStore(t, u.database)
	u.action = testkit.Action(t, u.store, "demo.sleep")
	conn, err := amqp.Dial(u.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // may be closed already
	u.channel, err = conn.Channel()
	require.NoError(t, err)
	for _, queue := range []string{message.QueueDeadLetter, "parked"} {
		_, err = u.channel.QueueDeclare(queue, true, false, false, false, nil)
		require.NoError(t, err)
	}
	return u
}

// addDeadLetters puts n dead-lettered dispatches of failed executions into the queue.
func (u *unhandled) addDeadLetters(n int) {
	u.t.Helper()
	for i := range n {
		e := testkit.Execution(u.t, u.store, u.action)
		testkit.Exec(u.t, u.store,
			`update execution set status = 'failed', result = '{"error": "Worker queue TTL expired"}' where id = $1`, e.ID)
		u.publish(fmt.Sprintf("m%d", i), e.ID)
	}
	u.holds(n)
}

func (u *unhandled) publish(id string, execution int64) {
	u.t.Helper()
	body, err := message.New(message.TypeExecutionRequested,
		message.Dispatch{ExecutionID: execution, WorkerID: 7, ActionRef: "demo.sleep", Attempt: 1},
		time.Now(), "test").Encode()
	require.NoError(u.t, err)
	require.NoError(u.t,
		u.channel.PublishWithContext(u.t.Context(), "", message.QueueDeadLetter, true, false, amqp.Publishing{
			MessageId: id, Type: message.TypeExecutionRequested, Body: body, DeliveryMode: amqp.Persistent,
			Headers: amqp.Table{"x-death": []any{amqp.Table{
				"count": int64(1), "reason": "expired", "queue": message.WorkerExecutionsQueue(7),
				"exchange": message.ExchangeExecutions,
				"time":     time.Now(), "routing-keys": []any{message.DispatchKey(7)},
			}}},
		}))
}

// depth is how many messages are ready in a queue.
func (u *unhandled) depth(queue string) int {
	u.t.Helper()
	q, err := u.channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	require.NoError(u.t, err)
	return q.Messages
}

// holds waits until the dead-letter queue has as many messages.
func (u *unhandled) holds(n int) {
	u.t.Helper()
	testkit.Eventually(u.t, func() bool { return u.depth(message.QueueDeadLetter) == n }, wait,
		"the dead-letter queue holds %d messages", n)
}

func (u *unhandled) count(query string) int {
	u.t.Helper()
	return testkit.Count(u.t, u.store, query)
}

// open shows the dead letters.
func (u *unhandled) open() *terminal { return u.openOver(u.address) }

// openOver is open with an address that leads to the broker.
func (u *unhandled) openOver(address string) *terminal {
	u.t.Helper()
	x := openTerminalIn(u.t, []string{
		"HOME=/nonexistent", "ATTUNE__DATABASE__URL=" + u.database, "ATTUNE__MESSAGE_QUEUE__URL=" + address,
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + testkit.ManagementURL(u.t),
	}, "--view", "dlq")
	x.shows(" RW ")
	return x
}

// plansTake opens the plan of a take of n messages.
func (x *terminal) plansTake(n int) {
	x.t.Helper()
	x.asks(keymap.Take, "take "+message.QueueDeadLetter)
	x.press("Enter", "Enter")
	x.shows(fmt.Sprintf("─ Take %d dead letter", n))
}

const waiting = `select count(*) from dead_letter where decision is null`

// TestDeadLettersAreTakenAndActedUponByKeys checks the queues and the ledger after every act: messages are taken, put
// back, taken again, sent elsewhere and discarded.
func TestDeadLettersAreTakenAndActedUponByKeys(t *testing.T) {
	u := withoutHandler(t)
	u.addDeadLetters(6)
	x := u.open()
	x.shows("S takes them")
	x.plansTake(6)
	x.runs("Take 6 dead letters")
	u.holds(0)
	require.Equal(t, 6, u.count(waiting))
	x.shows("waiting for a person 6")
	x.press("z") // only waiting dead letters, so the cursor is always on one

	x.plans(act.ReturnDeadLetters, "Put back 1 dead letter")
	x.runs("Put back 1 dead letter")
	x.shows("waiting for a person 5")
	x.asks(keymap.MoveTo, "send dead letter")
	x.shows("key or queue")
	x.press("Enter")
	x.call("send-keys", "-l", "parked")
	x.press("Enter")
	x.shows("─ Send 1 dead letter")
	x.shows("reaches  parked")
	x.runs("Send 1 dead letter")
	x.shows("waiting for a person 4")
	x.marksTwo()
	x.plansMarked(act.ReturnDeadLetters, "Put back 2 dead letters")
	x.runs("Put back 2 dead letters")
	x.shows("waiting for a person 2")
	x.marksTwo()
	x.plansMarked(act.SendDeadLetters, "")
	x.shows("key or queue")
	x.press("Enter")
	x.call("send-keys", "-l", "parked")
	x.press("Enter")
	x.shows("─ Send 2 dead letters")
	x.runs("Send 2 dead letters")
	require.Equal(t, 3, u.count(`select count(*) from dead_letter where decision = 'put_back'`))
	require.Equal(t, 3, u.count(`select count(*) from dead_letter where decision = 'sent'`))
	require.Equal(t, 6,
		u.count(`select count(*) from outbox cross join unnest(routing_keys) key where key in ('parked', 'attune.dlx.queue')`),
		"the messages are left to a running engine")
	require.Equal(t, 7, u.count(`select count(*) from operator_audit where action in ('dead_letter.take', 'dead_letter.send', 'dead_letter.return') and outcome = 'done'`))
	require.Zero(t, u.count(waiting))
}

// TestTheBrokerPurgesByKey purges a large queue after the typed words, and finds the counts in the audit.
func TestTheBrokerPurgesByKey(t *testing.T) {
	u := withoutHandler(t)
	const many = triage.PurgeOffered + 1
	for range many {
		require.NoError(t,
			u.channel.PublishWithContext(t.Context(), "", message.QueueDeadLetter, false, false, amqp.Publishing{}))
	}
	u.holds(many)
	x := u.open()
	x.plans(act.PurgeBroker, "Purge attune.dlx.queue by the broker")
	x.shows("Nothing brings them back.")
	x.types("purge for good", "Purge attune.dlx.queue by the broker")
	u.holds(0)
	require.Equal(t, 1, u.count(fmt.Sprintf(`select count(*) from operator_audit where action = 'dead_letter.purge-broker' and outcome = 'done'
		and request ->> 'before' = '%d' and request ->> 'removed' = '%d' and request ->> 'after' = '0'`, many, many)))
	require.Zero(t, u.count(`select count(*) from dead_letter`))
}
