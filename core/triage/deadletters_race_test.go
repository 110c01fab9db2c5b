package triage_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// The same dead letter arrives repeatedly while several operators requeue it. It stays one row with one decision, and
// one message is sent (invariant S20).
func TestOperatorsRequeueWhileTheHandlerStoresTheSameDeadLetter(t *testing.T) {
	b := setup(t)
	amqp := testkit.VHost(t)
	connect := func() *broker.Broker {
		wire := broker.New(broker.Config{URL: amqp, ManagementURL: testkit.ManagementURL(t)}, testkit.Logger(t), nil)
		require.NoError(t, wire.Start(testkit.Context(t)))
		t.Cleanup(wire.Stop)
		return wire
	}
	wire := connect()
	require.NoError(t, wire.DeclareExecutor(testkit.Context(t)))
	consumer := connect().Consume(broker.ConsumerConfig{
		Queue: message.QueueDeadLetter, Prefetch: deadletter.Prefetch,
		MaxBatch: deadletter.MaxBatch,
	})
	handler := deadletter.NewHandler(deadletter.Deps{
		Store: b.store, Consumer: consumer, Logger: testkit.Logger(t),
		Metrics: deadletter.NewMetrics(prometheus.NewRegistry()),
		Ended:   func(context.Context, []int64) error { return nil },
		Decide:  func(context.Context, []*deadletter.Message) error { return nil }, // no dispatch comes
	})
	require.NoError(t, handler.Start(testkit.Context(t)))
	require.NoError(t, consumer.Start(testkit.Context(t)))
	t.Cleanup(consumer.Stop)
	t.Cleanup(handler.Stop)

	envelope := message.New(message.TypeEventCreated, message.EventCreated{EventID: 1}, time.Now(), "test")
	body, err := envelope.Encode()
	require.NoError(t, err)
	deadLetter := broker.Message{
		ID: envelope.MessageID, Exchange: message.ExchangeDeadLetter, RoutingKey: message.KeyEventCreated,
		Type: message.TypeEventCreated, Body: body,
		Headers: broker.Table{"x-death": []any{broker.Table{
			"count": int64(1), "reason": "rejected", "queue": "attune.events.queue", "exchange": message.ExchangeEvents,
			"time": time.Now().Truncate(time.Second), "routing-keys": []any{message.KeyEventCreated},
		}}},
	}
	arrive := func() {
		for range 10 {
			for _, outcome := range wire.Publisher().Publish(testkit.Context(t),
				[]broker.Message{deadLetter, deadLetter, deadLetter}) {
				if outcome.Status != broker.Confirmed {
					t.Errorf("not confirmed: %v", outcome.Err)
				}
			}
		}
	}
	arrive()
	stored := func() bool { return testkit.Count(t, b.store, `select count(*) from dead_letter`) == 1 }
	testkit.Eventually(t, stored, 10*time.Second)
	var id int64
	require.NoError(t,
		b.store.Pool().QueryRow(t.Context(), `select id from dead_letter where decision is null`).Scan(&id))

	errs := make([]error, 5)
	var wg sync.WaitGroup
	wg.Go(arrive)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = b.operator.As(fmt.Sprint("user ", i)).Requeue(t.Context(), id, true, "")
		})
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
			continue
		}
		require.ErrorIs(t, err, triage.ErrDecided)
	}
	require.Equal(t, 1, done)
	empty := func() bool {
		state, err := wire.QueueState(testkit.Context(t), message.QueueDeadLetter)
		return err == nil && state.Ready == 0
	}
	testkit.Eventually(t, empty, 10*time.Second)
	handler.Stop() // its last deliveries are handled or back in the queue
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from dead_letter`))
	require.Equal(t, 1, testkit.Count(t, b.store,
		`select count(*) from dead_letter where id = $1 and decision = 'requeued' and decided_by like 'user %'`, id))
	sent := b.sent.take()
	require.Len(t, sent, 1)
	require.Equal(t, body, sent[0].Body)
	require.Equal(t, message.ExchangeEvents, sent[0].Exchange)
}
