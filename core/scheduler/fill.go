package scheduler

import "context"

// FillStep gives free slots to waiting executions. It runs after the releases and before new
// requests, so the queues stay FIFO. Queues and Spare name queues to try besides the queues that
// other steps lock and the queues that wait for a worker.
type FillStep struct {
	Queues []int64
	// Spare are queues whose locks the batch does not wait for. Result.Held names the ones that
	// another batch holds. A batch that leaves nothing treats them like Queues.
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
		if plan.spares {
			plan.releases[id] += 0 // wanted, and not waited for
		} else {
			plan.NeedQueue(id)
		}
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
