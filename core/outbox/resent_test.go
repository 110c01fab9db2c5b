package outbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func resent(id, exchange, key string) Message {
	return Message{
		ID: id, Exchange: exchange, RoutingKey: key, Type: "T", Body: []byte{0xff, 0},
		Properties: &broker.Properties{
			AppID: "shop", Type: "T", Headers: broker.Table{"n": int8(7), "void": nil, "of": "dead letter"},
		},
	}
}

// refusals takes a message at its third refusal, or later if a sweep was late.
type refusals struct {
	mu    sync.Mutex
	tries map[string]int
	taken []string
}

func (r *refusals) refused(_ context.Context, _ *store.Tx, m Message, tries int, reason string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Header("of") != "dead letter" || reason == "" {
		return false, fmt.Errorf("message %v, reason %q", m, reason)
	}
	if tries <= r.tries[m.ID] {
		return false, fmt.Errorf("try %d of %s after try %d", tries, m.ID, r.tries[m.ID])
	}
	r.tries[m.ID] = tries
	if tries >= 3 {
		r.taken = append(r.taken, m.ID)
	}
	return tries >= 3, nil
}

// A message of an operator has all its properties, also if another replica publishes its row after a split.
func TestAMessageThatIsSentAgainKeepsItsProperties(t *testing.T) {
	st := testkit.Store(t)
	url, name, read := queue(t)
	commit(t, st, nil, resent("m", "", name))
	startRelay(t, st, dial(t, url).Publisher(), func(c *Config) { c.SweepAge = 50 * time.Millisecond })
	got := read(1)[0]
	require.Equal(t, []any{"shop", "", "", "T", []byte{0xff, 0}},
		[]any{got.AppId, got.MessageId, got.CorrelationId, got.Type, got.Body})
	require.Equal(t, amqp.Table{"n": int8(7), "void": nil, "of": "dead letter"}, got.Headers)
	testkit.Eventually(t, empty(t, st), 20*time.Second)
}

// Messages of operators that the broker never accepts are offered with the number of refusals until they are taken.
// They cost other messages nothing, not even a second delivery.
func TestRefusedMessagesOfOperatorsEnd(t *testing.T) {
	st := testkit.Store(t)
	url, name, read := queue(t)
	conn, err := amqp.Dial(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	require.NoError(t, err)
	_, err = channel.QueueDeclare("full", true, false, false, false,
		amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"})
	require.NoError(t, err)
	require.NoError(t, channel.ExchangeDeclare("internal", "fanout", true, false, true, false, nil))
	offered := refusals{tries: map[string]int{}}
	relay := startRelay(t, st, dial(t, url).Publisher(), func(c *Config) {
		c.SweepAge, c.Refused = 50*time.Millisecond, offered.refused
		c.Undeliverable = func(_ context.Context, _ *store.Tx, returned []Message) (map[string]bool, error) {
			return nil, fmt.Errorf("offered %v", returned)
		}
	})
	destinations := map[string]Message{
		"missing": resent("missing", "missing", "k"), "internal": resent("internal", "internal", "k"),
		"queue": resent("queue", "", "missing"), "full": resent("full", "", "full"),
		"long": resent("long", "", strings.Repeat("k", 300)), "vanish": resent("vanish", "amq.topic", "rule.created"),
	}
	var want []string
	for id, m := range destinations {
		commit(t, st, relay, m)
		commit(t, st, relay, Message{ID: "beside " + id, RoutingKey: name, Type: "T", Body: []byte(`{}`)})
		want = append(want, id)
	}
	read(len(destinations))
	testkit.Eventually(t, empty(t, st), 30*time.Second)
	offered.mu.Lock()
	defer offered.mu.Unlock()
	require.ElementsMatch(t, want, offered.taken)
	left, err := channel.QueueDeclarePassive(name, true, false, false, false, nil)
	require.NoError(t, err)
	require.Zero(t, left.Messages, "each other message arrived once")
}

// silent answers no message of an operator, and confirms the others.
type silent struct{ release chan struct{} }

func (s silent) Publish(ctx context.Context, messages []broker.Message) []broker.Outcome {
	outcomes := make([]broker.Outcome, len(messages))
	for i := range messages {
		outcomes[i] = broker.Outcome{Status: broker.Confirmed}
		if messages[i].Alone {
			select {
			case <-s.release:
			case <-ctx.Done():
			}
			outcomes[i] = broker.Outcome{Status: broker.Unknown, Err: broker.ErrConfirmTimeout}
		}
	}
	return outcomes
}

// A destination that never answers a message of an operator does not delay the engine's own messages.
func TestASilentDestinationDelaysNoOther(t *testing.T) {
	st := testkit.Store(t)
	publisher := silent{release: make(chan struct{})}
	relay := startRelay(t, st, publisher,
		func(c *Config) { c.SweepInterval, c.FlushTimeout = time.Hour, time.Millisecond })
	commit(t, st, relay, resent("m", "", "silent"))
	commit(t, st, relay, Message{ID: "own", RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	rows := func() int { return testkit.Count(t, st, `SELECT count(*) FROM outbox`) }
	testkit.Eventually(t, func() bool { return rows() == 1 }, 30*time.Second)
	close(publisher.release)
	testkit.Eventually(t, func() bool { return relay.Pending() == 0 }, 20*time.Second, "its row is left to a sweep")
	require.Equal(t, 1, rows())
}

// A drain before a hand-back offers a refused message of an operator at once, and goes on.
func TestADrainOffersRefusedMessages(t *testing.T) {
	st := testkit.Store(t)
	url, name, read := queue(t)
	commit(t, st, nil, resent("m", "missing", "k"))
	commit(t, st, nil, resent("vanish", "amq.topic", "rule.created"))
	commit(t, st, nil, Message{ID: "own", RoutingKey: name, Type: "T", Body: []byte(`{}`)})
	var offered []string
	drained, err := Drain(testkit.Context(t), st, dial(t, url).Publisher(),
		func(_ context.Context, _ *store.Tx, m Message, tries int, _ string) (bool, error) {
			offered = append(offered, m.ID)
			return tries > 1000, nil
		})
	require.NoError(t, err)
	require.Equal(t, Drained{Published: 1, Refused: 2}, drained)
	require.Equal(t, []string{"m", "vanish"}, offered)
	require.Equal(t, "own", read(1)[0].MessageId)
	require.True(t, empty(t, st)())
}

// However many messages of operators wait for a destination, the engine's own rows have their place in memory.
func TestManyMessagesOfOperatorsDelayNoOther(t *testing.T) {
	st := testkit.Store(t)
	publisher := silent{release: make(chan struct{})}
	relay := New(Config{SweepInterval: time.Hour, SweepAge: time.Hour, MaxPending: 3}, st, publisher, testkit.Logger(t),
		nil)
	for i := range 5 {
		commit(t, st, relay, resent(fmt.Sprint("resent ", i), "", "q"))
	}
	require.Equal(t, 3, relay.Pending())
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	t.Cleanup(func() { close(publisher.release) })
	commit(t, st, relay, Message{ID: "own", RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, `SELECT count(*) FROM outbox WHERE message_ids = '{own}'`) == 0
	}, 30*time.Second)
}
