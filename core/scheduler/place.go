package scheduler

import (
	"cmp"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/bounds"
	"github.com/attune-go/attune/core/placement"
)

// place finds a worker for an execution that every limit admits. An execution
// that can never be placed is ended here.
func (b *Batch) place(w admission.Waiter) admission.Answer {
	if b.RefuseDeep(w.ExecutionID, w.ActionID, w.ActionRef, w.Config) {
		return admission.End()
	}
	rule, ok := b.plan.Rule(&w.ActionID, w.ActionRef)
	if !ok {
		b.Fail(w.ExecutionID, w.ActionID, w.ActionRef, "action not found", "the action no longer exists")
		return admission.End()
	}
	need, err := needs(rule, w)
	if err != nil {
		b.Fail(w.ExecutionID, w.ActionID, w.ActionRef, unreadable(err), unreadable(err))
		return admission.End()
	}
	verdict := b.fleet.Choose(need)
	switch verdict.Outcome {
	case placement.Placed:
		return admission.Grant(verdict.Worker, b.fleet.Worker(verdict.Worker).Most())
	case placement.Busy:
		return admission.WaitFor(need.Kind(), verdict.Reason)
	case placement.NoWorkers, placement.Incompatible:
	}
	// Execution waits as well while workers that seem to be away could not say that they are there.
	mayWait := b.scheduler.cfg.WaitForWorkers || b.scheduler.cfg.Recovering()
	if mayWait && (verdict.Outcome == placement.NoWorkers || verdict.Absent) {
		return admission.WaitFor(need.Kind(), patience(verdict))
	}
	b.unplaced = true
	detail := cmp.Or(verdict.Detail, "the execution cannot be placed on any worker")
	if verdict.Outcome == placement.Incompatible {
		detail = verdict.Reason // what people are shown of a result is its message
	}
	b.Fail(w.ExecutionID, w.ActionID, w.ActionRef, verdict.Reason, detail)
	return admission.End()
}

// RefuseDeep fails an execution whose parameters are nested deeper than may be read
// again. Such a row was written by another program: every entrance of ours refuses it.
func (b *Batch) RefuseDeep(id, actionID int64, actionRef string, config []byte) bool {
	err := bounds.TooDeep("parameters", config)
	if err != nil {
		b.Fail(id, actionID, actionRef, "parameters cannot be read", err.Error())
	}
	return err != nil
}

// unreadable is why an execution fails whose needs are written badly. To repeat
// it would be no use.
func unreadable(err error) string { return "no worker fits: " + err.Error() }

// patience says what an execution waits for that no live worker can take.
func patience(verdict placement.Verdict) string {
	if verdict.Detail == "" {
		return verdict.Reason
	}
	return verdict.Reason + "; " + verdict.Detail
}

// needs is what an execution asks of its worker: what its action does, unless
// its own row says something else, away from where it has failed.
func needs(rule Rule, w admission.Waiter) (placement.Need, error) {
	need, err := rule.Need.Override(w.Selector, w.Tolerations, w.Affinity)
	need.Avoid = w.Avoid
	return need, err
}

// Choose finds a worker for an execution that holds its slot already, and takes
// room there, but ends nothing and lets nobody wait. With fence it is one that
// refuses dispatches of older attempts. except is a worker that is not chosen; 0
// if all may be. An execution whose action is gone, or whose own row cannot be
// read, fits nowhere.
func (b *Batch) Choose(w admission.Waiter, fence bool, except int64) placement.Verdict {
	rule, ok := b.plan.Rule(&w.ActionID, w.ActionRef)
	if !ok {
		return placement.Verdict{Outcome: placement.Incompatible, Reason: "action not found"}
	}
	need, err := needs(rule, w)
	if err != nil {
		return placement.Verdict{Outcome: placement.Incompatible, Reason: unreadable(err)}
	}
	need.Fence, need.Except = fence, except
	verdict := b.fleet.Choose(need)
	if verdict.Outcome == placement.NoWorkers || verdict.Outcome == placement.Incompatible {
		b.unplaced = true // by workers that may have been read a moment ago
	}
	return verdict
}
