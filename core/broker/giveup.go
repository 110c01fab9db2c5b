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
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

// Headers of dead letters that the engine publishes: the reason, the number of attempts, the
// program, and the original address.
const (
	HeaderReason   = "x-attune-reason"
	HeaderAttempts = "x-attune-attempts"
	HeaderReplica  = "x-attune-replica"
	HeaderQueue    = "x-attune-queue"
	HeaderExchange = "x-attune-exchange"
	HeaderKey      = "x-attune-key"
	HeaderDied     = "x-attune-died"
	// HeaderDropped is a table of the headers and properties that a copy must not carry unchanged:
	// message_id, user_id, expiration and delivery_mode as they were.
	HeaderDropped = "x-attune-dropped"
)

// Limits of a dead letter's headers. They travel in one frame of 128 KiB, and a longer one ends the
// connection.
const (
	maxReason      = 1000
	maxHeaderBytes = 96 << 10
)

// GiveUp dead-letters the delivery after so many attempts: a copy with the reason goes to the
// dead-letter exchange, and after the broker's confirm the delivery is acknowledged. GiveUp returns
// at once. The delivery is detached from its batch and stays unacknowledged until the copy is
// confirmed, however long that takes; if its channel is lost before, the message is delivered
// again.
//
// A delivery is never rejected: the broker would read its headers again, and a queue of RabbitMQ 3
// crashes for good on a forged x-death.
func (d *Delivery) GiveUp(ctx context.Context, reason error, attempts int) {
	one := d.Detach()
	s := one.batch.subscription
	deadLetter := deadLetter(one, reason, attempts, s.cfg.Queue, s.publisher.cfg.ConnectionName)
	go s.publisher.giveUp(context.WithoutCancel(ctx), one, deadLetter) // ends with the Broker
}

// GiveUpUnread is GiveUp of a delivery that its reader cannot read. The unreadable messages of a batch
// share one dead letter, the whole batch: a few bytes must not become hundreds of dead letters.
func (d *Delivery) GiveUpUnread(ctx context.Context, reason error) {
	if d.parts == nil {
		d.GiveUp(ctx, reason, 1)
		return
	}
	one := d.Detach()
	whole, first := d.parts.refuse()
	if !first {
		_ = one.Ack() // it never settles the whole before its dead letter is confirmed; a stale one comes again
		return
	}
	s := d.batch.subscription
	reason = fmt.Errorf("message %d of %d: %w", d.part+1, len(d.parts.settled), reason)
	go s.publisher.giveUp(context.WithoutCancel(ctx), one,
		deadLetter(whole, reason, 1, s.cfg.Queue, s.publisher.cfg.ConnectionName)) // as in GiveUp
}

// AsDeadLetter is the delivery in the form in which GiveUp would dead-letter it, for a caller that
// stores it elsewhere. Its Ack settles the delivery.
func (d *Delivery) AsDeadLetter(reason error, attempts int) *Delivery {
	s := d.batch.subscription
	deadLetter := deadLetter(d, reason, attempts, s.cfg.Queue, s.publisher.cfg.ConnectionName)
	dead := *d
	dead.MessageID, dead.Exchange, dead.Headers = deadLetter.ID, deadLetter.Exchange,
		deadLetter.Properties.Headers
	return &dead
}

// Pauses before a dead letter is published again.
const (
	giveUpFirst   = 100 * time.Millisecond
	giveUpLongest = 15 * time.Second
)

func (p *Publisher) giveUp(ctx context.Context, d *Delivery, deadLetter Message) {
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
		outcome := p.Publish(ctx, []Message{deadLetter})[0]
		if outcome.Status == Returned && deadLetter.Exchange != "" {
			// The dead-letter exchange has no route: publish to the queue directly.
			direct := deadLetter
			direct.Exchange, direct.RoutingKey = "", message.QueueDeadLetter
			outcome = p.Publish(ctx, []Message{direct})[0]
		}
		if outcome.Status == Confirmed {
			if err := d.Ack(); err != nil {
				logger.DebugContext(ctx, "Delivery of a dead letter could not be acknowledged", "message_id",
					deadLetter.ID, "error", err)
			}
			return
		}
		if errors.Is(outcome.Err, ErrInvalid) {
			deadLetter.Properties.Headers = bare(deadLetter.Properties.Headers)
		}
		logger.WarnContext(telemetry.Often(ctx), "Dead letter could not be published and is kept",
			"message_id", deadLetter.ID, "pause", pause, "error", outcome.Err)
		supervise.Sleep(ctx, pause)
	}
}

// deadLetter is the copy of a delivery with the reason and place of its death, and with its properties.
func deadLetter(d *Delivery, cause error, attempts int, queue, by string) Message {
	reason := cause.Error()
	p := d.Properties
	dropped := Table{}
	if p.MessageID == "" {
		p.MessageID, dropped["message_id"] = uuid.NewString(), ""
	}
	if p.UserID != "" {
		p.UserID, dropped["user_id"] = "", p.UserID
	}
	if d.Expiration != "" {
		dropped["expiration"] = d.Expiration
	}
	if p.DeliveryMode != amqp.Persistent {
		p.DeliveryMode, dropped["delivery_mode"] = amqp.Persistent, p.DeliveryMode
	}
	p.Headers = copied(d.Headers, dropped)
	p.Headers[HeaderReason], p.Headers[HeaderAttempts] = reason[:min(len(reason), maxReason)], strconv.Itoa(attempts)
	p.Headers[HeaderReplica], p.Headers[HeaderQueue] = by, queue
	p.Headers[HeaderExchange], p.Headers[HeaderKey] = d.Exchange, d.RoutingKey
	p.Headers[HeaderDied] = time.Now().UTC().Format(time.RFC3339Nano)
	return Message{
		ID: p.MessageID, Exchange: message.ExchangeDeadLetter, RoutingKey: d.RoutingKey, Body: d.Body, Properties: &p,
	}
}

// bare keeps the engine's own headers only.
func bare(headers Table) Table {
	own := Table{}
	for name, value := range headers {
		if text, ok := value.(string); ok && strings.HasPrefix(name, "x-attune-") {
			own[name] = text
		}
	}
	return own
}

// copied are the headers of a delivery as a copy may carry them. Headers that the broker would act
// upon, and malformed ones, move to HeaderDropped. Headers beyond one frame are cut.
func copied(headers, dropped Table) Table {
	kept := Table{}
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
	for _, name := range slices.SortedFunc(maps.Keys(kept),
		func(a, b string) int { return sizeOf(kept[a]) - sizeOf(kept[b]) }) {
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

// soundDeaths reports whether a value of x-death has the broker's format.
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

// sizeOf is the approximate size of a header in bytes on the wire.
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
