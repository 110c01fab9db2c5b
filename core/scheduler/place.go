package scheduler

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/placement"
)

// place finds a worker for an execution that every limit admits. It ends an execution that no
// worker can ever run, and one whose end was requested: the batch may come before the poll of cancel
// requests.
func (b *Batch) place(w admission.Candidate) admission.Answer {
	if w.Cancel != nil {
		result := map[string]any{
			"error": "Cancelled", "message": "cancelled on request before it started", "action_ref": w.ActionRef,
			"cancelled_by": "execution_scheduler", "cancelled_at": b.Now(),
		}
		_ = json.Unmarshal(w.Cancel, &result) // an object of texts: who requested it, and why
		b.end(ending{
			execution: w.ExecutionID, actionID: w.ActionID, actionRef: w.ActionRef, status: lifecycle.StatusCancelled,
			result: encode(result),
		})
		return admission.End()
	}
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
	if until, waits := b.awaits(w, verdict); waits {
		return admission.WaitForReturn(need.Kind(), waitReason(verdict), until)
	}
	b.failUnplaced(w, verdict)
	return admission.End()
}

// awaits reports whether an execution waits although no live worker can take it, and until when;
// zero means for ever. It waits if it was accepted while a worker lived that fits: until the grace
// after that worker's last sign. Stored times decide, so all replicas agree.
func (b *Batch) awaits(w admission.Candidate, verdict placement.Verdict) (until time.Time, waits bool) {
	// During an outage workers may look absent because they cannot report.
	if (b.scheduler.cfg.WaitForWorkers || b.scheduler.cfg.Recovering()) &&
		(verdict.Outcome == placement.NoWorkers || verdict.Absent) {
		return time.Time{}, true
	}
	seen, accepts := verdict.Seen, verdict.Accepts
	if verdict.Renewed.After(seen) { // a worker that registered again with other capabilities may have fitted
		seen = verdict.Renewed
	}
	if verdict.Renewed.After(accepts) {
		accepts = verdict.Renewed
	}
	until = seen.Add(b.grace())
	return until, !w.Requested.After(accepts) && until.After(b.Ledger.Clock)
}

// mayQueue reports whether a new execution may wait in its queue. It fails one that could not start
// although it had a slot, because no worker lives that fits: only executions accepted before wait
// for a worker to come back.
func (b *Batch) mayQueue(w admission.Candidate) bool {
	if b.grace() == 0 {
		return true
	}
	verdict, waits := b.find(w)
	if !waits {
		b.failUnplaced(w, verdict)
	}
	return waits
}

// find reports whether a worker lives that fits, or whether the execution awaits one.
func (b *Batch) find(w admission.Candidate) (placement.Verdict, bool) {
	rule, ok := b.plan.Rule(&w.ActionID, w.ActionRef)
	if !ok {
		return placement.Verdict{}, true // its turn ends it
	}
	need, err := needs(rule, w)
	if err != nil {
		return placement.Verdict{}, true
	}
	verdict := b.fleet.Find(need)
	_, waits := b.awaits(w, verdict)
	return verdict, waits || verdict.Outcome == placement.Placed || verdict.Outcome == placement.Busy
}

func (b *Batch) grace() time.Duration {
	if b.scheduler.cfg.NoWorkersGrace == nil {
		return 0
	}
	return b.scheduler.cfg.NoWorkersGrace(b.scheduler.fleet.isAdopted())
}

// failUnplaced fails an execution that no worker can take.
func (b *Batch) failUnplaced(w admission.Candidate, verdict placement.Verdict) {
	b.unplaced = true
	detail := cmp.Or(verdict.Detail, "the execution cannot be placed on any worker")
	if verdict.Outcome == placement.Incompatible {
		detail = verdict.Reason // users read the message of a result
	}
	b.Fail(w.ExecutionID, w.ActionID, w.ActionRef, verdict.Reason, detail)
}

// RefuseDeep fails an execution whose parameters are nested too deeply to be read again. Another
// program wrote such a row: all our entry points refuse it.
func (b *Batch) RefuseDeep(id, actionID int64, actionRef string, config []byte) bool {
	err := jsonvalue.TooDeep("parameters", config)
	if err != nil {
		b.Fail(id, actionID, actionRef, "parameters cannot be read", err.Error())
	}
	return err != nil
}

// unreadable is the reason for failing an execution whose placement is invalid. A retry would
// fail again.
func unreadable(err error) string { return "no worker fits: " + err.Error() }

// waitReason is the reason for waiting of an execution that no live worker can take.
func waitReason(verdict placement.Verdict) string {
	if verdict.Detail == "" {
		return verdict.Reason
	}
	return verdict.Reason + "; " + verdict.Detail
}

// needs returns the placement of an execution: its action's, overridden by its row, avoiding
// workers where it failed.
func needs(rule Rule, w admission.Candidate) (placement.Need, error) {
	need, err := rule.Need.Override(w.Placement)
	need.Avoid = w.Avoid
	return need, err
}

// Choose finds a worker for an execution that already holds its slot, and takes capacity there. It
// ends nothing and queues nothing. fence requires a worker that refuses dispatches of older
// attempts. except excludes a worker; 0 excludes none. An execution without an action, or with an
// unreadable placement, fits no worker.
func (b *Batch) Choose(w admission.Candidate, fence bool, except int64) placement.Verdict {
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
		b.unplaced = true // the cached list of workers may be old
	}
	return verdict
}
