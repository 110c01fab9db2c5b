package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
)

// source is the source_service of this worker's messages.
const source = "worker"

// Limits of the messages that wait for the broker. The engine's sweep finds executions whose
// messages are dropped.
const (
	announceMax      = 500
	announceHold     = 20_000
	announceHoldSize = 64 << 20
	publishTimeout   = 15 * time.Second

	// resultInMessage bounds the result in a message. Consumers read it from the row.
	resultInMessage = 64 << 10
)

// announcement is a committed end to publish.
type announcement struct {
	execution        int64
	action           *int64
	ref              string
	status, previous lifecycle.Status
	result           string // JSON
	at               time.Time
}

// publisher is the part of the broker that the announcer uses.
type publisher interface {
	Publish(ctx context.Context, messages []broker.Message) []broker.Outcome
}

// announcer publishes committed ends, and repeats each with the same message id until the broker
// confirms it.
type announcer struct {
	publisher publisher
	batches   *batchReaders // nil sends each completion in its own message
	logger    *slog.Logger
	metrics   *Metrics

	mu      sync.Mutex
	pending []broker.Message // guarded by mu
	size    int              // bytes in pending; guarded by mu
	busy    bool             // a publish is running; guarded by mu
	wake    chan struct{}
	idle    chan struct{} // signalled when nothing is pending
}

// add queues committed ends.
func (a *announcer) add(ctx context.Context, ended []announcement) {
	if len(ended) == 0 {
		return
	}
	var messages []broker.Message
	payloads := make([]message.ExecutionCompleted, len(ended))
	for i, e := range ended {
		if e.status == lifecycle.StatusCancelled {
			messages = append(messages, encode(a, message.TypeExecutionStatusChanged, message.ExecutionStatusChanged{
				ExecutionID: e.execution, ActionRef: e.ref, PreviousStatus: string(e.previous),
				NewStatus: string(e.status), ChangedAt: e.at,
			}))
		}
		payloads[i] = e.payload()
	}
	if len(ended) > 1 && a.batches.there(ctx) {
		messages = append(messages, a.together(payloads)...)
	} else {
		for _, payload := range payloads {
			messages = append(messages, encode(a, message.TypeExecutionCompleted, payload))
		}
	}
	a.put(messages, false)
}

// put queues messages, at the front if they were tried before.
func (a *announcer) put(messages []broker.Message, front bool) {
	if len(messages) == 0 {
		return
	}
	a.mu.Lock()
	for _, m := range messages {
		a.size += len(m.Body)
	}
	if front {
		a.pending = append(messages, a.pending...)
	} else {
		a.pending = append(a.pending, messages...)
	}
	dropped := 0
	for len(a.pending) > announceHold || (a.size > announceHoldSize && len(a.pending) > 1) {
		a.size -= len(a.pending[0].Body)
		a.pending = a.pending[1:]
		dropped++
	}
	a.mu.Unlock()
	if dropped > 0 {
		a.metrics.dropped.Add(float64(dropped))
		a.logger.Warn("Completions dropped beyond the memory bound; the engine's sweep finds them",
			"dropped", dropped)
	}
	signal(a.wake)
}

func (a *announcer) dequeue() []broker.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(len(a.pending), announceMax)
	batch := a.pending[:n:n]
	a.pending = a.pending[n:]
	for _, m := range batch {
		a.size -= len(m.Body)
	}
	a.busy = n > 0
	if n == 0 {
		signal(a.idle)
	}
	return batch
}

func (a *announcer) run(ctx context.Context) {
	pause := retryFirst
	for {
		batch := a.dequeue()
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-a.wake:
			}
			continue
		}
		left := a.publish(ctx, a.readable(ctx, batch))
		if len(left) == 0 {
			crashpoint.Reach("worker:reported")
			pause = retryFirst
			continue
		}
		a.put(left, true)
		if !supervise.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, retryLongest)
	}
}

// publish returns the messages to publish again. An unroutable status message is dropped: no
// program depends on it.
func (a *announcer) publish(ctx context.Context, batch []broker.Message) []broker.Message {
	timed, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	var left []broker.Message
	var reason error
	for i, outcome := range a.publisher.Publish(timed, batch) {
		if outcome.Status == broker.Confirmed {
			continue
		}
		if outcome.Status == broker.Returned && batch[i].Type == message.TypeExecutionStatusChanged {
			continue
		}
		if outcome.Status == broker.Returned && message.IsBatch(batch[i].Type) {
			a.batches.gone()
			left, reason = append(left, split(batch[i])...), outcome.Err
			continue
		}
		left, reason = append(left, batch[i]), outcome.Err
	}
	if len(left) > 0 && ctx.Err() == nil {
		a.metrics.failed.WithLabelValues("publish").Inc()
		a.logger.WarnContext(ctx, "Messages not confirmed, publishing again",
			"messages", len(left), "of", len(batch), "error", reason)
	}
	return left
}

// flush waits until everything is confirmed; it returns false if the context ends first.
func (a *announcer) flush(ctx context.Context) bool {
	for {
		a.mu.Lock()
		empty := len(a.pending) == 0 && !a.busy
		a.mu.Unlock()
		if empty {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-a.idle:
		}
	}
}

func (e announcement) payload() message.ExecutionCompleted {
	payload := message.ExecutionCompleted{
		ExecutionID: e.execution, ActionRef: e.ref, Status: string(e.status), CompletedAt: e.at,
	}
	if e.action != nil {
		payload.ActionID = *e.action
	}
	if size := len(e.result); size > 0 && size <= resultInMessage {
		payload.Result = jsonvalue.Copy(json.RawMessage(e.result), resultInMessage)
	}
	return payload
}

// encode makes the message with its id, which stays the same in every publication.
func encode[P any](a *announcer, kind string, payload P) broker.Message {
	envelope := message.New(kind, payload, time.Now().UTC(), source)
	body, err := envelope.Encode()
	if err != nil { // payloads always encode
		a.logger.Error("Message could not be encoded", "message_type", kind, "error", err)
	}
	return routed(kind, envelope.MessageID, envelope.CorrelationID, body, envelope.Timestamp)
}
