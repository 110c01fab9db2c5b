package worker

import (
	"context"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
)

// batchReaders finds out whether an engine consumes completions in batches. It queries the broker at intervals; without
// an answer there is none.
type batchReaders struct {
	broker queueStates

	mu     sync.Mutex
	readAt time.Time // guarded by mu
	found  bool      // guarded by mu
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
	if time.Since(b.readAt) < readersFor {
		return b.found
	}
	b.found = false
	if b.broker.State() == broker.StateConnected {
		ctx, cancel := context.WithTimeout(ctx, readersTimeout)
		defer cancel()
		state, err := b.broker.QueueState(ctx, message.QueueExecutionBatches)
		b.found = err == nil && state.Exists && state.Consumers > 0
	}
	b.readAt = time.Now()
	return b.found
}

// gone records that the queue does not exist.
func (b *batchReaders) gone() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found, b.readAt = false, time.Now()
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
		messages[i] = routed(one.Type, one.ID, one.ID, one.Body, at)
	}
	return messages
}

// routed addresses a message by its type.
func routed(kind, id, correlation string, body []byte, at time.Time) broker.Message {
	route, _ := message.RouteOf(kind)
	return broker.Message{
		ID: id, CorrelationID: correlation, Exchange: route.Exchange, RoutingKey: route.Key, Type: kind, Body: body,
		Timestamp: at,
	}
}

// readable splits batches if no engine reads batches.
func (a *announcer) readable(ctx context.Context, messages []broker.Message) []broker.Message {
	list := make([]broker.Message, 0, len(messages))
	for _, m := range messages {
		if message.IsBatch(m.Type) && !a.batches.there(ctx) {
			list = append(list, split(m)...)
		} else {
			list = append(list, m)
		}
	}
	return list
}

func split(m broker.Message) []broker.Message {
	singles, err := message.Split(m.Body)
	if err != nil {
		return []broker.Message{m} // cannot happen: this worker wrote it
	}
	list := make([]broker.Message, len(singles))
	for i, one := range singles {
		list[i] = routed(one.Type, one.MessageID, m.CorrelationID, one.Body, m.Timestamp)
	}
	return list
}
