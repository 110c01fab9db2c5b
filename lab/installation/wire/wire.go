// Package wire publishes messages and declares queues as the services of an existing installation do.
// It shares no code with the engine.
package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

// The exchanges that messages are published to.
const (
	Events     = "attune.events"
	Executions = "attune.executions"

	deadLetters = "attune.dlx"
)

// Queue is a durable queue with its bindings. Messages older than TTL become dead letters; 0 means never.
type Queue struct {
	Name, Exchange string
	Keys           []string
	TTL            time.Duration
}

// Dispatches is the queue in which a worker receives its executions.
func Dispatches(worker int64, ttl time.Duration) Queue {
	return Queue{
		Name: fmt.Sprintf("worker.%d.executions", worker), Exchange: Executions,
		Keys: []string{DispatchKey(worker)}, TTL: ttl,
	}
}

// DispatchKey is the routing key of a worker's executions.
func DispatchKey(worker int64) string { return fmt.Sprintf("execution.dispatch.worker.%d", worker) }

// Declare declares the exchanges and the dead-letter queue, as every service does, and the service's own queues.
func Declare(channel *amqp.Channel, queues ...Queue) error {
	for name, kind := range map[string]string{
		Events: "topic", Executions: "topic", "attune.notifications": "fanout", deadLetters: "direct",
	} {
		if err := channel.ExchangeDeclare(name, kind, true, false, false, false, nil); err != nil {
			return fmt.Errorf("declare the exchange %s: %w", name, err)
		}
	}
	for _, queue := range append(queues, Queue{Name: "attune.dlx.queue", Exchange: deadLetters, Keys: []string{"#"}}) {
		arguments := amqp.Table{}
		if queue.Exchange != deadLetters {
			arguments["x-dead-letter-exchange"] = deadLetters
		}
		if queue.TTL > 0 {
			arguments["x-message-ttl"] = int32(queue.TTL.Milliseconds())
		}
		if _, err := channel.QueueDeclare(queue.Name, true, false, false, false, arguments); err != nil {
			return fmt.Errorf("declare the queue %s: %w", queue.Name, err)
		}
		for _, key := range queue.Keys {
			if err := channel.QueueBind(queue.Name, key, queue.Exchange, false, nil); err != nil {
				return fmt.Errorf("bind the queue %s: %w", queue.Name, err)
			}
		}
	}
	return nil
}

// Envelope is the frame of every message.
type Envelope struct {
	MessageID     string          `json:"message_id"`
	CorrelationID string          `json:"correlation_id"`
	MessageType   string          `json:"message_type"`
	Version       string          `json:"version"`
	Timestamp     time.Time       `json:"timestamp"`
	Headers       map[string]any  `json:"headers"`
	Payload       json.RawMessage `json:"payload"`
}

// Publisher publishes the messages of one service.
type Publisher struct {
	Channel *amqp.Channel
	Service string // the source_service of the messages
}

// Send publishes a payload in an envelope. A channel in confirm mode waits for the broker's confirm.
func (p Publisher) Send(ctx context.Context, exchange, key, kind string, payload any) error {
	raw, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	id := uuid.NewString()
	body, err := json.Marshal(Envelope{
		MessageID: id, CorrelationID: id, MessageType: kind, Version: "1.0", Timestamp: time.Now().UTC(),
		Headers: map[string]any{"retry_count": 0, "source_service": p.Service}, Payload: raw,
	})
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	return p.SendRaw(ctx, exchange, key, id, body)
}

// SendRaw publishes a body as it is.
func (p Publisher) SendRaw(ctx context.Context, exchange, key, id string, body []byte) error {
	confirm, err := p.Channel.PublishWithDeferredConfirmWithContext(ctx, exchange, key, false, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, ContentType: "application/json",
		MessageId: id, CorrelationId: id, Timestamp: time.Now().UTC(), Body: body,
	})
	if err == nil && confirm != nil {
		_, err = confirm.WaitContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", key, err)
	}
	return nil
}
