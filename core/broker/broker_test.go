package broker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/supervise/supervisetest"
	"github.com/attune-go/attune/core/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// testBundle is one virtual host with a started Broker and a channel of the
// test's own beside it.
type testBundle struct {
	broker     *broker.Broker
	management *broker.Management
	raw        *amqp.Channel
	url        string
}

func setup(t *testing.T, options ...func(*broker.Config)) *testBundle {
	t.Helper()
	url := testkit.VHost(t)
	cfg := broker.Config{
		URL: url, ConnectionName: "attune-test", ConfirmTimeout: 5 * time.Second,
		MinBackoff: 10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond,
	}
	for _, option := range options {
		option(&cfg)
	}
	b := broker.New(cfg, testkit.Logger(t), broker.NewMetrics(nil))
	require.NoError(t, b.Start(testkit.Context(t)))
	t.Cleanup(b.Stop)
	management, err := broker.NewManagement(testkit.ManagementURL(t), testkit.VHostName(t, url), 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(management.Close)
	conn, err := amqp.Dial(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	raw, err := conn.Channel()
	require.NoError(t, err)
	testkit.Eventually(t, func() bool { return b.State() == broker.StateConnected }, 10*time.Second)
	return &testBundle{broker: b, management: management, raw: raw, url: url}
}

// queue declares a durable queue by the test's own channel.
func (b *testBundle) queue(t *testing.T, name string, arguments amqp.Table) {
	t.Helper()
	_, err := b.raw.QueueDeclare(name, true, false, false, false, arguments)
	require.NoError(t, err)
}

// drop closes every connection of the virtual host but spares the broker
// itself; the management API may need a moment to know a connection.
func (b *testBundle) drop(t *testing.T) {
	t.Helper()
	changes := b.broker.Watch()
	testkit.Eventually(t, func() bool {
		require.NoError(t, b.management.CloseConnections(testkit.Context(t), "test"))
		select {
		case change := <-changes:
			return change.To == broker.StateDisconnected
		case <-time.After(50 * time.Millisecond):
			return false
		}
	}, 20*time.Second)
}

func to(queue string, bodies ...string) []broker.Message {
	messages := make([]broker.Message, len(bodies))
	for i, body := range bodies {
		messages[i] = broker.Message{ID: uuid.NewString(), RoutingKey: queue, Type: "Test", Body: []byte(body)}
	}
	return messages
}

func numbered(queue string, n int) []broker.Message {
	messages := make([]broker.Message, n)
	for i := range messages {
		messages[i] = to(queue, fmt.Sprint(i))[0]
	}
	return messages
}

func statuses(outcomes []broker.Outcome) []broker.Status {
	found := make([]broker.Status, len(outcomes))
	for i, o := range outcomes {
		found[i] = o.Status
	}
	return found
}

func receive(t *testing.T, c *broker.Consumer) *broker.Batch {
	t.Helper()
	select {
	case batch := <-c.Batches():
		return batch
	case <-time.After(20 * time.Second):
		require.Fail(t, "no batch")
		return nil
	}
}

func consume(t *testing.T, b *testBundle, cfg broker.ConsumerConfig) *broker.Consumer {
	t.Helper()
	c := b.broker.Consume(cfg)
	require.NoError(t, c.Start(testkit.Context(t)))
	t.Cleanup(c.Stop)
	return c
}

func TestLifeCycle(t *testing.T) {
	t.Parallel()
	url := testkit.VHost(t)
	supervisetest.Stress(t, func(t *testing.T) supervise.Service {
		t.Helper()
		return broker.New(broker.Config{URL: url}, nil, nil)
	})
}

func TestStartWithoutBrokerWaitsInTheBackground(t *testing.T) {
	t.Parallel()
	b := broker.New(broker.Config{
		URL: "amqp://guest:guest@127.0.0.1:1/", ConnectTimeout: 200 * time.Millisecond,
	}, testkit.Logger(t), nil)
	require.NoError(t, b.Start(testkit.Context(t)))
	require.Equal(t, broker.StateConnecting, b.State())
	outcomes := b.Publisher().Publish(testkit.Context(t), to("q", "x"))
	require.Equal(t, broker.NotSent, outcomes[0].Status)
	require.ErrorIs(t, outcomes[0].Err, broker.ErrNotConnected)
	_, err := b.QueueState(testkit.Context(t), "q")
	require.ErrorIs(t, err, broker.ErrNotConnected)
	b.Stop()
	require.Equal(t, broker.StateStopped, b.State())
}

// Upstream 4: a refusal, and a message that no queue takes, are not success.
func TestPublishTellsEveryFate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue(t, "open", nil)
	b.queue(t, "full", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})

	messages := append(to("open", "a"), to("nowhere", "b")...)
	messages = append(messages, to("full", "c", "d")...)
	messages = append(messages, to("open", "e")...)
	outcomes := b.broker.Publisher().Publish(testkit.Context(t), messages)

	require.Equal(t, []broker.Status{
		broker.Confirmed, broker.Returned, broker.Confirmed, broker.Nacked, broker.Confirmed,
	}, statuses(outcomes))
	require.ErrorIs(t, outcomes[1].Err, broker.ErrReturned)
	require.ErrorIs(t, outcomes[3].Err, broker.ErrNacked)
	for _, i := range []int{0, 2, 4} {
		require.NoError(t, outcomes[i].Err)
	}
}

