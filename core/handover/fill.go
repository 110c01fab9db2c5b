package handover

import "context"

// Fill is the step that gives free slots to waiting heads. It stands after
// the releases and before the newcomers, so that nobody overtakes. Queues
// names queues to try besides those that other steps lock and those that wait
// for a worker.
type Fill struct {
	Queues []int64
}

// Executions implements Step.
func (Fill) Executions() []int64 { return nil }

// Plan implements Step.
func (f Fill) Plan(_ context.Context, plan *Plan) error {
	for _, id := range f.Queues {
		plan.NeedQueue(id)
	}
	return nil
}

// Apply implements Step.
func (Fill) Apply(round *Round) { round.Promote() }

var _ Step = Fill{}
