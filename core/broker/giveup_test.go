package broker_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// sent publishes with headers and waits until the broker has it.
func sent(t *testing.T, channel *amqp.Channel, exchange, key string, m amqp.Publishing) {
	t.Helper()
	m.DeliveryMode = amqp.Persistent
	confirm, err := channel.PublishWithDeferredConfirm(exchange, key, false, false, m)
	require.NoError(t, err)
	require.True(t, confirm.Wait())
}

func nested(depth int) amqp.Table {
	table := amqp.Table{"end": "here"}
	for range depth {
		table = amqp.Table{"t": table}
	}
	return table
}

// Headers that the AMQP library cannot read reach the consumer in another form: one
// message must not end the connection of all consumers again and again.
func TestHeadersThatTheLibraryCannotReadCostNoConnection(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	forger := testkit.Forger(t, b.url)
	wide := amqp.Table{}
	for i := range 9000 {
		wide[fmt.Sprint(i)] = nil
	}
	list := make([]any, 9000)
	for name, headers := range map[string]amqp.Table{
		"long": {testkit.ForgedLong: int64(-7), "in": []any{amqp.Table{testkit.ForgedLong: int64(8)}}},
		"deep": nested(40), "wide": wide, "list": {"list": list},
		"big": {"big": strings.Repeat("x", 131_000-8), "x": "y"}, "plain": {"a": "b"},
	} {
		sent(t, forger, "", "q", amqp.Publishing{MessageId: name, Type: "T", Headers: headers, Body: []byte(name)})
	}
	consumer := b.consume(broker.ConsumerConfig{Queue: "q"})
	got := map[string]broker.Table{}
	for len(got) < 6 {
		batch := b.next(consumer)
		for _, d := range batch.Deliveries {
			require.False(t, d.Redelivered, "%s: no connection was lost", d.MessageID)
			require.Equal(t, []string{d.MessageID, "T"}, []string{string(d.Body), d.Type})
			got[d.MessageID] = d.Headers
		}
		require.NoError(t, batch.Ack())
	}
	require.Equal(t, broker.Table{testkit.ForgedLong: int64(-7), "in": []any{amqp.Table{testkit.ForgedLong: int64(8)}}},
		got["long"])
	require.Equal(t, broker.Table{"a": "b"}, got["plain"])
	for _, name := range []string{"deep", "wide", "list"} {
		require.NotEmpty(t, got[name][broker.HeaderUnreadable], name)
		require.Len(t, got[name], 1)
	}
	require.Equal(t, broker.StateConnected, b.State())
}

