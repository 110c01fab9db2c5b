package completion

import (
	"context"

	"github.com/attune-go/attune/core/handover"
)

// Step releases a batch of executions that were reported as ended.
type Step struct {
	ids []int64
	// early lists reported executions whose row has not ended.
	early []int64
}

// New makes the step for these executions.
func New(ids []int64) *Step { return &Step{ids: ids} }

// Executions implements handover.Step.
func (s *Step) Executions() []int64 { return s.ids }

// Plan implements handover.Step.
func (s *Step) Plan(_ context.Context, plan *handover.Plan) error {
	for _, id := range s.ids {
		row, ok := plan.Row(id)
		if !ok {
			continue
		}
		if row.AdmissionStateID != nil {
			plan.NeedRelease(*row.AdmissionStateID, row.Worker, row.Scopes)
		}
		if row.Waits != 0 {
			plan.NeedQueue(row.Waits)
		}
	}
	return nil
}

// Apply implements handover.Step.
func (s *Step) Apply(round *handover.Round) {
	s.early = s.early[:0]
	for _, id := range s.ids {
		fact, ok := round.Ledger.Fact(id)
		switch {
		case !ok:
		case !fact.Status.Terminal():
			s.early = append(s.early, id)
		default:
			round.Release(id)
			round.Ledger.Withdraw(id)
		}
	}
}

// Early lists executions that were reported as ended although their row says
// they have not. It is valid after the round.
func (s *Step) Early() []int64 { return s.early }

var _ handover.Step = (*Step)(nil)
