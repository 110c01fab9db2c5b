package engine

import (
	"context"
	"slices"
	"time"

	"github.com/attune-go/attune/core/handover"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/store"
)

// orchestra starts workflows and leads them on.
type orchestra interface {
	Begin(executions ...int64)
	Advance(tasks ...handover.Task)
}

// after deals with what a committed round could not use.
func (h *hot) after(ctx context.Context, items []item, early []int64, result handover.Result) {
	items = h.keep(items, result)
	h.unfilled = append(h.unfilled, result.Unfilled...)
	if result.Wake > 0 {
		h.wake.in(result.Wake, time.Now())
	}
	for _, id := range early {
		h.metrics.early()
		h.logger.DebugContext(ctx, "Completion of an execution that has not ended", "execution_id", id)
	}
	h.repeated(ctx, result)
	if h.workflows != nil {
		h.workflows.Begin(result.Starts...)
		h.workflows.Advance(result.Tasks...)
	}
	missing := map[int64]bool{}
	for _, id := range result.Missing {
		missing[id] = true
	}
	var ended, requested []item // that have no row
	for _, it := range items {
		switch {
		case it.letter != nil:
			h.settleLetter(ctx, it)
		case it.delivery == nil:
		case missing[it.execution]:
			excess, full := h.missing(ctx, it)
			switch {
			case !full:
			case excess.ended:
				ended = append(ended, excess)
			default:
				requested = append(requested, excess)
			}
		case it.alone:
			if err := it.delivery.Ack(); err != nil {
				h.logger.DebugContext(ctx, "Message could not be acknowledged and comes again", "error", err)
			}
		}
	}
	h.absent(ctx, ended, message.TypeExecutionCompleted, "execution")
	h.absent(ctx, requested, message.TypeExecutionRequested, "execution")
}

// sideTimeout bounds what the loop does besides its rounds.
const sideTimeout = 5 * time.Second

// putBack has claims that nobody finished asked for again. Without the database
// they are left to the sweep, which finds them too.
func (h *hot) putBack(ctx context.Context, stale []int64) {
	if len(stale) == 0 || h.reclaim == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sideTimeout)
	defer cancel()
	reclaimed, err := h.reclaim(ctx, stale)
	if store.ClassOf(err) == store.ClassInstallation {
		return // the loop that looks for them says so
	}
	if err != nil {
		h.logger.WarnContext(ctx, "Stale claims could not be put back yet", "executions", stale, "error", err)
		return
	}
	h.reclaimed = append(h.reclaimed, reclaimed...)
}

// repeated tells of executions that are repeated.
func (h *hot) repeated(ctx context.Context, result handover.Result) {
	for _, row := range result.Repeated {
		h.logger.InfoContext(ctx, "Execution is repeated", "execution_id", row.ID, "original_execution", row.OriginalExecution,
			"action_ref", row.ActionRef, "repetition", row.RetryCount)
	}
	if result.RetryIn > 0 && h.soon != nil {
		h.soon(result.RetryIn)
	}
}

// missing puts off a message whose row cannot be seen yet: it may have been sent
// before the row was committed. A message whose row does not come is returned in the
// end, to be given up.
func (h *hot) missing(ctx context.Context, it item) (excess item, full bool) {
	if it.attempts+1 >= maxAttempts {
		return it, true
	}
	if it.attempts == 0 {
		h.logger.InfoContext(ctx, "Execution of a message does not exist yet", "execution_id", it.execution)
	}
	return h.later.await(it, time.Now())
}

// withDisplaced adds those for whom no worker had room before, each once.
func (h *hot) withDisplaced(found []recovery.Stranded) []recovery.Stranded {
	left := h.displaced
	h.displaced = nil
	for _, one := range found {
		if !slices.Contains(left, one) {
			left = append(left, one)
		}
	}
	return left
}
