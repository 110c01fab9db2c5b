package broker_test

import (
	"errors"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// everyType are headers of every type of AMQP.
func everyType() amqp.Table {
	all := amqp.Table{
		"bool": true, "int8": int8(-8), "uint8": uint8(200), "int16": int16(-16), "uint16": uint16(60_000),
		"int32": int32(-32), "uint32": uint32(4e9), "int64": int64(math.MinInt64), "float32": float32(0.1),
		"float64": math.Copysign(0, -1), "decimal": amqp.Decimal{Scale: 3, Value: -7},
		"time": time.Unix(1_700_000_000, 0), "text": "é\x00\xff", "bytes": []byte{0, 255}, "void": nil, "": "",
	}
	list := []any{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	all["list"], all["table"] = list, maps.Clone(all)
	return all
}

// whole is a message with every property.
func whole(login string) amqp.Publishing {
	return amqp.Publishing{
		MessageId: "m", CorrelationId: "c", Type: "T", ContentType: "text/plain", ContentEncoding: "gzip",
		ReplyTo: "answers", AppId: "shop", UserId: login, DeliveryMode: amqp.Transient, Priority: 7,
		Timestamp: time.Unix(1_700_000_001, 0), Headers: everyType(), Body: []byte{0x1f, 0x8b, 0, 0xff},
	}
}

// properties are what the broker delivered of a message.
func properties(d amqp.Delivery) amqp.Publishing {
	return amqp.Publishing{
		MessageId: d.MessageId, CorrelationId: d.CorrelationId, Type: d.Type, ContentType: d.ContentType,
		ContentEncoding: d.ContentEncoding, ReplyTo: d.ReplyTo, AppId: d.AppId, UserId: d.UserId,
		DeliveryMode: d.DeliveryMode, Priority: d.Priority, Timestamp: d.Timestamp, Headers: d.Headers, Body: d.Body,
		Expiration: d.Expiration,
	}
}

func loginOf(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	return parsed.User.Username()
}

// Properties that were encoded and sent again are the same: each of them, each header with its type, and each that
// was not set.
func TestPropertiesAreSentAgainAsTheyWere(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	for _, sent := range []amqp.Publishing{whole(loginOf(t, b.url)), {Body: []byte{}}} {
		require.NoError(t, b.plain.Publish("", "q", false, false, sent))
		consumer := b.consume(broker.ConsumerConfig{Queue: "q"})
		batch := b.next(consumer)
		of := batch.Deliveries[0].Properties
		require.NoError(t, batch.Ack())
		consumer.Stop()
		again, err := broker.DecodeProperties(of.Encode())
		require.NoError(t, err)
		b.publishAll(broker.Message{ID: "ours", RoutingKey: "q", Properties: again, Body: sent.Body, Alone: true})
		got, ok, err := b.plain.Get("q", true)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, sent, properties(got))
	}
	of := broker.Properties{Headers: everyType(), Timestamp: time.Now()}
	raw := of.Encode()
	for end := range len(raw) {
		_, _ = broker.DecodeProperties(raw[:end]) // no panic
	}
	_, err := broker.DecodeProperties(raw[:len(raw)-1])
	require.Error(t, err)
}

// The user id of another login is left out, because the broker would refuse the message.
func TestTheUserIDOfAnotherLoginIsNotSent(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	b.publishAll(broker.Message{ID: "m", RoutingKey: "q", Properties: &broker.Properties{UserID: "bob", AppID: "shop"}})
	got, ok, err := b.plain.Get("q", true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, amqp.Publishing{AppId: "shop", Body: []byte{}}, properties(got))
}

// A message that is given up keeps its properties. What its copy must not carry is in a header of it.
func TestACopyOfAGivenUpMessageHasItsProperties(t *testing.T) {
	b := newRig(t)
	require.NoError(t, b.DeclareExecutor(b.ctx))
	login := loginOf(t, b.url)
	sent := whole(login)
	sent.Expiration = "600000"
	for _, m := range []amqp.Publishing{sent, {DeliveryMode: amqp.Persistent, Body: []byte{}}} {
		require.NoError(t, b.plain.Publish(message.ExchangeExecutions, message.KeyExecutionRequested, false, false, m))
	}
	consumer := b.consume(broker.ConsumerConfig{Queue: message.QueueExecutionRequests, MaxBatch: 1})
	for range 2 {
		batch := b.next(consumer)
		batch.Deliveries[0].GiveUp(b.ctx, errors.New("not readable"), 3)
		require.NoError(t, batch.Ack())
		b.becomesReady(message.QueueDeadLetter, 1)
		d, ok, err := b.plain.Get(message.QueueDeadLetter, true)
		require.NoError(t, err)
		require.True(t, ok)
		got, dropped := properties(d), d.Headers[broker.HeaderDropped]
		for name := range got.Headers {
			if _, ours := everyType()[name]; !ours {
				delete(got.Headers, name)
			}
		}
		if got.AppId == "" {
			require.Equal(t, amqp.Table{"message_id": ""}, dropped)
			require.NotEmpty(t, got.MessageId)
			require.Equal(t, amqp.Publishing{
				MessageId: got.MessageId, DeliveryMode: amqp.Persistent, Headers: amqp.Table{}, Body: []byte{},
			}, got)
			continue
		}
		require.Equal(t, amqp.Table{"user_id": login, "expiration": "600000", "delivery_mode": amqp.Transient}, dropped)
		want := whole("")
		want.DeliveryMode = amqp.Persistent
		require.Equal(t, want, got)
	}
}

// The broker closes the channel over a message to a missing, internal or forbidden exchange, and over a property that
// it refuses. Of a message that is sent alone that is its outcome, and no other message is harmed.
func TestARefusedMessageThatIsSentAloneHarmsNoOther(t *testing.T) {
	b := newRig(t)
	b.queue("open", nil)
	b.queue("full", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
	b.publishAll(broker.Message{ID: "fills", RoutingKey: "full"})
	require.NoError(t, b.plain.ExchangeDeclare("internal", "fanout", true, false, true, false, nil))
	require.NoError(t, b.plain.ExchangeDeclare("forbidden", "fanout", true, false, false, false, nil))
	require.NoError(t, b.plain.ExchangeDeclare("headers", "headers", true, false, false, false, nil))
	testkit.Manage(t, http.MethodPut,
		"/api/permissions/"+url.PathEscape(testkit.VHostName(t, b.url))+"/"+loginOf(t, b.url),
		map[string]string{"configure": ".*", "write": "^(?!forbidden).*$", "read": ".*"}, nil)
	alone := func(exchange, key string, p broker.Properties) broker.Message {
		return broker.Message{ID: "alone", Exchange: exchange, RoutingKey: key, Properties: &p, Alone: true}
	}
	other := broker.Message{ID: "other", RoutingKey: "open"}
	for name, c := range map[string]struct {
		m    broker.Message
		want broker.Status
	}{
		"missing exchange":  {alone("missing", "k", broker.Properties{}), broker.Returned},
		"internal exchange": {alone("internal", "k", broker.Properties{}), broker.Nacked},
		"forbidden":         {alone("forbidden", "k", broker.Properties{}), broker.Nacked},
		"missing queue":     {alone("", "missing", broker.Properties{}), broker.Returned},
		"no binding":        {alone("headers", "k", broker.Properties{}), broker.Returned},
		"full queue":        {alone("", "full", broker.Properties{}), broker.Nacked},
		"reply-to of RPC":   {alone("", "open", broker.Properties{ReplyTo: "amq.rabbitmq.reply-to"}), broker.Nacked},
		"a malformed CC":    {alone("", "open", broker.Properties{Headers: broker.Table{"CC": 7}}), broker.Nacked},
		"accepted":          {alone("", "open", broker.Properties{}), broker.Confirmed},
	} {
		for range 2 {
			got := b.publish(other, c.m, other, c.m, other)
			require.Equal(t,
				[]broker.Status{broker.Confirmed, c.want, broker.Confirmed, c.want, broker.Confirmed}, got, name)
		}
	}
	require.Equal(t, broker.StateConnected, b.State())
}

// Messages to an exchange that the login may not write to are refused one by one, and not sent again and again with
// others.
func TestAForbiddenExchangeRefusesItsMessages(t *testing.T) {
	b := newRig(t)
	b.queue("open", nil)
	require.NoError(t, b.plain.ExchangeDeclare("internal", "fanout", true, false, true, false, nil))
	got := b.publish(broker.Message{ID: "1", RoutingKey: "open"},
		broker.Message{ID: "2", Exchange: "internal", RoutingKey: "k"})
	require.Contains(t, []broker.Status{broker.Confirmed, broker.Unknown}, got[0])
	require.Equal(t, broker.Nacked, got[1])
}