// A delivery that is given up becomes a dead letter with its harmless headers, and the queue lives on, also where
// the broker itself could not dead-letter the message.
func TestGivenUpDeliveriesBecomeDeadLettersWithAnyHeaders(t *testing.T) {
	b := newRig(t)
	require.NoError(t, b.DeclareExecutor(b.ctx))
	queue, key := message.QueueExecutionRequests, message.KeyExecutionRequested
	broken := []amqp.Table{
		{"x-death": []any{int32(7)}},
		{"x-death": []any{amqp.Table{"queue": queue, "reason": "rejected", "count": "many"}}},
		{"x-death": []any{amqp.Table{"queue": queue, "reason": "expired", "count": int64(3)}, int8(1)}},
		{"x-death": "forged", "x-first-death-queue": int16(3), "x-delivery-count": []byte{1}},
		{"x-death": []any{amqp.Table{"queue": queue, "reason": "expired", "count": int64(3)}}, "kept": "yes"},
		{"CC": []any{message.KeyExecutionCompleted}},
		{
			"decimal": amqp.Decimal{Scale: 3, Value: 7}, "time": time.Unix(1, 0), "void": nil, "u": uint16(7),
			"i": uint32(8),
		},
		{"big": strings.Repeat("x", 130_000)},
		nested(30),
		nil,
	}
	for i, headers := range broken {
		id := ""
		if i%2 == 0 {
			id = fmt.Sprintf("m%02d", i)
		}
		require.NoError(t, b.plain.Publish(message.ExchangeExecutions, key, false, false, amqp.Publishing{
			MessageId: id, Type: "T", Headers: headers, Body: []byte(fmt.Sprint(i)), DeliveryMode: amqp.Persistent,
		}))
	}
	consumer := b.consume(broker.ConsumerConfig{Queue: queue, Prefetch: 50})
	for taken := 0; taken < len(broken); {
		batch := b.next(consumer)
		for i := range batch.Deliveries {
			taken++
			batch.Deliveries[i].GiveUp(b.ctx, errors.New("not readable"), 3)
		}
		require.NoError(t, batch.Ack())
	}
	b.becomesReady(message.QueueDeadLetter, len(broken))
	deadLetters := b.consume(broker.ConsumerConfig{Queue: message.QueueDeadLetter, Prefetch: 50})
	got, ids := map[string]broker.Delivery{}, map[string]bool{}
	for len(got) < len(broken) {
		batch := b.next(deadLetters)
		for _, d := range batch.Deliveries {
			got[string(d.Body)] = d
			ids[d.MessageID] = true
			require.Equal(t, []any{"not readable", "3", queue, key}, []any{
				d.Headers[broker.HeaderReason], d.Headers[broker.HeaderAttempts], d.Headers[broker.HeaderQueue],
				d.RoutingKey,
			})
		}
		require.NoError(t, batch.Ack())
	}
	require.Len(t, ids, len(broken), "each has an id of its own")
	require.NotContains(t, ids, "")
	require.True(t, ids["m00"])
	for _, i := range []string{"0", "1", "2", "3"} {
		require.NotContains(t, got[i].Headers, "x-death", i)
		require.Contains(t, got[i].Headers[broker.HeaderDropped], "x-death", i)
	}
	require.Equal(t, amqp.Table{"x-death": []any{int32(7)}}, got["0"].Headers[broker.HeaderDropped])
	require.Len(t, broker.Deaths(got["4"].Headers), 1, "headers that the broker may have written stay")
	require.Equal(t, "yes", got["4"].Headers["kept"])
	require.Contains(t, got["7"].Headers["big"], "cut")
	require.Equal(t, uint32(8), got["6"].Headers["i"])
	require.Equal(t, broker.StateConnected, b.State())
	b.becomesReady(queue, 0)
}

// Without a route for dead letters the copy goes straight to their queue, and without
// that queue the delivery is kept until it is there.
func TestGivenUpDeliveriesWaitForTheirQueue(t *testing.T) {
	b := newRig(t, func(c *broker.Config) { c.NoDeadLetters = true })
	require.NoError(t, b.DeclareExecutor(b.ctx))
	_, err := b.plain.QueueDelete(message.QueueDeadLetter, false, false, false)
	require.NoError(t, err)
	b.queue("q", nil)
	b.publishAll(to("q", "one")...)
	consumer := b.consume(broker.ConsumerConfig{Queue: "q"})
	batch := b.next(consumer)
	batch.Deliveries[0].GiveUp(b.ctx, errors.New("no"), 1)
	require.NoError(t, batch.Ack())
	require.NoError(t, b.DeclareCommon(b.ctx))
	b.becomesReady(message.QueueDeadLetter, 1)
	testkit.Eventually(t, func() bool {
		consumer.Stop()
		return plainReady(t, b, "q") == 0
	}, waitTimeout)
}

