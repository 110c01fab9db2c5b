package engine

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
)

// publisher sends messages with confirms; *broker.Publisher is one.
type publisher interface {
	Publish(ctx context.Context, messages []broker.Message) []broker.Outcome
}

// maxReason bounds the text of a dead letter's reason.
const maxReason = 1000

// poison dead-letters a delivery that cannot be processed. The dead letter says
// why: a copy with the reason in its headers is published and confirmed, and the
// original acknowledged. When that fails the original is rejected, and the broker
// dead-letters it without the reason; nothing is lost either way.
func (h *hot) poison(ctx context.Context, it item, kind string, cause error) {
	d := it.delivery
	h.metrics.poison(kind)
	h.logger.WarnContext(ctx, "Message dead-lettered",
		"message_id", d.MessageID, "message_type", kind, "bytes", len(d.Body), "attempts", it.attempts+1, "reason", cause)
	var err error
	if h.bury(ctx, it, cause) {
		err = d.Ack()
	} else {
		err = d.Nack(false)
	}
	if err != nil {
		h.logger.DebugContext(ctx, "Dead letter could not be settled and comes again", "message_id", d.MessageID, "error", err)
	}
}

// bury publishes the dead letter and reports whether the broker has it.
func (h *hot) bury(ctx context.Context, it item, cause error) bool {
	if h.deadLetters == nil || time.Now().Before(h.noLetters) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, sideTimeout)
	defer cancel()
	letter := certificate(it.delivery, queueOf(it), h.replica, it.attempts+1, cause)
	outcomes := h.deadLetters.Publish(ctx, []broker.Message{letter})
	if outcomes[0].Status != broker.Confirmed {
		h.noLetters = time.Now().Add(sideTimeout) // the next ones do not wait for the same broker
		return false
	}
	return true
}

// certificate is a dead letter that says why and where its message died.
func certificate(d *broker.Delivery, queue, replica string, attempts int, cause error) broker.Message {
	reason := cause.Error()
	headers := broker.Table{}
	maps.Copy(headers, d.Headers)
	headers[deadletter.HeaderReason], headers[deadletter.HeaderAttempts] = reason[:min(len(reason), maxReason)], strconv.Itoa(attempts)
	headers[deadletter.HeaderReplica], headers[deadletter.HeaderQueue] = replica, queue
	headers[deadletter.HeaderExchange], headers[deadletter.HeaderDied] = d.Exchange, time.Now().UTC().Format(time.RFC3339Nano)
	return broker.Message{
		ID: d.MessageID, CorrelationID: d.CorrelationID, Exchange: message.ExchangeDeadLetter, RoutingKey: d.RoutingKey,
		Type: d.Type, Body: d.Body, Timestamp: d.Timestamp, Headers: headers,
	}
}

// queueOf is where a delivery came from.
func queueOf(it item) string {
	if it.ended {
		return message.QueueExecutionCompleted
	}
	return message.QueueExecutionRequests
}
