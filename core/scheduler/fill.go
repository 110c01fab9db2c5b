package scheduler

import "context"

// FillStep is the step that gives free slots to waiting heads. It stands after
// the releases and before the newcomers, so that nobody overtakes. Queues and Spare
// name queues to try besides those that other steps lock and those that wait
// for a worker.
type FillStep struct {
	Queues []int64
	// Spare are queues that are not waited for: Result.Held names the ones that another
	// batch held. In a batch that leaves nothing they are like Queues.
	Spare []int64
}

// Executions implements Step.
func (FillStep) Executions() []int64 { return nil }

// Optimistic implements Optimistic.
func (f FillStep) Optimistic() bool { return len(f.Queues)+len(f.Spare) == 0 }

// Plan implements Step.
func (f FillStep) Plan(_ context.Context, plan *Plan) error {
	for _, id := range f.Queues {
		plan.NeedQueue(id)
	}
	for _, id := range f.Spare {
		plan.spareQueue(id)
	}
	return nil
}

// Apply implements Step.
func (f FillStep) Apply(batch *Batch) {
	for _, id := range f.Spare {
		if batch.Ledger.Held(id) {
			batch.held = append(batch.held, id)
		}
	}
	batch.Promote()
}

var _ Step = FillStep{}
