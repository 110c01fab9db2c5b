package scheduler

import (
	"context"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// Report says that an execution has ended.
type Report struct {
	Execution int64
	// Said is the reported status; empty if the report has none. The row decides, and a
	// contradicting report is recorded.
	Said lifecycle.Status
	// Unreported is set when a sweep found the row because no report came. The batch then announces
	// the end in the worker's place.
	Unreported bool
	// ActionID and ActionRef are the action that the report names; the row decides.
	ActionID  int64
	ActionRef string
}

// CompletionConfig configures the step.
type CompletionConfig struct {
	Retry lifecycle.RetryPolicy
	// Chance returns a number in [0, 1) that spreads the retry delays; nil means no spreading.
	Chance func() float64
}

// CompletionStep handles execution.completed. It releases the slot and the worker capacity of every
// ended execution, so that the batch can promote waiting executions. It repeats ended executions
// whose retry policy allows it.
//
// The row decides, never the message: existing workers report "Completed" for failed actions. A
// report about an execution that has not ended changes nothing. The stored holder guards each
// release: any number of deliveries, in any order, to any number of replicas, releases once
// (invariants S7, S14). An execution that ended while it waited (another service cancelled it)
// leaves its queue.
type CompletionStep struct {
	cfg     CompletionConfig
	reports []Report
	ids     []int64
	// early lists reported executions whose row has not ended.
	early []int64
	// outcomes are the ends to announce.
	outcomes map[int64]store.ReadOutcomesRow
	// questions are the inquiries that results open.
	questions *inquiry.Opening
}

// NewReleaseStep makes a step that only releases executions.
func NewReleaseStep(ids []int64) *CompletionStep {
	reports := make([]Report, len(ids))
	for i, id := range ids {
		reports[i].Execution = id
	}
	return NewCompletionStep(CompletionConfig{}, reports)
}

// NewCompletionStep makes the step for these reports; each execution must occur once.
func NewCompletionStep(cfg CompletionConfig, reports []Report) *CompletionStep {
	s := &CompletionStep{cfg: cfg, reports: reports, ids: make([]int64, len(reports))}
	for i, report := range reports {
		s.ids[i] = report.Execution
	}
	return s
}

// Executions implements Step.
func (s *CompletionStep) Executions() []int64 { return s.ids }

// Hint implements Hinted.
func (s *CompletionStep) Hint(ctx context.Context, plan *Plan) (bool, error) {
	hints := make([]Hint, len(s.reports))
	for i, report := range s.reports {
		if report.Unreported {
			return false, nil
		}
		hints[i] = Hint{ActionID: report.ActionID, ActionRef: report.ActionRef}
	}
	if err := plan.LoadHinted(ctx, hints); err != nil {
		return false, err
	}
	for i, report := range s.reports {
		if !plan.Spare(report.Execution).HintRelease(report.Execution, hints[i]) {
			return false, nil
		}
	}
	return true, nil
}

// Optimistic implements Optimistic.
func (s *CompletionStep) Optimistic() bool {
	return s.questions.Empty() && !slices.ContainsFunc(s.reports, func(r Report) bool { return r.Unreported })
}

// Plan implements Step.
func (s *CompletionStep) Plan(ctx context.Context, plan *Plan) error {
	var silent, asking []int64
	for _, report := range s.reports {
		row, ok := plan.Row(report.Execution)
		if !ok {
			continue
		}
		needs := plan.Spare(report.Execution)
		if row.HeldState != 0 {
			needs.Release(row.HeldState, row.Scopes)
		}
		if row.Waits != 0 {
			needs.Queue(row.Waits)
		}
		if row.Asks {
			asking = append(asking, report.Execution)
		}
		if report.Unreported {
			silent = append(silent, report.Execution)
		}
	}
	var err error
	if s.questions, err = inquiry.Read(ctx, plan.Queries(), asking); err != nil {
		return err
	}
	s.outcomes = nil
	if len(silent) == 0 {
		return nil
	}
	rows, err := plan.Queries().ReadOutcomes(ctx, silent)
	if err != nil {
		return fmt.Errorf("read how %d executions ended: %w", len(silent), err)
	}
	s.outcomes = make(map[int64]store.ReadOutcomesRow, len(rows))
	for _, row := range rows {
		s.outcomes[row.ID] = row
	}
	return nil
}

// Apply implements Step.
func (s *CompletionStep) Apply(batch *Batch) {
	s.early = s.early[:0]
	for _, report := range s.reports {
		fact, ok := batch.Ledger.Fact(report.Execution)
		switch {
		case !ok:
		case !fact.Status.Terminal():
			s.early = append(s.early, report.Execution)
		case batch.Left(report.Execution):
			// Another batch holds its queue: the caller reports it again.
		default:
			s.end(batch, report, fact.Status)
		}
	}
	// The inquiries open in the transaction that processes the ends. A second batch for the same
	// execution fails on the guard and reads again.
	if !s.questions.Empty() {
		batch.openInquiries(s.questions)
	}
}

// end applies all consequences of an end. It releases the slot and repeats the execution once,
// however often the end is reported.
func (s *CompletionStep) end(batch *Batch, report Report, status lifecycle.Status) {
	released := batch.Release(report.Execution)
	withdrawn := batch.Ledger.Withdraw(report.Execution)
	// Existing workers report completed for every end, so completed contradicts nothing.
	if said := report.Said; said.Terminal() && said != lifecycle.StatusCompleted && said != status {
		batch.Contradict(report.Execution, said)
	}
	if outcome, ok := s.outcomes[report.Execution]; ok && (released || withdrawn) {
		batch.Announce(outcome)
	}
	batch.finish(report.Execution)
	row, _ := batch.Row(report.Execution)
	if row.Status != status {
		batch.Replan() // it ended after the read: the cause and its inquiries are not known yet
		return
	}
	if status.Succeeded() || status == lifecycle.StatusCancelled {
		if row.Workflow != 0 {
			batch.TaskEnded(row.Workflow, report.Execution)
		}
		return
	}
	if row.Repeated {
		return
	}
	if verdict := s.verdict(row); verdict.Retry {
		batch.Repeat(report.Execution, verdict.Reason, verdict.Delay)
		return
	}
	if row.Workflow != 0 {
		batch.TaskEnded(row.Workflow, report.Execution)
	}
}

// verdict decides whether an ended execution is repeated. A workflow repeats its own tasks that a
// worker started. Tasks that never started are repeated like any lost work.
func (s *CompletionStep) verdict(row store.ReadBatchExecutionsRow) lifecycle.RetryVerdict {
	allowed, chance := int(row.AllowedRetries), 0.5 // the middle: no spreading
	if row.Workflow != 0 {
		allowed = 0
	}
	if s.cfg.Chance != nil {
		chance = s.cfg.Chance()
	}
	return s.cfg.Retry.Decide(lifecycle.Ended{
		Status: row.Status, Error: row.Error, EndedBy: row.EndedBy, Started: row.StartedAt != nil,
		Retries: int(row.RetryCount), MaxRetries: allowed, ByAction: row.ActionAllows, Adopted: row.Adopted,
		CancelAsked: row.CancelAsked,
	}, chance)
}

// Early lists reported executions whose row has not ended. It is valid after the batch.
func (s *CompletionStep) Early() []int64 { return s.early }

var _ Hinted = (*CompletionStep)(nil)
