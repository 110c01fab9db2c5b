package deadletter_test

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// strange are headers of every type of AMQP, some of which JSON cannot hold.
func strange() amqp.Table {
	all := amqp.Table{
		"bool": true, "int8": int8(-8), "uint8": uint8(200), "int16": int16(-16), "uint16": uint16(60_000),
		"int32": int32(-32), "uint32": uint32(4e9), "int64": int64(math.MinInt64), "float32": float32(0.1),
		"float64": 0.1, "decimal": amqp.Decimal{Scale: 3, Value: -7}, "time": time.Unix(1_700_000_000, 0),
		"text": "é\x00\xff", "long": string(make([]byte, 10_000)), "bytes": []byte{0, 255}, "void": nil,
	}
	all["table"] = amqp.Table{"list": []any{int8(1), amqp.Table{"void": nil}, "x"}}
	return all
}

const requeuedFrom = "x-attune-requeued-from"

func strangeMessage(body []byte) amqp.Publishing {
	return amqp.Publishing{
		MessageId: "m\xff", CorrelationId: "c", Type: "strange\xff", ContentType: "text/plain", ContentEncoding: "gzip",
		ReplyTo: "answers", AppId: "shop", DeliveryMode: amqp.Transient, Priority: 7,
		Timestamp: time.Unix(1_700_000_001, 0), Headers: strange(), Body: body,
	}
}

func asSent(d amqp.Delivery) amqp.Publishing {
	return amqp.Publishing{
		MessageId: d.MessageId, CorrelationId: d.CorrelationId, Type: d.Type, ContentType: d.ContentType,
		ContentEncoding: d.ContentEncoding, ReplyTo: d.ReplyTo, AppId: d.AppId, UserId: d.UserId,
		DeliveryMode: d.DeliveryMode, Priority: d.Priority, Timestamp: d.Timestamp, Headers: d.Headers, Body: d.Body,
		Expiration: d.Expiration,
	}
}

func (d *service) channel(t *testing.T) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(d.amqp)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	require.NoError(t, err)
	return channel
}

func next(t *testing.T, channel *amqp.Channel, queue string) (got amqp.Delivery) {
	t.Helper()
	testkit.Eventually(t, func() (ok bool) {
		var err error
		got, ok, err = channel.Get(queue, true)
		return err == nil && ok
	}, 30*time.Second)
	return got
}

