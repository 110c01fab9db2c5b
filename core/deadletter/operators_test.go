package deadletter_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func (d *service) requeue(t *testing.T, id int64) (resent deadletter.Resent, err error) {
	t.Helper()
	err = d.store.Tx(testkit.Context(t), "requeue", func(ctx context.Context, tx *store.Tx) (err error) {
		resent, err = deadletter.Requeue(ctx, tx, id, "ann", "try again")
		return err
	})
	return resent, err
}

func (d *service) discard(t *testing.T, id int64) error {
	t.Helper()
	return d.store.Tx(testkit.Context(t), "discard", func(ctx context.Context, tx *store.Tx) error {
		return deadletter.Discard(ctx, tx, id, "ann", "not needed")
	})
}

// A waiting dead letter is sent again unchanged, once, for any number of requests; the headers of
// its death are removed.
func TestRequeueingSendsTheOriginalOnce(t *testing.T) {
	d := newService(t)
	h := d.open(t)
	requested := testkit.Execution(t, d.store, testkit.Action(t, d.store, "pk.do"))
	m := poisoned(deadLetter(t, message.KeyExecutionRequested, message.TypeExecutionRequested,
		message.ExecutionRequested{ExecutionID: requested.ID}))
	d.send(t, m)
	id := d.settled(t, 1)[0].ID
	h.Stop()

	var asked sync.WaitGroup
	var mu sync.Mutex
	var sent []deadletter.Resent
	for range 8 {
		asked.Go(func() {
			resent, err := d.requeue(t, id)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				sent = append(sent, resent)
				return
			}
			if !errors.Is(err, deadletter.ErrDecided) {
				t.Errorf("another error: %v", err)
			}
		})
	}
	asked.Wait()
	require.Len(t, sent, 1)
	require.False(t, sent[0].NewAttempt)
	relay := outbox.New(outbox.Config{}, d.store, d.wire.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	relay.Published(sent[0].OutboxRow, sent[0].Messages)

	conn, err := amqp.Dial(d.amqp)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	require.NoError(t, err)
	var got amqp.Delivery
	testkit.Eventually(t, func() bool {
		var ok bool
		got, ok, err = channel.Get(message.QueueExecutionRequests, true)
		return err == nil && ok
	}, 10*time.Second)
	require.Equal(t, []any{m.ID, message.ExchangeExecutions, m.RoutingKey, m.Type},
		[]any{got.MessageId, got.Exchange, got.RoutingKey, got.Type})
	require.Equal(t, m.Body, got.Body)
	require.Len(t, got.Headers, 2)
	require.Contains(t, got.Headers, "x-attune-requeued-from")
	require.EqualValues(t, 1, got.Headers["x-attune-deaths"])
	row := d.rows(t)[0]
	require.Equal(t, []string{deadletter.Requeued, "ann"}, []string{row.Decision, row.By})
	require.Equal(t, "try again", at(t, row.Evidence, "decisions", 0, "note"))
}

// S2: a dispatch is never sent again. A handled one can be requeued, as a new attempt; other
// decisions refuse it.
func TestRequeueingADispatchRequestsANewAttempt(t *testing.T) {
	d := newService(t)
	d.open(t)
	w := testkit.Worker(t, d.store, "stranger")
	e := d.scheduled(t, testkit.Action(t, d.store, "pk.do"), w.ID)
	d.send(t, expired(t, w.ID, message.Dispatch{ExecutionID: e.ID, Attempt: 1}))
	row := d.settled(t, 1)[0]
	require.Equal(t, deadletter.Failed, row.Decision)
	outboxRows := testkit.Count(t, d.store, `SELECT count(*) FROM outbox`)

	resent, err := d.requeue(t, row.ID)
	require.NoError(t, err)
	require.Equal(t, deadletter.Resent{NewAttempt: true, Execution: e.ID}, resent)
	require.Equal(t, outboxRows, testkit.Count(t, d.store, `SELECT count(*) FROM outbox`))
	after := d.rows(t)[0]
	require.Equal(t, deadletter.Requeued, after.Decision)
	require.Equal(t, deadletter.Failed, at(t, after.Evidence, "decisions", 0, "before"))
	_, err = d.requeue(t, row.ID)
	require.ErrorIs(t, err, deadletter.ErrDecided)
	require.ErrorContains(t, err, "requeued by ann")
	require.ErrorIs(t, d.discard(t, row.ID), deadletter.ErrDecided)
}

