package scheduler

import (
	"context"
	"fmt"
	"log/slog"
)

// log names the executions that the committed batch decided about. Moved and ended ones are logged
// at warn and info, admitted and waiting ones at debug.
func (b *Batch) log(ctx context.Context, logger *slog.Logger) {
	for _, m := range b.moves {
		b.of(m.candidate.ExecutionID, logger).WarnContext(ctx, "Execution moved to another worker",
			"execution_id", m.candidate.ExecutionID, "action_ref", m.candidate.ActionRef,
			"attempt", m.candidate.Attempt+1, "worker_id", m.to, "from_worker_id", m.from, "cause", m.cause)
	}
	for _, s := range b.stops {
		text := fmt.Sprintf("Execution %d was not started by its worker, marking as failed", s.execution)
		if s.cause == CauseOverdue {
			// This line is published.
			text = fmt.Sprintf("Execution %d has been scheduled for too long, marking as failed", s.execution)
		}
		b.of(s.execution, logger).WarnContext(ctx, text, //nolint:sloglint // users look for these lines
			"execution_id", s.execution, "action_ref", s.actionRef, "attempt", s.candidate.Attempt,
			"worker_id", s.worker, "cause", s.cause)
	}
	for _, e := range b.endings {
		b.of(e.execution, logger).InfoContext(ctx, "Execution ended before its start", "execution_id", e.execution,
			"action_ref", e.actionRef, "status", string(e.status), "result", string(e.result))
	}
	if !logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for _, e := range b.Ledger.Entries() {
		// This line is published.
		text := fmt.Sprintf("Enqueued exec %d at position %d for action %d", e.Execution, e.Position, e.Action)
		logger.DebugContext(ctx, text, //nolint:sloglint // as above
			"execution_id", e.Execution, "queue_id", e.Queue)
	}
	for _, g := range b.Ledger.Granted() {
		text := "Execution admitted"
		if g.Promoted() {
			text = "Execution promoted"
		}
		b.of(g.ExecutionID, logger).DebugContext(ctx, text, //nolint:sloglint // one of two constants
			"execution_id", g.ExecutionID, "action_ref", g.ActionRef, "queue_id", g.Queue, "worker_id", g.Worker,
			"waited", b.Ledger.Clock.Sub(g.Created).String())
	}
}
