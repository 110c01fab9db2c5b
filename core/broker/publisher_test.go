package broker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/lab/testkit"
)

func TestPublishSetsTheProperties(t *testing.T) {
	b := newRig(t)
	b.queue("q", nil)
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	b.publishAll(
		broker.Message{
			ID: "a", CorrelationID: "c", RoutingKey: "q", Type: "T", Body: []byte("{}"), Timestamp: at,
			Headers: broker.Table{"x": "y"},
		},
		broker.Message{ID: "b", RoutingKey: "q"},
	)
	first, ok, err := b.plain.Get("q", true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "a", first.MessageId)
	require.Equal(t, "c", first.CorrelationId)
	require.Equal(t, "T", first.Type)
	require.Equal(t, amqp.Persistent, first.DeliveryMode)
	require.Equal(t, "application/json", first.ContentType)
	require.Equal(t, at.Truncate(time.Second), first.Timestamp.UTC())
	require.Equal(t, amqp.Table{"x": "y"}, first.Headers)
	second, ok, err := b.plain.Get("q", true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "b", second.CorrelationId, "the message is its own correlation by default")
	require.WithinDuration(t, time.Now(), second.Timestamp, time.Minute)
}

// Upstream 4: a refusal counted as success, and so did an unroutable message.
func TestOutcomesAreDistinguished(t *testing.T) {
	b := newRig(t)
	b.queue("open", nil)
	b.queue("full", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
	b.publishAll(broker.Message{ID: "fills", RoutingKey: "full"})

	var batch []broker.Message
	var want []broker.Status
	for range 200 { // more than the window
		batch = append(batch,
			broker.Message{ID: "1", RoutingKey: "open"},
			broker.Message{ID: "2", RoutingKey: "unbound"},
			broker.Message{ID: "3", RoutingKey: "full"},
			broker.Message{ID: "2", RoutingKey: "open"}, // the id of a message that returns
		)
		want = append(want, broker.Confirmed, broker.Returned, broker.Nacked, broker.Confirmed)
	}
	require.Equal(t, want, b.publish(batch...))
	require.Equal(t, 400, b.ready("open"))
	require.Equal(t, 1, b.ready("full"))

	outcomes := b.Publisher().Publish(b.ctx, batch[:3])
	require.ErrorIs(t, outcomes[1].Err, broker.ErrReturned)
	require.ErrorIs(t, outcomes[2].Err, broker.ErrNacked)
}

// A message whose own exchange is missing was certainly not routed; its
// neighbours lose the channel, and the publisher goes on with another.
func TestMissingExchangeIsNotPublished(t *testing.T) {
	b := newRig(t)
	b.queue("open", nil)
	statuses := b.publish(
		broker.Message{ID: "1", RoutingKey: "open"},
		broker.Message{ID: "2", RoutingKey: "open", Exchange: "missing"},
	)
	require.Contains(t, []broker.Status{broker.Confirmed, broker.Unknown}, statuses[0])
	require.Equal(t, broker.Returned, statuses[1])
	require.Equal(t, []broker.Status{broker.Confirmed}, b.publish(broker.Message{ID: "3", RoutingKey: "open"}))
}

// A message that cannot be encoded is not sent. It costs other messages neither the connection nor their outcome.
func TestInvalidMessagesHarmNoOthers(t *testing.T) {
	b := newRig(t)
	b.queue("open", nil)
	changes := b.Watch()
	long := string(make([]byte, 256))
	for _, invalid := range []broker.Message{
		{RoutingKey: "open"},
		{ID: long, RoutingKey: "open"},
		{ID: "1", RoutingKey: long},
		{ID: "1", RoutingKey: "open", Exchange: long},
		{ID: "1", RoutingKey: "open", CorrelationID: long},
		{ID: "1", RoutingKey: "open", Type: long},
		{ID: "1", RoutingKey: "open", Headers: broker.Table{"h": struct{}{}}},
		{ID: "1", RoutingKey: "open", Headers: broker.Table{long: "h"}},
	} {
		good := broker.Message{ID: "good", RoutingKey: "open"}
		outcomes := b.Publisher().Publish(b.ctx, []broker.Message{good, invalid, good})
		require.Equal(t, broker.Confirmed, outcomes[0].Status)
		require.Equal(t, broker.NotSent, outcomes[1].Status)
		require.ErrorIs(t, outcomes[1].Err, broker.ErrInvalid)
		require.Equal(t, broker.Confirmed, outcomes[2].Status)
	}
	require.Equal(t, 16, b.ready("open"))
	require.Empty(t, changes, "the connection was never lost")
}

// Callers share the window, which is smaller than the messages of each, and each gets the outcomes of its own
// messages.
func TestManyCallersShareTheWindow(t *testing.T) {
	b := newRig(t, func(c *broker.Config) { c.Window = 8 })
	b.queue("open", nil)
	var callers sync.WaitGroup
	results := make([][]broker.Outcome, 16)
	for i := range results {
		callers.Go(func() {
			key := "open"
			if i%2 == 1 {
				key = "unbound"
			}
			results[i] = b.Publisher().Publish(b.ctx, messages(key, 20)) // the same ids everywhere
		})
	}
	callers.Wait()
	for i, outcomes := range results {
		require.Len(t, outcomes, 20)
		for _, outcome := range outcomes {
			if i%2 == 0 {
				require.NoError(t, outcome.Err)
			} else {
				require.Equal(t, broker.Returned, outcome.Status)
			}
		}
	}
	require.Equal(t, 8*20, b.ready("open"))
}

func TestUnconfirmedIsUnknown(t *testing.T) {
	url := testkit.VHost(t)
	proxy := newProxy(t, url)
	b := broker.New(broker.Config{
		URL: proxy.url, ConfirmTimeout: 10 * time.Second, MinBackoff: 5 * time.Millisecond,
		CloseTimeout: 100 * time.Millisecond,
	}, testkit.Logger(t), nil)
	require.NoError(t, b.Start(testkit.Context(t)))
	t.Cleanup(b.Stop)
	require.Equal(t, broker.Returned, b.Publisher().Publish(testkit.Context(t), messages("unbound", 1))[0].Status)

	proxy.freeze()
	for _, outcome := range b.Publisher().Publish(testkit.Context(t), messages("unbound", 3)) {
		require.Equal(t, broker.Unknown, outcome.Status)
		require.ErrorIs(t, outcome.Err, broker.ErrConfirmTimeout)
	}
	ctx, cancel := context.WithTimeout(testkit.Context(t), 20*time.Millisecond)
	defer cancel()
	outcome := b.Publisher().Publish(ctx, messages("unbound", 1))[0]
	require.Equal(t, broker.Unknown, outcome.Status)
	require.ErrorIs(t, outcome.Err, context.DeadlineExceeded)

	// The late answers are not taken for those of the messages sent again.
	proxy.thaw()
	for _, outcome := range b.Publisher().Publish(testkit.Context(t), messages("unbound", 3)) {
		require.Equal(t, broker.Returned, outcome.Status)
	}
	conn, err := amqp.Dial(url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	channel, err := conn.Channel()
	require.NoError(t, err)
	_, err = channel.QueueDeclare("unbound", true, false, false, false, nil)
	require.NoError(t, err)
	for _, outcome := range b.Publisher().Publish(testkit.Context(t), messages("unbound", 3)) {
		require.NoError(t, outcome.Err)
	}
}

// Upstream 3 and 4: the publisher stayed dead after its connection was closed. Confirmed messages are in their
// queue, whatever happens to the connection, and unsent ones are not.
func TestPublisherSurvivesItsConnection(t *testing.T) {
	b := newRig(t)
	b.queue("open", nil)
	_ = b.plain.Close()
	stop := make(chan struct{})
	sent := make(map[string]broker.Status)
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			all := to("open", make([]string, 50)...)
			for i, outcome := range b.Publisher().Publish(b.ctx, all) {
				sent[all[i].ID] = outcome.Status
			}
		}
	})
	for range 3 {
		b.closeConnections()
		testkit.Eventually(t, func() bool { return b.State() == broker.StateConnected }, waitTimeout)
	}
	close(stop)
	publishing.Wait()
	b.publishAll(broker.Message{ID: "last", RoutingKey: "open"})
	sent["last"] = broker.Confirmed

	consumer := b.consume(broker.ConsumerConfig{Queue: "open", Prefetch: 500})
	for last := false; !last; {
		batch := b.next(consumer)
		for _, id := range ids(batch) {
			require.Contains(t, []broker.Status{broker.Confirmed, broker.Unknown}, sent[id], id)
			delete(sent, id)
			last = id == "last"
		}
		require.NoError(t, batch.Ack())
	}
	for id, status := range sent {
		require.NotEqual(t, broker.Confirmed, status, id)
	}
}

