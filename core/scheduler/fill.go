package scheduler

import "context"

// Fill is the step that gives free slots to waiting heads. It stands after
// the releases and before the newcomers, so that nobody overtakes. Queues and Spare
// name queues to try besides those that other steps lock and those that wait
// for a worker.
type Fill struct {
	Queues []int64
	// Spare are queues that are not waited for: Result.Held names the ones that another
	// round held. In a round that leaves nothing they are like Queues.
	Spare []int64
}

// Executions implements Step.
func (Fill) Executions() []int64 { return nil }

// Plan implements Step.
func (f Fill) Plan(_ context.Context, plan *Plan) error {
	for _, id := range f.Queues {
		plan.NeedQueue(id)
	}
	for _, id := range f.Spare {
		plan.spareQueue(id)
	}
	return nil
}

// Apply implements Step.
func (f Fill) Apply(round *Round) {
	for _, id := range f.Spare {
		if round.Ledger.Held(id) {
			round.held = append(round.held, id)
		}
	}
	round.Promote()
}

var _ Step = Fill{}
