package worker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/telemetry"
)

// scripted is a broker with scripted outcomes; after the script it confirms everything.
type scripted struct {
	mu     sync.Mutex
	script []broker.Status
	seen   []broker.Message
}

func (s *scripted) Publish(_ context.Context, messages []broker.Message) []broker.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	outcomes := make([]broker.Outcome, len(messages))
	status := broker.Confirmed
	if len(s.script) > 0 {
		status, s.script = s.script[0], s.script[1:]
	}
	for i := range messages {
		outcomes[i].Status = status
		if status != broker.Confirmed {
			outcomes[i].Err = errors.New("not confirmed")
		}
	}
	s.seen = append(s.seen, messages...)
	return outcomes
}

func newTestAnnouncer(publisher publisher) *announcer {
	return &announcer{
		publisher: publisher, logger: telemetry.Discard(), metrics: NewMetrics(nil),
		wake: make(chan struct{}, 1), idle: make(chan struct{}, 1),
	}
}

func TestAnnouncer(t *testing.T) {
	t.Parallel()

	t.Run("RepeatsTheSameMessageUntilItIsConfirmed", func(t *testing.T) {
		t.Parallel()
		publisher := &scripted{script: []broker.Status{broker.NotSent, broker.Unknown, broker.Nacked, broker.Returned}}
		a := newTestAnnouncer(publisher)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { a.run(ctx) })
		a.add(t.Context(), []announcement{{execution: 7, ref: "a.b", status: lifecycle.StatusCompleted, result: `{}`}})
		require.True(t, a.flush(t.Context()))
		cancel()
		wg.Wait()
		require.Len(t, publisher.seen, 5)
		for _, m := range publisher.seen {
			require.Equal(t, publisher.seen[0].ID, m.ID)
			require.Equal(t, publisher.seen[0].Body, m.Body)
		}
	})

	t.Run("AnUnroutableStatusMessageOfACancelIsDropped", func(t *testing.T) {
		t.Parallel()
		a := newTestAnnouncer(&scripted{script: []broker.Status{broker.Returned}})
		a.add(t.Context(),
			[]announcement{{execution: 7, status: lifecycle.StatusCancelled, previous: lifecycle.StatusRunning}})
		batch := a.dequeue()
		require.Len(t, batch, 2)
		require.Equal(t, message.TypeExecutionStatusChanged, batch[0].Type)
		left := a.publish(t.Context(), batch)
		require.Len(t, left, 1, "only the completion is published again")
		require.Equal(t, message.TypeExecutionCompleted, left[0].Type)
	})

	t.Run("PendingMessagesAreBounded", func(t *testing.T) {
		t.Parallel()
		a := newTestAnnouncer(&scripted{})
		last := announceHold + 10
		messages := make([]broker.Message, last)
		messages[last-1].ID = "newest"
		a.put(messages, false)
		require.Len(t, a.pending, announceHold)
		require.Equal(t, "newest", a.pending[announceHold-1].ID)
	})

	t.Run("LargeResultsStayInTheRow", func(t *testing.T) {
		t.Parallel()
		a := newTestAnnouncer(&scripted{})
		a.add(t.Context(), []announcement{{execution: 7, result: `"` + strings.Repeat("x", resultInMessage) + `"`}})
		envelope, err := message.Decode[message.ExecutionCompleted](a.dequeue()[0].Body)
		require.NoError(t, err)
		require.Contains(t, []string{"", "null"}, string(envelope.Payload.Result))
	})
}

// readers is a broker with a given state of the queue of batches.
type readers struct{ state broker.QueueState }

func (r *readers) State() broker.State { return broker.StateConnected }

func (r *readers) QueueState(context.Context, string) (broker.QueueState, error) { return r.state, nil }

// Completions are sent in batches only while an engine consumes batches.
func TestCompletionsAreBatchedWhileAnEngineConsumesBatches(t *testing.T) {
	t.Parallel()
	ended := []announcement{
		{execution: 7, ref: "a.b", status: lifecycle.StatusCompleted},
		{execution: 8, ref: "a.b", status: lifecycle.StatusFailed},
	}
	kinds := func(messages []broker.Message) (list []string) {
		for _, m := range messages {
			list = append(list, m.Type+" "+m.Exchange+" "+m.RoutingKey)
		}
		return list
	}
	single := message.TypeExecutionCompleted + " " + message.ExchangeExecutions + " " + message.KeyExecutionCompleted
	batch := message.TypeExecutionBatchCompleted + "  " + message.QueueExecutionBatches
	there := broker.QueueState{Exists: true, Consumers: 1}
	for name, c := range map[string]struct {
		state broker.QueueState
		want  []string
	}{
		"read":       {there, []string{batch}},
		"not read":   {broker.QueueState{Exists: true}, []string{single, single}},
		"not there":  {broker.QueueState{}, []string{single, single}},
		"turned off": {broker.QueueState{}, []string{single, single}},
	} {
		a := newTestAnnouncer(&scripted{})
		if name != "turned off" {
			a.batches = &batchReaders{broker: &readers{state: c.state}}
		}
		a.add(t.Context(), ended)
		require.Equal(t, c.want, kinds(a.dequeue()), name)
		a.add(t.Context(), ended[:1])
		require.Equal(t, []string{single}, kinds(a.dequeue()), "one end is no batch: %s", name)
	}

	t.Run("the queue is deleted", func(t *testing.T) {
		t.Parallel()
		a := newTestAnnouncer(&scripted{script: []broker.Status{broker.Returned}})
		wire := &readers{state: there}
		a.batches = &batchReaders{broker: wire}
		a.add(t.Context(), ended)
		batch := a.dequeue()
		wire.state = broker.QueueState{} // after a long pause the announcer queries it again
		left := a.publish(t.Context(), batch)
		require.Equal(t, []string{single, single}, kinds(left))
		a.add(t.Context(), ended)
		require.Equal(t, []string{single, single}, kinds(a.dequeue()), "no batch follows")
	})

	t.Run("the consumers stop while it waits", func(t *testing.T) {
		t.Parallel()
		a := newTestAnnouncer(&scripted{})
		wire := &readers{state: there}
		a.batches = &batchReaders{broker: wire}
		a.add(t.Context(), ended)
		waiting := a.dequeue()
		wire.state, a.batches.readAt = broker.QueueState{Exists: true}, time.Time{}
		require.Equal(t, []string{single, single}, kinds(a.readable(t.Context(), waiting)))
	})
}