// Upstream 4: an exchange that is missing closes the channel; neighbours are
// unknown, never confirmed, and the publisher goes on.
func TestPublishToAMissingExchange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue(t, "open", nil)
	missing := broker.Message{ID: uuid.NewString(), Exchange: "missing", RoutingKey: "k", Body: []byte("x")}
	outcome := b.broker.Publisher().Publish(testkit.Context(t), []broker.Message{missing})[0]
	require.Equal(t, broker.Returned, outcome.Status)
	testkit.Eventually(t, func() bool {
		return b.broker.Publisher().Publish(testkit.Context(t), to("open", "y"))[0].Status == broker.Confirmed
	}, 10*time.Second)
}

func TestPublishWritesTheAgreedProperties(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue(t, "q", nil)
	m := to("q", "{}")[0]
	m.Timestamp = time.Unix(1_700_000_000, 0)
	require.Equal(t, broker.Confirmed, b.broker.Publisher().Publish(testkit.Context(t), []broker.Message{m})[0].Status)
	got, ok, err := b.raw.Get("q", true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, uint8(amqp.Persistent), got.DeliveryMode)
	require.Equal(t, "application/json", got.ContentType)
	require.Equal(t, m.ID, got.MessageId)
	require.Equal(t, m.ID, got.CorrelationId)
	require.True(t, m.Timestamp.Equal(got.Timestamp))
	require.Empty(t, got.Headers)
	require.Empty(t, got.Expiration)
	require.Zero(t, got.Priority)
}

// Upstream 6: callers share one window and do not wait for each other's
// confirmations; the outcome of each is its own, also of the same message id.
func TestPublishByManyCallers(t *testing.T) {
	t.Parallel()
	b := setup(t, func(cfg *broker.Config) { cfg.Window = 8 })
	b.queue(t, "q", nil)
	ctx := testkit.Context(t)
	var callers sync.WaitGroup
	results := make([][]broker.Outcome, 20)
	for i := range results {
		callers.Go(func() {
			messages := numbered("q", 30)
			messages[7].RoutingKey = "nowhere"
			results[i] = b.broker.Publisher().Publish(ctx, messages)
		})
	}
	callers.Wait()
	for _, outcomes := range results {
		require.Len(t, outcomes, 30)
		for i, o := range outcomes {
			if i == 7 {
				require.Equal(t, broker.Returned, o.Status)
			} else {
				require.Equal(t, broker.Confirmed, o.Status)
			}
		}
	}
}

// A confirmed message is in its queue whatever happened to the connection; one
// without a confirmation is never called confirmed (upstream 4).
func TestPublishWhileConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	b := setup(t, func(cfg *broker.Config) { cfg.ConnectTimeout = 20 * time.Second })
	b.queue(t, "q", nil)
	ctx := testkit.Context(t)
	confirmed := make(map[string]bool)
	dropped := make(chan struct{})
	go func() {
		defer close(dropped)
		b.drop(t)
	}()
	for ended := false; !ended; {
		select {
		case <-dropped:
			ended = true
		default:
		}
		messages := numbered("q", 50)
		for i, o := range b.broker.Publisher().Publish(ctx, messages) {
			require.Contains(t, []broker.Status{broker.Confirmed, broker.Unknown, broker.NotSent}, o.Status, "%v", o.Err)
			if o.Status == broker.Confirmed {
				confirmed[messages[i].ID] = true
			}
		}
	}
	conn, err := amqp.Dial(b.url)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	require.NoError(t, err)
	for len(confirmed) > 0 {
		d, ok, err := ch.Get("q", true)
		require.NoError(t, err)
		require.True(t, ok, "%d confirmed messages are missing", len(confirmed))
		delete(confirmed, d.MessageId)
	}
}

func TestPublishGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	cancel()
	for _, o := range b.broker.Publisher().Publish(ctx, to("q", "x", "y")) {
		require.NotEqual(t, broker.Confirmed, o.Status)
		require.Error(t, o.Err)
	}
}
