package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
)

// drain takes everything out of a queue.
func (b *rig) drain(queue string) (all []amqp.Delivery) {
	b.t.Helper()
	for {
		one, ok, err := b.plain.Get(queue, true)
		require.NoError(b.t, err)
		if !ok {
			return all
		}
		all = append(all, one)
	}
}

func TestMovedMessagesKeepAllTheyHave(t *testing.T) {
	t.Parallel()
	b := newRig(t)
	b.queue("a", nil)
	b.queue("b", nil)
	require.NoError(t, b.DeclareRelay(b.ctx, "relay", "b"))
	require.NoError(t, b.plain.ExchangeDeclare("x", "topic", true, false, false, false, nil))
	require.NoError(t, b.BindQueues(b.ctx, []broker.Binding{{Source: "x", Queue: "a", RoutingKey: "k.#"}}))
	at := time.Now().Truncate(time.Second)
	death := amqp.Table{"count": int64(2), "queue": "q", "reason": "expired", "time": at, "routing-keys": []any{"k.1"}}
	whole := amqp.Publishing{
		Headers: amqp.Table{"h": "v", "n": int64(7), "x-death": []any{death}}, ContentType: "application/json", ContentEncoding: "utf-8",
		DeliveryMode: amqp.Persistent, Priority: 3, CorrelationId: "c", ReplyTo: "r", Expiration: "60000", MessageId: "whole", Timestamp: at,
		Type: "T", AppId: "app", Body: []byte(`{"a":1}`),
	}
	require.NoError(t, b.plain.Publish("x", "k.1", false, false, whole))
	for i := range 250 {
		require.NoError(t, b.plain.Publish("x", "k.2", false, false, amqp.Publishing{MessageId: fmt.Sprint(i), Body: []byte("x")}))
	}
	b.becomesReady("a", 251)
	moved, err := b.MoveMessages(b.ctx, "a", "relay")
	require.NoError(t, err)
	require.Equal(t, 251, moved)
	all := b.drain("b")
	require.Len(t, all, 251)
	first := all[0]
	require.Equal(t, "k.1", first.RoutingKey, "by it a dead letter is routed")
	got := amqp.Publishing{
		Headers: first.Headers, ContentType: first.ContentType, ContentEncoding: first.ContentEncoding, DeliveryMode: first.DeliveryMode,
		Priority: first.Priority, CorrelationId: first.CorrelationId, ReplyTo: first.ReplyTo, Expiration: first.Expiration,
		MessageId: first.MessageId, Timestamp: first.Timestamp, Type: first.Type, AppId: first.AppId, Body: first.Body,
	}
	require.Equal(t, whole, got)
	for i, one := range all[1:] {
		require.Equal(t, fmt.Sprint(i), one.MessageId, "in their order")
	}
	require.Zero(t, b.ready("a"))
}

func TestAMoveThatIsInterruptedLosesNothing(t *testing.T) {
	t.Parallel()
	b := newRig(t)
	b.queue("a", nil)
	b.queue("b", nil)
	require.NoError(t, b.DeclareRelay(b.ctx, "relay", "b"))
	b.publishAll(messages("a", 150)...)
	killed := errors.New("killed")
	err := broker.MoveUntil(b.ctx, b.Broker, "a", "relay", func() error { return killed })
	require.ErrorIs(t, err, killed)
	b.becomesReady("a", 150)
	require.Equal(t, 100, b.ready("b"), "a page exists twice")

	require.NoError(t, b.DeleteExchange(b.ctx, "relay"))
	require.NoError(t, b.plain.ExchangeDeclare("relay", "fanout", true, false, false, false, nil))
	_, err = b.MoveMessages(b.ctx, "a", "relay")
	require.ErrorIs(t, err, broker.ErrMoveReturned)
	b.becomesReady("a", 150)
}

func TestAWorkerQueueWithAnotherTTLNamesTheCommand(t *testing.T) {
	t.Parallel()
	b := newRig(t)
	require.NoError(t, b.DeclareCommon(b.ctx))
	require.NoError(t, b.DeclareWorker(b.ctx, 7, time.Minute))
	err := b.DeclareWorker(b.ctx, 7, 2*time.Minute)
	var refused *broker.TopologyError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "attune-executor workers ttl")
}

func TestPoliciesComeAndGo(t *testing.T) {
	t.Parallel()
	b := newRig(t)
	policy := broker.Policy{Name: "p", Pattern: `^q\.`, ApplyTo: "queues", Priority: 1, Definition: map[string]any{"message-ttl": 1000}}
	require.NoError(t, b.management.PutPolicy(b.ctx, policy))
	require.True(t, policy.GovernsQueue("q.1"))
	require.False(t, policy.GovernsQueue("r"))
	require.True(t, broker.Policy{ApplyTo: "all", Pattern: `(?!q)`}.GovernsQueue("q"), "what cannot be read is taken to match")
	require.False(t, broker.Policy{ApplyTo: "exchanges", Pattern: `.`}.GovernsQueue("q"))
	require.NoError(t, b.management.DeletePolicy(b.ctx, "p"))
	require.NoError(t, b.management.DeletePolicy(b.ctx, "p"), "what is gone already needs no deleting")
	policies, err := b.management.Policies(b.ctx)
	require.NoError(t, err)
	require.Empty(t, policies)
	operator, err := b.management.OperatorPolicies(b.ctx)
	require.NoError(t, err)
	require.Empty(t, operator)
}
