package engine

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/telemetry"
)

// unreadable dead-letters a delivery that cannot be read.
func (h *shared) unreadable(ctx context.Context, d *broker.Delivery, kind string, cause error) {
	logPoison(ctx, h.logger, h.metrics, item{delivery: d}, kind, cause)
	d.GiveUpUnread(ctx, cause)
}

// poison dead-letters a delivery that cannot be processed.
func poison(ctx context.Context, logger *slog.Logger, metrics *Metrics, it item, kind string, cause error) {
	logPoison(ctx, logger, metrics, it, kind, cause)
	it.delivery.GiveUp(ctx, cause, it.attempts+1)
}

func logPoison(ctx context.Context, logger *slog.Logger, metrics *Metrics, it item, kind string, cause error) {
	metrics.poison(kind)
	logger.WarnContext(telemetry.Often(ctx), "Message dead-lettered",
		"message_id", it.delivery.MessageID, "message_type", kind, "bytes", len(it.delivery.Body),
		"attempts", it.attempts+1, "reason", cause)
}

// postpone postpones a delivery that failed alone. It dead-letters a delivery that keeps failing.
func (h *shared) postpone(ctx context.Context, later *later, it item, kind string, f batch.Failure) {
	if f.Verdict == batch.Suspect && it.attempts+1 >= maxAttempts {
		poison(ctx, h.logger, h.metrics, it, kind, f.Err)
		return
	}
	h.logger.WarnContext(telemetry.Often(ctx), "Message cannot be processed now and is tried again",
		"message_id", it.delivery.MessageID, "attempts", it.attempts+1, "error", f.Err)
	it.blocked = f.Verdict == batch.Blocked
	later.add(it, time.Now())
}

// absent gives up messages of a type about rows that do not exist. After a database was restored
// there are thousands, so they are written into the ledger together. Without a handler of dead
// letters, or when that fails, each goes to the dead-letter queue. Each delivery is settled by
// itself.
func (h *shared) absent(ctx context.Context, items []item, kind, what string) {
	if len(items) == 0 {
		return
	}
	left := items
	if h.handler != nil {
		bounded, cancel := context.WithTimeout(ctx, sideTimeout)
		defer cancel()
		left = h.recordAbsent(bounded, items, kind, what)
	}
	for _, it := range left {
		poison(ctx, h.logger, h.metrics, it, kind, deadletter.NoRow(what, it.execution))
	}
}

// recordAbsent writes messages about rows that do not exist into the ledger, acknowledges them and
// returns the others.
func (h *shared) recordAbsent(ctx context.Context, items []item, kind, what string) (left []item) {
	deadLetters := make([]*deadletter.Message, len(items))
	for i, it := range items {
		deadLetters[i] = deadletter.Read(it.delivery.AsDeadLetter(deadletter.NoRow(what, it.execution), it.attempts+1))
	}
	exist, err := h.handler.Absent(ctx, deadLetters)
	if err != nil {
		h.logger.WarnContext(telemetry.Often(ctx), "Messages about missing rows go to the dead-letter queue",
			"messages", len(items), "error", err)
		return items
	}
	for i, it := range items {
		if slices.Contains(exist, deadLetters[i]) {
			left = append(left, it)
			continue
		}
		h.metrics.poison(kind)
		if !it.settled() {
			continue
		}
		if err := it.delivery.Ack(); err != nil {
			h.logger.DebugContext(ctx, "Message could not be acknowledged and will be delivered again", "error", err)
		}
	}
	h.logger.WarnContext(telemetry.Often(ctx), "Messages about missing rows recorded in the ledger",
		"messages", len(items)-len(left), "message_type", kind, "what", what, "first", items[0].execution)
	return left
}
