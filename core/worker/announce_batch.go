package worker

import (
	"context"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
)

// batchReaders knows whether an engine consumes completions in batches. It asks the broker at
// intervals; when in doubt the answer is no.
type batchReaders struct {
	broker queueStates

	mu    sync.Mutex
	asked time.Time // guarded by mu
	found bool      // guarded by mu
}

// queueStates is the part of the broker that batchReaders uses.
type queueStates interface {
	State() broker.State
	QueueState(ctx context.Context, name string) (broker.QueueState, error)
}

const (
	// readersFor is how long an answer stays valid.
	readersFor = 5 * time.Second
	// readersTimeout bounds the wait for an answer, because no ends are written meanwhile.
	readersTimeout = time.Second
)

// there reports whether completions may be sent in batches now.
func (b *batchReaders) there(ctx context.Context) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.asked) < readersFor {
		return b.found
	}
	b.found = false
	if b.broker.State() == broker.StateConnected {
		ctx, cancel := context.WithTimeout(ctx, readersTimeout)
		defer cancel()
		state, err := b.broker.QueueState(ctx, message.QueueExecutionBatches)
		b.found = err == nil && state.Exists && state.Consumers > 0
	}
	b.asked = time.Now()
	return b.found
}

// gone records that the queue does not exist.
func (b *batchReaders) gone() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found, b.asked = false, time.Now()
}

// together encodes completions in as few messages as possible.
func (a *announcer) together(payloads []message.ExecutionCompleted) []broker.Message {
	at := time.Now().UTC()
	sent, err := message.Batches(message.TypeExecutionBatchCompleted, payloads, at, source)
	if err != nil { // payloads always encode
		a.logger.Error("Message could not be encoded", "message_type", message.TypeExecutionBatchCompleted, "error",
			err)
	}
	messages := make([]broker.Message, len(sent))
	for i, one := range sent {
		route, _ := message.RouteOf(one.Type)
		messages[i] = broker.Message{
			ID: one.ID, CorrelationID: one.ID, Exchange: route.Exchange, RoutingKey: route.Key, Type: one.Type,
			Body: one.Body, Timestamp: at,
		}
	}
	return messages
}

// readable splits batches if no engine reads batches.
func (a *announcer) readable(ctx context.Context, messages []broker.Message) []broker.Message {
	list := make([]broker.Message, 0, len(messages))
	for _, m := range messages {
		if message.IsBatch(m.Type) && !a.batches.there(ctx) {
			list = append(list, apart(m)...)
		} else {
			list = append(list, m)
		}
	}
	return list
}

// apart lists the messages of a batch.
func apart(m broker.Message) []broker.Message {
	singles, err := message.Split(m.Body)
	if err != nil {
		return []broker.Message{m} // this worker wrote it
	}
	list := make([]broker.Message, len(singles))
	for i, one := range singles {
		route, _ := message.RouteOf(one.Type)
		list[i] = broker.Message{
			ID: one.MessageID, CorrelationID: m.CorrelationID, Exchange: route.Exchange, RoutingKey: route.Key,
			Type: one.Type, Body: one.Body, Timestamp: m.Timestamp,
		}
	}
	return list
}
