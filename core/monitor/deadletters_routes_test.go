package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// countedBroker counts how often its wiring is read.
type countedBroker struct {
	fakeBroker

	reads *atomic.Int64
}

func (c countedBroker) ReadWiring(ctx context.Context) (*broker.Wiring, error) {
	c.reads.Add(1)
	return c.fakeBroker.ReadWiring(ctx)
}

// of is a dead letter of an event from a queue, which died a number of times.
func of(exchange, queue string, deaths int) func(*monitortest.DeadLetterRow) {
	return func(r *monitortest.DeadLetterRow) {
		r.Kind, r.Key, r.Worker = message.TypeEventCreated, message.KeyEventCreated, 0
		r.Exchange, r.Queue = exchange, queue
		r.Body = []byte(`{"message_type":"EventCreated","message_id":"4f3f4f8e-1f0f-4a53-a5a8-5f1d7a3dc001",` +
			`"timestamp":"2026-11-21T10:00:00Z","payload":{"event_id":1}}`)
		r.Headers = fmt.Sprintf(`{"x-attune-deaths": %d}`, deaths-1)
	}
}

// Lists and pages say of a dead letter when its queue or exchange is gone, when nothing consumes its queue, and when it
// died too often. One list reads the broker once. Without its answer the verdict says that this is unknown.
func TestVerdictsKnowTheBrokerAndLoops(t *testing.T) {
	exchange := broker.ExchangeInfo{Kind: "topic"}
	w := &broker.Wiring{
		Exchanges: map[string]broker.ExchangeInfo{
			message.ExchangeEvents: exchange, "mirror": exchange, "bare": exchange,
		},
		Queues: []broker.QueueInfo{
			{Name: message.QueueEvents, Consumers: new(0)}, {Name: "heard", Consumers: new(2)},
			{Name: "unheard", Consumers: new(0)}, {Name: "uncounted"},
		},
	}
	for _, r := range [][2]string{
		{message.ExchangeEvents, message.QueueEvents},
		{"mirror", "heard"}, {"mirror", "unheard"}, {"mirror", "uncounted"},
	} {
		w.Bindings = append(w.Bindings, broker.Binding{Source: r[0], Queue: r[1], RoutingKey: "#"})
	}
	reads := &atomic.Int64{}
	b := setup(t, countedBroker{fakeBroker{wiring: w, broker: &Broker{}}, reads})
	silent := New(Config{}, Deps{Store: b.Store, Broker: fakeBroker{err: errors.New("refused")}})
	for _, c := range []struct {
		letter          func(*monitortest.DeadLetterRow)
		advice, problem string
	}{
		{of(message.ExchangeEvents, message.QueueEvents, 1), AdviseRequeue, ""},
		{of("mirror", "heard", 2), AdviseRequeue, ""},
		{of("mirror", "uncounted", 1), AdviseRequeue, ""},
		{of("mirror", "", 1), AdviseRequeue, ""},
		{of("mirror", "unheard", 1), AdviseFix, "no consumer"},
		{of("mirror", "unheard", 4), AdviseFix, "no consumer · died 4 times"},
		{of("mirror", "heard", 4), AdviseFix, "died 4 times"},
		{of(message.ExchangeEvents, "mirror.events", 1), AdviseFix, "mirror.events is gone"},
		{of("bare", "mirror.events", 1), AdviseSend, "mirror.events is gone"},
		{of("bare", "heard", 1), AdviseSend, "no route to a queue"},
		{of("shop", "mirror.events", 1), AdviseSend, "exchange shop is gone"},
	} {
		id := b.AddDeadLetter(t, c.letter)
		want := []string{c.advice, c.problem}
		one, err := b.DeadLetter(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, want, []string{one.Verdict.Advice, one.Verdict.Problem}, one.Verdict.Why)
		page, err := b.LedgerList(t.Context(), DeadLetterFilter{}, 0)
		require.NoError(t, err)
		require.Equal(t, want, []string{page.List[0].Verdict.Advice, page.List[0].Verdict.Problem})
		d, err := b.DeadLetters(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, []string{d.Ledger.Recent[0].Verdict.Advice, d.Ledger.Recent[0].Verdict.Problem})

		for range 2 {
			page, err = silent.LedgerList(t.Context(), DeadLetterFilter{}, 0)
			require.NoError(t, err)
			require.Equal(t, "refused", page.List[0].Verdict.Unknown)
		}
		d, err = silent.DeadLetters(t.Context())
		require.NoError(t, err)
		require.Equal(t, "refused", d.Ledger.Recent[0].Verdict.Unknown)
	}
	before := reads.Load()
	b.wiring = lastWiring{}
	_, err := b.LedgerList(t.Context(), DeadLetterFilter{}, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, reads.Load()-before)
}

// deafBroker accepts a request and never answers.
type deafBroker struct {
	fakeBroker

	reads atomic.Int64
}

func (d *deafBroker) ReadWiring(ctx context.Context) (*broker.Wiring, error) {
	d.reads.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// Verdicts wait once for a broker that does not answer, and not each for itself.
func TestVerdictsShareTheWaitForABroker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		deaf := &deafBroker{}
		m := New(Config{}, Deps{Broker: deaf})
		for range 3 {
			list := []LedgerEntry{{Verdict: DeadLetterVerdict{Requeue: RequeueSends, Advice: AdviseRequeue}}}
			m.assessRoutes(t.Context(), list)
			require.Equal(t, "the broker does not answer in time", list[0].Verdict.Unknown)
		}
		require.EqualValues(t, 1, deaf.reads.Load())
	})
}

// A dispatch that was requeued as a new execution dies again as another dead letter, which counts the former ones.
func TestARequeuedDispatchCountsItsDeaths(t *testing.T) {
	b := setup(t, nil)
	action, original := testkit.Action(t, b.Store, "demo.loop"), int64(0)
	for deaths := int64(1); deaths <= 4; deaths++ {
		e := testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusFailed))
		testkit.Exec(t, b.Store, `UPDATE execution SET original_execution = nullif($2::bigint, 0), retry_count = $3
			WHERE id = $1`, e.ID, original, deaths-1)
		if original == 0 {
			original = e.ID
		}
		id := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Execution, r.Decision = e.ID, "failed" })
		list, err := b.DeadLettersByID(t.Context(), []int64{id})
		require.NoError(t, err)
		require.Equal(t, deaths, list[0].Deaths)
		want := AdviseRequeue
		if deaths > 2 {
			want = AdviseFix
		}
		require.Equal(t, want, list[0].Verdict.Advice, list[0].Verdict.Why)
		testkit.Exec(t, b.Store, `UPDATE dead_letter SET decision = 'requeued' WHERE id = $1`, id)
	}
}
