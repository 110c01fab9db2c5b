package engine

import (
	"context"
	"log/slog"
)

// poison dead-letters a delivery that cannot be processed.
func poison(ctx context.Context, logger *slog.Logger, metrics *Metrics, it item, kind string, cause error) {
	d := it.delivery
	metrics.poison(kind)
	logger.WarnContext(ctx, "Message dead-lettered",
		"message_id", d.MessageID, "message_type", kind, "bytes", len(d.Body), "attempts", it.attempts+1, "reason", cause)
	d.GiveUp(ctx, cause, it.attempts+1)
}
