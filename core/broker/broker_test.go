package broker_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/supervisetest"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const waitTimeout = 20 * time.Second

// rig is a started Broker on a virtual host of its own, and a plain channel that the Broker does not know.
type rig struct {
	*broker.Broker
	t          testing.TB
	ctx        context.Context
	url        string
	management *broker.Management
	plain      *amqp.Channel
}

func newRig(t testing.TB, options ...func(*broker.Config)) *rig {
	t.Helper()
	url := testkit.VHost(t)
	cfg := broker.Config{
		URL: url, ConnectionName: t.Name(), MinBackoff: 5 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
		ConfirmTimeout: time.Minute, ConnectTimeout: time.Minute,
	}
	for _, option := range options {
		option(&cfg)
	}
	management, err := broker.NewManagement(testkit.ManagementURL(t), testkit.VHostName(t, url), 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(management.Close)
	conn, err := amqp.Dial(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // may have been closed by the test
	plain, err := conn.Channel()
	require.NoError(t, err)

	b := broker.New(cfg, testkit.Logger(t), broker.NewMetrics(prometheus.NewRegistry()))
	require.NoError(t, b.Start(testkit.Context(t)))
	t.Cleanup(b.Stop)
	return &rig{Broker: b, t: t, ctx: testkit.Context(t), url: url, management: management, plain: plain}
}

// queue declares a durable queue that the default exchange reaches by name.
func (b *rig) queue(name string, arguments amqp.Table) {
	b.t.Helper()
	_, err := b.plain.QueueDeclare(name, true, false, false, false, arguments)
	require.NoError(b.t, err)
}

func (b *rig) publish(messages ...broker.Message) []broker.Status {
	b.t.Helper()
	var statuses []broker.Status
	for _, outcome := range b.Publisher().Publish(b.ctx, messages) {
		require.Equal(b.t, outcome.Status == broker.Confirmed, outcome.Err == nil, "%v", outcome)
		statuses = append(statuses, outcome.Status)
	}
	return statuses
}

func (b *rig) publishAll(messages ...broker.Message) {
	b.t.Helper()
	for i, outcome := range b.Publisher().Publish(b.ctx, messages) {
		require.NoError(b.t, outcome.Err, "message %d", i)
	}
}

func (b *rig) ready(queue string) int {
	b.t.Helper()
	state, err := b.QueueState(b.ctx, queue)
	require.NoError(b.t, err)
	return state.Ready
}

func (b *rig) becomesReady(queue string, n int) {
	b.t.Helper()
	testkit.Eventually(b.t, func() bool { // connections may just have been closed
		state, err := b.QueueState(b.ctx, queue)
		return err == nil && state.Ready == n
	}, waitTimeout, "%d ready in %s", n, queue)
}

func (b *rig) consume(cfg broker.ConsumerConfig) *broker.Consumer {
	b.t.Helper()
	consumer := b.Consume(cfg)
	require.NoError(b.t, consumer.Start(b.ctx))
	b.t.Cleanup(consumer.Stop)
	return consumer
}

func (b *rig) next(consumer *broker.Consumer) *broker.Batch {
	b.t.Helper()
	select {
	case batch := <-consumer.Batches():
		return batch
	case <-time.After(waitTimeout):
		require.Fail(b.t, "no batch arrived")
		return nil
	}
}

// closeConnections closes both connections of the Broker, each once, and none that it makes anew.
func (b *rig) closeConnections() {
	b.t.Helper()
	links := b.Links()
	for i, suffix := range []string{"/publish", "/consume"} {
		same := func() bool { return b.Links()[i].Since.Equal(links[i].Since) }
		testkit.Eventually(b.t, func() bool {
			var listed []struct {
				Name       string `json:"name"`
				Properties struct {
					Name string `json:"connection_name"`
				} `json:"client_properties"`
			}
			// A connection is listed late, and for a while after its end.
			vhost := testkit.VHostName(b.t, b.url)
			testkit.Manage(b.t, http.MethodGet, "/api/vhosts/"+vhost+"/connections", nil, &listed)
			if !same() {
				return true
			}
			for _, connection := range listed { // listed before the link has lost its connection: none of them is new
				if strings.HasSuffix(connection.Properties.Name, suffix) {
					testkit.Cut(b.t, connection.Name)
				}
			}
			return false
		}, waitTimeout, "the connection %s closes", suffix)
	}
}

// messages makes n messages for a queue, through the default exchange.
func messages(queue string, n int) []broker.Message {
	all := make([]broker.Message, n)
	for i := range all {
		all[i] = broker.Message{ID: fmt.Sprintf("m%05d", i), RoutingKey: queue, Type: "Test", Body: []byte(`{"n":1}`)}
	}
	return all
}

// to makes a message for a queue of each body.
func to(queue string, bodies ...string) []broker.Message {
	messages := make([]broker.Message, len(bodies))
	for i, body := range bodies {
		messages[i] = broker.Message{ID: uuid.NewString(), RoutingKey: queue, Type: "Test", Body: []byte(body)}
	}
	return messages
}

func TestLifeCycle(t *testing.T) {
	url := testkit.VHost(t)
	supervisetest.Stress(t, func(t *testing.T) supervise.Service {
		t.Helper()
		return broker.New(broker.Config{URL: url}, nil, nil)
	})
}

func TestWatchersSeeStateChanges(t *testing.T) {
	b := newRig(t)
	require.Equal(t, broker.StateConnected, b.State())
	changes := b.Watch()
	b.closeConnections()
	testkit.Eventually(t, func() bool { return b.State() == broker.StateConnected }, waitTimeout)
	b.Stop()
	require.Equal(t, broker.StateStopped, b.State())
	var seen []broker.State
	for change := range drain(changes) {
		seen = append(seen, change.To)
	}
	require.Contains(t, seen, broker.StateDisconnected)
	require.Contains(t, seen, broker.StateConnected)
	require.Equal(t, broker.StateStopped, seen[len(seen)-1])
}

func nextChange(t *testing.T, changes <-chan broker.StateChange) broker.StateChange {
	t.Helper()
	select {
	case change := <-changes:
		return change
	case <-time.After(waitTimeout):
		require.FailNow(t, "the broker announced no change of its state")
		return broker.StateChange{}
	}
}

func drain[T any](in <-chan T) <-chan T {
	out := make(chan T, 100)
	defer close(out)
	for {
		select {
		case value := <-in:
			out <- value
		default:
			return out
		}
	}
}

func TestSlowWatcherKeepsTheNewestChange(t *testing.T) {
	proxy := newProxy(t, testkit.VHost(t))
	b := broker.New(broker.Config{URL: proxy.url, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}, nil, nil)
	require.NoError(t, b.Start(testkit.Context(t)))
	t.Cleanup(b.Stop)
	slow := b.Watch()
	for range 12 { // two changes each: more than a watcher may be behind
		changes := b.Watch()
		proxy.cut()
		require.Equal(t, broker.StateDisconnected, nextChange(t, changes).To)
		testkit.Eventually(t, func() bool { return b.State() == broker.StateConnected }, waitTimeout)
	}
	b.Stop()
	var last broker.StateChange
	for last = range drain(slow) {
	}
	require.Equal(t, broker.StateStopped, last.To)
}

// A broker in alarm blocks the publishing connection. It accepts no messages then, and answers all other calls.
func TestBlockedBroker(t *testing.T) {
	const blocked, unblocked = 60, 61
	proxy := newProxy(t, testkit.VHost(t))
	b := broker.New(broker.Config{URL: proxy.url, ConnectTimeout: 100 * time.Millisecond}, testkit.Logger(t), nil)
	require.NoError(t, b.Start(testkit.Context(t)))
	t.Cleanup(b.Stop)
	testkit.Eventually(t, func() bool { return b.State() == broker.StateConnected }, waitTimeout)
	changes := b.Watch()
	ctx := testkit.Context(t)

	proxy.say(t, blocked, "\x0dlow on memory")
	change := nextChange(t, changes)
	require.Equal(t, broker.StateBlocked, change.To)
	require.ErrorIs(t, change.Err, broker.ErrBlocked)
	require.ErrorContains(t, change.Err, "low on memory")
	publishing, consuming := b.Links()[0], b.Links()[1]
	require.True(t, publishing.Up && publishing.Blocked)
	require.Equal(t, "low on memory", publishing.Blocks)
	require.Contains(t, publishing.Trouble.Fact, "the broker blocks publishers (low on memory)")
	require.WithinDuration(t, time.Now(), publishing.Since, time.Minute)
	require.True(t, consuming.Up && !consuming.Blocked)
	require.Contains(t, consuming.Server, "RabbitMQ ")
	outcome := b.Publisher().Publish(ctx, messages("q", 1))[0]
	require.Equal(t, broker.NotSent, outcome.Status)
	require.ErrorIs(t, outcome.Err, broker.ErrBlocked)
	require.ErrorIs(t, outcome.Err, broker.ErrNotConnected)
	require.NoError(t, b.DeclareCommon(ctx))

	proxy.say(t, unblocked, "")
	require.Equal(t, broker.StateConnected, nextChange(t, changes).To)
	free := b.Links()[0]
	require.True(t, free.Up && !free.Blocked && free.Trouble.Fact == "" && !free.Since.Before(publishing.Since))
	require.Equal(t, broker.Returned, b.Publisher().Publish(ctx, messages("q", 1))[0].Status)
}

func TestBrokerThatIsAway(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	b := broker.New(broker.Config{URL: "amqp://guest:secret@" + address + "/", ConnectTimeout: 50 * time.Millisecond},
		nil, nil)
	require.NoError(t, b.Start(testkit.Context(t)), "an absent broker does not fail the start")
	defer b.Stop()
	require.Equal(t, broker.StateConnecting, b.State())
	for i := range b.Links() {
		testkit.Eventually(t, func() bool {
			return strings.Contains(b.Links()[i].Trouble.Fact, "refuses connections")
		}, waitTimeout)
		link := b.Links()[i]
		require.False(t, link.Up)
		require.NotContains(t, link.Trouble.String(), "secret")
		require.False(t, link.Since.IsZero())
	}
	consumer := b.Consume(broker.ConsumerConfig{Queue: "q"})
	require.NoError(t, consumer.Start(testkit.Context(t)))
	defer consumer.Stop()

	for _, outcome := range b.Publisher().Publish(testkit.Context(t), messages("q", 3)) {
		require.Equal(t, broker.NotSent, outcome.Status)
		require.ErrorIs(t, outcome.Err, broker.ErrNotConnected)
		require.NotContains(t, outcome.Err.Error(), "secret")
	}
	_, err = b.QueueState(testkit.Context(t), "q")
	require.ErrorIs(t, err, broker.ErrNotConnected)
	require.False(t, consumer.Subscribed())

	b.Stop()
	outcome := b.Publisher().Publish(testkit.Context(t), messages("q", 1))[0]
	require.Equal(t, broker.NotSent, outcome.Status)
	require.ErrorIs(t, outcome.Err, broker.ErrStopped)
}

// A server that accepts connections and does not answer is given up at the dial deadline, and at once when the
// Broker stops.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var accepted sync.WaitGroup
	defer accepted.Wait()
	defer func() { require.NoError(t, listener.Close()) }()
	connections := make(chan net.Conn, 100)
	accepted.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				close(connections)
				return
			}
			connections <- conn
		}
	})
	b := broker.New(broker.Config{
		URL: "amqp://" + listener.Addr().String(), DialTimeout: 100 * time.Millisecond, MinBackoff: time.Millisecond,
	}, nil, nil)
	require.NoError(t, b.Start(testkit.Context(t)))
	for range 4 { // two links, tried again
		conn := <-connections
		defer func() { _ = conn.Close() }()
	}
	b.Stop()

	patient := broker.New(broker.Config{URL: "amqp://" + listener.Addr().String(), DialTimeout: time.Hour}, nil, nil)
	ctx, cancel := context.WithTimeout(testkit.Context(t), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, patient.Start(ctx), "the context bounds the wait for the first attempt")
	patient.Stop()
}

func TestVHostOf(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"amqp://u:p@h": "/", "amqp://u:p@h/": "/", "amqp://u:p@h/attune": "attune", "amqp://u:p@h/%2Fx": "/x",
	} {
		got, err := broker.VHostOf(url)
		require.NoError(t, err)
		require.Equal(t, want, got, url)
	}
	for _, bad := range []string{"http://u:secret@h", "amqp://u:secret@h:port", "amqp://u:secret@h/%zz"} {
		_, err := broker.VHostOf(bad)
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestDeathsToleratesAnything(t *testing.T) {
	t.Parallel()
	require.Empty(t, broker.Deaths(nil))
	require.Empty(t, broker.Deaths(broker.Table{"x-death": "forged"}))
	deaths := broker.Deaths(broker.Table{"x-death": []any{1, broker.Table{
		"queue": "q", "reason": 5, "count": int64(2), "routing-keys": []any{"a", 7, "b"},
	}}})
	require.Equal(t, []broker.Death{{Queue: "q", Count: 2, RoutingKeys: []string{"a", "b"}}}, deaths)
}
