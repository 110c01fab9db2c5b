package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
)

// Headers of dead letters that we publish ourselves: why, after how many attempts, by
// whom, and where the message was on its way.
const (
	HeaderReason   = "x-attune-reason"
	HeaderAttempts = "x-attune-attempts"
	HeaderReplica  = "x-attune-replica"
	HeaderQueue    = "x-attune-queue"
	HeaderExchange = "x-attune-exchange"
	HeaderKey      = "x-attune-key"
	HeaderDied     = "x-attune-died"
	// HeaderDropped is a table of the headers that a copy must not carry as they are.
	HeaderDropped = "x-attune-dropped"
)

// Bounds of what a dead letter says. Its headers travel in one frame of 128 KiB, and a
// longer one ends the connection.
const (
	maxReason      = 1000
	maxHeaderBytes = 96 << 10
)

// GiveUp dead-letters the delivery after so many attempts: a copy that says why goes to
// the dead-letter exchange, and when the broker has confirmed it the delivery is
// acknowledged. GiveUp returns at once. The delivery is taken out of its batch and stays
// unacknowledged until the broker has the copy, however long that takes; if its channel
// is lost before, the message comes again.
//
// A delivery is never rejected: the broker would read its headers again, and a queue of
// RabbitMQ 3 crashes for good over an x-death that it did not write.
func (d *Delivery) GiveUp(ctx context.Context, reason error, attempts int) {
	one := d.Detach()
	s := one.batch.subscription
	letter := deadLetter(one, reason, attempts, s.cfg.Queue, s.publisher.cfg.ConnectionName)
	go s.publisher.giveUp(context.WithoutCancel(ctx), one, letter) // ends with the Broker
}

// AsDeadLetter is the delivery as GiveUp would have it come from the dead-letter queue,
// for a caller who has another place for it. Ack of it settles the delivery.
func (d *Delivery) AsDeadLetter(reason error, attempts int) *Delivery {
	s := d.batch.subscription
	letter := deadLetter(d, reason, attempts, s.cfg.Queue, s.publisher.cfg.ConnectionName)
	dead := *d
	dead.MessageID, dead.Exchange, dead.Headers = letter.ID, letter.Exchange, letter.Headers
	return &dead
}

// Pauses before a dead letter is published again.
const (
	giveUpFirst   = 100 * time.Millisecond
	giveUpLongest = 15 * time.Second
)

func (p *Publisher) giveUp(ctx context.Context, d *Delivery, letter Message) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	logger, done := p.link.broker.logger, p.link.broker.Done()
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	for pause := giveUpFirst; ctx.Err() == nil && !d.Stale(); pause = min(2*pause, giveUpLongest) {
		outcome := p.Publish(ctx, []Message{letter})[0]
		if outcome.Status == Returned && letter.Exchange != "" {
			// No route leads from the dead-letter exchange: the queue is addressed itself.
			direct := letter
			direct.Exchange, direct.RoutingKey = "", message.QueueDeadLetter
			outcome = p.Publish(ctx, []Message{direct})[0]
		}
		if outcome.Status == Confirmed {
			if err := d.Ack(); err != nil {
				logger.DebugContext(ctx, "Dead letter comes again", "message_id", letter.ID, "error", err)
			}
			return
		}
		if errors.Is(outcome.Err, ErrInvalid) {
			letter.Headers = bare(letter.Headers)
		}
		logger.WarnContext(ctx, "Dead letter could not be published and is kept",
			"message_id", letter.ID, "pause", pause, "error", outcome.Err)
		supervise.Sleep(ctx, pause)
	}
}

// deadLetter is the copy of a delivery that says why and where it died.
func deadLetter(d *Delivery, cause error, attempts int, queue, by string) Message {
	reason := cause.Error()
	headers := copied(d.Headers)
	headers[HeaderReason], headers[HeaderAttempts] = reason[:min(len(reason), maxReason)], strconv.Itoa(attempts)
	headers[HeaderReplica], headers[HeaderQueue] = by, queue
	headers[HeaderExchange], headers[HeaderKey] = d.Exchange, d.RoutingKey
	headers[HeaderDied] = time.Now().UTC().Format(time.RFC3339Nano)
	id := d.MessageID
	if id == "" {
		id = uuid.NewString()
	}
	return Message{
		ID: id, CorrelationID: d.CorrelationID, Exchange: message.ExchangeDeadLetter, RoutingKey: d.RoutingKey,
		Type: d.Type, Body: d.Body, Timestamp: d.Timestamp, Headers: headers,
	}
}

// bare keeps our own headers only.
func bare(headers Table) Table {
	own := Table{}
	for name, value := range headers {
		if text, ok := value.(string); ok && strings.HasPrefix(name, "x-attune-") {
			own[name] = text
		}
	}
	return own
}

// copied are the headers of a delivery as a copy may carry them. What the broker would
// act upon, and what is malformed, is kept aside in
// HeaderDropped; what does not fit into one frame is cut.
func copied(headers Table) Table {
	kept, dropped := Table{}, Table{}
	maps.Copy(kept, headers)
	for name, value := range headers {
		switch lower := strings.ToLower(name); {
		case lower == "cc", lower == "bcc", lower == "x-delivery-count",
			lower == "x-death" && (name != lower || !soundDeaths(value)),
			(strings.HasPrefix(lower, "x-first-death-") || strings.HasPrefix(lower, "x-last-death-")) && !isText(value):
			dropped[name] = value
			delete(kept, name)
		}
	}
	if len(dropped) > 0 {
		kept[HeaderDropped] = dropped
	}
	budget := maxHeaderBytes
	for _, name := range slices.SortedFunc(maps.Keys(kept), func(a, b string) int { return sizeOf(kept[a]) - sizeOf(kept[b]) }) {
		size := len(name) + sizeOf(kept[name])
		if budget -= size; budget < 0 {
			kept[name] = fmt.Sprintf("cut: %d bytes", size)
			budget += size - len(name) - 32
			if budget < 0 {
				delete(kept, name)
			}
		}
	}
	return kept
}

func isText(value any) bool {
	_, ok := value.(string)
	return ok
}

// soundDeaths reports whether a value of x-death is what the broker writes.
func soundDeaths(value any) bool {
	entries, ok := value.([]any)
	if !ok {
		return false
	}
	for _, entry := range entries {
		death, ok := entry.(Table)
		if !ok || !isText(death["queue"]) || !isText(death["reason"]) {
			return false
		}
		if _, ok := death["count"].(int64); !ok && death["count"] != nil {
			return false
		}
	}
	return true
}

// sizeOf is about how many bytes a header takes on the wire.
func sizeOf(value any) int {
	const fixed = 16
	switch v := value.(type) {
	case string:
		return fixed + len(v)
	case []byte:
		return fixed + len(v)
	case []any:
		size := fixed
		for _, item := range v {
			size += sizeOf(item)
		}
		return size
	case Table:
		size := fixed
		for name, item := range v {
			size += len(name) + sizeOf(item)
		}
		return size
	default:
		return fixed
	}
}