// A broker behind TLS is reached, and its headers are read in the same way.
func TestABrokerBehindTLS(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	plain, err := url.Parse(b.url)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "authority.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	certificate := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	secure := *plain
	secure.Scheme, secure.Host = "amqps", overTLS(t, certificate, plain.Host)
	stranger := broker.New(broker.Config{URL: secure.String()}, testkit.Logger(t), nil)
	require.NoError(t, stranger.Start(b.ctx))
	require.NotEqual(t, broker.StateConnected, stranger.State(), "the certificate is not trusted")
	stranger.Stop()
	secure.RawQuery = url.Values{"cacertfile": {file}}.Encode()
	over := broker.New(broker.Config{URL: secure.String()}, testkit.Logger(t), nil)
	require.NoError(t, over.Start(b.ctx))
	t.Cleanup(over.Stop)
	testkit.Eventually(t, func() bool { return over.State() == broker.StateConnected }, waitTimeout)
	require.NoError(t, over.Publisher().Publish(b.ctx, to("q", "over TLS"))[0].Err)
	require.Equal(t, 1, b.ready("q"))

	// The management API has the same authorities.
	management, err := url.Parse(testkit.ManagementURL(t))
	require.NoError(t, err)
	management.Scheme, management.Host = "https", overTLS(t, certificate, management.Host)
	api, vhost, err := broker.OpenManagement(
		broker.Config{URL: secure.String(), ManagementURL: management.String()}, time.Minute)
	require.NoError(t, err)
	t.Cleanup(api.Close)
	require.Equal(t, testkit.VHostName(t, b.url), vhost)
	_, err = api.Queue(b.ctx, "q")
	require.NoError(t, err)

	// A file in another form has none.
	require.NoError(t, os.WriteFile(file, der, 0o600))
	_, _, err = broker.OpenManagement(
		broker.Config{URL: secure.String(), ManagementURL: management.String()}, time.Minute)
	require.ErrorContains(t, err, "no certificate in "+file)
	require.Contains(t, failure(t, broker.Config{URL: secure.String()}), "no certificate in "+file)
}

// failure is why a broker does not connect; empty if it does.
func failure(t *testing.T, cfg broker.Config) string {
	t.Helper()
	b := broker.New(cfg, testkit.Logger(t), nil)
	require.NoError(t, b.Start(testkit.Context(t)))
	defer b.Stop()
	reason := ""
	testkit.Eventually(t, func() bool {
		for _, link := range b.Links() {
			reason = link.Trouble.String()
		}
		return reason != "" || b.State() == broker.StateConnected
	}, waitTimeout)
	return reason
}

// overTLS forwards connections with TLS to a server without, and returns its own address.
func overTLS(t *testing.T, certificate tls.Certificate, target string) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	require.NoError(t, err)
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait() // both ends are closed
	})
	serving.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				return
			}
			serving.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
			serving.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
		}
	})
	return listener.Addr().String()
}

// Each connection and each request to the management API has the login that counts then.
func TestLoginsAreReadForEachConnection(t *testing.T) {
	b := newRig(t)
	at, err := url.Parse(b.url)
	require.NoError(t, err)
	management, err := url.Parse(testkit.ManagementURL(t))
	require.NoError(t, err)
	user := at.User.Username()
	password, _ := at.User.Password()
	at.User, management.User = url.UserPassword(user, "old"), url.UserPassword(user, "old")
	cfg := broker.Config{URL: at.String(), ManagementURL: management.String(), DialTimeout: time.Minute}
	require.Contains(t, failure(t, cfg), "the broker refuses the login")
	cfg.Login = func() (string, string) { return user, password }
	cfg.ManagementLogin = cfg.Login
	require.Empty(t, failure(t, cfg))
	api, _, err := broker.OpenManagement(cfg, time.Minute)
	require.NoError(t, err)
	t.Cleanup(api.Close)
	_, err = api.Overview(b.ctx)
	require.NoError(t, err)
}

// The consumer takes only a few large messages at a time, however large the prefetch is, and all of them in the end.
func TestLargeMessagesComeAFewAtATime(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	const size, n = 4 << 20, 10
	body := bytes.Repeat([]byte("x"), size)
	forger := testkit.Forger(t, b.url)
	for range n {
		sent(t, forger, "", "q", amqp.Publishing{Body: body})
	}
	consumer := b.consume(broker.ConsumerConfig{Queue: "q", Prefetch: 50, MaxBatch: 1})
	var held []*broker.Batch
	for range 4 {
		held = append(held, b.next(consumer))
	}
	select {
	case <-consumer.Batches():
		require.Fail(t, "16 MiB are unsettled already")
	case <-time.After(300 * time.Millisecond):
	}
	held[0].Deliveries[0].Detach()
	require.NoError(t, held[1].Ack())
	require.NoError(t, held[2].Ack())
	for range n - 4 {
		require.NoError(t, b.next(consumer).Ack())
	}
	require.Equal(t, broker.StateConnected, b.State())
	b.becomesReady("q", 0)
}

