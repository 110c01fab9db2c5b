package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
)

// workflowRunner starts and advances workflows.
type workflowRunner interface {
	Begin(executions ...int64)
	Advance(tasks ...scheduler.Task)
}

// after handles what a committed batch could not process.
func (l *lane) after(ctx context.Context, items []item, early []int64, result scheduler.Result) {
	items = l.keep(items, result)
	l.fill(result)
	if result.Wake > 0 {
		l.wake.after(result.Wake, time.Now())
	}
	for _, id := range early {
		l.metrics.tooEarly.Inc()
		l.logger.DebugContext(ctx, "Completion of an execution that has not ended", "execution_id", id)
	}
	l.repeated(ctx, result)
	if l.workflows != nil {
		l.workflows.Begin(result.Starts...)
		l.workflows.Advance(result.Tasks...)
	}
	missing := setOf(result.Missing)
	var ended, requested []item // without a row
	for _, it := range items {
		switch {
		case it.deadLetter != nil:
			l.settleDeadLetter(ctx, it)
		case it.delivery == nil:
		case missing[it.execution]:
			excess, full := l.missing(ctx, it)
			switch {
			case !full:
			case excess.ended:
				ended = append(ended, excess)
			default:
				requested = append(requested, excess)
			}
		case it.settled():
			l.decided = append(l.decided, it.delivery)
		}
	}
	l.absent(ctx, ended, message.TypeExecutionCompleted, "execution")
	l.absent(ctx, requested, message.TypeExecutionRequested, "execution")
}

func setOf(ids []int64) map[int64]bool {
	set := make(map[int64]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// sideTimeout bounds the loop's work outside of batches.
const sideTimeout = 5 * time.Second

// reclaimStale requests executions with unfinished claims again. Without the database it leaves
// them to the sweep.
func (l *lane) reclaimStale(ctx context.Context, stale []int64) {
	if len(stale) == 0 || l.reclaim == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sideTimeout)
	defer cancel()
	reclaimed, err := l.reclaim(ctx, stale)
	if store.ClassOf(err) == store.ClassInstallation {
		return // the loop that finds them logs it
	}
	if err != nil {
		l.logger.WarnContext(ctx, "Stale claims could not be put back yet", "execution_ids", stale, "error", err)
		return
	}
	l.reclaimed = append(l.reclaimed, reclaimed...)
}

func (h *shared) repeated(ctx context.Context, result scheduler.Result) {
	for _, row := range result.Repeated {
		original := row.ID
		if row.OriginalExecution != nil {
			original = *row.OriginalExecution
		}
		h.logger.InfoContext(ctx, "Execution is repeated", "execution_id", row.ID, "original_execution_id", original,
			"action_ref", row.ActionRef, "retry", row.RetryCount)
	}
	if result.RetryIn > 0 && h.soon != nil {
		h.soon(result.RetryIn)
	}
}

// missing postpones a message whose row is not visible yet: the message may precede the commit. If
// the row never appears, the caller gives the message up.
func (l *lane) missing(ctx context.Context, it item) (excess item, full bool) {
	if it.lastAwait() {
		return it, true
	}
	if it.attempts == 0 {
		l.logger.InfoContext(telemetry.Often(ctx), "Execution of a message does not exist yet",
			"execution_id", it.execution)
	}
	return l.later.await(it, time.Now())
}

// unstartedList holds executions whose worker will not start them and for which no other worker had
// capacity yet. The next batch of any lane tries them, before waiting executions.
type unstartedList struct {
	mu   sync.Mutex
	left []scheduler.Unstarted // guarded by mu
}

func (d *unstartedList) add(left []scheduler.Unstarted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = append(d.left, left...)
}

// take returns the held executions and the newly found ones, each once.
func (d *unstartedList) take(found []scheduler.Unstarted) []scheduler.Unstarted {
	d.mu.Lock()
	left := d.left
	d.left = nil
	d.mu.Unlock()
	for _, one := range found {
		if !slices.Contains(left, one) {
			left = append(left, one)
		}
	}
	return left
}