func TestWhatCannotBeRequeuedSaysWhy(t *testing.T) {
	d := newService(t)
	d.open(t)
	action := testkit.Action(t, d.store, "pk.do")
	done := testkit.Execution(t, d.store, action, as(lifecycle.StatusCompleted))
	cut := deadLetter(t, message.KeyEventCreated, message.TypeEventCreated, message.EventCreated{EventID: 1})
	cut.Body = append(cut.Body, make([]byte, 2<<20)...)
	released := deadLetter(t, message.KeyExecutionCompleted, message.TypeExecutionCompleted,
		message.ExecutionCompleted{ExecutionID: done.ID})
	nowhere := deadLetter(t, message.KeyEventCreated, "strange", message.EventCreated{EventID: 1})
	unread := deadLetter(t, message.DispatchKey(5), message.TypeExecutionRequested, message.Dispatch{WorkerID: 5})
	for i, m := range []broker.Message{cut, released, nowhere, unread} {
		d.send(t, m)
		d.settled(t, i+1)
	}
	rows := d.rows(t)
	for i, want := range []error{
		deadletter.ErrNoMessage, deadletter.ErrDecided, deadletter.ErrNoMessage,
		deadletter.ErrNoMessage,
	} {
		_, err := d.requeue(t, rows[i].ID)
		require.ErrorIs(t, err, want, "%d", i)
	}
	_, err := d.requeue(t, 4711)
	require.ErrorIs(t, err, deadletter.ErrNotFound)
	require.ErrorIs(t, d.discard(t, 4711), deadletter.ErrNotFound)

	require.NoError(t, d.discard(t, rows[0].ID))
	require.ErrorIs(t, d.discard(t, rows[0].ID), deadletter.ErrDecided)
	var purged []int64
	require.NoError(t, d.store.Tx(testkit.Context(t), "purge", func(ctx context.Context, tx *store.Tx) (err error) {
		purged, err = deadletter.DiscardMany(ctx, tx, []int64{rows[0].ID, rows[1].ID, rows[2].ID, rows[3].ID, 4711},
			"ann", "")
		return err
	}))
	require.ElementsMatch(t, []int64{rows[2].ID, rows[3].ID}, purged, "only open dead letters")
	after := d.rows(t)
	require.Equal(t, []string{"discarded", "released", "discarded", "discarded"},
		[]string{after[0].Decision, after[1].Decision, after[2].Decision, after[3].Decision})
}

// A message counts its deaths when it is requeued, also after the rows of the earlier ones were pruned.
func TestARequeuedMessageCountsItsDeaths(t *testing.T) {
	d := newService(t)
	d.open(t)
	m := poisoned(deadLetter(t, message.KeyEventCreated, message.TypeEventCreated, message.EventCreated{EventID: 1}))
	for deaths := int64(1); deaths <= 4; deaths++ {
		d.send(t, m)
		row := d.settled(t, 1)[0]
		seen, err := d.store.ViewDeadLetters(t.Context(), []int64{row.ID})
		require.NoError(t, err)
		require.Equal(t, deaths, seen[0].Deaths)
		resent, err := d.requeue(t, row.ID)
		require.NoError(t, err)
		testkit.Exec(t, d.store, `DELETE FROM dead_letter`)
		sent := poisoned(m).Headers
		maps.Copy(sent, resent.Messages[0].Properties.Headers)
		m.Headers = sent
	}
}