// Every byte of unsettled messages counts, of bodies and of headers, except that small messages pass beside them.
func TestTheBytesOfMessagesAreBounded(t *testing.T) {
	b := newRig(t)
	b.queue("bodies", nil)
	b.queue("headers", nil)
	b.queue("small", nil)
	forger := testkit.Forger(t, b.url)
	body := bytes.Repeat([]byte("x"), 500_000)
	var voids []any // in memory each byte takes sixteen
	for range 12 {
		voids = append(voids, make([]any, 8000))
	}
	for range 60 {
		sent(t, forger, "", "bodies", amqp.Publishing{Body: body})
	}
	bodies := b.consume(broker.ConsumerConfig{Queue: "bodies", Prefetch: 100, MaxBatch: 1})
	var held []*broker.Batch
	for range 16 << 20 / 500_000 {
		held = append(held, b.next(bodies))
	}
	select {
	case <-bodies.Batches():
		require.Fail(t, "16 MiB are unsettled already")
	case <-time.After(300 * time.Millisecond):
	}
	for _, batch := range held {
		require.NoError(t, batch.Ack())
	}
	for range 60 - len(held) {
		require.NoError(t, b.next(bodies).Ack())
	}

	for range 10 {
		sent(t, forger, "", "headers", amqp.Publishing{Headers: amqp.Table{"a": voids, "b": "c"}})
	}
	headers := b.consume(broker.ConsumerConfig{Queue: "headers", Prefetch: 100, MaxBatch: 1})
	held = nil
	for range 2 { // some 6 MiB each
		held = append(held, b.next(headers))
		require.Equal(t, broker.Table{"a": voids, "b": "c"}, held[0].Deliveries[0].Headers, "as they were sent")
	}
	small := b.consume(broker.ConsumerConfig{Queue: "small", MaxBatch: 1})
	select {
	case <-headers.Batches():
		require.Fail(t, "16 MiB are unsettled already")
	case <-time.After(300 * time.Millisecond):
	}
	for _, batch := range held {
		require.NoError(t, batch.Ack())
	}
	for range 10 - len(held) {
		require.NoError(t, b.next(headers).Ack())
	}
	sent(t, forger, "", "small", amqp.Publishing{Body: []byte("x")})
	require.NoError(t, b.next(small).Ack())
	require.Equal(t, broker.StateConnected, b.State())
}

// The unreadable messages of a batch are one dead letter, the batch itself; its other messages are settled by
// themselves.
func TestUnreadableMessagesOfABatchAreOneDeadLetter(t *testing.T) {
	b := newRig(t)
	require.NoError(t, b.DeclareCommon(b.ctx))
	b.queue("q", nil)
	items := make([]message.ExecutionCompleted, 20)
	for i := range items {
		items[i].ExecutionID = int64(i + 1)
	}
	batches, err := message.Batches(message.TypeExecutionBatchCompleted, items, time.Now(), "test")
	require.NoError(t, err)
	require.Len(t, batches, 1)
	sent(t, testkit.Forger(t, b.url), "", "q", amqp.Publishing{
		MessageId: "whole", Type: batches[0].Type, Body: batches[0].Body,
	})
	consumer := b.consume(broker.ConsumerConfig{Queue: "q"})
	batch := b.next(consumer)
	singles, err := message.Split(batch.Deliveries[0].Body)
	require.NoError(t, err)
	parts := batch.Deliveries[0].Split(singles)
	for _, part := range parts[:15] {
		part.GiveUpUnread(b.ctx, errors.New("unreadable"))
	}
	dead := b.next(b.consume(broker.ConsumerConfig{Queue: message.QueueDeadLetter}))
	require.Len(t, dead.Deliveries, 1)
	require.Equal(t, batches[0].Body, dead.Deliveries[0].Body)
	require.Equal(t, "whole", dead.Deliveries[0].MessageID)
	require.Equal(t, "message 1 of 20: unreadable", dead.Deliveries[0].Headers[broker.HeaderReason])
	require.NoError(t, dead.Ack())
	consumer.Stop()
	b.becomesReady("q", 0) // still unsettled
	require.NoError(t, batch.Ack())
	b.becomesReady(message.QueueDeadLetter, 0)
	b.becomesReady("q", 0)
}
