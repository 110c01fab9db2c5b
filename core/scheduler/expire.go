package scheduler

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
)

// ExpireStep ends executions that waited longer than their queue allows. It checks again under the
// lock: an execution that was admitted meanwhile, or whose queue was paused, stays.
type ExpireStep struct {
	ids     []int64
	allowed time.Duration
}

// NewExpireStep makes the step. allowed is the timeout of queues whose policies have none; 0 means
// no timeout.
func NewExpireStep(ids []int64, allowed time.Duration) *ExpireStep {
	return &ExpireStep{ids: ids, allowed: allowed}
}

// Executions implements Step.
func (s *ExpireStep) Executions() []int64 { return s.ids }

// Plan implements Step.
func (s *ExpireStep) Plan(_ context.Context, plan *Plan) error {
	for _, id := range s.ids {
		if row, ok := plan.Row(id); ok && row.Waits != 0 {
			plan.NeedQueue(row.Waits)
		}
	}
	return nil
}

// Apply implements Step.
func (s *ExpireStep) Apply(batch *Batch) {
	for _, id := range s.ids {
		fact, ok := batch.Ledger.Fact(id)
		if !ok || fact.Waits == nil || fact.Status != lifecycle.StatusRequested {
			continue
		}
		queue, locked := batch.Ledger.Queue(*fact.Waits)
		if !locked || queue.Paused {
			continue
		}
		allowed := s.allowed
		if queue.Timeout > 0 {
			allowed = queue.Timeout
		}
		begun := fact.Since
		if queue.Resumed.After(begun) {
			begun = queue.Resumed
		}
		if allowed > 0 && batch.Now().Sub(begun) > allowed {
			row, _ := batch.Row(id)
			batch.Expire(id, queue.ActionID, row.ActionRef, fact.Since, allowed)
		}
	}
}

// LostHolder is what a deleted execution held, or the queue in which it waited.
type LostHolder struct {
	Note     int64
	Queue    int64 // whose slot it held; 0 for none
	WaitedIn int64 // 0 for none
	Worker   *int64
	Scopes   []int64
}

// ReturnStep releases what deleted executions held.
type ReturnStep struct {
	lost []LostHolder
}

// NewReturnStep makes the step.
func NewReturnStep(lost []LostHolder) *ReturnStep { return &ReturnStep{lost: lost} }

// Executions implements Step.
func (s *ReturnStep) Executions() []int64 { return nil }

// Plan implements Step. It recounts the queue of a deleted waiting execution, because an earlier
// recount may have corrected it already.
func (s *ReturnStep) Plan(_ context.Context, plan *Plan) error {
	for _, lost := range s.lost {
		plan.NeedLost(lost.Note)
		if lost.Queue != 0 {
			plan.NeedRelease(lost.Queue, lost.Scopes)
		}
		if lost.WaitedIn != 0 {
			plan.NeedCount(lost.WaitedIn)
		}
	}
	return nil
}

// Apply implements Step.
func (s *ReturnStep) Apply(batch *Batch) {
	for _, lost := range s.lost {
		batch.Ledger.GiveBack(lost.Note)
	}
}

var (
	_ Step = (*ExpireStep)(nil)
	_ Step = (*ReturnStep)(nil)
)