func TestPublishGivesUpWithItsContext(t *testing.T) {
	b := newRig(t)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	cancel()
	for _, o := range b.Publisher().Publish(ctx, to("q", "x", "y")) {
		require.NotEqual(t, broker.Confirmed, o.Status)
		require.Error(t, o.Err)
	}
}

// A Broker that was never started, or is starting, publishes nothing and does
// not hang.
func TestPublishBeforeStart(t *testing.T) {
	t.Parallel()
	b := broker.New(broker.Config{URL: "amqp://127.0.0.1:1", ConnectTimeout: 20 * time.Millisecond}, nil, nil)
	outcomes := b.Publisher().Publish(testkit.Context(t), messages("q", 2))
	require.ErrorIs(t, outcomes[1].Err, broker.ErrNotConnected)
	b.Stop()
	require.Equal(t, broker.StateStopped, b.State())
}

func BenchmarkPublish(b *testing.B) {
	t := newRig(b, func(c *broker.Config) { c.ConfirmTimeout = time.Minute })
	t.queue("open", nil)
	all := messages("open", b.N)
	body := make([]byte, 500)
	for i := range all {
		all[i].Body = body
	}
	b.ResetTimer()
	for _, outcome := range t.Publisher().Publish(t.ctx, all) {
		require.NoError(b, outcome.Err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