// A message that was taken, requeued, sent elsewhere or put back is the same, property by property, header by header
// and byte by byte.
func TestAMessageComesBackAsItWas(t *testing.T) {
	d := newService(t)
	channel := d.channel(t)
	relay := outbox.New(outbox.Config{}, d.store, d.wire.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	for _, queue := range []string{"taken", "elsewhere"} {
		_, err := channel.QueueDeclare(queue, true, false, false, false, nil)
		require.NoError(t, err)
	}
	require.NoError(t, channel.ExchangeDeclare("shop", "direct", true, false, false, false, nil))
	require.NoError(t, channel.QueueBind("taken", "key", "shop", false, nil))
	type resending = func(ctx context.Context, tx *store.Tx, id int64) (deadletter.Resent, error)
	publish := func(what resending) {
		id := int64(testkit.Count(t, d.store, `SELECT max(id) FROM dead_letter`))
		require.NoError(t, d.store.Tx(testkit.Context(t), "resend", func(ctx context.Context, tx *store.Tx) error {
			resent, err := what(ctx, tx, id)
			tx.AfterCommit(func() { relay.Published(resent.OutboxRow, resent.Messages) })
			return err
		}))
	}
	for i, body := range [][]byte{{}, []byte("{}"), {0x1f, 0x8b, 0, 0xff}} {
		for _, back := range []struct {
			queue, header string
			what          resending
		}{
			{
				"taken", "x-attune-put-back",
				func(ctx context.Context, tx *store.Tx, id int64) (deadletter.Resent, error) {
					return deadletter.Return(ctx, tx, id, "ann", "")
				},
			},
			{"taken", requeuedFrom, func(ctx context.Context, tx *store.Tx, id int64) (deadletter.Resent, error) {
				return deadletter.Requeue(ctx, tx, id, "ann", "")
			}},
			{"elsewhere", requeuedFrom, func(ctx context.Context, tx *store.Tx, id int64) (deadletter.Resent, error) {
				return deadletter.Send(ctx, tx, id, "", "elsewhere", "ann", "")
			}},
		} {
			sent := strangeMessage(body)
			sent.MessageId += fmt.Sprint(i, back.header, back.queue)
			require.NoError(t, channel.Publish("shop", "key", false, false, sent))
			d.take(t, "taken")
			publish(back.what)
			got := asSent(next(t, channel, back.queue))
			require.Contains(t, got.Headers, back.header)
			for name := range got.Headers {
				if _, theirs := strange()[name]; !theirs {
					delete(got.Headers, name)
				}
			}
			require.Equal(t, sent, got, back.header)
		}
	}
}

// A message that was requeued and taken again, or that dies again in the same second, is another dead letter.
func TestARequeuedMessageIsTakenAgain(t *testing.T) {
	d := newService(t)
	channel := d.channel(t)
	_, err := channel.QueueDeclare("q", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, channel.QueueBind("q", "key", "amq.direct", false, nil))
	relay := outbox.New(outbox.Config{}, d.store, d.wire.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	require.NoError(t, channel.Publish("amq.direct", "key", false, false, amqp.Publishing{MessageId: "m"}))
	for n := range 3 {
		d.take(t, "q")
		rows := d.rows(t)
		require.Len(t, rows, n+1)
		resent, err := d.requeue(t, rows[n].ID)
		require.NoError(t, err)
		relay.Published(resent.OutboxRow, resent.Messages)
	}
}

func (d *service) login(t *testing.T) string {
	t.Helper()
	address, err := url.Parse(d.amqp)
	require.NoError(t, err)
	return address.User.Username()
}

// take takes one message of a queue into the ledger.
func (d *service) take(t *testing.T, queue string) {
	t.Helper()
	drain, err := d.wire.Drain(testkit.Context(t), queue, 1, 1)
	require.NoError(t, err)
	page, err := drain.Next(testkit.Context(t), 30*time.Second)
	require.NoError(t, err)
	require.Len(t, page, 1)
	_, err = deadletter.Take(testkit.Context(t), d.store, page, deadletter.TakeInfo{Queue: queue, By: "ann"},
		func(context.Context, *store.Tx, deadletter.Taken) error { return nil })
	require.NoError(t, err)
	require.NoError(t, drain.Ack(testkit.Context(t)))
	require.NoError(t, drain.Close(testkit.Context(t)))
}

// A message that the engine gave up on, and one that the broker dead-lettered, come back as they were sent; the ledger
// says what they lose.
func TestADeadMessageComesBackAsItWasSent(t *testing.T) {
	d := newService(t)
	channel := d.channel(t)
	d.open(t)
	login := d.login(t)
	sent := strangeMessage([]byte("not json"))
	sent.UserId, sent.Expiration, sent.Type = login, "600000", "strange"
	sent.Headers["CC"] = []any{"nowhere"}
	consumer := d.connect(t).Consume(broker.ConsumerConfig{Queue: message.QueueExecutionRequests})
	require.NoError(t, consumer.Start(testkit.Context(t)))
	require.NoError(t, channel.Publish(message.ExchangeExecutions, message.KeyExecutionRequested, false, false, sent))
	batch := <-consumer.Batches()
	batch.Deliveries[0].GiveUp(testkit.Context(t), context.Canceled, 3)
	require.NoError(t, batch.Ack())
	given := d.settled(t, 1)[0]
	consumer.Stop()
	require.Equal(t, []any{
		"CC: the message would also go to other queues again", "expiration: it would expire again",
		"user_id: the broker accepts it only from the same login",
	}, at(t, given.Evidence, "message", "not_kept"))
	require.Equal(t, []any{"600000", login, "answers", 7.0, 1.0}, []any{
		at(t, given.Evidence, "message", "expiration"), at(t, given.Evidence, "message", "user_id"),
		at(t, given.Evidence, "message", "reply_to"), at(t, given.Evidence, "message", "priority"),
		at(t, given.Evidence, "message", "delivery_mode"),
	})

	resent, err := d.requeue(t, given.ID)
	require.NoError(t, err)
	relay := outbox.New(outbox.Config{}, d.store, d.wire.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	relay.Published(resent.OutboxRow, resent.Messages)
	got := asSent(next(t, channel, message.QueueExecutionRequests))
	require.Contains(t, got.Headers, requeuedFrom)
	delete(got.Headers, requeuedFrom)
	delete(got.Headers, "x-attune-deaths")
	want := strangeMessage([]byte("not json"))
	want.UserId, want.Type = login, "strange"
	require.Equal(t, want, got)
}

// A message that the broker refuses often enough is a dead letter again, with its evidence. Any other decision stays.
func TestARefusedMessageIsADeadLetterAgain(t *testing.T) {
	d := newService(t)
	h := d.open(t)
	m := deadLetter(t, "some.key", message.TypeEventCreated, message.EventCreated{EventID: 1})
	m.Headers = death("gone", "rejected", "no such exchange", "some.key", time.Now().Truncate(time.Second))
	require.NoError(t, d.wire.BindQueues(testkit.Context(t), []broker.Binding{{
		Source: message.ExchangeDeadLetter, Queue: message.QueueDeadLetter, RoutingKey: "some.key",
	}}))
	d.send(t, m)
	before := d.settled(t, 1)[0]
	h.Stop()
	resent, err := d.requeue(t, before.ID)
	require.NoError(t, err)
	require.NoError(t, d.store.Tx(testkit.Context(t), "refuse", func(ctx context.Context, tx *store.Tx) error {
		taken, err := deadletter.Refused(ctx, tx, resent.Messages[0], deadletter.MaxRefusals-1, "early")
		require.False(t, taken, "it is tried again")
		return err
	}))
	relay := outbox.New(outbox.Config{
		SweepAge: 100 * time.Millisecond, SweepInterval: 50 * time.Millisecond, Refused: deadletter.Refused,
	}, d.store, d.wire.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	relay.Published(resent.OutboxRow, resent.Messages)
	testkit.Eventually(t, func() bool { return d.rows(t)[0].Decision == "" }, 30*time.Second)
	after := d.rows(t)[0]
	require.Zero(t, testkit.Count(t, d.store, `SELECT count(*) FROM outbox`))
	require.Contains(t, after.Detail, "no exchange 'no such exchange'")
	require.Equal(t, []any{"requeued", "reopened", "outbox", "requeued", "ann"}, []any{
		at(t, after.Evidence, "decisions", 0, "decision"), at(t, after.Evidence, "decisions", 1, "decision"),
		at(t, after.Evidence, "decisions", 1, "by"), at(t, after.Evidence, "decisions", 1, "before"),
		at(t, after.Evidence, "decisions", 1, "before_by"),
	})
	require.Equal(t, before.XDeath, after.XDeath)
	require.Equal(t, at(t, before.Evidence, "message"), at(t, after.Evidence, "message"))

	require.NoError(t, d.discard(t, after.ID))
	require.NoError(t, d.store.Tx(testkit.Context(t), "refuse", func(ctx context.Context, tx *store.Tx) error {
		taken, err := deadletter.Refused(ctx, tx, resent.Messages[0], deadletter.MaxRefusals, "late")
		require.False(t, taken, "it stays in the outbox")
		return err
	}))
	require.Equal(t, deadletter.Discarded, d.rows(t)[0].Decision)
}

// A message that was put back and taken again is another dead letter. A dispatch is put back only while its worker may
// start it.
func TestWhatIsPutBackIsTakenAgain(t *testing.T) {
	d := newService(t)
	w := testkit.Worker(t, d.store, "w")
	e := d.scheduled(t, testkit.Action(t, d.store, "pk.do"), w.ID)
	queue := message.WorkerExecutionsQueue(w.ID)
	channel := d.channel(t)
	_, err := channel.QueueDeclare(queue, true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, channel.QueueBind(queue, message.DispatchKey(w.ID), message.ExchangeExecutions, false, nil))
	relay := outbox.New(outbox.Config{}, d.store, d.wire.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	m := deadLetter(t, message.DispatchKey(w.ID), message.TypeExecutionRequested,
		message.Dispatch{ExecutionID: e.ID, WorkerID: w.ID, Attempt: 1})
	m.Exchange = message.ExchangeExecutions
	d.send(t, m)
	putBack := func(id int64) error {
		return d.store.Tx(testkit.Context(t), "put back", func(ctx context.Context, tx *store.Tx) error {
			resent, err := deadletter.Return(ctx, tx, id, "ann", "")
			tx.AfterCommit(func() { relay.Published(resent.OutboxRow, resent.Messages) })
			return err
		})
	}
	for n := range 3 {
		d.take(t, queue)
		rows := d.rows(t)
		require.Len(t, rows, n+1)
		if n < 2 {
			require.NoError(t, putBack(rows[n].ID))
			continue
		}
		testkit.Exec(t, d.store, `UPDATE execution SET attempt = 2 WHERE id = $1`, e.ID)
		require.ErrorIs(t, putBack(rows[n].ID), deadletter.ErrNoMessage)
		require.Empty(t, d.rows(t)[n].Decision)
	}
}
