package worker

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/telemetry"
)

// scripted is a broker whose n-th answer is given; after the script everything
// is confirmed.
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
		publisher: publisher, logger: telemetry.Discard(),
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
		a.add([]announcement{{execution: 7, ref: "a.b", status: attune.StatusCompleted, result: []byte(`{}`)}})
		require.True(t, a.flush(t.Context()))
		cancel()
		wg.Wait()
		require.Len(t, publisher.seen, 5)
		for _, m := range publisher.seen {
			require.Equal(t, publisher.seen[0].ID, m.ID)
			require.Equal(t, publisher.seen[0].Body, m.Body)
		}
	})

	t.Run("ACancelIsAlsoAStatusMessageThatMayReachNobody", func(t *testing.T) {
		t.Parallel()
		a := newTestAnnouncer(&scripted{script: []broker.Status{broker.Returned}})
		a.add([]announcement{{execution: 7, status: attune.StatusCancelled, previous: attune.StatusRunning}})
		batch := a.take()
		require.Len(t, batch, 2)
		require.Equal(t, message.TypeExecutionStatusChanged, batch[0].Type)
		left := a.publish(t.Context(), batch)
		require.Len(t, left, 1, "only the completion is worth repeating")
		require.Equal(t, message.TypeExecutionCompleted, left[0].Type)
	})

	t.Run("WhatWaitsIsBounded", func(t *testing.T) {
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
		m := a.completed(announcement{execution: 7, result: append(append([]byte(`"`), make([]byte, resultInMessage)...), '"')})
		envelope, err := message.Decode[message.ExecutionCompleted](m.Body)
		require.NoError(t, err)
		require.Contains(t, []string{"", "null"}, string(envelope.Payload.Result))
	})
}
